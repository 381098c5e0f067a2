"""Keras' backend functions that move elements: shapes, axes and repetitions.

Scripts of older Keras write with them. Each is a call or two of an operation.
"""

import math
from collections.abc import Sequence
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor


@explained
def concatenate(tensors: Sequence[Any], axis: int = -1) -> Tensor:
    """Return tensors joined along an axis.

    Args:
        tensors: The tensors.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.concatenate([mr.ones((1, 1)), mr.zeros((1, 1))]).numpy()
        array([[1., 0.]], dtype=float32)
    """
    return ops.concat(tensors, axis)


@explained
def expand_dims(x: Any, axis: int = -1) -> Tensor:
    """Return the tensor with an axis of size 1 more.

    Args:
        x: A tensor.
        axis: Where it is.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.expand_dims(mr.ones((2,))).shape
        (2, 1)
    """
    return ops.expand_dims(x, axis)


def squeeze(x: Any, axis: int) -> Tensor:
    """Return the tensor without an axis of size 1.

    Args:
        x: A tensor.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.squeeze(mr.ones((2, 1)), 1).shape
        (2,)
    """
    return ops.squeeze(x, [axis])


def flatten(x: Any) -> Tensor:
    """Return the elements in a row.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.flatten(mr.ones((2, 3))).shape
        (6,)
    """
    return ops.reshape(x, [-1])


def batch_flatten(x: Any) -> Tensor:
    """Return the elements of each example in a row.

    Args:
        x: A tensor of two axes or more.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.batch_flatten(mr.ones((2, 3, 4))).shape
        (2, 12)
    """
    return ops.reshape(x, [-1, math.prod(x.shape[1:])])


def reshape(x: Any, shape: Any) -> Tensor:
    """Return the elements in another shape.

    Args:
        x: A tensor.
        shape: The shape.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.reshape(mr.ones((6,)), (2, 3)).shape
        (2, 3)
    """
    return ops.reshape(x, shape)


def permute_dimensions(x: Any, pattern: Any) -> Tensor:
    """Return the tensor with its axes in another order.

    Args:
        x: A tensor.
        pattern: For each axis of the result, which one of `x` it is.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.permute_dimensions(mr.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return ops.transpose(x, pattern)


def transpose(x: Any) -> Tensor:
    """Return the tensor with its axes in the opposite order.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.transpose(mr.ones((2, 3))).shape
        (3, 2)
    """
    return ops.transpose(x)


@explained
def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Return tensors of one shape side by side along a new axis.

    Args:
        x: The tensors.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.stack([mr.ones((2,)), mr.ones((2,))]).shape
        (2, 2)
    """
    return ops.stack(x, axis)


def tile(x: Any, n: Any) -> Tensor:
    """Return the tensor repeated along its axes.

    Args:
        x: A tensor.
        n: How often along each; an integer for a tensor of one axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.tile(mr.constant([1, 2]), 2).numpy()
        array([1, 2, 1, 2], dtype=int32)
    """
    return ops.tile(x, [n] if isinstance(n, int) else n)


def repeat(x: Any, n: int) -> Tensor:
    """Return each row `n` times: (batch, n, features).

    Args:
        x: A tensor of two axes.
        n: How often.

    Raises:
        ValueError: It has others.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.repeat(mr.ones((2, 3)), 4).shape
        (2, 4, 3)
    """
    if len(x.shape) != 2:
        raise ValueError(f"Expected input `x` to have rank 2. Received: rank(x)={len(x.shape)}")
    return ops.tile(ops.expand_dims(x, 1), [1, n, 1])


def reverse(x: Any, axes: Any) -> Tensor:
    """Return the tensor backwards along axes.

    Args:
        x: A tensor.
        axes: The axis or axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.reverse(mr.constant([1, 2]), 0).numpy()
        array([2, 1], dtype=int32)
    """
    return ops.reverse(x, [axes] if isinstance(axes, int) else axes)


def one_hot(indices: Any, num_classes: int) -> Tensor:
    """Return float32 rows of 0 with a 1 at each index.

    Args:
        indices: The indices.
        num_classes: How many places a row has.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.one_hot(mr.constant([1]), 3).numpy()
        array([[0., 1., 0.]], dtype=float32)
    """
    return ops.one_hot(indices, num_classes)


@explained
def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return ones in the shape of a tensor.

    Args:
        x: A tensor.
        dtype: The dtype; None: that of the tensor.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.ones_like(mr.constant([2.0])).numpy()
        array([1.], dtype=float32)
    """
    return ops.ones_like(x, dtype)


@explained
def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return zeros in the shape of a tensor.

    Args:
        x: A tensor.
        dtype: The dtype; None: that of the tensor.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.zeros_like(mr.constant([2.0])).numpy()
        array([0.], dtype=float32)
    """
    return ops.zeros_like(x, dtype)


def stop_gradient(variables: Any) -> Any:
    """Return tensors through which no gradient flows.

    Args:
        variables: A tensor, or a list of them, which gives an iterator.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.stop_gradient(mr.constant(1.0)))
        1.0
    """
    if isinstance(variables, list | tuple):
        return map(ops.stop_gradient, variables)
    return ops.stop_gradient(variables)
