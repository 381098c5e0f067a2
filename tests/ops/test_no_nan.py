"""What is 0 where an operand is, by its public names; `test_hard_values` has the values."""

from typing import Any

import numpy as np
import pytest

from mirrored import ops
from mirrored.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("dtype", "wide"), [("int32", "float64"), ("int64", "float64"), ("uint8", "float32")]
)
def test_integers_are_divided_as_floats(dtype: str, wide: str) -> None:
    found = ops.divide_no_nan(np.array([1, 2], dtype), np.array([4, 0], dtype))
    assert found.dtype.name == wide
    assert found.numpy().tolist() == [0.25, 0.0]


@pytest.mark.parametrize(("x", "y"), [([1], 2.0), (ops.constant([1.0]), ops.constant(2))])
def test_integers_beside_floats(x: Any, y: Any) -> None:
    with pytest.raises(TypeError, match="must have the same dtype"):
        ops.divide_no_nan(x, y)


def test_the_others_take_floats() -> None:
    for function in (ops.multiply_no_nan, ops.xdivy, ops.xlogy, ops.xlog1py):
        with pytest.raises(InvalidArgumentError, match="attr 'T' of int32"):
            function(1, 2)
    with pytest.raises(InvalidArgumentError, match="attr 'T' of int32"):
        ops.reciprocal_no_nan([1, 2])
