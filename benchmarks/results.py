"""What a run finds, as plain data that can be stored, and the ratios that are drawn from it.

A ratio is always of medians within one run: machines differ, and so do the hours of one machine.
"""

import math
import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.environments import (
    FIXED,
    LOOP,
    LOOP_16,
    MIRRORED,
    PEERS,
    PRODUCTS,
    PRODUCTS_OF_PARTS,
    SHORT_FITS,
    TENSORFLOW,
    TENSORFLOW_ARRAYS,
    TORCH,
    WORKERS,
    Contender,
)

TARGET_REPLICAS = 2
LOSS_TOLERANCE = 1e-3  # float32 against float64, after two epochs.


@dataclass
class Series:
    """The steps of one contender on one workload.

    Attributes:
        contender: Its name.
        replicas: On how many replicas.
        samples: Microseconds a step, one for each round.
        from_start_s: Seconds from the process' start to the end of the first step.
        from_fit_s: Seconds from the first call of fit to its end, after one step.
        memory: Peak bytes of all its processes.
        loss_error: The largest relative difference of its losses from the reference's.
        problem: Why it has no samples, or fewer than the others.
        facts: Versions, BLAS and threads.
        epochs: How many epochs a round has.
    """

    contender: str
    replicas: int
    samples: list[float] = field(default_factory=list)
    from_start_s: float | None = None
    from_fit_s: float | None = None
    memory: int | None = None
    loss_error: float | None = None
    problem: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    epochs: int = 1

    @property
    def best(self) -> float | None:
        """The fastest round."""
        return min(self.samples) if self.samples else None

    @property
    def median(self) -> float | None:
        """The middle of all rounds."""
        return statistics.median(self.samples) if self.samples else None


@dataclass
class Outcome:
    """What training on data that do not divide evenly came to.

    Attributes:
        contender: Its name.
        replicas: On how many replicas.
        loss: The last epoch's.
        loss_difference: From the contender's own one-device result.
        weight_difference: The largest of any weight, from its own one-device result.
        reference_difference: The largest of any weight, from the float64 reference.
        problem: Why there is none.
    """

    contender: str
    replicas: int
    loss: float | None = None
    loss_difference: float | None = None
    weight_difference: float | None = None
    reference_difference: float | None = None
    problem: str | None = None


@dataclass
class AllReduce:
    """The best seconds of an all-reduce over the replicas, and of copying its bytes once."""

    workload: str
    replicas: int
    size: int
    all_reduce_s: float | None = None
    copy_s: float | None = None
    problem: str | None = None


