"""The report as Markdown: machine and versions, speed, targets, results, all-reduce.

It is made from plain data, so that a stored run can be shown again.
"""

from collections.abc import Callable, Iterable, Sequence

from benchmarks.environments import BY_NAME, MIRRORED, PRODUCTS, PRODUCTS_OF_PARTS
from benchmarks.results import (
    LOSS_TOLERANCE,
    TARGET_REPLICAS,
    TARGETS,
    Outcome,
    Report,
    Series,
    ratio,
    same_losses,
    value_of,
)
from benchmarks.workloads import RESULT_EPOCHS, TIMED, UNEVEN, Workload, matrix_products

NOTHING = "-"
NOTES = "## Notes on this run"  # What is written by hand begins here.


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and the others figures."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def figure(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits, without an exponent."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    magnitude = abs(value)
    places = 0
    while magnitude < 10 ** (digits - 1) and places < digits + 2:
        magnitude *= 10
        places += 1
    return f"{value:.{places}f}"


def difference(value: float | None) -> str:
    """Return a difference, which may be tiny."""
    return NOTHING if value is None else "0" if value == 0 else f"{value:.0e}"


def mebibytes(value: int | None) -> str:
    """Return bytes in MiB."""
    return NOTHING if value is None else f"{value / 2**20:.0f}"


def shortened(problem: str) -> str:
    """Return the kind of a problem: an exception's class, or how the process ended."""
    head = problem.partition(":")[0]
    return f"stops: {head}" if head.isidentifier() else head


def titled(name: str) -> str:
    """Return what the tables call a contender."""
    return BY_NAME[name].title if name in BY_NAME else name


# ---------------------------------------------------------------------------- the parts


def head(report: Report) -> str:
    """Return the machine, the versions and what is missing."""
    lines = [f"- {name}: {value}" for name, value in report.machine.items()]
    lines += [f"- skipped: {name} ({reason})" for name, reason in report.skipped.items()]
    return "\n".join(lines)


def contenders(report: Report) -> str:
    """Return version, import time, installed size and BLAS of each contender."""
    series = [entry for group in report.speed.values() for entry in group if entry.facts]
    series += [entry for group in report.scaling.values() for entry in group if entry.facts]
    rows = []
    for name in dict.fromkeys(entry.contender for entry in series):
        own = [entry for entry in series if entry.contender == name]
        facts = own[0].facts
        versions = [str(facts["version"])]
        versions += [f"{key} {facts[key]}" for key in ("keras", "numpy") if key in facts]
        rows.append(
            [
                titled(name),
                ", ".join(versions),
                figure(report.imports.get(name)),
                mebibytes(report.sizes.get(BY_NAME[name].environment)),
                str(facts.get("blas", NOTHING)),
            ]
        )
    return table(
        ["contender", "version", "import, s", "installed, MiB", "matrix products on"], rows
    )


def targets(report: Report) -> str:
    """Return each target's ratio with its limit."""
    rows = []
    for target in TARGETS:
        sign = "<=" if target.at_most else ">="
        cells = []
        for name in report.speed:
            value = value_of(target, report, name)
            if name not in target.limits:
                cells.append(NOTHING)
                continue
            wanted = f"{sign} {target.limits[name]:g}"
            if value is None:
                cells.append(f"{NOTHING} ({wanted})")
                continue
            met = "met" if target.met(name, value) else "missed"
            cells.append(f"{figure(value)} ({wanted}: {met})")
        rows.append([target.title, *cells])
    return table(["ratio of medians", *report.speed], rows)


def description(workload: Workload) -> str:
    """Return a workload's network, batch and matrix products in a sentence."""
    flops = sum(product.flops for product in matrix_products(workload))
    more = ", convolutions of 3 x 3" if workload.image else ""
    more += {"adam": ", Adam"}.get(workload.optimizer, "")
    if workload.normalized:
        more += ", with batch normalisation before the activations"
    return (
        f"{workload.network}{more}, batch {workload.batch}, {workload.steps} steps an epoch; "
        f"the matrix products of a step are {flops / 1e6:.3g} million operations."
    )


def speed(report: Report, name: str) -> str:
    """Return the steps of everybody on one workload."""
    products = report.median(name, PRODUCTS.name, 1)
    rows = []
    for series in report.speed[name]:
        ours = report.median(name, MIRRORED.name, series.replicas)
        compared = series.contender not in (MIRRORED.name, PRODUCTS.name, PRODUCTS_OF_PARTS.name)
        rows.append(
            [
                titled(series.contender),
                str(series.replicas),
                figure(series.best),
                figure(series.median) + ("*" if series.problem else ""),
                figure(ratio(series.median, products)),
                figure(ratio(series.median, ours)) if compared else NOTHING,
                mebibytes(series.memory),
                figure(series.from_start_s),
                figure(series.from_fit_s),
                _losses(series),
            ]
        )
    header = ["contender", "replicas", "best, us", "median, us", "to products", "to mirrored"]
    header += ["peak, MiB", "start to first step, s", "fit to first step, s", "losses differ"]
    return f"{table(header, rows)}{_problems(report.speed[name])}"


def _losses(series: Series) -> str:
    wrong = "" if same_losses(series) else " (not the same work)"
    return difference(series.loss_error) + wrong


def _problems(all_series: Sequence[Series]) -> str:
    lines = [
        f"- {titled(series.contender)} on {series.replicas}: {series.problem[:300]}"
        for series in all_series
        if series.problem
    ]
    return "\n\n" + "\n".join(lines) if lines else ""


