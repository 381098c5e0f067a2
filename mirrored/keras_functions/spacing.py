"""`keras.ops` that return evenly spaced numbers, and grids."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import result_type as _result_type
from mirrored.numpy_functions import array_creation as creation
from mirrored.ops import Tensor
from mirrored.ops.spec import INTEGERS


def _kind(start: Any, stop: Any, dtype: Any) -> Any:
    if dtype is not None:
        return ops.as_dtype(dtype)
    kinds = (
        type(x) if type(x) in (int, float) else ops.convert_to_tensor(x).dtype
        for x in (start, stop)
    )
    return _result_type(*kinds, float)


def _in_floats(*values: Any, dtype: Any) -> list[Tensor]:
    """Return values as floats: as those of a dtype, or as float32 where it is one of integers."""
    return [ops.cast(value, ops.float32 if dtype in INTEGERS else dtype) for value in values]


@explained
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return numbers at equal distances.

    Args:
        start: The first one, or a tensor of first ones.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is among them; otherwise they end a step before.
        retstep: Whether to return the step as well.
        dtype: The dtype; None: that of `start` and `stop` as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.linspace(0, 1, 3).numpy()
        array([0. , 0.5, 1. ], dtype=float32)
    """
    kind = _kind(start, stop, dtype)
    first, last = _in_floats(start, stop, dtype=kind)
    numbers, step = creation.linspace(first, last, num, endpoint, True, axis=axis)
    numbers = ops.cast(numbers, kind)
    return (numbers, ops.cast(step, kind)) if retstep else numbers


@explained
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Return powers of a base whose exponents are at equal distances.

    Args:
        start: The first exponent.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is among them.
        base: What is raised to the powers.
        dtype: The dtype; None: that of `start` and `stop` as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logspace(0, 2, 3).numpy()
        array([  1.,  10., 100.], dtype=float32)
    """
    kind = _kind(start, stop, dtype)
    first, last = _in_floats(start, stop, dtype=kind)
    return ops.cast(creation.logspace(first, last, num, endpoint, base, axis=axis), kind)


@explained
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Return numbers each of which is the same multiple of the one before.

    Args:
        start: The first one.
        stop: The last one, of the same sign.
        num: How many.
        endpoint: Whether `stop` is among them.
        dtype: The dtype; None: that of `start` and `stop` as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.geomspace(1, 8, 4).numpy().round(4)
        array([1., 2., 4., 8.], dtype=float32)
    """
    kind = _kind(start, stop, dtype)
    first, last = _in_floats(start, stop, dtype=kind)
    return ops.cast(creation.geomspace(first, last, num, endpoint, first.dtype, axis), kind)


@explained
def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis.

    Args:
        *x: The coordinates along each axis.
        indexing: "xy", by which the second axis is that of the first ones, or "ij".

    Raises:
        ValueError: It is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.meshgrid([1, 2], [3])[1].numpy()
        array([[3, 3]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij', but received {indexing}.")
    return creation.meshgrid(*(ops.convert_to_tensor(vector) for vector in x), indexing=indexing)
