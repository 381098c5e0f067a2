"""Packs: nothing is lost, whichever way vectors are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mirrored as mr
from mirrored.distribute.cross_device_ops.packing import alike, flatten, pack_bounds, unflatten

SIZES = st.integers(0, 50)
ITEM = st.sampled_from([1, 4, 8])


@given(SIZES, ITEM, st.integers(1, 60), st.integers(0, 300))
def test_packs_follow_each_other(size: int, item: int, num_packs: int, nbytes: int) -> None:
    bounds = pack_bounds(size, item, num_packs, nbytes)
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(size))
    assert size == 0 or all(start < stop for start, stop in bounds)
    assert bounds


@given(SIZES, st.integers(1, 60))
def test_num_packs(size: int, num_packs: int) -> None:
    """All packs have the same size, but for the last, which takes the remainder."""
    lengths = [stop - start for start, stop in pack_bounds(size, 4, num_packs, 0)]
    assert len(lengths) == (num_packs if size >= num_packs else 1)
    assert set(lengths[:-1]) <= {size // num_packs}


@given(SIZES, ITEM, st.integers(1, 300))
def test_bytes_per_pack(size: int, item: int, nbytes: int) -> None:
    """No pack is larger than asked, unless a single element is."""
    lengths = [stop - start for start, stop in pack_bounds(size, item, 1, nbytes)]
    most = max(nbytes // item, 1)
    assert set(lengths[:-1]) <= {most}
    assert lengths[-1] <= most


@pytest.mark.parametrize("shapes", [[()], [(2, 3), (), (0, 2), (4,)], [(0,)]])
def test_vectors_and_back(shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in shapes]
    tensors = [mr.constant(array) for array in arrays]
    flat = flatten(tensors)
    np.testing.assert_array_equal(flat.numpy(), np.concatenate([a.ravel() for a in arrays]))
    for part, array in zip(unflatten(flat, tensors), arrays, strict=True):
        np.testing.assert_array_equal(part.numpy(), array)


def test_what_is_packed_together() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    with mr.device("GPU:0"):
        a, b = mr.constant(1.0), mr.constant(1)
    with mr.device("GPU:1"):
        c, d = mr.constant([1.0, 2.0]), mr.constant([1])
    batch = [[a, c], [b, d], [a, c], [c, a], [a], [b, d]]
    assert alike(batch) == [[0, 2], [1, 5], [3], [4]]
