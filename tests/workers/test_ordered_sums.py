"""Sums in a fixed order, and how vectors are cut."""

import ml_dtypes
import numpy as np
import pytest
from case_table import cases

from mirrored.workers.ordered_sums import add_in_order, slices_of


@cases("dtype", ["float32", "float64", "int64", "uint8", "complex128"])
@cases("count", [1, 2, 3, 5])
@cases("size", [0, 1, 40_000])
def test_the_order_is_that_of_the_list(dtype: str, count: int, size: int) -> None:
    rng = np.random.default_rng(3)
    arrays = [(rng.standard_normal(size) * 10.0**power).astype(dtype) for power in range(count)]
    right = arrays[0]
    for array in arrays[1:]:
        right = right + array
    for out in (np.empty(size, dtype), *arrays):  # It may be each of those that are added.
        given = [array.copy() if array is not out else array for array in arrays]
        before = out.copy()
        add_in_order(given, out)
        assert out.tobytes() == right.tobytes()
        out[:] = before


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_floats_of_16_bits_are_rounded_once(dtype: type) -> None:
    # Added one by one each of the small ones would be lost.
    arrays = [np.full(3, value, dtype) for value in (256.0, 0.25, 0.25, 0.25, 0.25)]
    out = np.empty(3, dtype)
    add_in_order(arrays, out)
    expected = np.float32(257.0).astype(dtype)
    assert (out == expected).all()


@cases("size", [0, 1, 5, 12])
@cases("parts", [1, 3, 5])
def test_parts_are_all_of_a_vector(size: int, parts: int) -> None:
    vector = np.arange(size)
    cut = [vector[part] for part in slices_of(size, parts)]
    assert len(cut) == parts
    np.testing.assert_array_equal(np.concatenate(cut), vector)
    assert max(map(len, cut)) - min(map(len, cut)) <= 1
