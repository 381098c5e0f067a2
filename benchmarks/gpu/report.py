"""The results as Markdown: the card, the tests, the targets, and each figure.

It is made from plain data, and says of what is missing why it is.
"""

from collections import Counter
from collections.abc import Iterator

from benchmarks.gpu.results import (
    CONTENDERS,
    FIT,
    MIRRORED,
    PRODUCTS,
    TARGETS,
    Figure,
    Results,
    TestFile,
    value_of,
)
from benchmarks.gpu.workloads import LOSS_TOLERANCES, PRECISIONS, WORKLOADS
from benchmarks.report_text import NOTHING, difference, figure, table
from benchmarks.results import ratio
from benchmarks.workloads import matrix_products
from mirrored.distribute.bandwidth import HEADING, Measurement

TITLES = {contender.name: contender.title for contender in CONTENDERS}

HEADER = (
    *("contender", "best", "median", "to products", "to mirrored"),
    *("rounds", "steps", "losses differ"),
)

METHOD = """\
Microseconds a step, the median of the rounds in which all contenders of a table took turns; those \
that waited were suspended. A turn is as many steps on one batch that stays on the card as last \
about {seconds:g} s, timed on the host from the first call until the card has done the last of \
them: so it is for every contender, since JAX has no events of CUDA to offer. The optimizer is \
plain SGD. *float32* has TF32 off in all of them; *tf32* has it on; *bfloat16* is the policy \
`mixed_bfloat16` for mirrored, autocast over float32 weights for PyTorch, and a cast of float32 \
weights inside the step for JAX. *Products alone* are the step's matrix products through cuBLAS \
as one CUDA graph, its default algorithms and 32 MiB of workspace. *fit from host arrays* shuffles \
and copies batches besides, which no other row does. Losses of the first steps are compared with \
the middle one of all contenders; one whose losses differ more than \
{tolerances} takes no part in ratios."""


ALL_REDUCES = """\
What each of some devices adds, the time of one all-reduce, and the bandwidths, as \
`python -m mirrored selftest` prints them and [collectives.md](explanation/collectives.md) \
explains them. Virtual GPUs and ranks of one card share that card: there is no link between them, \
and figures say what summing costs there, not how fast cards are connected. *#wrong* is to be 0."""


def markdown(results: Results, seconds: float) -> str:
    """Return the whole page.

    Args:
        results: What was found.
        seconds: How long a turn was meant to last.
    """
    parts = ["# GPU results", opening(results)]
    parts += ["## Machine", *machine(results), "## Tests", *tests(results)]
    if results.all_reduces:
        parts += ["## All-reduces", ALL_REDUCES, *all_reduces(results)]
    if results.figures:
        how = ", ".join(f"{value:g} ({name})" for name, value in LOSS_TOLERANCES.items())
        parts += ["## Targets", targets(results), "## Step"]
        parts += [METHOD.format(seconds=seconds, tolerances=how), *speed(results)]
    return "\n\n".join(parts) + "\n"


def opening(results: Results) -> str:
    """Return what the page is, and what it is not."""
    text = "Written by `python3 -m benchmarks.gpu`; [gpu.md](gpu.md) says how."
    if results.simulated:
        text += " **A simulated GPU stood in for the card: no figure here means anything.**"
    if not results.complete:
        text += " **The run did not come to its end: what is missing was not run.**"
    return text


# ---------------------------------------------------------------------------- machine


def machine(results: Results) -> Iterator[str]:
    """Yield the facts of the machine, what is missing, and what the library itself reports."""
    yield "\n".join(f"- {name}: {value}" for name, value in results.machine.items())
    if results.missing:
        yield "\n".join(
            f"- {name} is not installed: {without}" for name, without in results.missing.items()
        )
    if results.devices:
        yield "`python -m mirrored devices`:"
        yield fenced(results.devices)


def fenced(text: str) -> str:
    """Return text as it is."""
    return f"```text\n{text.rstrip()}\n```"


# ---------------------------------------------------------------------------- tests


def tests(results: Results) -> Iterator[str]:
    """Yield a table of all tests by function, and whatever did not pass."""
    if not results.files:
        yield "Not run."
        return
    count = Counter(test["outcome"] for file in results.files for test in file.tests)
    said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items()))
    yield f"{said or 'None'}, in {sum(file.seconds for file in results.files):.0f} s."
    rows = [row for file in results.files for row in functions(file)]
    yield table(["test", "passed", "skipped", "failed", "seconds"], rows)
    for file in results.files:
        yield from troubles(file)


def functions(file: TestFile) -> Iterator[list[str]]:
    """Yield a row for each function of a file: how many of its cases ended how."""
    cases: dict[str, list[dict[str, object]]] = {}
    for test in file.tests:
        cases.setdefault(str(test["test"]).partition("[")[0], []).append(test)
    for name, own in cases.items():
        ended = Counter(str(entry["outcome"]) for entry in own)
        failed = len(own) - ended["passed"] - ended["skipped"]
        seconds = sum(float(str(entry["seconds"])) for entry in own)
        cells = (ended["passed"], ended["skipped"], failed)
        yield [f"`{name}`", *(str(cell) if cell else NOTHING for cell in cells), f"{seconds:.1f}"]


