"""What a step takes on several workers of this machine, predicted from what others measured.

It is held to steps that were measured, which says what such a model is worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Seconds of a sum as a function of its bytes.

    Attributes:
        alpha: Seconds of a sum of nothing.
        beta: Seconds a byte.
    """

    alpha: float
    beta: float

    def seconds(self, size: float) -> float:
        """Return what a sum of so many bytes takes."""
        return self.alpha + self.beta * size


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line that is nearest to pairs of bytes and seconds, by relative differences.

    Args:
        points: At least two, of different sizes.
    """
    weights = [1 / seconds**2 for _, seconds in points]
    total = sum(weights)
    mean_size = sum(w * size for w, (size, _) in zip(weights, points, strict=True)) / total
    mean_time = sum(w * seconds for w, (_, seconds) in zip(weights, points, strict=True)) / total
    spread = sum(w * (size - mean_size) ** 2 for w, (size, _) in zip(weights, points, strict=True))
    shared = sum(
        w * (size - mean_size) * (seconds - mean_time)
        for w, (size, seconds) in zip(weights, points, strict=True)
    )
    beta = shared / spread
    return Line(mean_time - beta * mean_size, beta)


def predicted(
    one: float, products: float, workers: int, cores: int, size: int, sums: Line
) -> float:
    """Return the seconds of a step on several workers of one machine.

    The matrix products are the same work, on the same cores. All else of a step each worker does
    for itself, on a core of its own while there are enough. Then a step sums its gradients and its
    loss at once. Where sums begin earlier that is the same: cores that add are those that compute.

    Args:
        one: Seconds of a step on one device.
        products: Seconds of its matrix products alone.
        workers: How many workers.
        cores: How many cores they share.
        size: The gradients' bytes.
        sums: What a sum between so many workers takes.
    """
    products = min(one, products)  # They may have met more of what else the machine does.
    rest = (one - products) * max(1.0, workers / cores)
    return products + rest + sums.seconds(size + 4)
