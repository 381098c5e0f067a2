"""Small networks with convolutions, for tests of the benchmark."""

from benchmarks.workloads import POOL, Workload

# Pooling leaves the last row of seven, of five and of three out; batches do not divide by two.
SMALL_IMAGES = (
    Workload(
        "valid",
        (4, 5, 3),
        7,
        14,
        learning_rate=0.1,
        momentum=0.0,
        image=(9, 8, 2),
        stages=(3, POOL, 4),
    ),
    Workload(
        "same",
        (6, 3),
        7,
        14,
        learning_rate=0.1,
        momentum=0.0,
        normalized=True,
        image=(5, 6, 2),
        stages=(3, POOL, 4, 6, POOL),
        padding="same",
    ),
)
