"""`keras.ops` on shapes and dtypes, and ranges of numbers.

Each is a call or two of an operation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import common as _common
from mirrored.keras_functions.promotion import result_type as _result_type
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor as _is_tensor
from mirrored.ops.spec import INDICES, INTEGERS, default_float


def _axis(axis: int, rank: int) -> int:
    """Return an axis counted from 0."""
    if not -rank <= axis < rank:
        raise ValueError(
            f"axis {axis} is out of bounds for array of dimension {rank}. Give one from {-rank} to "
            f"{rank - 1}."
        )
    return axis % rank


def reshape(x: Any, newshape: Any) -> Tensor:
    """Return the elements in another shape.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        newshape: The shape; one size may be -1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.reshape([1, 2], (2, 1)).shape
        (2, 1)
    """
    return ops.reshape(x, newshape)


@explained
def transpose(x: Any, axes: Any = None) -> Tensor:
    """Return the tensor with its axes in another order.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axes: For each axis of the result, which one of `x` it is; None: in the opposite order.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.transpose([[1, 2]]).shape
        (2, 1)
    """
    return ops.transpose(x, axes or None)


def expand_dims(x: Any, axis: Any) -> Tensor:
    """Return the tensor with axes of size 1 more.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: Where they are in the result: an integer, or several.

    Raises:
        ValueError: An axis is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.expand_dims([1, 2], (0, 2)).shape
        (1, 2, 1)
    """
    tensor = ops.convert_to_tensor(x)
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = tensor.ndim + len(axes)
    for position in sorted(_axis(index, rank) for index in axes):
        tensor = ops.expand_dims(tensor, position)
    return tensor


@explained
def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Return the tensor without axes of size 1.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all of size 1.

    Raises:
        ValueError: An axis has another size.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.squeeze([[1, 2]]).shape
        (2,)
    """
    tensor = ops.convert_to_tensor(x)
    axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    for dim in axes:
        if -tensor.ndim <= dim < tensor.ndim and tensor.shape[dim] != 1:
            raise ValueError(f"Cannot squeeze axis={dim}, because the dimension is not 1.")
    return ops.squeeze(tensor, axes or None)


@explained
def concatenate(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """Return tensors joined along an axis, in the dtype that they promote to.

    Args:
        xs: The tensors.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.concatenate([[1], [2.5]]).numpy()
        array([1. , 2.5], dtype=float32)
    """
    return ops.concat(_common(*_tensors(*xs)), axis)


@explained
def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Return tensors of one shape side by side, in the dtype that they promote to.

    Args:
        x: The tensors.
        axis: Where the new axis is.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.stack([[1], [2.5]]).shape
        (2, 1)
    """
    return ops.stack(_common(*_tensors(*x)), axis)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Return the tensor with two axes in each other's place.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis1: One of them.
        axis2: The other.

    Raises:
        ValueError: An axis is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.swapaxes([[1, 2]], 0, 1).shape
        (2, 1)
    """
    tensor = ops.convert_to_tensor(x)
    order = list(range(tensor.ndim))
    first, second = (_axis(number, tensor.ndim) for number in (axis1, axis2))
    order[first], order[second] = second, first
    return ops.transpose(tensor, order)


def ravel(x: Any) -> Tensor:
    """Return the elements in a row.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ravel([[1, 2]]).shape
        (2,)
    """
    return ops.reshape(x, [-1])


def size(x: Any) -> Tensor:
    """Return the number of elements, int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.size([[1, 2]]).numpy().item()
        2
    """
    return ops.size(x)


def ndim(x: Any) -> int:
    """Return the number of axes, an integer.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ndim([[1, 2]])
        2
    """
    return ops.convert_to_tensor(x).ndim


def shape(x: Any) -> tuple[int, ...]:
    """Return the sizes of the axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.shape([[1, 2]])
        (1, 2)
    """
    return tuple(ops.convert_to_tensor(x).shape)


@explained
def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.zeros((2,)).numpy()
        array([0., 0.], dtype=float32)
    """
    return ops.zeros(shape, dtype or default_float())


@explained
def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Return ones.

    Args:
        shape: The shape.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ones((2,)).numpy()
        array([1., 1.], dtype=float32)
    """
    return ops.ones(shape, dtype or default_float())


@explained
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of one number.

    Args:
        shape: The shape.
        fill_value: The number.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.full((2,), 3).numpy()
        array([3., 3.], dtype=float32)
    """
    return ops.broadcast_to(ops.cast(fill_value, dtype or default_float()), shape)


@explained
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """Return numbers that are a step apart: from a start to below a stop.

    Args:
        start: The first one; or the stop, where that is None, and then the first one is 0.
        stop: What all are below.
        step: How far they are apart; None: 1.
        dtype: The dtype; None: what those of the others promote to.

    Raises:
        InvalidArgumentError: The step is 0, or leads away from the stop.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.arange(2, 5).numpy()
        array([2, 3, 4], dtype=int32)
    """
    bounds = [bound for bound in (start, stop, step) if bound is not None]
    kinds = [
        type(bound) if type(bound) in (int, float) else ops.convert_to_tensor(bound).dtype
        for bound in bounds
    ]
    wanted = _result_type(*kinds) if dtype is None else ops.as_dtype(dtype)
    computed = ops.float32 if wanted in INTEGERS - INDICES else wanted
    numbers = ops.range(start, stop, 1 if step is None else step, dtype=computed)
    return ops.cast(numbers, wanted)


@explained
def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Return zeros in the shape of a tensor.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.zeros_like([1, 2]).numpy()
        array([0, 0], dtype=int32)
    """
    return ops.zeros_like(x, dtype)


@explained
def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Return ones in the shape of a tensor.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ones_like([1, 2]).numpy()
        array([1, 1], dtype=int32)
    """
    return ops.ones_like(x, dtype)


def cast(x: Any, dtype: Any) -> Tensor:
    """Return the elements in another dtype.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cast([1.5], "int32").numpy()
        array([1], dtype=int32)
    """
    return ops.cast(x, dtype)


@explained
def convert_to_tensor(x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Tensor:
    """Return a tensor, cast where a dtype is said.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the values.
        sparse: None: there are no sparse tensors.
        ragged: None, likewise.

    Raises:
        ValueError: A sparse or ragged one is asked for.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.convert_to_tensor([1, 2]).dtype.name
        'int32'
    """
    if sparse or ragged:
        raise ValueError("Tensors are neither sparse nor ragged. Leave `sparse` and `ragged` out.")
    if dtype is None or not _is_tensor(x):
        return ops.convert_to_tensor(x, dtype)
    return ops.cast(x, dtype)


def convert_to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Return the values as an array on the host.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.convert_to_numpy(mr.constant([1, 2]))
        array([1, 2], dtype=int32)
    """
    return np.asarray(x)
