"""Sums of many tensors, by their public names, and sums over a tree."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given
from hypothesis import strategies as st

from mirrored import ops
from mirrored.ops.add_n import join_subtrees, subtrees, tree_sum


def test_add_n() -> None:
    total = ops.add_n([ops.constant([88, 112]), [1, 2], np.array([3, 4])])
    np.testing.assert_array_equal(total.numpy(), [92, 118])
    assert total.dtype == ops.int32
    assert float(ops.add_n([2.0])) == 2.0


@cases("inputs", [[], (), 3.0, None, ops.Tensor])
def test_add_n_of_nothing(inputs: Any) -> None:
    with pytest.raises(ValueError, match="a list of at least one tensor"):
        ops.add_n(inputs)


def test_add_n_adds_in_order() -> None:
    """1e8 hides a float32 one that is added to it, but not one that comes before it is gone."""
    assert float(ops.add_n([1e8, -1e8, 1.0])) == 1.0
    assert float(ops.add_n([1.0, 1e8, -1e8])) == 0.0


def test_accumulate_n_is_told_what_it_gets() -> None:
    x = ops.constant([[1.0, 2.0]])
    for shape in (None, (1, 2), [None, 2]):
        total = ops.accumulate_n([x, x], shape, "float32")
        assert total.numpy().tolist() == [[2.0, 4.0]]
    for shape in ((2,), (2, 2), (None,)):
        with pytest.raises(ValueError, match="are not compatible"):
            ops.accumulate_n([x, x], shape)
    with pytest.raises(TypeError, match="must be equal"):
        ops.accumulate_n([x, x], tensor_dtype="int32")
    with pytest.raises(ValueError, match="at least one tensor"):
        ops.accumulate_n([])


def grouping(count: int) -> Any:
    return tree_sum(range(count), lambda left, right: (left, right))


@cases(
    ("count", "expected"),
    [
        (1, 0),
        (3, ((0, 1), 2)),
        (6, (((0, 1), (2, 3)), (4, 5))),
        (7, (((0, 1), (2, 3)), ((4, 5), 6))),
    ],
)
def test_the_tree_depends_on_the_number_of_replicas(count: int, expected: Any) -> None:
    assert grouping(count) == expected


@given(count=st.integers(1, 40), ends=st.lists(st.integers(0, 40), max_size=4))
def test_partial_sums_of_workers_join_to_the_tree(count: int, ends: list[int]) -> None:
    """However the replicas are cut into consecutive parts, of which some may be empty."""
    bounds = [0, *sorted(min(end, count) for end in ends), count]
    known: dict[range, Any] = {}
    for first, last in pairwise(bounds):
        leaves = {range(i, i + 1): i for i in range(first, last)}
        for part in subtrees(range(count), range(first, last)):
            known[part] = join_subtrees(part, leaves, lambda left, right: (left, right))
    assert sorted(i for part in known for i in part) == list(range(count))
    whole = join_subtrees(range(count), known, lambda left, right: (left, right))
    assert whole == grouping(count)
