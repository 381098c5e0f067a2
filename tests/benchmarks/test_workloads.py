"""Each workload's matrix products, data and reference."""

import numpy as np
import pytest

from benchmarks import workloads
from benchmarks.workloads import TIMED, UNEVEN, WORKLOADS, Product, Reference, Workload

EVERY = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


def test_products_of_digits() -> None:
    assert workloads.matrix_products(TIMED["digits"]) == [
        Product("forward", 128, 64, 128),
        Product("forward", 128, 128, 10),
        Product("weight gradient", 128, 128, 10),
        Product("input gradient", 128, 10, 128),
        Product("weight gradient", 64, 128, 128),
    ]


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("line", 2 * 2 * 64),
        ("digits", 2 * 128 * (2 * 64 * 128 + 3 * 128 * 10)),
        ("mnist", 2 * 256 * (2 * 784 * 512 + 3 * (512 * 512 + 512 * 10))),
        ("wide", 2 * 512 * (2 * 1024 * 2048 + 3 * (2048 * 2048 + 2048 * 1024))),
    ],
)
def test_flops(name: str, flops: int) -> None:
    assert sum(each.flops for each in workloads.matrix_products(TIMED[name])) == flops


@EVERY
def test_products_chain(workload: Workload) -> None:
    """Each product's result has the shape of what it is the value or gradient of."""
    layers = list(zip(workload.sizes, workload.sizes[1:], strict=False))
    products = workloads.matrix_products(workload)
    shapes = {
        kind: [(each.rows, each.columns) for each in products if each.kind == kind]
        for kind in ("forward", "weight gradient", "input gradient")
    }
    assert shapes["forward"] == [(workload.batch, after) for _, after in layers]
    assert shapes["weight gradient"] == layers[::-1]
    assert shapes["input gradient"] == [(workload.batch, before) for before, _ in layers[:0:-1]]


@pytest.mark.parametrize("workload", TIMED.values(), ids=TIMED)
def test_timed_batches_divide(workload: Workload) -> None:
    assert workload.examples == workload.batch * workload.steps
    assert workload.batch % 8 == 0


def test_uneven_does_not_divide() -> None:
    assert UNEVEN.examples % UNEVEN.batch == 5
    assert UNEVEN.steps == 3


@pytest.mark.parametrize("name", ["line", "digits", "uneven"])
def test_data_and_weights_are_the_same_each_time(name: str) -> None:
    workload = WORKLOADS[name]
    for make in (workloads.make_data, workloads.initial_weights):
        for one, other in zip(make(workload), make(workload), strict=True):
            np.testing.assert_array_equal(one, other)
    x, y = workloads.make_data(workload)
    assert x.shape == (workload.examples, workload.sizes[0])
    assert (x.dtype, y.dtype) == (np.float32, np.float32 if name == "line" else np.int32)


@pytest.mark.parametrize("name", ["line", "digits", "uneven"])
def test_reference_follows_its_loss(name: str) -> None:
    """A step without momentum goes down the slope that differences of the loss show."""
    workload = WORKLOADS[name]
    x, y = (each[: workload.batch] for each in workloads.make_data(workload))
    reference = Reference(workload)
    before = [each.copy() for each in reference.weights]
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=each.shape) for each in before]
    losses = []
    for side in (1e-6, -1e-6):
        reference.weights = [w + side * d for w, d in zip(before, directions, strict=True)]
        losses.append(reference._loss(reference._forward(x.astype(np.float64))[-1], y)[0])
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


def test_largest_relative_error() -> None:
    assert workloads.largest_relative_error([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert workloads.largest_relative_error([float("nan")], [1.0]) == float("inf")
    with pytest.raises(ValueError, match="zip"):
        workloads.largest_relative_error([1.0], [1.0, 2.0])
