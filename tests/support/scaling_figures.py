"""Figures as `python -m benchmarks.scaling` finds them, for its tests."""

from benchmarks.environments import MIRRORED, PRODUCTS, TORCH
from benchmarks.results import Series
from benchmarks.scaling.host import Line
from benchmarks.scaling.measured import SIZES, Measured

SUMS = Line(alpha=1e-5, beta=1e-9)


def found() -> Measured:
    """Return figures of `digits` on two cores, and sums of two workers."""
    series = [
        Series(PRODUCTS.name, 1, [60.0]),
        Series(MIRRORED.name, 1, [100.0], facts={"version": "1", "numpy": "2"}),
        Series(MIRRORED.name, 2, [120.0]),
        Series("memory-2", 2, [160.0], facts={"version": "1", "mpi": "MPICH 5"}),
        Series(TORCH.name, 2, [800.0], facts={"version": "3"}),
    ]
    sums = {"memory-2": [SUMS.seconds(size) for size in SIZES]}
    return Measured({"cores": "2"}, 3, {"digits": series}, sums, {"memory-4": "it ended"})
