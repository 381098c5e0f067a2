"""Tensors that share the value of another one: with a mask, or as reads of variables return them.

Layers read masks and hand them on, and losses and metrics leave out what they hide; ops drop them.
Keras' `variable.value` is the value, TensorFlow's is a method: a `VariableValue` is both.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from mirrored.ops.hooks import RecordedTensor
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


class VariableValue(Tensor):
    """The value of a variable, a tensor, which reads the variable when it is called."""

    __slots__ = ("_read_again",)

    _read_again: Callable[[], Tensor]

    def __call__(self) -> Tensor:
        """Return the value that the variable has now."""
        return self._read_again()


class _RecordedValue(RecordedTensor):
    __slots__ = ("_read_again",)

    _read_again: Callable[[], Tensor]

    def __call__(self) -> Tensor:
        return self._read_again()


def variable_value(read: Callable[[], Tensor]) -> VariableValue:
    """Return the value of a variable.

    Args:
        read: What reads it.
    """
    tensor = read()
    kind = _RecordedValue if isinstance(tensor, RecordedTensor) else VariableValue
    value = again(tensor, cast("type[VariableValue]", kind))
    value._read_again = read
    return value


class Uncast(Tensor):
    """The value of a variable that no layer casts of its own accord."""

    __slots__ = ()


class _RecordedUncast(RecordedTensor, Uncast):
    __slots__ = ()


def uncast(tensor: Tensor) -> Tensor:
    """Return the value of a variable as one that no layer casts.

    Args:
        tensor: The value.
    """
    return again(tensor, _RecordedUncast if isinstance(tensor, RecordedTensor) else Uncast)
