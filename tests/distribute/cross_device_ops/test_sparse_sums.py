"""Sparse sums: rows with the same index are added, whichever collective reduces them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored import devices
from mirrored.distribute import (
    HierarchicalCopyAllReduce,
    IndexedSlices,
    ReduceOp,
    ReductionToOneDevice,
)
from mirrored.distribute.cross_device_ops.sparse_sums import reduce_slices
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]


def two_replicas() -> list[IndexedSlices]:
    with mr.device("GPU:0"):
        first = IndexedSlices([[1.0, 2.0]], [1], dense_shape=(5, 2))
    with mr.device("GPU:1"):
        second = IndexedSlices([[3.0, 4.0], [5.0, 6.0]], [1, 3], dense_shape=(5, 2))
    return [first, second]


@pytest.mark.behaviour("sparse-sums")
@cases("collective", [ReductionToOneDevice(), HierarchicalCopyAllReduce()])
@cases(
    ("reduce_op", "rows"), [("sum", [[4.0, 6.0], [5.0, 6.0]]), ("mean", [[2.0, 3.0], [2.5, 3.0]])]
)
def test_numbers(simulate: Simulate, collective: Any, reduce_op: str, rows: Any) -> None:
    simulate(2)
    slices = two_replicas()
    one = collective.reduce(reduce_op, slices, "GPU:1")
    with mr.device("GPU:0"):
        dense = [mr.constant(1.0), mr.constant(2.0)]
    batch = [dense, slices, dense, slices]
    _, both, _, again = collective.batch_all_reduce(reduce_op, batch)
    for each, device in [(one, 1), (both[0], 0), (both[1], 1), (again[0], 0), (again[1], 1)]:
        assert each.values.numpy().tolist() == rows
        assert each.indices.numpy().tolist() == [1, 3]
        assert each.dense_shape == (5, 2)
        assert each.device[-5:] == each.indices.device[-5:] == f"GPU:{device}"


@pytest.mark.behaviour("sparse-sums")
@pytest.mark.parametrize("collective", [ReductionToOneDevice(), HierarchicalCopyAllReduce()])
def test_a_strategy_reduces_it(simulate: Simulate, collective: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy(cross_device_ops=collective)
    slices = two_replicas()
    total = strategy.reduce("sum", mr.distribute.PerReplica(slices))

    def replica() -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce("sum", slices[context.replica_id_in_sync_group])

    everywhere = strategy.experimental_local_results(strategy.run(replica))
    for each in (total, *everywhere):
        dense = mr.convert_to_tensor(each).numpy().tolist()
        assert dense == [[0.0, 0.0], [4.0, 6.0], [0.0, 0.0], [5.0, 6.0], [0.0, 0.0]]


def test_dense_values_beside_sparse_ones_keep_their_places(simulate: Simulate) -> None:
    simulate(2)
    a, b = [mr.constant(1.0)] * 2, [mr.constant([2])] * 2
    got = ReductionToOneDevice().batch_all_reduce("sum", [a, two_replicas(), b])
    assert float(got[0][1]) == 2.0
    assert isinstance(got[1][0], IndexedSlices)
    assert got[2][0].numpy().tolist() == [4]


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=6)


@settings(max_examples=25)
@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from(list(ReduceOp)))
def test_as_the_dense_sum(replicas: list[list[tuple[int, int]]], reduce_op: ReduceOp) -> None:
    slices, dense = [], np.zeros((5, 2))
    for rows in replicas:
        indices = np.array([i for i, _ in rows], np.int64)
        values = np.array([[v, v / 2] for _, v in rows]).reshape(-1, 2)
        slices.append(IndexedSlices(values, indices, (5, 2)))
        for i, row in zip(indices, values, strict=True):
            dense[i] += row
    if reduce_op is ReduceOp.MEAN:
        dense /= len(replicas)
    reduced = reduce_slices(reduce_op, slices, devices.get_device("CPU:0"))
    indices = reduced.indices.numpy().tolist()
    assert indices == sorted({i for rows in replicas for i, _ in rows})
    assert reduced.indices.dtype == "int64"
    np.testing.assert_array_equal(mr.convert_to_tensor(reduced).numpy(), dense)


def test_ops_take_it_as_a_tensor(simulate: Simulate) -> None:
    simulate(2)
    slices = two_replicas()[1]
    total = mr.reduce_sum(slices, axis=1)
    assert total.numpy().tolist() == [0.0, 7.0, 0.0, 11.0, 0.0]
    assert mr.convert_to_tensor(slices).device[-5:] == "GPU:1"
    assert (slices.dtype, slices.dense_shape) == (mr.float32, (5, 2))


def test_repr() -> None:
    slices = IndexedSlices([[1.0]], [2])
    assert repr(slices) == (
        "IndexedSlices(indices=mr.Tensor([2], shape=(1,), dtype=int32), "
        "values=mr.Tensor([[1.]], shape=(1, 1), dtype=float32), dense_shape=None)"
    )


@cases(
    ("make", "error", "match"),
    [
        (
            lambda: IndexedSlices([1.0], [1, 2]),
            InvalidArgumentError,
            r"shape \(1,\) .*shape \(2,\)",
        ),
        (lambda: IndexedSlices(1.0, 1), InvalidArgumentError, "one integer index a row"),
        (lambda: IndexedSlices([1.0], [1.0]), InvalidArgumentError, "dtype float32"),
        (lambda: IndexedSlices([1.0], [1], (3, 2)), InvalidArgumentError, r"dense_shape=\(3, 2\)"),
        (lambda: IndexedSlices([1.0], [1], ()), InvalidArgumentError, r"dense_shape=\(\)"),
        (lambda: IndexedSlices([1.0], [1], (-3,)), InvalidArgumentError, ">= 0"),
        (
            lambda: mr.convert_to_tensor(IndexedSlices([1.0], [1])),
            ValueError,
            "Tensor conversion requested for IndexedSlices without dense_shape: Indexed",
        ),
        (
            lambda: mr.convert_to_tensor(IndexedSlices([1.0], [3], (3,))),
            InvalidArgumentError,
            r"indices\[0\] = \[3\] does not index into shape \[3\]",
        ),
        (
            lambda: mr.convert_to_tensor(IndexedSlices([1.0], [-1], (3,))),
            InvalidArgumentError,
            r"indices\[0\] = \[-1\] does not index",
        ),
        (
            lambda: ReductionToOneDevice().reduce(
                "sum", [IndexedSlices([1.0], [0], (2,)), IndexedSlices([1.0], [0], (3,))], "CPU:0"
            ),
            InvalidArgumentError,
            "the same dtype, row shape and dense shape.*from replica 1",
        ),
        (
            lambda: ReductionToOneDevice().reduce(
                "sum", [IndexedSlices([1.0], [0], (2,)), mr.constant([1.0, 2.0])], "CPU:0"
            ),
            InvalidArgumentError,
            "Replicas can reduce only IndexedSlices",
        ),
        (
            lambda: ReductionToOneDevice().reduce(
                "sum", [mr.constant([1.0, 2.0]), IndexedSlices([1.0], [0], (2,))], "CPU:0"
            ),
            InvalidArgumentError,
            "Collectives take tensors.*from replica 1",
        ),
        (
            lambda: ReductionToOneDevice().gather([IndexedSlices([1.0], [0], (2,))], "CPU:0", 0),
            InvalidArgumentError,
            "Collectives take tensors",
        ),
    ],
)
def test_refused(make: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()
