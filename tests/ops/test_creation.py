"""Tensors from a shape and a value."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.errors import InvalidArgumentError


@cases(("make", "value"), [(ops.zeros, 0), (ops.ones, 1)])
@cases("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_zeros_and_ones(make: Any, value: int, dtype: str) -> None:
    made = make((2, 3), dtype)
    assert made.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(made.numpy(), np.full((2, 3), value, dtype))


@pytest.mark.parametrize("make", [ops.zeros, ops.ones])
def test_default_dtype_and_shapes(make: Any) -> None:
    assert make(3).shape == (3,)
    assert make(()).shape == ()
    assert make((2, 0)).dtype == ops.float32


@cases(
    ("value", "dtype"),
    [(9, "int32"), (9.5, "float32"), (True, "bool"), (np.float64(2.5), "float64")],
)
def test_fill(value: Any, dtype: str) -> None:
    filled = ops.fill((2, 2), value)
    assert filled.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(filled.numpy(), np.full((2, 2), value))


@cases(("make", "value"), [(ops.zeros_like, 0), (ops.ones_like, 1)])
@cases("like", [[1.5, 2.5], np.arange(3), np.array([[True]])])
def test_like(make: Any, value: int, like: Any) -> None:
    made = make(like)
    assert made.shape == np.shape(like)
    assert (made.numpy() == value).all()
    assert make(made).dtype == made.dtype


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"scalar value. Received: shape \(2,\)"):
        ops.fill((2,), [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=r"Received: \(-1,\)"):
        ops.zeros((-1,))
    with pytest.raises(TypeError, match="sequence of integers"):
        ops.ones((1.5,))
    with pytest.raises(TypeError, match="Received: 'complex64'"):
        ops.zeros((1,), "complex64")


def test_nothing_stays_allocated_after_a_failure(simulate: Any) -> None:
    simulate(1, 1)
    pool = devices.get_device("GPU:0").pool
    with pytest.raises(MemoryError, match=r"limit 1.0 MB"):
        ops.zeros((2**18 + 1,))
    assert pool.current == 0
    assert ops.zeros((2**18,)).shape == (2**18,)
