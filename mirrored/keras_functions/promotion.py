"""Keras 3's rules for dtypes, for `keras.ops`.

TensorFlow's own operations refuse two dtypes; Keras' have JAX' rules, by which each two have one.
"""

import functools
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.numpy_functions.rows import Rule, Rules
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INDICES, INTEGERS, DType, default_float


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


def kind_of(value: Any) -> Any:
    """Return the dtype of a value; or the type of a number of Python's, which counts less.

    Args:
        value: A tensor, an array, a number or nested lists of numbers.
    """
    number = type(value) in (int, float)
    return type(value) if number else ops.convert_to_tensor(value).dtype


def to_tensors(*values: Any) -> list[Tensor]:
    """Return values as tensors, each of the dtype that it has by itself.

    Args:
        *values: Tensors, arrays, numbers and nested lists of numbers.
    """
    return [ops.convert_to_tensor(value) for value in values]


def promoted(*values: Any) -> list[Tensor]:
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


def promoted_tensors(*values: Any) -> list[Tensor]:
    """Return values as tensors of the dtype that they promote to, where numbers count as tensors.

    Args:
        *values: Tensors, arrays, numbers and nested lists of numbers.
    """
    return promoted(*to_tensors(*values))


def promoted_floats(*values: Any) -> list[Tensor]:
    """Return values as floats of the dtype that they promote to.

    Args:
        *values: The same as for `promoted`.
    """
    return promoted(*values, float)


def to_floats(x: Any) -> Tensor:
    """Return a value as floats; integers and booleans become those of floatx.

    Args:
        x: The value.
    """
    tensor = ops.convert_to_tensor(x)
    return tensor if tensor.dtype in FLOATS else ops.cast(tensor, default_float())


def to_truth(x: Any) -> Tensor:
    """Return a value as booleans: what is not 0 is true.

    Args:
        x: The value.
    """
    return ops.cast(x, ops.bool_)


def to_numbers(x: Any) -> Tensor:
    """Return a value as numbers; booleans become int32.

    Args:
        x: The value.
    """
    tensor = ops.convert_to_tensor(x)
    return ops.cast(tensor, ops.int32) if tensor.dtype == ops.bool_ else tensor


def to_indices(x: Any) -> Tensor:
    """Return a value as indices: what is neither int32 nor int64 becomes int64.

    Args:
        x: The value.
    """
    tensor = ops.convert_to_tensor(x)
    return tensor if tensor.dtype in INDICES else ops.cast(tensor, ops.int64)


def summands(x: Any) -> Tensor:
    """Return a value as what is added up, of 32 bits at least.

    Args:
        x: The value.
    """
    tensor = to_numbers(x)
    if tensor.dtype in FLOATS or tensor.dtype.itemsize >= 4:
        return tensor
    return ops.cast(tensor, ops.uint32 if tensor.dtype.kind == "u" else ops.int32)


def kept_axes(reduced: Tensor, axes: Iterable[int], keepdims: bool) -> Tensor:
    """Return a tensor with the axes that were reduced, of size 1, where they are kept.

    Args:
        reduced: The tensor without them.
        axes: Their places, from 0.
        keepdims: Whether they are kept.
    """
    for axis in sorted(axes) if keepdims else ():
        reduced = ops.expand_dims(reduced, axis)
    return reduced


# The dtypes that no product is computed in.
UNMULTIPLIED = (INTEGERS - INDICES) | {ops.bool_}


def widened(
    function: Callable[..., Tensor], kinds: Collection[DType] = UNMULTIPLIED
) -> Callable[..., Tensor]:
    """Return a function that computes tensors of some dtypes in wider integers, and casts back.

    Args:
        function: From tensors of one dtype to one of it.
        kinds: The dtypes.
    """

    def f(*tensors: Tensor) -> Tensor:
        kind = tensors[0].dtype
        if kind not in kinds:
            return function(*tensors)
        wide = ops.int64 if kind.itemsize >= 4 else ops.int32
        return ops.cast(function(*(ops.cast(tensor, wide) for tensor in tensors)), kind)

    return f


PROMOTED = ", in the dtype that both promote to"
RULES = Rules(
    public="mr.keras.ops",
    same=Rule(ops.convert_to_tensor),
    number=Rule(to_numbers),
    floats=Rule(to_floats, "; integers count as floats of floatx"),
    truth=Rule(to_truth),
    pair=Rule(promoted, PROMOTED),
    tensors=Rule(promoted_tensors),
    float_pair=Rule(promoted_floats, f"{PROMOTED}, as floats"),
    truths=Rule(lambda *values: [to_truth(value) for value in values]),
)
