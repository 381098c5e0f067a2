"""Keras 3's dtype promotion for `keras.ops`.

TensorFlow's own operations refuse two dtypes; Keras' have JAX' rules, by which each two have one.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INDICES, DType, default_float


def result_type(*kinds: Any) -> DType:
    """Return the dtype that some promote to.

    Args:
        *kinds: Dtypes; or Python's int and float, which count less: as where a number is given.

    Example:
        >>> result_type(ops.int32, float).name, result_type(ops.bool_, int).name
        ('float32', 'int32')
    """
    return _result_type(frozenset(kinds))


@functools.lru_cache(512)
def _result_type(kinds: frozenset[Any]) -> DType:
    float_kinds = [kind for kind in kinds if kind in FLOATS]
    if len(float_kinds) > 1 and all(kind.itemsize == 2 for kind in float_kinds):
        return ops.float32  # Of two bytes each float16 and bfloat16 have numbers of their own.
    if float_kinds:
        return max(float_kinds, key=lambda dtype: dtype.itemsize)
    signed = max((kind.itemsize for kind in kinds if _is_integer(kind, "i")), default=0)
    unsigned = max((kind.itemsize for kind in kinds if _is_integer(kind, "u")), default=0)
    if float in kinds or (signed and unsigned == 8):
        return default_float()
    if not signed and not unsigned:
        return ops.int32 if int in kinds else ops.bool_
    if not signed:
        return np.dtype(f"u{min(unsigned, 4)}")  # As Keras, which has no uint64 of others.
    return np.dtype(f"i{signed if signed > unsigned else 2 * unsigned}")


def _is_integer(kind: Any, which: str) -> bool:
    return isinstance(kind, np.dtype) and kind.kind == which


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
    items = [value for value in values if not isinstance(value, type)]
    parts = [item if type(item) in (int, float) else ops.convert_to_tensor(item) for item in items]
    kinds = [type(part) if type(part) in (int, float) else part.dtype for part in parts]
    dtype = result_type(*kinds, *(value for value in values if isinstance(value, type)))
    return [
        ops.constant(part, dtype) if type(part) in (int, float) else ops.cast(part, dtype)
        for part in parts
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


def common_floats(*values: Any) -> list[Tensor]:
    """Return values as floats of the dtype that they promote to.

    Args:
        *values: The same as for `common`.
    """
    return common(*values, float)


def summands(x: Any) -> Tensor:
    """Return a value as what is added up, of 32 bits at least.

    Args:
        x: The value.
    """
    tensor = numbers(x)
    if tensor.dtype in FLOATS or tensor.dtype.itemsize >= 4:
        return tensor
    return ops.cast(tensor, ops.uint32 if tensor.dtype.kind == "u" else ops.int32)


def multiplied(function: Callable[..., Tensor], *values: Any) -> Tensor:
    """Return a product in the dtype that its factors promote to, also where no product is of it.

    Args:
        function: From tensors of one dtype to their product.
        *values: The factors.
    """
    factors = common(*tensors(*values))
    kind = factors[0].dtype
    if kind in FLOATS or kind in INDICES:
        return function(*factors)
    wide = ops.int64 if kind.itemsize >= 4 else ops.int32
    return ops.cast(function(*(ops.cast(factor, wide) for factor in factors)), kind)
