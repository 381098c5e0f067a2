"""Batches cover every example once, in order, whatever the sizes."""

from typing import Any

import numpy as np
import pytest

from mirrored.data.adapters import adapt
from mirrored.data.batches import ArrayBatches, BatchList, Span


@pytest.mark.parametrize(
    ("examples", "batch_size", "sizes"),
    [(1, 1, [1]), (7, 3, [3, 3, 1]), (6, 3, [3, 3]), (4, 100, [4]), (3, 1, [1, 1, 1])],
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_cover(examples: int, batch_size: int, sizes: list[int], shuffled: bool) -> None:
    order = np.random.default_rng(examples).permutation(examples) if shuffled else None
    x = np.arange(2.0 * examples).reshape(examples, 2)
    y, weights = np.arange(examples), np.arange(examples) / 4
    batches = ArrayBatches(adapt(x, y, weights), batch_size, order)
    rows = np.arange(examples) if order is None else order
    assert len(batches) == len(sizes)
    for _ in range(2):  # A second pass gives the same batches.
        listed = list(batches)
        assert [batch.size for batch in listed] == sizes
        np.testing.assert_array_equal(np.concatenate([b.x for b in listed]), x[rows])
        np.testing.assert_array_equal(np.concatenate([b.y for b in listed]), y[rows])
        np.testing.assert_array_equal(
            np.concatenate([b.sample_weight for b in listed]), weights[rows]
        )


def test_without_order_batches_are_views() -> None:
    x = np.zeros((5, 2))
    assert all(np.shares_memory(batch.x, x) for batch in ArrayBatches(adapt(x, x), 2))


def test_inputs_alone() -> None:
    (batch,) = ArrayBatches(adapt([1.0, 2.0], for_what="predict"), 8)
    assert batch.y is None
    assert batch.sample_weight is None


def test_order_may_take_some_rows() -> None:
    arrays = adapt([0.0, 1.0, 2.0], [0, 1, 2])
    assert [batch.x.tolist() for batch in ArrayBatches(arrays, 2, np.array([2, 2, 0]))] == [
        [2, 2],
        [0],
    ]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (np.array([[0]]), r"vector of integers. .*shape \(1, 1\)"),
        (np.array([0.0]), r"vector of integers. .*dtype float64"),
        (np.array([0, 3]), r"rows in \[0, 3\). Received: rows from 0 to 3"),
        (np.array([-1, 2]), r"Received: rows from -1 to 2"),
    ],
)
def test_order_refused(order: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArrayBatches(adapt([0.0, 1.0, 2.0], [0, 1, 2]), 2, order)


def test_batch_size_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a positive integer. Received: batch_size=0"):
        ArrayBatches(adapt([0.0], [0]), 0)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("first", "count", "most"), [(0, 4, 4), (0, 4, 3), (1, 3, 1), (2, 2, 9)])
def test_a_span_splits_into_spans_in_order(
    first: int, count: int, most: int, shuffled: bool
) -> None:
    order = np.random.default_rng(0).permutation(7) if shuffled else None
    batches = ArrayBatches(adapt(np.arange(7.0), np.arange(7)), 2, order)
    parts = list(Span(batches, first, count).split(most))
    assert [i for part in parts for i in range(part.first, part.first + part.count)] == list(
        range(first, first + count)
    )
    assert all(1 <= part.count <= most for part in parts)
    assert all(part.batches is batches for part in parts)


def test_sizes_of_batches() -> None:
    batches = ArrayBatches(adapt(np.arange(7.0), np.arange(7)), 3)
    assert [batches.size(i) for i in range(len(batches))] == [3, 3, 1]
    with pytest.raises(IndexError, match=r"There are 3 batches. Received: index 3"):
        batches[3]


def test_parts_of_a_span_are_batches_of_one_kind() -> None:
    """Of the same shapes and dtypes, and with the same of targets and weights there."""
    kinds = [
        adapt(np.zeros((2, 3)), [0, 1]),
        adapt(np.ones((2, 3)), [1, 1]),
        adapt(np.zeros((2, 3), np.float32), [0, 1]),
        adapt(np.zeros((2, 4), np.float32), [0, 1]),
        adapt(np.zeros((1, 4), np.float32), [0]),
        adapt(np.zeros((1, 4), np.float32), [0], [1.0]),
        adapt(np.zeros((1, 4), np.float32), for_what="predict"),
        adapt(np.ones((1, 4), np.float32), for_what="predict"),
    ]
    batches = BatchList(kinds)
    assert [(each.first, each.count) for each in Span(batches, 1, 7).parts()] == [
        *((first, 1) for first in range(1, 6)),
        (6, 2),
    ]
    assert [each.count for each in Span(batches, 0, 2).parts()] == [2]


@pytest.mark.parametrize("rows", [slice(0, 2), slice(1, 2), slice(2, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shuffled", [False, True])
def test_feeders_write_rows_of_batches(rows: slice, dtype: Any, shuffled: bool) -> None:
    """Whether the batches are cut from arrays or there one by one."""
    x, y = np.arange(14.0).reshape(7, 2), np.arange(7)
    order = np.random.default_rng(0).permutation(7) if shuffled else None
    whole = ArrayBatches(adapt(x, y, np.arange(7.0)), 2, order)
    for batches in (whole, BatchList(list(whole))):
        count = rows.stop - rows.start
        targets = np.zeros((count, 2), dtype), np.zeros(count, np.int64), None
        feed = batches.feeder(1, rows, targets)
        for number in range(2):
            feed(number)
            np.testing.assert_array_equal(targets[0], whole[1 + number].x[rows])
            np.testing.assert_array_equal(targets[1], whole[1 + number].y[rows])
