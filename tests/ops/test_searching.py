"""Where values belong, by the public name; `test_every_op` has the ops."""

from typing import Any, Literal

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf
ROWS = np.sort(np.random.default_rng(2).integers(0, 9, (2, 3, 13)), axis=-1)
VALUES = np.random.default_rng(3).integers(-1, 11, (2, 3, 7))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_rows_of_batches(side: Literal["left", "right"], dtype: str) -> None:
    rows, values = ROWS.astype(dtype), VALUES.astype(dtype)
    for search in (ops.searchsorted, mr.function(ops.searchsorted)):
        found = search(ops.constant(rows), ops.constant(values), side, ops.int64)
        assert found.dtype == ops.int64
        for place in np.ndindex(2, 3):
            expected = np.searchsorted(rows[place], values[place], side)
            assert found.numpy()[place].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("rows", "values", "left", "right"),
    [  # As TensorFlow has them.
        ([1.0, 2.0], [NAN, INF, -INF], [0, 2, 0], [2, 2, 0]),
        ([1.0, 2.0, NAN], [NAN, 3.0], [0, 2], [3, 3]),
        ([3.0, 1.0, 2.0], [2.0, 0.0, 5.0], [2, 0, 3], [3, 0, 3]),
        ([], [2.0], [0], [0]),
    ],
)
def test_hard_values(rows: Any, values: Any, left: list[int], right: list[int]) -> None:
    assert ops.searchsorted(rows, values).numpy().tolist() == left
    assert ops.searchsorted(rows, values, "right").numpy().tolist() == right


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="must be either 'right' or 'left'"):
        ops.searchsorted([1], [1], "middle")
    for rows, values, message in (
        ([[1, 3]], [[1], [2]], "Leading dim_size of both tensors must match"),
        ([1, 3], [1.0], "expected to be a int32 tensor but is a float tensor"),
        ([1, 3], 1, "a scalar"),
        (1, [1], "a scalar"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            ops.searchsorted(rows, values)
    with pytest.raises(InvalidArgumentError, match="attr 'out_type' of float"):
        ops.searchsorted([1], [1], out_type="float32")
