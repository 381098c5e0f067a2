"""The page on scaling: measurements, how near the model is to them, and what it says of cards.

It is made from plain data, so that stored figures can be shown again.
"""

from benchmarks.environments import MIRRORED, PRODUCTS, TORCH, Contender
from benchmarks.report_text import NOTHING, figure, table
from benchmarks.results import ratio
from benchmarks.scaling.assumptions import (
    CARDS,
    COUNTS,
    KERNEL,
    MODELS,
    NETWORKS,
    PRODUCTS_REACH,
    PUBLISHED,
    SOURCES,
    Published,
)
from benchmarks.scaling.curves import efficiency, speedup, step
from benchmarks.scaling.links import GB, all_reduce, bus_bandwidth
from benchmarks.scaling.measured import LAYOUTS, SIZES, Measured
from benchmarks.scaling.step import BUCKET

SHOWN = tuple(count for count in COUNTS if count in (1, 8, 16, 64, 256, 1024))
TOP = (
    "# Scaling\n\n"
    "**What is said here of cards is a model, and not a measurement.** There was no card to "
    "measure on. The first half of this page was measured, on one machine's processor, and shows "
    "what such a model is worth there. Sums between the cards of several workers have never run on "
    "real ones: the model is of NCCL over all cards, as "
    "[several-hosts.md](../howto/several-hosts.md#between-cards) says."
    "\n\nMade by `python -m benchmarks.scaling`."
)
PREDICTION = (
    "The model of a step takes the matrix products as they are, and gives all else of a one-device "
    "step to each worker, on a core of its own while there are enough. Then it adds one sum, of "
    "gradients and loss, *alpha + beta x bytes* from the table above; nothing runs beside it, "
    "since the cores that add are those that compute. The error is that of the model, as a part of "
    "what was measured."
)


def markdown(found: Measured, picture: str | None) -> str:
    """Return the whole page.

    Args:
        found: What was measured here.
        picture: The name of the file with the curves; None: there is none.
    """
    sections = [TOP, "## Measured here", _machine(found)]
    if found.steps:
        sections += ["### Steps", _steps(found)]
    if found.sums:
        sections += ["### Sums", _sums(found)]
    if found.steps and found.sums:
        sections += ["### The model beside it", PREDICTION, _predictions(found)]
    sections += _cards(picture)
    return "\n\n".join(sections) + "\n"


# ---------------------------------------------------------------------------- measured here


def _machine(found: Measured) -> str:
    lines = [f"- {name}: {value}" for name, value in found.machine.items()]
    versions = {}
    for series in (row for rows in found.steps.values() for row in rows):
        facts = series.facts
        if facts and series.contender in (MIRRORED.name, TORCH.name):
            numpy = f", NumPy {facts['numpy']}" if "numpy" in facts else ""
            versions[series.contender] = f"{facts['version']}{numpy}"
        if "mpi" in facts:
            versions["MPI"] = facts["mpi"]
    lines += [f"- {name}: {version}" for name, version in versions.items()]
    lines += [
        f"- no sums of {LAYOUTS[name][0].title}: {why}" for name, why in found.problems.items()
    ]
    return "\n".join(lines)


def _steps(found: Measured) -> str:
    rows: list[tuple[str, Contender, int]] = [
        ("matrix products alone", PRODUCTS, 1),
        ("one device", MIRRORED, 1),
        ("2 replicas of one process", MIRRORED, 2),
        *((contender.title, contender, workers) for contender, workers in LAYOUTS.values()),
        ("PyTorch, DDP on gloo, 2 processes", TORCH, 2),
    ]
    cells = []
    for title, contender, replicas in rows:
        fastest = [found.best(name, contender, replicas) for name in found.steps]
        if any(fastest):
            cells.append([title, *(_us(seconds) for seconds in fastest)])
    shared, _ = LAYOUTS["memory-2"]
    two = {name: found.best(name, shared, 2) for name in found.steps}
    for title, contender in (("2 replicas of one process", MIRRORED), ("PyTorch", TORCH)):
        ratios = [
            ratio(two[name], found.best(name, contender, 2))
            if contender is MIRRORED
            else ratio(found.best(name, contender, 2), two[name])
            for name in found.steps
        ]
        head = f"2 workers / {title}" if contender is MIRRORED else f"{title} / 2 workers"
        cells.append([f"ratio: {head}", *(figure(ratio) for ratio in ratios)])
    text = (
        f"The fastest of {found.rounds} turns, in microseconds a step of `fit`. The batch is that "
        "of all workers together."
    )
    if found.cores < 4:
        text += " Four workers are more than this machine has cores for."
    return f"{text}\n\n{table(['', *found.steps], cells)}"


def _sums(found: Measured) -> str:
    rows = []
    for name, seconds in found.sums.items():
        line = found.line(name)
        fitted = [NOTHING] * 2 if line is None else [_us(line.alpha), figure(line.beta * 1e9)]
        rows.append([LAYOUTS[name][0].title, *map(_us, seconds), *fitted])
    header = ["microseconds", *map(_size, SIZES), "alpha, us", "beta, ns a byte"]
    return (
        "One sum of float32 over all workers, and the line that is nearest to these.\n\n"
        + table(header, rows)
    )


