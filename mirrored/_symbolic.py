"""Symbolic tensors, and the rule by which calls on them are drawn instead of computed.

A public function that is called with a symbolic tensor returns others, and does not run: as in
Keras, it looks for one among its arguments first. Before a process has created one, this costs a
look at one attribute.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

_NESTED = (list, tuple, dict)
# Types of values that are no symbolic tensors and hold none: those that calls had as arguments.
_plain: set[type] = {bool, float, int, str, type(None)}


class Symbolic:
    """Base class of symbolic tensors: a shape and a dtype, without values.

    Attributes:
        exist: Whether this process has created one.
    """

    __slots__ = ()
    exist: ClassVar[bool] = False

    def drawn(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return symbolic tensors for what a call returns that this one is an argument of.

        Args:
            function: The function.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        raise NotImplementedError


def symbolic_in(values: Iterable[Any]) -> Symbolic | None:
    """Return the first symbolic tensor in nested lists, tuples and dicts, or None."""
    for value in values:
        kind = type(value)
        if kind in _plain:
            continue
        if isinstance(value, Symbolic):
            return value
        if isinstance(value, _NESTED):
            inner = value.values() if isinstance(value, dict) else value
            # A list of numbers may be long.
            symbolic = None if _plain.issuperset(map(type, inner)) else symbolic_in(inner)
            if symbolic is not None:
                return symbolic
        else:
            _plain.add(kind)
    return None
