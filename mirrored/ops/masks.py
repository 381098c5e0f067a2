"""Masks that tensors carry: which of their steps count, and which only fill up a batch.

Layers read them and hand them on, and losses and metrics leave out what they hide; ops drop them.
"""

import functools
from typing import Any, TypeVar

from mirrored.ops.tensor import Tensor

_Kind = TypeVar("_Kind", bound=Tensor)


def masked(tensor: Tensor, mask: Any) -> Tensor:
    """Return a tensor that carries a mask: the same value to tapes and recorders, another object.

    Args:
        tensor: The tensor, which stays as it is: others may have it too.
        mask: The mask, or None.
    """
    other = again(tensor, type(tensor))
    other._keras_mask = mask
    return other


def again(tensor: Tensor, kind: type[_Kind]) -> _Kind:
    """Return a tensor once more: the same value to tapes and recorders, another object.

    Args:
        tensor: The tensor.
        kind: The class that the other has: the tensor's, or one below it.
    """
    other = object.__new__(kind)
    known: Any = type(tensor)
    for slot in _slots(known):
        try:
            slot.__set__(other, slot.__get__(tensor))
        except AttributeError:  # It has none.
            continue
    return other


@functools.cache
def _slots(kind: Any) -> tuple[Any, ...]:
    """Return what reads and writes the slots of a class, also those that properties hide."""
    names = ((base, name) for base in kind.__mro__ for name in vars(base).get("__slots__", ()))
    return tuple(vars(base)[name] for base, name in names if name != "__weakref__")