def _predictions(found: Measured) -> str:
    rows = []
    for name, (contender, workers) in LAYOUTS.items():
        cells = []
        for workload in found.steps:
            expected, measured = (
                found.predicted(workload, name),
                found.best(workload, contender, workers),
            )
            if expected is None or measured is None:
                cells.append(NOTHING)
            else:
                cells.append(f"{_us(expected)} ({100 * (expected / measured - 1):+.0f}%)")
        if set(cells) != {NOTHING}:
            rows.append([contender.title, *cells])
    return table(["microseconds a step (error)", *found.steps], rows)


# ---------------------------------------------------------------------------- cards


def _cards(picture: str | None) -> list[str]:
    sections = [
        "## The model of many cards",
        _what_it_takes(),
        "\n".join(f"- {what}: <{where}>" for what, where in SOURCES.items()),
        "### Beside what others have measured",
        "All-reduces with NCCL. Sums in the switches, which it uses where it can, are not in the "
        "model, nor what a program takes to start one.\n\n" + _published(),
        "### What it says",
    ]
    if picture:
        sections.append(f"![Efficiency over the number of cards]({picture})")
    sections += [
        "Efficiency: how much of its speed alone a card has among so many, each with the batch of "
        "the benchmark for itself.",
        _efficiencies(),
        "Speed-up: how many times faster so many cards do one batch of the benchmark than one card "
        f"does, at {list(NETWORKS)[-1]}.",
        _speedups(),
        _reading(),
    ]
    return sections


def _what_it_takes() -> str:
    least = f"{KERNEL * 1e6:g} microseconds"
    return (
        "A card computes the forward pass, then the backward pass from the last layer on. "
        f"Gradients are put into buckets, each of which ends when it holds {BUCKET >> 20} MiB; its "
        "sum starts then, behind the sums before it, beside the rest of the backward pass. The "
        "optimizer waits for the last sum. A sum is the fastest of NCCL's rings and trees in their "
        f"three protocols, by NCCL's own cost model, over hosts of {CARDS} cards.\n\n"
        "Compute is an estimate: a kernel takes what its operations or its bytes do at the rates "
        f"below, and {least} at least. That products reach {PRODUCTS_REACH:.0%} of the peak, and "
        f"the {least}, are assumptions. What sums take from a card that computes is left out, and "
        "so are input and stragglers."
    )


def _published() -> str:
    rows = []
    for published in PUBLISHED:
        seconds, name = all_reduce(published.size, published.cluster)
        rows.append(
            [
                f"[{published.what}]({published.address})",
                _size(published.size),
                *_both(published, seconds),
                name,
            ]
        )
    return table(["", "size", "measured", "model", "error in time", "by"], rows)


def _both(published: Published, seconds: float) -> list[str]:
    if published.seconds is not None:
        error = seconds / published.seconds - 1
        return [f"{_us(published.seconds)} us", f"{_us(seconds)} us", f"{100 * error:+.0f}%"]
    bandwidth = bus_bandwidth(published.size, published.cluster.ranks, seconds)
    measured = published.bandwidth or 0.0
    error = measured / bandwidth - 1
    return [
        f"{figure(measured / GB)} GB/s",
        f"{figure(bandwidth / GB)} GB/s",
        f"{100 * error:+.0f}%",
    ]


def _efficiencies() -> str:
    rows = []
    for name, workload in MODELS.items():
        for title, gigabits in NETWORKS.items():
            values = [f"{efficiency(workload, n, gigabits):.0%}" for n in SHOWN[1:]]
            rows.append([name, _us(step(workload, 1, gigabits)), title, *values])
    header = ["network", "one card, us", "between hosts", *(f"{n:,} cards" for n in SHOWN[1:])]
    return table(header, rows)


def _speedups() -> str:
    gigabits = list(NETWORKS.values())[-1]
    rows = [
        [
            name,
            f"{workload.batch:,}",
            *(
                figure(speedup(workload, n, gigabits)) if n <= workload.batch else NOTHING
                for n in SHOWN[1:]
            ),
        ]
        for name, workload in MODELS.items()
    ]
    return table(["network", "batch", *(f"{n:,} cards" for n in SHOWN[1:])], rows)


def _reading() -> str:
    return (
        "How to read it: cards pay while they compute longer than a sum takes. The four small "
        "networks compute for microseconds and sum for as long, or longer: one batch of theirs, "
        "cut over cards, gets no faster, and more cards only take larger batches. `huge` hides its "
        "half gigabyte behind the backward pass where each card has a link of its own, and waits "
        "for it where the cards of a host share one."
    )


# ---------------------------------------------------------------------------- cells


def _us(seconds: float | None) -> str:
    return NOTHING if seconds is None else figure(seconds * 1e6)


def _size(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"
