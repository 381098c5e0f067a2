"""Keras' backend functions on dtypes and variables, and questions about tensors.

Scripts of older Keras write with them. Each is a call or two of an operation or of a method.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import result_type as promoted
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import default_float

EPSILON = 1e-7


def cast(x: Any, dtype: Any) -> Tensor:
    """Return the elements in another dtype.

    Args:
        x: A tensor.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.cast(mr.constant([1, 2]), "float32").numpy()
        array([1., 2.], dtype=float32)
    """
    return ops.cast(x, dtype)


def cast_to_floatx(x: Any) -> Any:
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
            f"dtype={dtype!r} is not a valid dtype for Keras type promotion. Give the name of one "
            "that tensors have, as in 'float32'."
        ) from None


@explained
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
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


def shape(x: Any) -> Tensor:
    """Return the sizes of the axes as a tensor of int32.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.shape(mr.ones((2, 3))).numpy()
        array([2, 3], dtype=int32)
    """
    return ops.shape(x)


def int_shape(x: Any) -> tuple[int | None, ...]:
    """Return the sizes of the axes as a tuple.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.int_shape(mr.ones((2, 3)))
        (2, 3)
    """
    return tuple(x.shape)


def ndim(x: Any) -> int:
    """Return the number of axes.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.ndim(mr.ones((2, 3)))
        2
    """
    return len(x.shape)


def dtype(x: Any) -> str:
    """Return the name of the dtype.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.dtype(mr.ones((2, 3)))
        'float32'
    """
    return str(x.dtype.name)


def count_params(x: Any) -> int:
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


def get_value(x: Any) -> Any:
    """Return the values on the host; of what is no tensor and no variable itself.

    Args:
        x: A tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.get_value(mr.Variable(1.0)).item()
        1.0
    """
    return x.numpy() if is_tensor(x) else x


def set_value(x: Any, value: Any) -> None:
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
        >>> [each.item() for each in mr.keras.backend.batch_get_value([mr.constant(1.0)])]
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


def update(x: Any, new_x: Any) -> Any:
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


def update_add(x: Any, increment: Any) -> Any:
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


def update_sub(x: Any, decrement: Any) -> Any:
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
