"""NumPy's functions that create tensors: of a shape, of ranges, and diagonal matrices.

Of no dtype they are float64.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.numpy_functions.promotion import FLOAT, array, asarray, result_type
from mirrored.numpy_functions.shapes import moveaxis
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import DType


def kind_of(dtype: Any) -> DType:
    """Return what a dtype is here, of which None is float64.

    Args:
        dtype: The dtype.
    """
    return FLOAT if dtype is None else result_type(dtype)


@explained
def empty(shape: Any, dtype: Any = float) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.empty(2).numpy()
        array([0., 0.])
    """
    return zeros(shape, dtype)


@explained
def empty_like(a: Any, dtype: Any = None) -> Tensor:
    """Return zeros of a value's shape.

    Args:
        a: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.empty_like([1, 2]).numpy()
        array([0, 0])
    """
    return zeros_like(a, dtype)


@explained
def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.zeros(2).numpy()
        array([0., 0.])
    """
    return ops.zeros(shape, kind_of(dtype))


@explained
def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    """Return zeros of a value's shape.

    Args:
        a: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.zeros_like([1, 2]).numpy()
        array([0, 0])
    """
    return ops.zeros_like(array(a), None if dtype is None else result_type(dtype))


@explained
def ones(shape: Any, dtype: Any = float) -> Tensor:
    """Return ones.

    Args:
        shape: The shape.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ones(2).numpy()
        array([1., 1.])
    """
    return ops.ones(shape, kind_of(dtype))


@explained
def ones_like(a: Any, dtype: Any = None) -> Tensor:
    """Return ones of a value's shape.

    Args:
        a: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ones_like([1, 2]).numpy()
        array([1, 1])
    """
    return ops.ones_like(array(a), None if dtype is None else result_type(dtype))


@explained
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a value broadcast to a shape.

    Args:
        shape: The shape.
        fill_value: The value.
        dtype: The dtype; None: the value's.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.full((2,), 3).numpy()
        array([3, 3])
    """
    return ops.broadcast_to(asarray(fill_value, dtype), shape)


@explained
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
) -> Tensor:
    """Return a value broadcast to another one's shape.

    Args:
        a: The value of that shape.
        fill_value: The value.
        dtype: The dtype; None: that of `a`.
        order: "K" alone.
        subok: True alone.
        shape: None alone.

    Raises:
        ValueError: Another `order`, `subok` or `shape` is given.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.full_like([1, 2], 3.5).numpy()
        array([3, 3])
    """
    if order != "K" or not subok or shape:
        raise ValueError("`order`, `subok` and `shape` are not supported. Leave them out.")
    like = array(a)
    return ops.broadcast_to(asarray(fill_value, like.dtype if dtype is None else dtype), like.shape)


@explained
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return the numbers from `start` on, `step` apart, before `stop`.

    Args:
        start: The first one; the only argument is `stop`, and 0 the first one.
        stop: Where they end; it is not among them.
        step: How far one is from the next.
        dtype: The dtype; None: that of the arguments together.

    Raises:
        ValueError: `step` is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.arange(1, 7, 2).numpy()
        array([1, 3, 5])
    """
    if not step:
        raise ValueError("step must be non-zero.")
    first, end = (0, start) if stop is None else (start, stop)
    kind = result_type(*(bound for bound in (start, step, stop) if bound is not None))
    kind = kind if dtype is None else result_type(dtype)
    if (step > 0 and first > end) or (step < 0 and first < end):
        return ops.zeros((0,), kind)
    return ops.cast(ops.range(first, end, step), kind)


@explained
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Any:
    """Return numbers at equal distances.

    Args:
        start: The first one, or a tensor of first ones.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is among them; otherwise they end a step before.
        retstep: Whether to return the step as well.
        dtype: Unless it is None the numbers are of the dtype of `start` and `stop` as floats, which
            is what TensorFlow makes of it.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.linspace(0, 1, 3).numpy()
        array([0. , 0.5, 1. ])
    """
    if num < 0:
        raise ValueError(
            "Argument `num` (number of samples) must be a non-negative integer. "
            f"Received: num={num!r}"
        )
    kind = result_type(_times_one(start), _times_one(stop)) if dtype is not None else None
    first, last = (array(bound, kind) for bound in (start, stop))
    parts = num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else ops.constant(np.nan)
    if not endpoint and num > 1:
        last = ops.cast(last, step.dtype) - step
        first = ops.cast(first, last.dtype)
    result = ops.linspace(first, last, num, axis=axis)
    result = result if kind is None else ops.cast(result, kind)
    return (result, step) if retstep else result


def _times_one(value: Any) -> Any:
    return (
        array(value) * 1.0
        if is_tensor(value)
        else np.multiply(value, 1.0)
        if isinstance(value, list | tuple)
        else value * 1.0
    )


@explained
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
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
        dtype: Not used, as by TensorFlow: the result has that of the exponents as floats.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.logspace(0, 2, 3).numpy()
        array([  1.,  10., 100.])
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    return ops.pow(ops.constant(base, exponents.dtype), exponents)


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
        dtype: The dtype; None: float64, or that of the arguments.
        axis: Along which axis the numbers are.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.geomspace(1, 8, 4).numpy().round(9)
        array([1., 2., 4., 8.])
    """
    kind = result_type(dtype) if dtype is not None else result_type(start, stop, 1.0, FLOAT)
    wide = np.promote_types(kind, np.float32)
    first, last = (array(bound, wide) for bound in (start, stop))
    both_negative = ops.logical_and(first < 0.0, last < 0.0)
    flip = ops.where(both_negative, ops.constant(-1, wide), ops.constant(1, wide))
    begin, end = (ops.log(flip * bound) / np.log(10) for bound in (first, last))
    result = flip * logspace(begin, end, num, endpoint)
    return ops.cast(result if axis == 0 else moveaxis(result, 0, axis), kind)
