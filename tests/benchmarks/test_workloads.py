"""Each workload's matrix products, data and reference."""

from dataclasses import replace

import numpy as np
import pytest
from case_table import cases

from benchmarks import workloads
from benchmarks.reference import Reference
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


def test_products_of_lenet() -> None:
    """A convolution has a row for each window; no gradient of the images themselves is needed."""
    products = workloads.matrix_products(TIMED["lenet"])
    assert products[:3] == [
        Product("forward", 128 * 26 * 26, 9, 32),
        Product("forward", 128 * 11 * 11, 9 * 32, 64),
        Product("forward", 128, 5 * 5 * 64, 128),
    ]
    assert products[-3:] == [
        Product("weight gradient", 9 * 32, 128 * 11 * 11, 64),
        Product("input gradient", 128 * 11 * 11, 64, 9 * 32),
        Product("weight gradient", 9, 128 * 26 * 26, 32),
    ]


def test_layers_of_cifar() -> None:
    convolutions = [layer for layer in TIMED["cifar"].layers if layer.convolves]
    assert [layer.places for layer in convolutions] == [1024, 1024, 256, 256, 64, 64]
    assert [layer.pooled for layer in convolutions] == [False, True] * 3
    assert [layer.kernel for layer in convolutions[:3]] == [
        (3, 3, 3, 32),
        (3, 3, 32, 32),
        (3, 3, 32, 64),
    ]


@EVERY
def test_gradients_have_the_bytes_of_the_weights(workload: Workload) -> None:
    weights = Reference(workload).weights
    assert workload.parameter_bytes == 4 * sum(weight.size for weight in weights)


@cases("name", ["lenet", "cifar"])
def test_dense_layers_take_what_convolutions_leave(name: str) -> None:
    workload = replace(TIMED[name], examples=1)
    x, y = workloads.make_data(workload)
    assert np.isfinite(Reference(workload).loss(x, y))


@EVERY
def test_products_chain(workload: Workload) -> None:
    """Each product's result has the shape of what it is the value or gradient of."""
    rows = [workload.batch * layer.places for layer in workload.layers]
    layers = [(layer.inputs, layer.outputs) for layer in workload.layers]
    products = workloads.matrix_products(workload)
    shapes = {
        kind: [(each.rows, each.columns) for each in products if each.kind == kind]
        for kind in ("forward", "weight gradient", "input gradient")
    }
    pairs = list(zip(rows, layers, strict=True))
    assert shapes["forward"] == [(count, after) for count, (_, after) in pairs]
    assert shapes["weight gradient"] == layers[::-1]
    assert shapes["input gradient"] == [(count, before) for count, (before, _) in pairs[:0:-1]]


@cases("workload", TIMED.values(), ids=TIMED)
def test_timed_batches_divide(workload: Workload) -> None:
    assert workload.examples == workload.batch * workload.steps
    assert workload.batch % 8 == 0


def test_uneven_does_not_divide() -> None:
    assert UNEVEN.examples % UNEVEN.batch == 5
    assert UNEVEN.steps == 3


@cases("name", ["line", "digits", "uneven", "lenet"])
def test_data_and_weights_are_the_same_each_time(name: str) -> None:
    workload = WORKLOADS[name]
    for make in (workloads.make_data, workloads.initial_weights):
        for one, other in zip(make(workload), make(workload), strict=True):
            np.testing.assert_array_equal(one, other)
    x, y = workloads.make_data(workload)
    assert x.shape == (workload.examples, *workload.shape)
    assert (x.dtype, y.dtype) == (np.float32, np.float32 if name == "line" else np.int32)
