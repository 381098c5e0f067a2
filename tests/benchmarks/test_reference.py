"""The float64 reference that contenders are held to."""

import numpy as np
import pytest
from case_table import cases
from small_images import SMALL_IMAGES

from benchmarks import workloads
from benchmarks.reference import Reference, largest_relative_error
from benchmarks.workloads import TIMED, WORKLOADS, Workload

NAMES = ("line", "digits", "uneven", "norm")


@cases("workload", [*(WORKLOADS[name] for name in NAMES), *SMALL_IMAGES])
def test_reference_follows_its_loss(workload: Workload) -> None:
    """A step without momentum goes down the slope that differences of the loss show."""
    x, y = (each[: workload.batch] for each in workloads.make_data(workload))
    reference = Reference(workload)
    before = [each.copy() for each in reference.weights]
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=each.shape) for each in before]
    losses = []
    for side in (1e-6, -1e-6):
        reference.weights = [w + side * d for w, d in zip(before, directions, strict=True)]
        losses.append(reference.loss(x.astype(np.float64), y))
    reference.weights = [each.copy() for each in before]
    reference.fit(x, y, 1)
    slope = sum(
        float(((old - new) * direction).sum()) / workload.learning_rate
        for old, new, direction in zip(before, reference.weights, directions, strict=True)
    )
    assert slope == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-4)


def test_reference_keeps_momentum() -> None:
    """Two steps are farther than two without what the first one leaves, by nine tenths of it."""
    digits = TIMED["digits"]
    x, y = (each[: digits.batch] for each in workloads.make_data(digits))
    kept, forgetful = Reference(digits), Reference(digits)
    start = kept.weights[0].copy()
    for reference in (kept, forgetful):
        reference.fit(x, y, 1)
    first = kept.weights[0] - start
    forgetful.velocities = [np.zeros_like(each) for each in forgetful.velocities]
    for reference in (kept, forgetful):
        reference.fit(x, y, 1)
    np.testing.assert_allclose(kept.weights[0] - forgetful.weights[0], 0.9 * first, atol=1e-12)


@pytest.mark.slow
def test_reference_takes_adams_steps() -> None:
    """The first step moves each weight that has a gradient by the learning rate."""
    adam = TIMED["adam"]
    reference = Reference(adam)
    before = reference.weights[-2].copy()
    reference.fit(*(each[: adam.batch] for each in workloads.make_data(adam)), 1)
    moved = np.abs(reference.weights[-2] - before)
    assert np.median(moved) == pytest.approx(adam.learning_rate, rel=1e-3)
    assert moved.max() <= adam.learning_rate * (1 + 1e-9)


def test_largest_relative_error() -> None:
    assert largest_relative_error([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert largest_relative_error([float("nan")], [1.0]) == float("inf")
    with pytest.raises(ValueError, match="zip"):
        largest_relative_error([1.0], [1.0, 2.0])
