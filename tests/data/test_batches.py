"""Batches cover every example once, in order, whatever the sizes and wherever they are read to."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from case_table import cases

from mirrored.data.arrays import Arrays, Rows, adapt, joined
from mirrored.data.batches import Span


def examples(count: int) -> Arrays:
    x = np.arange(2.0 * count).reshape(count, 2)
    return adapt(x, np.arange(count), np.arange(count) / 4)


def rows_of(count: int, shuffled: bool) -> Rows:
    return np.random.default_rng(count).permutation(count) if shuffled else slice(0, count)


@cases(
    ("count", "batch_size", "sizes"),
    [(1, 1, [1]), (7, 3, [3, 3, 1]), (6, 3, [3, 3]), (4, 100, [4]), (3, 1, [1, 1, 1])],
)
@cases("shuffled", [False, True])
def test_cover(count: int, batch_size: int, sizes: list[int], shuffled: bool) -> None:
    arrays, rows = examples(count), rows_of(count, shuffled)
    span = Span(arrays, rows, batch_size)
    assert span.count == len(sizes)
    for _ in range(2):  # A second pass gives the same batches.
        listed = list(span)
        assert [batch.size for batch in listed] == sizes
        for column, whole in enumerate(arrays.columns):
            np.testing.assert_array_equal(
                np.concatenate([batch.columns[column] for batch in listed]), whole[rows]
            )
            shared = [np.shares_memory(batch.columns[column], whole) for batch in listed]
            assert all(shared) is not shuffled
    for first in range(len(sizes)):
        rest = span.after(first)
        assert rest.count == len(sizes) - first
        assert [batch.x.tolist() for batch in rest] == [each.x.tolist() for each in listed[first:]]
    ends = [sizes[0]] if len(set(sizes)) == 1 else [batch_size, sizes[-1]]
    assert [part.size for part in span.alike()] == ends
    assert sum(part.count for part in span.alike()) == len(sizes)


def test_inputs_alone() -> None:
    (batch,) = Span(adapt([1.0, 2.0], for_what="predict"), slice(0, 2), 8)
    assert batch.y is None
    assert batch.sample_weight is None


@cases(
    ("parts", "rows"),
    [
        ([], []),
        ([slice(2, 4)], [2, 3]),
        ([slice(2, 4), np.array([7])], [2, 3, 7]),
        ([np.array([3]), np.array([1, 2])], [3, 1, 2]),
    ],
)
def test_joined_rows(parts: list[Rows], rows: list[int]) -> None:
    assert np.arange(9)[joined(parts)].tolist() == rows


def one_by_one(batches: Iterable[Arrays]) -> Span:
    return Span.joined([Span(batch, slice(0, batch.size), batch.size) for batch in batches])


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
        adapt([np.ones((1, 4), np.float32)], for_what="predict"),
        adapt({"a": np.ones((1, 4), np.float32)}, for_what="predict"),
        adapt({"a": np.zeros((1, 4), np.float32)}, for_what="predict"),
        adapt({"b": np.ones((1, 4), np.float32)}, for_what="predict"),
    ]
    span = one_by_one(kinds)
    assert [part.count for part in span.alike()] == [2, 1, 1, 1, 1, 2, 1, 2, 1]
    assert [part.count for part in span.after(1).alike()] == [1, 1, 1, 1, 1, 2, 1, 2, 1]
    assert [batch.columns[0].shape for batch in span.after(4)] == [(1, 4)] * 8


@cases("shard", [slice(0, 2), slice(1, 2), slice(2, 2)])
@cases("dtype", [np.float64, np.float32])
@cases("shuffled", [False, True])
def test_feeders_write_rows_of_batches(shard: slice, dtype: Any, shuffled: bool) -> None:
    """Whether the batches are rows of the same arrays or there one by one."""
    whole = Span(examples(7), rows_of(7, shuffled), 2).after(1)
    batches = list(whole)
    part, last = whole.alike()
    assert (part.count, last.count) == (2, 1)
    for span in (part, next(one_by_one(batches).alike())):
        count = shard.stop - shard.start
        targets = np.zeros((count, 2), dtype), np.zeros(count, np.int64), np.zeros(count)
        feed = span.feeder(shard, targets)
        for number in range(2):
            feed(number)
            np.testing.assert_array_equal(targets[0], batches[number].x[shard])
            np.testing.assert_array_equal(targets[1], batches[number].y[shard])


def test_batches_of_which_other_processes_have_rows() -> None:
    given = [(slice(0, 2), (2, 3)), (slice(0, 0), (0, 4)), (slice(0, 2), (2, 3))]
    span = Span.joined([Span(examples(2), rows, rows.stop, sizes) for rows, sizes in given])
    assert [(part.count, part.size, part.sizes) for part in span.alike()] == [
        (1, sum(sizes), sizes) for _, sizes in given
    ]
    assert [batch.size for batch in span] == [2, 0, 2]
    assert span.after(1).count == 2
