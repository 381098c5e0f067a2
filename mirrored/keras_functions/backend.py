"""Keras' backend: its settings, and its older functions, with which scripts write their losses.

Most are a call or two of an operation or of a method.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, DTypeLike, ShapeLike, TensorLike
from mirrored.keras_functions.promotion import result_type as promoted
from mirrored.ops import Tensor
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.spec import default_float
from mirrored.ops.tensor import Operators
from mirrored.variables import Variable
from mirrored.version import _KERAS


def backend() -> str:
    """Return "tensorflow": what a program for that backend calls is here.

    Example:
        >>> backend()
        'tensorflow'
    """
    return "tensorflow"


def version() -> str:
    """Return the version of Keras whose names `keras` has.

    Example:
        >>> version()
        '3.15.0'
    """
    return _KERAS


EPSILON = 1e-7


def cast_to_floatx(x: TensorLike) -> Any:
    """Return a tensor in floatx, or of anything else an array.

    Args:
        x: A tensor, an array or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.cast_to_floatx([1, 2])
        array([1., 2.], dtype=float32)
    """
    return ops.cast(x, default_float()) if is_tensor(x) else np.asarray(x, default_float())


def result_type(*dtypes: Any) -> str:
    """Return the name of the dtype that several promote to in `keras.ops`.

    Args:
        *dtypes: Dtypes, or Python's int and float, which count less; None is floatx. Of none at all
            the result is floatx.

    Raises:
        ValueError: One is no dtype that tensors have.

    Example:
        >>> result_type("int32", "float32"), result_type("int8", int)
        ('float32', 'int8')
    """
    kinds = [kind if kind in (int, float) else _dtype_of(kind) for kind in dtypes or (None,)]
    return str(promoted(*kinds).name)


def _dtype_of(dtype: Any) -> Any:
    if dtype is None:
        return default_float()
    try:
        return ops.as_dtype(dtype)
    except TypeError:
        raise ValueError(
            f"dtype={dtype!r} is not a valid dtype for Keras type promotion. Pass the name of a "
            "tensor dtype, such as 'float32'."
        ) from None


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return numbers as a tensor, of floatx where nothing else is said.

    Args:
        value: The numbers.
        dtype: The dtype; None: floatx.
        shape: The shape; None: that of the numbers.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.constant([1, 2]).dtype.name
        'float32'
    """
    return ops.constant(value, default_float() if dtype is None else dtype, shape)


def shape(x: TensorLike) -> Tensor:
    """Return the sizes of the axes as a tensor of int32.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.shape(mr.ones((2, 3))).numpy()
        array([2, 3], dtype=int32)
    """
    return ops.shape(x)


def int_shape(x: Operators) -> tuple[int | None, ...]:
    """Return the sizes of the axes as a tuple.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.int_shape(mr.ones((2, 3)))
        (2, 3)
    """
    return tuple(x.shape)


def ndim(x: Operators) -> int:
    """Return the number of axes.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.ndim(mr.ones((2, 3)))
        2
    """
    return len(x.shape)


def count_params(x: Operators) -> int:
    """Return the number of elements.

    Args:
        x: A tensor or a variable.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.count_params(mr.ones((2, 3)))
        6
    """
    return math.prod(x.shape)


def epsilon() -> float:
    """Return 1e-7, what the losses keep probabilities away from 0 and 1 by.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.epsilon()
        1e-07
    """
    return EPSILON


def get_value(x: TensorLike) -> Any:
    """Return the values on the host; of what is no tensor and no variable itself.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.get_value(mr.Variable(1.0)).item()
        1.0
    """
    value: Any = x
    return value.numpy() if is_tensor(value) else value


def set_value(x: Variable, value: TensorLike) -> None:
    """Assign a value, converted to the variable's dtype.

    Args:
        x: A variable.
        value: The value.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> mr.keras.backend.set_value(v, 2)
        >>> float(v)
        2.0
    """
    x.assign(np.asarray(value, x.dtype))


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """Return the values of several tensors or variables on the host.

    Args:
        tensors: The tensors.

    Example:
        >>> import mirrored as mr
        >>> [value.item() for value in mr.keras.backend.batch_get_value([mr.constant(1.0)])]
        [1.0]
    """
    return [tensor.numpy() for tensor in tensors]


def batch_set_value(tuples: Iterable[tuple[Any, Any]]) -> None:
    """Assign values to several variables.

    Args:
        tuples: Pairs of a variable and its value.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> mr.keras.backend.batch_set_value([(v, 2)])
        >>> float(v)
        2.0
    """
    for x, value in tuples:
        set_value(x, value)


def update(x: Variable, new_x: TensorLike) -> Any:
    """Assign a value to a variable, and return that.

    Args:
        x: The variable.
        new_x: The value.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.update(mr.Variable(1.0), 2.0))
        2.0
    """
    return x.assign(new_x)


def update_add(x: Variable, increment: TensorLike) -> Any:
    """Add to a variable, and return that.

    Args:
        x: The variable.
        increment: What is added.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.update_add(mr.Variable(1.0), 2.0))
        3.0
    """
    return x.assign_add(increment)


def update_sub(x: Variable, decrement: TensorLike) -> Any:
    """Subtract from a variable, and return that.

    Args:
        x: The variable.
        decrement: What is subtracted.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.update_sub(mr.Variable(1.0), 2.0))
        -1.0
    """
    return x.assign_sub(decrement)


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


def expand_dims(x: TensorLike, axis: int = -1) -> Tensor:
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


def squeeze(x: TensorLike, axis: int) -> Tensor:
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


def flatten(x: TensorLike) -> Tensor:
    """Return the elements in a row.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.flatten(mr.ones((2, 3))).shape
        (6,)
    """
    return ops.reshape(x, [-1])


