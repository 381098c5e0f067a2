"""What a training step takes on a card, and on many: sums start while the backward pass goes on.

Compute is an estimate from published peaks. A kernel takes at least some microseconds, which is
all that a small network is made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.scaling.links import Cluster, all_reduce
from benchmarks.workloads import Workload

FLOAT = 4
BUCKET = 25 << 20  # As `mirrored.distribute` closes them.


@dataclass(frozen=True)
class Card:
    """What a card computes with.

    Attributes:
        flops: Operations a second of matrix products, as they are reached.
        memory: Bytes a second from and to its memory, as they are reached.
        kernel: Seconds that a kernel takes at least.
    """

    flops: float
    memory: float
    kernel: float

    def product(self, rows: float, inner: float, columns: float) -> float:
        """Return the seconds of a product of (rows, inner) and (inner, columns)."""
        moved = FLOAT * (rows * inner + inner * columns + rows * columns)
        return max(2 * rows * inner * columns / self.flops, moved / self.memory, self.kernel)

    def elementwise(self, elements: float, arrays: int) -> float:
        """Return the seconds of a kernel that reads and writes so many arrays."""
        return max(FLOAT * elements * arrays / self.memory, self.kernel)


@dataclass(frozen=True)
class Timeline:
    """A step on one card, without sums.

    Attributes:
        forward: Seconds until the backward pass begins, with the loss.
        gradients: For each layer, the last one first: the seconds in the backward pass after which
            its gradients are there, and their bytes.
        backward: Seconds of the backward pass.
        update: Seconds of the optimizer.
    """

    forward: float
    gradients: tuple[tuple[float, int], ...]
    backward: float
    update: float

    @property
    def step(self) -> float:
        """Seconds of the step."""
        return self.forward + self.backward + self.update


def timeline(workload: Workload, rows: float, card: Card) -> Timeline:
    """Return a step of a workload on one card, with so many examples."""
    layers = list(zip(workload.sizes, workload.sizes[1:], strict=False))
    forward = sum(
        card.product(rows, before, after) + card.elementwise(rows * after, 2)
        for before, after in layers
    )
    forward += card.elementwise(rows * workload.sizes[-1], 2)  # The loss.
    at, gradients = 0.0, []
    for index, (before, after) in reversed(list(enumerate(layers))):
        at += card.elementwise(rows * after, 3)  # Through the activation, or of the loss.
        at += card.product(before, rows, after)
        gradients.append((at, FLOAT * (before + 1) * after))
        if index:
            at += card.product(rows, after, before)
    parameters = workload.parameter_bytes / FLOAT
    update = card.elementwise(parameters, 5 if workload.momentum else 3)
    return Timeline(forward, tuple(gradients), at, update)


def buckets(gradients: Sequence[tuple[float, int]], least: int = BUCKET) -> list[tuple[float, int]]:
    """Return when each bucket is full, and its bytes; a bucket ends when it holds `least`."""
    found, held = [], 0
    for at, size in gradients:
        held += size
        if held >= least:
            found.append((at, held))
            held = 0
    if held:
        found.append((gradients[-1][0], held))
    return found


def step_seconds(line: Timeline, cluster: Cluster) -> float:
    """Return a step on all cards, each with its own part of the batch.

    Sums go one after the other, each as soon as its bucket is full; the optimizer waits for the
    last. What sums take from the cards that compute is not in it.
    """
    free = 0.0
    for at, size in buckets(line.gradients):
        free = max(free, at) + all_reduce(size, cluster)[0]
    return line.forward + max(line.backward, free) + line.update
