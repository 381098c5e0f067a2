"""Each workload's matrix products, data and reference."""

import numpy as np
import pytest
from case_table import cases

from benchmarks import workloads
from benchmarks.workloads import TIMED, UNEVEN, WORKLOADS, Product, Workload

EVERY = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


def test_products_of_digits() -> None:
    assert workloads.matrix_products(TIMED["digits"]) == [
        Product("forward", 128, 64, 128),
        Product("forward", 128, 128, 10),
        Product("weight gradient", 128, 128, 10),
        Product("input gradient", 128, 10, 128),
        Product("weight gradient", 64, 128, 128),
    ]


@cases(
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


@cases("workload", TIMED.values(), ids=TIMED)
def test_timed_batches_divide(workload: Workload) -> None:
    assert workload.examples == workload.batch * workload.steps
    assert workload.batch % 8 == 0


def test_uneven_does_not_divide() -> None:
    assert UNEVEN.examples % UNEVEN.batch == 5
    assert UNEVEN.steps == 3


@cases("name", ["line", "digits", "uneven"])
def test_data_and_weights_are_the_same_each_time(name: str) -> None:
    workload = WORKLOADS[name]
    for make in (workloads.make_data, workloads.initial_weights):
        for one, other in zip(make(workload), make(workload), strict=True):
            np.testing.assert_array_equal(one, other)
    x, y = workloads.make_data(workload)
    assert x.shape == (workload.examples, workload.sizes[0])
    assert (x.dtype, y.dtype) == (np.float32, np.float32 if name == "line" else np.int32)
