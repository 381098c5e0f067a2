"""Kinds of tensors that only reads of variables give.

Keras' `variable.value` is the value, TensorFlow's is a method: a `VariableValue` is both.
"""

from collections.abc import Callable
from typing import cast

from mirrored.ops.hooks import RecordedTensor
from mirrored.ops.masks import again
from mirrored.ops.tensor import Tensor


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
