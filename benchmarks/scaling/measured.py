"""Steps and sums on this machine: one process, two and four workers, and PyTorch's two processes.

All contenders of a workload take turns within one run, as in `python -m benchmarks`. The fastest
turn counts: a model is of a machine that does nothing else.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import run
from benchmarks.environments import MIRRORED, PRODUCTS, TORCH, Contender
from benchmarks.processes import ContenderError
from benchmarks.results import Series
from benchmarks.scaling.host import Line, fit, predicted
from benchmarks.workloads import TIMED

WORKLOADS = ("line", "digits", "mnist", "wide")
SIZES = (4, 1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26)


def layout(workers: int, *, apart: bool) -> Contender:
    """Return mirrored in so many workers, that share memory or send messages."""
    options = ("--workers", str(workers), *(["--apart"] if apart else []))
    how = "messages" if apart else "memory"
    title = f"{workers} workers, {'messages' if apart else 'shared memory'}"
    return Contender(f"{how}-{workers}", title, "mirrored", MIRRORED.environment, options=options)


LAYOUTS = {
    contender.name: (contender, workers)
    for workers in (2, 4)
    for contender in (layout(workers, apart=False), layout(workers, apart=True))
}
ENTRIES = (
    (PRODUCTS, 1),
    (MIRRORED, 1),
    (MIRRORED, 2),
    *LAYOUTS.values(),
    (TORCH, 2),
)


@dataclass
class Measured:
    """What was found on this machine.

    Attributes:
        machine: What it is.
        rounds: How often each contender had its turn.
        steps: Series by workload.
        sums: Seconds of a sum of each of `SIZES`, by layout.
        problems: Layouts whose sums could not be measured, and why.
    """

    machine: dict[str, str]
    rounds: int
    steps: dict[str, list[Series]] = field(default_factory=dict)
    sums: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def cores(self) -> int:
        """How many cores there are."""
        return int(self.machine["cores"])

    def to_json(self) -> dict[str, Any]:
        """Return everything as dicts and lists."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Measured":
        """Return what ``to_json`` made dicts and lists of."""
        found = cls(**stored)
        found.steps = {name: [Series(**e) for e in rows] for name, rows in found.steps.items()}
        return found

    def best(self, workload: str, contender: Contender, replicas: int) -> float | None:
        """Return a contender's fastest step in seconds, or None where there is none."""
        for series in self.steps.get(workload, []):
            if (series.contender, series.replicas) == (contender.name, replicas):
                return None if series.best is None else series.best * 1e-6
        return None

    def line(self, name: str) -> Line | None:
        """Return what sums of a layout take, or None where that is not known."""
        found = self.sums.get(name)
        return None if found is None else fit(list(zip(SIZES, found, strict=True)))

    def predicted(self, workload: str, name: str) -> float | None:
        """Return the seconds that the model expects of a step of a layout."""
        one, line = self.best(workload, MIRRORED, 1), self.line(name)
        products = self.best(workload, PRODUCTS, 1)
        if one is None or line is None or products is None:
            return None
        size = TIMED[workload].parameter_bytes
        return predicted(one, products, LAYOUTS[name][1], self.cores, size, line)


def measure(found: Measured, settings: run.Settings, keep: Any) -> None:
    """Measure what has not been found yet; call `keep` after each part."""
    entries = [entry for entry in ENTRIES if entry[0].environment in settings.environments]
    for name in WORKLOADS if entries else ():
        if name not in found.steps:
            found.steps[name] = run.measure_together(TIMED[name], entries, settings)
            keep()
    for name, (contender, workers) in LAYOUTS.items():
        if name not in found.sums and contender.environment in settings.environments:
            _measure_sums(found, contender, workers, settings)
            keep()


def _measure_sums(
    found: Measured, contender: Contender, workers: int, settings: run.Settings
) -> None:
    run.say(f"  sums: {contender.title}")
    found.problems.pop(contender.name, None)
    try:
        process = settings.start(contender, "line", workers)
        try:
            process.ask("first_step")
            turns = [process.ask("sums", sizes=list(SIZES))["seconds"] for _ in range(found.rounds)]
            found.sums[contender.name] = [min(times) for times in zip(*turns, strict=True)]
        finally:
            process.kill()
    except ContenderError as error:
        run.say(f"    {error}")
        found.problems[contender.name] = str(error)


def settings_of(
    environments: dict[str, Path], rounds: int, seconds: float, limit: float
) -> run.Settings:
    """Return how all are measured."""
    return run.Settings([], environments, 2, rounds, seconds, limit)