def troubles(file: TestFile) -> Iterator[str]:
    """Yield each test that did not pass, with its reason, and how the process ended."""
    reasons = Counter(
        (str(test["test"]).partition("[")[0], str(test["text"]).strip())
        for test in file.tests
        if test["outcome"] == "skipped"
    )
    if reasons:
        yield "\n".join(
            f"- skipped, {number} of `{name}`: {reason}"
            for (name, reason), number in reasons.items()
        )
    for test in file.tests:
        if test["outcome"] not in ("passed", "skipped"):
            yield f"**{test['outcome']}**: `{test['test']}`"
            if test["text"]:
                yield fenced(str(test["text"]))
    if file.problem:
        yield f"**{file.name}** {file.problem}:"
        yield fenced(file.last_lines or "it said nothing")


# ---------------------------------------------------------------------------- all-reduces


def all_reduces(results: Results) -> Iterator[str]:
    """Yield a table of sums for each set of devices, and one of the steps that wait for them."""
    for where in dict.fromkeys(result.where for result in results.all_reduces):
        lines = [HEADING]
        for result in results.all_reduces:
            if result.where == where:
                lines += [str(Measurement(**row)) for row in result.rows]
                lines += [f"{result.collective:<25} {result.problem}"] if result.problem else []
        yield f"{where[0].upper()}{where[1:]}:"
        yield fenced("\n".join(lines))
    measured = [result for result in results.all_reduces if result.steps]
    if measured:
        names = list(dict.fromkeys(name for result in measured for name in result.steps))
        yield "Microseconds of a training step whose gradients they sum, float32, on one batch:"
        yield table(
            ["collective", "between", *names],
            [
                [
                    result.collective,
                    result.where,
                    *(figure(result.steps.get(name)) for name in names),
                ]
                for result in measured
            ],
        )


# ---------------------------------------------------------------------------- speed


def targets(results: Results) -> str:
    """Return each target's ratio with its limit, by precision and workload."""
    rows = []
    for by_precision in TARGETS:
        for precision in PRECISIONS:
            target = by_precision[precision]
            cells = [f"{target.title}, {precision}"]
            for workload in WORKLOADS:
                value = value_of(target, results, workload, precision)
                limit = target.limits.get(workload)
                if limit is None or value is None:
                    cells.append(NOTHING if limit is None else "not measured")
                    continue
                sign = "<=" if target.at_most else ">="
                met = "met" if target.met(workload, value) else "missed"
                cells.append(f"{value:.2f} ({sign} {limit:g}: {met})")
            rows.append(cells)
    return table(["ratio of medians", *WORKLOADS], rows)


def speed(results: Results) -> Iterator[str]:
    """Yield a table for each workload and precision, and what failed in it."""
    yield (
        "\n".join(
            f"- {module}: {', '.join(f'{name} {value}' for name, value in facts.items())}"
            for module, facts in results.facts.items()
        )
        or "No contender came up."
    )
    for workload in WORKLOADS:
        for precision in PRECISIONS:
            own = [
                figure
                for figure in results.figures
                if (figure.workload, figure.precision) == (workload, precision)
            ]
            if not own:
                continue
            yield f"### {workload}, {precision}"
            yield about(workload, results.clocks.get(f"{workload}, {precision}"))
            yield table(HEADER, [row(entry, results) for entry in own])
            problems = [
                f"- {TITLES[entry.contender]}: {entry.problem}" for entry in own if entry.problem
            ]
            if problems:
                yield "\n".join(problems)


def about(workload: str, clock: str | None) -> str:
    """Return the sizes of a workload, its work, and the clock after it was measured."""
    made = WORKLOADS[workload]
    flops = sum(product.flops for product in matrix_products(made))
    sizes = "-".join(map(str, made.sizes))
    return (
        f"{sizes}, batch {made.batch}; the products of a step are {flops / 1e9:.3g} billion "
        f"operations. Clock afterwards: {clock or 'unknown'}."
    )


def row(found: Figure, results: Results) -> list[str]:
    """Return a contender's cells."""
    where = (found.workload, found.precision)
    products, ours = results.median(PRODUCTS, *where), results.median(MIRRORED, *where)
    own = found.contender in (MIRRORED.name, FIT.name)
    error = difference(found.loss_error)
    return [
        TITLES[found.contender],
        figure(min(found.samples, default=None)),
        figure(found.median),
        NOTHING if found.contender == PRODUCTS.name else ratio_of(found.median, products),
        NOTHING if own and found.contender == MIRRORED.name else ratio_of(found.median, ours),
        str(len(found.samples)),
        str(found.steps),
        error if found.trusted else f"**{error}**",
    ]


def ratio_of(value: float | None, other: float | None) -> str:
    """Return a quotient as text."""
    found = ratio(value, other)
    return NOTHING if found is None else f"{found:.2f}"
