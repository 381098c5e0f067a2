"""How a batch is cut: sizes that differ by at most one, larger first, nothing lost."""

import numpy as np
import pytest
from case_table import cases
from hypothesis import given
from hypothesis import strategies as st

from mirrored.distribute import shard_bounds, split_sizes
from mirrored.distribute.sharding import sharding_of, sharding_of_own
from mirrored.errors import InvalidArgumentError


@pytest.mark.behaviour("shard-sizes")
@cases(
    ("examples", "replicas", "sizes", "bounds"),
    [
        (7, 3, [3, 2, 2], [(0, 3), (3, 5), (5, 7)]),
        (4, 3, [2, 1, 1], [(0, 2), (2, 3), (3, 4)]),
        (1, 2, [1, 0], [(0, 1), (1, 1)]),
        (0, 2, [0, 0], [(0, 0), (0, 0)]),
        (6, 2, [3, 3], [(0, 3), (3, 6)]),
        (5, 1, [5], [(0, 5)]),
    ],
)
def test_table(
    examples: int, replicas: int, sizes: list[int], bounds: list[tuple[int, int]]
) -> None:
    assert split_sizes(examples, replicas) == sizes
    assert shard_bounds(examples, replicas) == bounds


@pytest.mark.behaviour("shard-sizes")
@given(examples=st.integers(0, 10**6), replicas=st.integers(1, 64))
def test_any_batch(examples: int, replicas: int) -> None:
    sizes = split_sizes(examples, replicas)
    assert len(sizes) == replicas
    assert sum(sizes) == examples
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
    bounds = shard_bounds(examples, replicas)
    assert [end - start for start, end in bounds] == sizes
    assert [start for start, _ in bounds[1:]] == [end for _, end in bounds[:-1]]


@given(examples=st.integers(0, 40), layout=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_own_rows_are_those_of_the_whole(examples: int, layout: list[int]) -> None:
    rows = np.arange(examples)
    for worker, here in enumerate(layout):
        first = sum(layout[:worker])
        whole = sharding_of(examples, sum(layout), first, here)
        own = sharding_of_own(whole.of_all, first, here)
        assert own[1:] == whole[1:]
        parts = own.cut(rows[whole.slices[0].start : whole.slices[-1].stop])
        for part, wanted in zip(parts, whole.cut(rows), strict=True):
            np.testing.assert_array_equal(part, wanted)


@cases("split", [split_sizes, shard_bounds])
@cases(("examples", "replicas"), [(3, 0), (3, -1), (-1, 2)])
def test_what_cannot_be_split(split: object, examples: int, replicas: int) -> None:
    assert callable(split)
    with pytest.raises(InvalidArgumentError, match=f"{examples} examples, {replicas} replicas"):
        split(examples, replicas)
