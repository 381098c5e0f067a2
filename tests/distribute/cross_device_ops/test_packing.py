"""Packs: tensors become one vector and come back, and only those that fit together."""

import numpy as np
import pytest

import mirrored as mr
from mirrored.distribute.cross_device_ops.packing import alike, flatten, unflatten


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
