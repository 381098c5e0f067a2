"""The dtypes that `keras.ops` compute in: what Keras 3 promotes those of its arguments to.

TensorFlow's own operations refuse two dtypes; Keras' have JAX' rules, by which each two have one.
"""

from typing import Any

from mirrored import ops
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INTEGERS, DType, default_float


def result_type(*kinds: Any) -> DType:
    """Return the dtype that some promote to.

    Args:
        *kinds: Dtypes; or Python's int and float, which count less: as where a number is given.

    Example:
        >>> result_type(ops.int32, float).name, result_type(ops.bool_, int).name
        ('float32', 'int32')
    """
    for among in (FLOATS, INTEGERS):
        found = [kind for kind in kinds if kind in among]
        if found:
            return max(found, key=lambda dtype: dtype.itemsize)
        if among is FLOATS and float in kinds:
            return default_float()
    return ops.int32 if int in kinds else ops.bool_


def tensors(*values: Any) -> list[Tensor]:
    """Return values as tensors, each of the dtype that it has by itself.

    Args:
        *values: Tensors, arrays, numbers and nested lists of numbers.
    """
    return [ops.convert_to_tensor(value) for value in values]


def common(*values: Any) -> list[Tensor]:
    """Return values as tensors of the dtype that they promote to.

    Args:
        *values: The same; and Python's int and float themselves, which count and are left out.
    """
    given = [value for value in values if not isinstance(value, type)]
    parts = [each if type(each) in (int, float) else ops.convert_to_tensor(each) for each in given]
    kinds = [type(each) if type(each) in (int, float) else each.dtype for each in parts]
    dtype = result_type(*kinds, *(value for value in values if isinstance(value, type)))
    return [
        ops.constant(each, dtype) if type(each) in (int, float) else ops.cast(each, dtype)
        for each in parts
    ]


def floats(x: Any) -> Tensor:
    """Return a value as floats; integers and booleans become those of floatx.

    Args:
        x: The value.
    """
    tensor = ops.convert_to_tensor(x)
    return tensor if tensor.dtype in FLOATS else ops.cast(tensor, default_float())


def booleans(x: Any) -> Tensor:
    """Return a value as booleans: what is not 0 is true.

    Args:
        x: The value.
    """
    return ops.cast(x, ops.bool_)


def numbers(x: Any) -> Tensor:
    """Return a value as numbers; booleans become int32.

    Args:
        x: The value.
    """
    tensor = ops.convert_to_tensor(x)
    return ops.cast(tensor, ops.int32) if tensor.dtype == ops.bool_ else tensor


def summands(x: Any) -> Tensor:
    """Return a value as what is added up; booleans become int32.

    Args:
        x: The value.

    Raises:
        TypeError: It is of uint8, whose sums are uint32 in Keras, which tensors cannot be.
    """
    tensor = numbers(x)
    if tensor.dtype == ops.uint8:
        raise TypeError(
            "Sums and products of uint8 are uint32 in Keras, which tensors cannot be here. Cast "
            "to int32 or to floats first."
        )
    return tensor