def outcomes(report: Report) -> str:
    """Return the results for data that do not divide evenly."""
    replicas = sorted({outcome.replicas for outcome in report.outcomes})

    def block(title: str, text: Callable[[Outcome], str]) -> str:
        rows = [
            [
                titled(name),
                *(text(e) for n in replicas for e in by_name[name] if e.replicas == n),
            ]
            for name in by_name
        ]
        return table([title, *map(str, replicas)], rows)

    by_name: dict[str, list[Outcome]] = {}
    for outcome in report.outcomes:
        by_name.setdefault(outcome.contender, []).append(outcome)
    loss = block(
        "loss by number of replicas",
        lambda e: shortened(e.problem) if e.problem else figure(e.loss, 5),
    )
    weights = block(
        "largest weight difference from its own one device",
        lambda e: shortened(e.problem) if e.problem else difference(e.weight_difference),
    )
    plain = block(
        "largest weight difference from float64",
        lambda e: shortened(e.problem) if e.problem else difference(e.reference_difference),
    )
    problems = [
        f"- {titled(outcome.contender)} on {outcome.replicas}: {outcome.problem[:300]}"
        for outcome in report.outcomes
        if outcome.problem
    ]
    return "\n\n".join([loss, weights, plain, *(["\n".join(problems)] if problems else [])])


def all_reduces(report: Report) -> str:
    """Return what an all-reduce costs, beside a copy of the same bytes."""
    rows = []
    for result in report.all_reduces:
        if result.all_reduce_s is None or result.copy_s is None:
            rows.append(
                [result.workload, str(result.replicas), str(result.problem), *[NOTHING] * 3]
            )
            continue
        rows.append(
            [
                result.workload,
                str(result.replicas),
                f"{result.size / 2**20:.3g}",
                figure(result.size / result.all_reduce_s / 1e9),
                figure(result.size / result.copy_s / 1e9),
                figure(ratio(result.all_reduce_s, result.copy_s)),
            ]
        )
    header = ["gradients of", "replicas", "MiB a replica", "all-reduce, GB/s", "copy, GB/s"]
    return table([*header, "all-reduce / copy, time"], rows)


def scaling(report: Report) -> str:
    """Return mirrored's step over the number of replicas."""
    counts = sorted({entry.replicas for group in report.scaling.values() for entry in group})
    rows = []
    for name, group in report.scaling.items():
        medians = {entry.replicas: entry.median for entry in group}
        rows.append([f"{name}, us a step", *(figure(medians.get(n)) for n in counts)])
        one = medians.get(1)
        rows.append([f"{name}, to one", *(figure(ratio(medians.get(n), one)) for n in counts)])
    problems = "".join(_problems(group) for group in report.scaling.values())
    return table(["replicas", *map(str, counts)], rows) + problems


# ---------------------------------------------------------------------------- the whole


def markdown(report: Report, picture: str | None) -> str:
    """Return the whole report; parts that were not measured are left out."""
    sections = [
        "# Benchmark results",
        "Measured by `python -m benchmarks`, in one run in which all contenders took "
        f"{report.rounds} turns; [benchmarks/README.md](../../benchmarks/README.md) says how. "
        "Compare ratios, not times: machines are noisy.",
        "## Machine",
        head(report),
    ]
    if report.speed or report.scaling:
        sections += ["## Contenders", contenders(report)]
    if report.speed:
        sections += _speed_sections(report, picture)
    if report.outcomes:
        sections += [
            "## Results where data do not divide evenly",
            f"{UNEVEN.examples} examples in batches of {UNEVEN.batch}, a tanh network, SGD "
            f"{UNEVEN.learning_rate}, after {RESULT_EPOCHS} epochs in the data's order.",
            outcomes(report),
        ]
    if report.all_reduces:
        sections += [
            "## All-reduce of mirrored",
            "Bytes of one replica's gradients over the best time, beside one copy of them: of the "
            "eager call, which allocates its results. A recorded step's is part of the update.",
            all_reduces(report),
        ]
    if report.scaling:
        sections += ["## Cost of replicas of mirrored", scaling(report)]
    return "\n\n".join(sections) + "\n"


def _speed_sections(report: Report, picture: str | None) -> list[str]:
    sections = ["## Targets"]
    if report.replicas == TARGET_REPLICAS:
        sections.append(targets(report))
    else:
        sections.append(f"They are for {TARGET_REPLICAS} replicas, not {report.replicas}.")
    sections += [
        "## Speed",
        "Microseconds a step of `fit`, or of the loop that a row names. *To products* is the "
        "median's ratio to the matrix products alone, *to mirrored* to mirrored on as many "
        "replicas: above 1, mirrored is faster. Peak memory is the sum of all processes. Losses "
        "are compared with a float64 reference; "
        f"differences above {LOSS_TOLERANCE:g} are named. A star marks a contender that stopped.",
    ]
    if picture:
        sections.append(f"![Speed relative to the fastest other library]({picture})")
    for name in report.speed:
        sections += [f"### {name}", description(TIMED[name]), speed(report, name)]
    return sections


def with_notes(text: str, before: str) -> str:
    """Return a report with what was written by hand behind the one before.

    Args:
        text: The report.
        before: The file that it goes to; notes are kept, and speak of the run before until somebody
            writes new ones.
    """
    _, heading, notes = before.partition(NOTES)
    return f"{text.rstrip()}\n\n{heading}{notes}" if heading else text
