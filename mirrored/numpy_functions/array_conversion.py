"""NumPy's rules for dtypes: Python's floats are float64, its integers int64.

Everything else in this package asks here; dtypes meet by NumPy's own rules.
"""

import numbers
from typing import Any

import numpy as np

from mirrored import _nest, ops
from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, TensorLike
from mirrored.numpy_functions.rows import Rule, Rules
from mirrored.ops import Tensor
from mirrored.ops.conversion import as_array, is_tensor
from mirrored.ops.spec import FLOATS, DType, as_dtype, int64

FLOAT = np.dtype(np.float64)


_LARGE = 1 << 31  # From here on the value of a Python integer may matter.


_MOST_AXES = 32


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype that values and dtypes have together.

    Args:
        *arrays_and_dtypes: Tensors, arrays, Python's numbers, which count less than those of other
            kinds, dtypes, and nested lists of these.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.result_type(mr.constant([1]), 2.5).name
        'float64'
    """
    kinds = [_kind(value) for value in _nest.flatten(arrays_and_dtypes)]
    # NumPy takes 64 of them: of Python's numbers one of a type stands for all.
    distinct = {_key(kind): kind for kind in kinds}
    return as_dtype(np.result_type(*distinct.values()) if distinct else FLOAT)


def _kind(value: Any) -> Any:
    if is_tensor(value):
        return value.dtype
    # What NumPy would take for an array of objects is no number.
    return value if isinstance(value, numbers.Real | str | type | np.ndarray) else np.dtype(value)


def _key(kind: Any) -> Any:
    if isinstance(kind, np.ndarray | np.generic):
        return kind.dtype
    if isinstance(kind, int) and abs(kind) >= _LARGE:
        return kind
    return type(kind) if isinstance(kind, bool | int | float) else kind


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """Return the least dtype that values of both go into.

    Args:
        type1: A dtype.
        type2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.promote_types(mr.int32, mr.float32).name
        'float64'
    """
    return np.promote_types(type1, type2)


def finfo(dtype: DTypeLike) -> Any:
    """Return NumPy's `finfo` of a dtype of floats.

    Args:
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.finfo(mr.float32).bits
        32
    """
    return np.finfo(dtype)


def array(
    val: TensorLike, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0
) -> Tensor:
    """Return a value as a tensor.

    Args:
        val: A tensor, an array, a number or nested lists of these.
        dtype: The dtype; None: as `result_type` says.
        copy: Accepted for compatibility: tensors never change.
        ndmin: The least number of axes; those that lack are in front.

    Raises:
        ValueError: Rows differ in length, or `ndmin` is above 32.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.array([1.0, 2]).dtype.name
        'float64'
    """
    kind = None if dtype is None else result_type(dtype)
    if is_tensor(val):
        tensor = ops.convert_to_tensor(val)
        tensor = tensor if kind is None or kind is tensor.dtype else ops.cast(tensor, kind)
    else:
        tensor = _converted(val, result_type(val) if kind is None else kind)
    if ndmin > _MOST_AXES:
        raise ValueError(f"ndmin bigger than allowable number of dimensions: {_MOST_AXES}.")
    missing = ndmin - tensor.ndim
    return ops.reshape(tensor, [1] * missing + list(tensor.shape)) if missing > 0 else tensor


def _converted(value: Any, kind: DType) -> Tensor:
    if any(is_tensor(part) for part in _nest.flatten(value)):
        return ops.cast(ops.convert_to_tensor(value), kind)
    numbers_of_it = as_array(value)
    if numbers_of_it.dtype.kind not in "biuf":
        return ops.cast(ops.convert_to_tensor(value), kind)
    with np.errstate(all="ignore"):
        return ops.constant(numbers_of_it.astype(kind, copy=False))


def asarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a value as a tensor, as `array` does.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.asarray(3).dtype.name
        'int64'
    """
    return array(a, dtype)


def asanyarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a value as a tensor, as `array` does.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.asanyarray([True]).dtype.name
        'bool'
    """
    return array(a, dtype)


def ascontiguousarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a value as a tensor of one axis or more, as `array` does.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ascontiguousarray(3).shape
        (1,)
    """
    return array(a, dtype, ndmin=1)


def copy(a: TensorLike) -> Tensor:
    """Return a value as a tensor, as `array` does.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.copy([2]).numpy()
        array([2])
    """
    return array(a)


def promoted(*values: Any) -> list[Tensor]:
    """Return values as tensors of the dtype that they have together.

    Args:
        *values: Tensors, arrays, numbers and nested lists of these.
    """
    kind = result_type(*values)
    return [array(value, kind) for value in values]


def floats(x: Any) -> Tensor:
    """Return a value as floats; integers and booleans become float64.

    Args:
        x: The value.
    """
    tensor = array(x)
    return tensor if tensor.dtype in FLOATS else ops.cast(tensor, FLOAT)


def booleans(x: Any) -> Tensor:
    """Return which elements of a value are not 0.

    Args:
        x: The value.
    """
    return array(x, np.bool_)


def axis_of(axis: int, rank: int) -> int:
    """Return the number of an axis from the first one on.

    Args:
        axis: The axis.
        rank: How many there are.
    """
    return axis + rank if axis < 0 else axis


def summands(x: Any) -> Tensor:
    """Return a value as what is added up: integers and booleans in 64 bits.

    Args:
        x: The value.
    """
    tensor = array(x)
    if tensor.dtype in FLOATS:
        return tensor
    return ops.cast(tensor, np.uint64 if tensor.dtype.kind == "u" else int64)


_ELEMENTS = ", element by element"
RULES = Rules(
    public="mr.experimental.numpy",
    same=Rule(array),
    number=Rule(array),
    floats=Rule(floats, "; integers count as float64"),
    truth=Rule(booleans),
    pair=Rule(promoted, _ELEMENTS),
    tensors=Rule(promoted, _ELEMENTS),
    float_pair=Rule(lambda *values: [floats(x) for x in promoted(*values)], _ELEMENTS),
    truths=Rule(lambda *values: [booleans(value) for value in values], _ELEMENTS),
)


explain_functions(__name__)
