"""The results of a recorded function: tensors for all values, as in TensorFlow.

A variable is returned as the value that it has at the end of the function; a number as a constant.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, constant, is_tensor
from mirrored.ops.hooks import UnknownShape
from mirrored.ops.tensor import Tensor
from mirrored.program.arguments import has_parts, with_parts


def as_tensors(structure: Any, function: Callable[..., Any]) -> Any:
    """Return what a function returned with tensors for all leaves but None.

    Args:
        structure: What it returned, at its end: variables are read now.
        function: The function, for messages.

    Raises:
        TypeError: A leaf is nothing that becomes a tensor.
    """
    if structure is None or isinstance(structure, Tensor):  # The usual cases.
        return structure

    def converted(part: Any) -> Any:
        return _as_tensor(part, function)

    return _nest.map_structure(lambda leaf: with_parts(leaf, converted), structure)


def _as_tensor(value: Any, function: Callable[..., Any]) -> Any:
    if value is None or isinstance(value, Tensor) or has_parts(value):
        return value
    if isinstance(value, UnknownShape) and not value.is_known:
        return value
    if is_tensor(value):
        return adopt(value, None)
    if isinstance(value, bool | int | float | np.ndarray | np.generic):
        try:
            return constant(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise _refused(value, function, f": {error}") from error
    raise _refused(value, function, ". Return what is no number beside the function.")


def _refused(value: Any, function: Callable[..., Any], why: str) -> TypeError:
    return TypeError(
        "To be compatible with mr.function, Python functions must return zero or more Tensors or "
        f"ExtensionTypes or None values; in compilation of {function!r}, found return value of "
        f"type {type(value).__name__}, which is not a Tensor or ExtensionType. Received: "
        f"{value!r:.100}{why}"
    )


class Results:
    """The structure that a function returned, with recorded tensors for leaves.

    Args:
        structure: What it returned.
        is_recorded: Whether a part is a recorded tensor.

    Attributes:
        structure: What the function returned.
        parts: The recorded tensors in it.
    """

    def __init__(self, structure: Any, is_recorded: Callable[[Any], bool]) -> None:
        self.structure = structure
        self._is_recorded = is_recorded
        self._alone = is_recorded(structure)
        self.parts = [part for part in _parts_of(structure) if is_recorded(part)]

    def with_tensors(self, tensors: list[Tensor]) -> Any:
        """Return the structure with these tensors in the places of the recorded ones."""
        if self._alone:
            return tensors[0]
        remaining = iter(tensors)

        def taken(part: Any) -> Any:
            if isinstance(part, UnknownShape):
                return part.value()
            return next(remaining) if self._is_recorded(part) else part

        return _nest.map_structure(lambda leaf: with_parts(leaf, taken), self.structure)


def _parts_of(result: Any) -> Iterator[Any]:
    for leaf in _nest.flatten(result):
        if has_parts(leaf):
            for part in leaf.values:
                if has_parts(part):
                    raise InvalidArgumentError(
                        "A recorded function returns per-replica values of tensors. Received: one "
                        f"whose parts are per-replica values themselves: {leaf!r:.200}. Return "
                        "what the replicas made of them."
                    )
                yield part
        else:
            yield leaf
