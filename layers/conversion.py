"""Turns what a layer is called on into one tensor of the layer's dtype.

Anything that is not numbers is refused here, by the layer's name, before any op sees it.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored.layers.symbolic import SymbolicTensor
from mirrored.ops import Tensor
from mirrored.ops.conversion import as_array
from mirrored.ops.spec import holds_numbers, is_bfloat16


def as_input(inputs: Any, dtype: np.dtype[Any], owner: str) -> Tensor:
    """Return ``inputs`` as a tensor of ``dtype``.

    Raises:
        TypeError: The values are not real numbers.
        ValueError: There are several inputs, or lists of unequal lengths.
    """
    if hasattr(inputs, "_as_tensor"):  # A variable, or what a strategy keeps a replica.
        inputs = ops.convert_to_tensor(inputs)
    if isinstance(inputs, Tensor):
        return inputs if inputs.dtype == dtype else ops.cast(inputs, dtype)
    _check_single(inputs, owner)
    numbers = _as_numbers(inputs, owner)
    if is_bfloat16(dtype):
        return ops.cast(ops.convert_to_tensor(numbers.astype(np.float32, copy=False)), dtype)
    return ops.convert_to_tensor(numbers.astype(dtype, copy=False))


def _check_single(inputs: Any, owner: str) -> None:
    """Refuse a collection of arrays: `np.asarray` would stack them without a word."""
    parts = inputs.values() if isinstance(inputs, dict) else inputs
    if isinstance(inputs, dict) or (
        isinstance(inputs, list | tuple)
        and any(isinstance(part, Tensor | SymbolicTensor | np.ndarray) for part in parts)
    ):
        raise ValueError(
            f'Layer "{owner}" expects 1 input, but it received {len(parts)} in a '
            f"{type(inputs).__name__}. Join them into one array first, as `np.stack` does."
        )


def _as_numbers(inputs: Any, owner: str) -> np.ndarray[Any, Any]:
    """Return ``inputs`` as an array of real numbers."""
    try:
        array = as_array(inputs)
    except ValueError as error:
        raise ValueError(f'Layer "{owner}" cannot make an array of its input. {error}') from error
    if not holds_numbers(array.dtype):
        raise TypeError(
            f'Layer "{owner}" computes with real numbers only. Received: an input of dtype '
            f"{array.dtype} and shape {array.shape}. Convert it to numbers first, as "
            "`array.astype('float32')` does."
        )
    return array