def batch_flatten(x: Operators) -> Tensor:
    """Return the elements of each example in a row.

    Args:
        x: A tensor of two axes or more.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.batch_flatten(mr.ones((2, 3, 4))).shape
        (2, 12)
    """
    return ops.reshape(x, [-1, math.prod(x.shape[1:])])


def reshape(x: TensorLike, shape: ShapeLike) -> Tensor:
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


def permute_dimensions(x: TensorLike, pattern: Sequence[int]) -> Tensor:
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


def transpose(x: TensorLike) -> Tensor:
    """Return the tensor with its axes in the opposite order.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.transpose(mr.ones((2, 3))).shape
        (3, 2)
    """
    return ops.transpose(x)


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


def tile(x: TensorLike, n: AxisLike) -> Tensor:
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


def repeat(x: Operators, n: int) -> Tensor:
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


def reverse(x: TensorLike, axes: AxisLike) -> Tensor:
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


def one_hot(indices: TensorLike, num_classes: int) -> Tensor:
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


def ones_like(x: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
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


def zeros_like(x: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
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


def stop_gradient(variables: TensorLike | Sequence[TensorLike]) -> Any:
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


def _numbers(x: Any) -> Tensor:
    """Return a tensor, that of booleans as numbers of floatx."""
    tensor = adopt(x, None)
    return ops.cast(tensor, default_float()) if tensor.dtype == ops.bool_ else tensor


def all(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true, or not 0, over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.keras.backend.all(mr.constant([1, 0])))
        False
    """
    return ops.reduce_all(ops.cast(x, ops.bool_), axis, keepdims)


def any(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return whether an element is true, or not 0, over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.keras.backend.any(mr.constant([1, 0])))
        True
    """
    return ops.reduce_any(ops.cast(x, ops.bool_), axis, keepdims)


def argmax(x: TensorLike, axis: int = -1) -> Tensor:
    """Return the place of the largest element along an axis, int64.

    Args:
        x: A tensor.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> int(mr.keras.backend.argmax(mr.constant([1.0, 3.0])))
        1
    """
    return ops.argmax(x, axis)


def argmin(x: TensorLike, axis: int = -1) -> Tensor:
    """Return the place of the smallest element along an axis, int64.

    Args:
        x: A tensor.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> int(mr.keras.backend.argmin(mr.constant([1.0, 3.0])))
        0
    """
    return ops.argmin(x, axis)


def max(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.max(mr.constant([1.0, 3.0])))
        3.0
    """
    return ops.reduce_max(x, axis, keepdims)


def min(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.min(mr.constant([1.0, 3.0])))
        1.0
    """
    return ops.reduce_min(x, axis, keepdims)


def sum(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.sum(mr.constant([1.0, 3.0])))
        4.0
    """
    return ops.reduce_sum(x, axis, keepdims)


def prod(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.prod(mr.constant([2.0, 3.0])))
        6.0
    """
    return ops.reduce_prod(x, axis, keepdims)


def mean(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes; that of booleans is of floatx.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.mean(mr.constant([True, False])))
        0.5
    """
    return ops.reduce_mean(_numbers(x), axis, keepdims)


def std(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes; that of booleans is of floatx.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.std(mr.constant([1.0, 3.0])))
        1.0
    """
    return ops.reduce_std(_numbers(x), axis, keepdims)


def var(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the variance over axes; that of booleans is of floatx.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.var(mr.constant([1.0, 3.0])))
        1.0
    """
    return ops.reduce_variance(_numbers(x), axis, keepdims)


def sqrt(x: TensorLike) -> Tensor:
    """Return the square root of each element, and 0 of one below 0.

    Args:
        x: A tensor of floats.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.sqrt(mr.constant([4.0, -1.0])).numpy()
        array([2., 0.], dtype=float32)
    """
    return ops.sqrt(ops.maximum(x, 0.0))


def pow(x: TensorLike, a: TensorLike) -> Tensor:
    """Return each element to a power.

    Args:
        x: A tensor.
        a: The power.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.pow(mr.constant(2.0), 3.0))
        8.0
    """
    return ops.pow(x, a)


def clip(x: TensorLike, min_value: TensorLike | None, max_value: TensorLike | None) -> Tensor:
    """Return the elements, none below one bound or above the other.

    Args:
        x: A tensor.
        min_value: The lower bound; None: there is none.
        max_value: The upper bound, which is the lower one where it is less; None: there is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.clip(mr.constant([-1.0, 0.5]), 0, 1).numpy()
        array([0. , 0.5], dtype=float32)
    """
    if isinstance(min_value, int | float) and isinstance(max_value, int | float):
        max_value = min_value if max_value < min_value else max_value
    low = -math.inf if min_value is None else min_value
    return ops.clip_by_value(x, low, math.inf if max_value is None else max_value)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """Return 0.2 x + 0.5, between 0 and 1.

    Args:
        x: A tensor of floats.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.hard_sigmoid(mr.constant(0.0)))
        0.5
    """
    return ops.clip_by_value(ops.add(ops.multiply(x, 0.2), 0.5), 0.0, 1.0)


def softmax(x: Operators, axis: int = -1) -> Tensor:
    """Return the softmax along an axis.

    Args:
        x: A tensor of two axes or more.
        axis: The axis.

    Raises:
        ValueError: It has fewer axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.softmax(mr.constant([[0.0, 0.0]])).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """
    if len(x.shape) <= 1:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    return ops.softmax(x, axis)


def l2_normalize(x: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return the tensor divided by its Euclidean length along axes.

    Args:
        x: A tensor of floats.
        axis: The axis or axes; None: all.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.l2_normalize(mr.constant([3.0, 4.0])).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    return ops.l2_normalize(x, axis)


explain_functions(__name__)
