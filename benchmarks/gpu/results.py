"""What a run finds, as plain data that can be stored, and the ratios that are drawn from it.

It is written whenever a part has ended, so that a crash leaves what came before it.
"""

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.gpu.workloads import LOSS_TOLERANCES
from benchmarks.results import Target, ratio


@dataclass(frozen=True)
class Contender:
    """What is measured.

    Attributes:
        name: What options and data call it.
        title: What the tables call it.
        script: Which program of `contenders/` runs it.
        mode: What that program is asked for.
        module: What it imports first.
    """

    name: str
    title: str
    script: str
    mode: str
    module: str


MIRRORED = Contender("mirrored", "mirrored", "mirrored_", "step", "mirrored")
EAGER = Contender("torch", "PyTorch, eager", "torch_", "eager", "torch")
GRAPH = Contender("torch-graph", "PyTorch, CUDA graph", "torch_", "graph", "torch")
JAX = Contender("jax", "JAX, jit", "jax_", "step", "jax")
PRODUCTS = Contender("products", "products alone", "products", "graph", "cupy")
FIT = Contender("mirrored-fit", "mirrored, fit from host arrays", "mirrored_", "fit", "mirrored")
PEERS = (EAGER, GRAPH, JAX)
CONTENDERS = (MIRRORED, *PEERS, PRODUCTS, FIT)


@dataclass
class TestFile:
    """What became of a file of tests.

    Attributes:
        name: The file's.
        seconds: How long its process took.
        tests: Name, outcome, seconds and text of each test.
        problem: How its process ended, where that was not pytest's own end.
        last_lines: The end of what it printed, where something failed.
    """

    name: str
    seconds: float = 0.0
    tests: list[dict[str, Any]] = field(default_factory=list)
    problem: str | None = None
    last_lines: str = ""

    @property
    def failed(self) -> bool:
        """Whether a test failed, or did not come to its end."""
        ended = {"passed", "skipped"}
        return self.problem is not None or any(test["outcome"] not in ended for test in self.tests)


@dataclass
class Figure:
    """The steps of one contender on one workload in one precision.

    Attributes:
        contender: Its name.
        workload: The workload's.
        precision: "float32", "tf32" or "bfloat16".
        samples: Microseconds a step, one for each round.
        steps: How many steps a round has.
        losses: Those of the first steps.
        loss_error: Their largest relative difference from the middle one of all contenders.
        prepare_s: Seconds to build it and take the first steps.
        problem: Why it has no samples, or fewer than the others.
    """

    contender: str
    workload: str
    precision: str
    samples: list[float] = field(default_factory=list)
    steps: int = 0
    losses: list[float] = field(default_factory=list)
    loss_error: float | None = None
    prepare_s: float | None = None
    problem: str | None = None

    @property
    def median(self) -> float | None:
        """The middle of all rounds."""
        return statistics.median(self.samples) if self.samples else None

    @property
    def trusted(self) -> bool:
        """Whether its losses are those of the others."""
        return self.loss_error is None or self.loss_error <= LOSS_TOLERANCES[self.precision]


@dataclass
class AllReduces:
    """The all-reduces of one kind.

    Attributes:
        collective: The collectives that sum.
        where: What they sum between, in words.
        rows: A size each, as `mirrored.distribute.bandwidth.Measurement` has it.
        steps: Microseconds of a training step, by workload.
        problem: Why there are no rows, or fewer.
    """

    collective: str
    where: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    problem: str | None = None


@dataclass
class Results:
    """All that a run found.

    Attributes:
        machine: The card, its driver, versions and date.
        missing: Optional parts that are not there, and what goes without them.
        devices: What `python -m mirrored devices` printed.
        files: The tests, by file.
        all_reduces: What sums between devices cost.
        figures: The measurements.
        clocks: The card's state after each workload and precision.
        facts: Versions by program of contenders.
        simulated: Whether a simulated GPU stood in for the card.
        complete: Whether the run came to its end.
        rounds: How often each contender had its turn.
    """

    machine: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    devices: str = ""
    files: list[TestFile] = field(default_factory=list)
    all_reduces: list[AllReduces] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    clocks: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    simulated: bool = False
    complete: bool = False
    rounds: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return everything as dicts and lists."""
        return asdict(self)

    @property
    def failed(self) -> bool:
        """Whether a test failed."""
        return any(file.failed for file in self.files)

    def median(self, contender: Contender, workload: str, precision: str) -> float | None:
        """Return a contender's median, or None where there is none that can be trusted."""
        for figure in self.figures:
            if (figure.contender, figure.workload, figure.precision) == (
                contender.name,
                workload,
                precision,
            ):
                return figure.median if figure.trusted else None
        return None

    def fastest_peer(self, workload: str, precision: str) -> float | None:
        """Return the least of the peers' medians."""
        medians = [self.median(peer, workload, precision) for peer in PEERS]
        return min((median for median in medians if median is not None), default=None)


# By precision: docs/gpu.md has the bytes and launches that they are made of.
TO_PRODUCTS = {
    precision: Target("step / products alone", True, limits)
    for precision, limits in {
        "float32": {"wide": 1.2, "huge": 1.05},
        "tf32": {"wide": 2.1, "huge": 1.2},
        "bfloat16": {"wide": 3.0, "huge": 1.3},
    }.items()
}
PEER = Target("fastest peer / ours", False, {"digits": 1.5, "mnist": 1.5, "wide": 1.0, "huge": 1.0})
# Each by precision.
TARGETS = (TO_PRODUCTS, dict.fromkeys(TO_PRODUCTS, PEER))


def value_of(target: Target, results: Results, workload: str, precision: str) -> float | None:
    """Return the ratio that a target limits, or None where a part of it is missing."""
    ours = results.median(MIRRORED, workload, precision)
    if target is PEER:
        return ratio(results.fastest_peer(workload, precision), ours)
    return ratio(ours, results.median(PRODUCTS, workload, precision))


def compare_losses(figures: list[Figure]) -> None:
    """Note how far each contender's losses are from the middle one of all that have some.

    Args:
        figures: Those of one workload and precision.
    """
    having = [figure for figure in figures if figure.losses]
    if len(having) < 2:
        return
    middle = [statistics.median(step) for step in zip(*(f.losses for f in having), strict=True)]
    for figure in having:
        errors = [abs(a - b) / abs(b) for a, b in zip(figure.losses, middle, strict=True)]
        # NaN is never the larger of two.
        figure.loss_error = max(errors) if all(e == e for e in errors) else float("inf")