@dataclass
class Report:
    """All that a run found.

    Attributes:
        machine: What it ran on.
        replicas: What "several" means for the peers.
        rounds: How often each contender had its turn.
        imports: Seconds that the import takes, by contender.
        sizes: Installed bytes by environment.
        skipped: Contenders that are missing, and why.
        speed: Series by workload.
        scaling: Series of mirrored alone by workload, over the number of replicas.
        outcomes: Results for data that do not divide evenly.
        all_reduces: What an all-reduce costs.
    """

    machine: dict[str, str]
    replicas: int
    rounds: int
    imports: dict[str, float | None] = field(default_factory=dict)
    sizes: dict[str, int | None] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    speed: dict[str, list[Series]] = field(default_factory=dict)
    scaling: dict[str, list[Series]] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    all_reduces: list[AllReduce] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return everything as dicts and lists."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Report":
        """Return the report that ``to_json`` made dicts and lists of."""
        report = cls(**stored)
        for group in (report.speed, report.scaling):
            group.update({name: [Series(**row) for row in rows] for name, rows in group.items()})
        report.outcomes = [Outcome(**outcome) for outcome in stored["outcomes"]]
        report.all_reduces = [AllReduce(**result) for result in stored["all_reduces"]]
        return report

    def figures(self) -> dict[str, Any]:
        """Return the steps' times in microseconds, as plain data beside the report."""
        return {
            "machine": self.machine,
            "steps": [
                {
                    "workload": workload,
                    "contender": series.contender,
                    "replicas": series.replicas,
                    "best_us": series.best,
                    "median_us": series.median,
                }
                for workload, rows in self.speed.items()
                for series in rows
            ],
        }

    def median(self, workload: str, contender: str, replicas: int) -> float | None:
        """Return a contender's median on a workload, or None where there is none."""
        for series in self.speed.get(workload, []):
            if (series.contender, series.replicas) == (contender, replicas):
                return series.median
        return None

    def fastest_peer(self, workload: str, replicas: int) -> float | None:
        """Return the least of the peers' medians."""
        medians = [self.median(workload, peer.name, replicas) for peer in PEERS]
        return min((median for median in medians if median is not None), default=None)


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Return the quotient, or None where a part of it is missing."""
    if numerator is None or denominator is None or denominator == 0:
        return None
    return numerator / denominator


@dataclass(frozen=True, eq=False)
class Target:
    """A limit for a ratio, by workload.

    Attributes:
        title: What the ratio is.
        at_most: Whether the limits are upper ones.
        limits: The limit for each workload that has one.
    """

    title: str
    at_most: bool
    limits: dict[str, float]

    def met(self, workload: str, value: float) -> bool:
        """Say whether a ratio keeps to the limit."""
        limit = self.limits[workload]
        return value <= limit if self.at_most else value >= limit


_FORM_LIMITS = {
    LOOP: {"line": 2.0, "digits": 1.2, "mnist": 1.1, "wide": 1.1},
    LOOP_16: dict.fromkeys(("line", "digits", "mnist", "wide"), 1.3),
    SHORT_FITS: {"line": 1.3, "digits": 1.3},
}
FORM_TARGETS = {
    Target(f"{where}: {form.title.removeprefix('mirrored, ')} / fit", True, limits): (form, count)
    for form, limits in _FORM_LIMITS.items()
    for where, count in (("one device", 1), ("two replicas", TARGET_REPLICAS))
}
WORKERS_TARGETS = {
    Target("two workers / two replicas of one process", True, {"mnist": 1.15, "wide": 1.15}): (
        WORKERS,
        MIRRORED,
    ),
    Target(
        "two processes: PyTorch / two workers",
        False,
        dict.fromkeys(("line", "digits", "mnist", "wide"), 1.0),
    ): (TORCH, WORKERS),
}
FIXED_TARGETS = {
    Target(
        f"replicas=8 on {where} / products and sums of eight parts",
        True,
        dict.fromkeys(("mnist", "wide", "lenet"), 1.2),
    ): count
    for where, count in (("one device", 1), ("two devices", TARGET_REPLICAS))
}
_TENSORFLOW_LIMITS = {"line": 200, "digits": 45, "mnist": 3.2, "wide": 2.3, "lenet": 1, "cifar": 1}
TO_PRODUCTS, TO_ONE, PEER_ONE, TENSORFLOW_SEVERAL, ARRAYS_SEVERAL, PEER_SEVERAL = (
    Target(
        "one device: step / products alone",
        True,
        {"digits": 1.8, "mnist": 1.08, "wide": 1.06, "adam": 1.15, "norm": 2.0}
        | dict.fromkeys(("lenet", "cifar"), 1.6),
    ),
    Target(
        "two replicas: step / one-device step",
        True,
        {"line": 2.2, "digits": 1.3, "mnist": 1.08, "wide": 1.06},
    ),
    Target(
        "one device: fastest peer / ours",
        False,
        {"line": 4, "digits": 1.2, "lenet": 0.67, "cifar": 0.67}
        | {"mnist": 1, "wide": 1.05, "adam": 1, "norm": 1},
    ),
    # One limit for both forms: it was set from the plainer one, arrays.
    Target("two replicas: TensorFlow / ours", False, _TENSORFLOW_LIMITS),
    Target("two replicas: TensorFlow, arrays / ours", False, _TENSORFLOW_LIMITS),
    Target(
        "two replicas: fastest peer / ours",
        False,
        {"line": 5, "digits": 3, "mnist": 1.4, "wide": 1.9}
        | dict.fromkeys(("adam", "norm", "lenet", "cifar"), 1),
    ),
)


TARGETS = (
    TO_PRODUCTS,
    TO_ONE,
    *FORM_TARGETS,
    *FIXED_TARGETS,
    PEER_ONE,
    TENSORFLOW_SEVERAL,
    ARRAYS_SEVERAL,
    PEER_SEVERAL,
    *WORKERS_TARGETS,
)


def value_of(target: Target, report: Report, workload: str) -> float | None:
    """Return the ratio that a target limits, or None where a contender is missing."""

    def several(contender: Contender) -> float | None:
        return report.median(workload, contender.name, TARGET_REPLICAS)

    if target in FORM_TARGETS:
        form, replicas = FORM_TARGETS[target]
        fit = report.median(workload, MIRRORED.name, replicas)
        return ratio(report.median(workload, form.name, replicas), fit)
    if target in FIXED_TARGETS:
        limit = report.median(workload, PRODUCTS_OF_PARTS.name, 1)
        return ratio(report.median(workload, FIXED.name, FIXED_TARGETS[target]), limit)
    if target in WORKERS_TARGETS:
        above, below = WORKERS_TARGETS[target]
        return ratio(several(above), several(below))
    one = report.median(workload, MIRRORED.name, 1)
    if target is TO_PRODUCTS:
        return ratio(one, report.median(workload, PRODUCTS.name, 1))
    if target is TO_ONE:
        return ratio(several(MIRRORED), one)
    if target is PEER_ONE:
        return ratio(report.fastest_peer(workload, 1), one)
    if target is TENSORFLOW_SEVERAL:
        return ratio(several(TENSORFLOW), several(MIRRORED))
    if target is ARRAYS_SEVERAL:
        return ratio(several(TENSORFLOW_ARRAYS), several(MIRRORED))
    return ratio(report.fastest_peer(workload, TARGET_REPLICAS), several(MIRRORED))


def same_losses(series: Series) -> bool:
    """Say whether a contender did the same work as the reference."""
    error = series.loss_error
    return error is None or (math.isfinite(error) and error <= LOSS_TOLERANCE)
