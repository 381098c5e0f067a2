"""Turns what a layer is called on into tensors of the layer's dtype.

Anything that is not numbers is refused here, by the layer's name, before any op sees it.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored.graph import SymbolicTensor
from mirrored.ops import Tensor
from mirrored.ops.conversion import advice_on_numbers, as_array, is_tensor
from mirrored.ops.spec import FLOATS, holds_numbers, is_bfloat16


def as_input(
    inputs: Any, dtype: np.dtype[Any] | None, owner: str, *, casts_all: bool = False
) -> Tensor:
    """Return ``inputs`` as a tensor: floats and Python's numbers in ``dtype``.

    Args:
        inputs: A tensor, a variable, an array, or nested lists of numbers.
        dtype: The dtype; None: that of the values, and floatx for Python's numbers.
        owner: What errors call the layer.
        casts_all: Whether integers and booleans that have a dtype get this one, too.

    Raises:
        TypeError: The values are not real numbers.
        ValueError: The lists are of unequal lengths.
    """
    if hasattr(inputs, "_as_tensor"):  # A variable, or what a strategy keeps a replica.
        inputs = ops.convert_to_tensor(inputs)
    if isinstance(inputs, Tensor):
        own = inputs.dtype
        if dtype is None or own == dtype or not (casts_all or own in FLOATS):
            return inputs
        floats = ops.cast(inputs, dtype)
        if inputs._keras_mask is None:
            return floats
        from mirrored.ops.tensor_views import masked

        return masked(floats, inputs._keras_mask)
    numbers = _as_numbers(inputs, owner)
    if dtype is None:
        dtype = numbers.dtype if hasattr(inputs, "dtype") else ops.as_dtype(ops.floatx())
    if hasattr(inputs, "dtype") and not casts_all and numbers.dtype.kind in "iub":
        return ops.convert_to_tensor(numbers)
    if is_bfloat16(dtype):
        return ops.cast(ops.convert_to_tensor(numbers.astype(np.float32, copy=False)), dtype)
    return ops.convert_to_tensor(numbers.astype(dtype, copy=False))


def is_structure(inputs: Any) -> bool:
    """Return whether these are inputs in a list, tuple or dict, and not one array of numbers."""
    if isinstance(inputs, dict):
        return True
    if not isinstance(inputs, list | tuple):
        return False
    return any(_is_array(value) or is_structure(value) for value in inputs)


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray) or is_tensor(value):
        return True
    return hasattr(value, "__array__") and hasattr(value, "iloc")  # Pandas' columns and frames.


def as_tensor(value: Any) -> Any:
    """Return an array as a tensor of its dtype; all else stays as it is."""
    return ops.convert_to_tensor(value) if _is_array(value) else value


def as_argument(
    value: Any, dtype: np.dtype[Any] | None, owner: str, *, casts_all: bool = False
) -> Any:
    """Return an argument of a call with the arrays in it as tensors; all else stays as it is."""
    if isinstance(value, SymbolicTensor):
        return value
    if _is_array(value):
        return as_input(value, dtype, owner, casts_all=casts_all)
    return value


def _as_numbers(inputs: Any, owner: str) -> np.ndarray[Any, Any]:
    """Return ``inputs`` as an array of real numbers."""
    try:
        array = as_array(inputs)
    except ValueError as error:
        raise ValueError(f'Layer "{owner}" cannot make an array of its input. {error}') from error
    if not holds_numbers(array.dtype):
        raise TypeError(
            f'Layer "{owner}" computes with real numbers only. Received: an input of dtype '
            f"{array.dtype} and shape {array.shape}. {advice_on_numbers(array, inputs)}"
        )
    return array
