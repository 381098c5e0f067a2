"""Changes of some rows and elements of a variable's value, as ops that return the new value."""

import numpy as np

from mirrored import ops
from mirrored.errors import InvalidArgumentError
from mirrored.ops import IndexedSlices
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.flat_indices import flat_indices
from mirrored.ops.hooks import RecordedTensor
from mirrored.ops.op import Op
from mirrored.ops.scattering import (
    TENSOR_SCATTER_ADD,
    TENSOR_SCATTER_MAX,
    TENSOR_SCATTER_MIN,
    TENSOR_SCATTER_UPDATE,
    UNSORTED_SEGMENT_PROD,
)
from mirrored.ops.shaping import RESHAPE
from mirrored.ops.spec import FLOATS, NUMBERS, SIGNED, check_dtype, shape_text
from mirrored.ops.tensor import Tensor

_ROWS: dict[str, Op] = {
    "scatter_add": TENSOR_SCATTER_ADD,
    "scatter_sub": TENSOR_SCATTER_ADD,
    "scatter_update": TENSOR_SCATTER_UPDATE,
    "scatter_max": TENSOR_SCATTER_MAX,
    "scatter_min": TENSOR_SCATTER_MIN,
}


def _op_name(method: str) -> str:
    return "Resource" + "".join(part.capitalize() for part in method.split("_"))


def change_of_rows(method: str, delta: IndexedSlices, old: Tensor) -> Tensor:
    """Return a tensor with some rows changed."""
    name = _op_name(method)
    check_dtype(name, NUMBERS if method != "scatter_update" else frozenset({old.dtype}), old.spec)
    values = ops.convert_to_tensor(delta.values, old.dtype)
    if not old.ndim or values.shape[1:] != old.shape[1:]:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {shape_text(values.shape)}, indices.shape "
            f"{shape_text(delta.indices.shape)}, params.shape {shape_text(old.shape)} [Op:{name}]"
        )
    count, width = old.shape[0], old.size // max(1, old.shape[0])
    vectors = RESHAPE(delta.indices, shape=(delta.indices.size, 1))
    places = flat_indices(vectors, (count,), op=name)
    rows = RESHAPE(values, shape=(places.size, width))
    matrix = RESHAPE(old, shape=(count, width))
    if method in ("scatter_mul", "scatter_div"):
        factors = UNSORTED_SEGMENT_PROD(rows, places, num_segments=count)
        new = matrix * factors if method == "scatter_mul" else _quotient(matrix, factors)
    else:
        new = _ROWS[method](matrix, places, _negated(rows) if method == "scatter_sub" else rows)
    return RESHAPE(new, shape=old.shape)


def _negated(rows: Tensor) -> Tensor:
    return -rows if rows.dtype in SIGNED else ZEROS_LIKE(rows) - rows


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    """Return x / y; integer quotients are rounded towards zero."""
    if x.dtype in FLOATS:
        return x / y
    if x.dtype not in SIGNED:
        return x // y
    return (ops.abs(x) // ops.abs(y)) * (ops.sign(x) * ops.sign(y))


def check_divisors(values: Tensor) -> None:
    """Raise an error for a known divisor 0; in a recorded function floats become infinite."""
    if not isinstance(values, RecordedTensor) and (np.asarray(values.numpy()) == 0).any():
        raise InvalidArgumentError("updates must not contain 0 [Op:ResourceScatterDiv]")
