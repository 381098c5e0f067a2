"""Symbolic tensors, and the rule by which calls on them become nodes and are not computed.

A public function that is called with a symbolic tensor returns others, and does not run: as in
Keras, it looks for one among its arguments first. Before a process has created one, this costs a
look at one attribute.
"""

import functools
from collections.abc import Iterable
from typing import Any, ClassVar

# Types of values that are no symbolic tensors and hold none: those that calls had as arguments.
_plain: set[type] = {bool, float, int, str, type(None)}
# The packages whose types are kept there: a program may create and drop types of its own.
_LASTING = frozenset(("builtins", "mirrored", "numpy"))


class Symbolic:
    """Base class of symbolic tensors: a shape and a dtype, without values.

    Attributes:
        exist: Whether this process has created one.
    """

    __slots__ = ()
    exist: ClassVar[bool] = False

    def drawn(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return symbolic tensors for the results of a call that has this one as an argument.

        Args:
            function: The function.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        return draw_call(self, function, args, kwargs)


@functools.singledispatch
def draw_call(symbolic: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the results of `Symbolic.drawn`; each kind of graph registers it for its tensors.

    Args:
        symbolic: A symbolic tensor among the arguments, whose class says which graph is drawn.
        function: The function.
        args: Its arguments by position.
        kwargs: Its arguments by name.
    """
    raise NotImplementedError(f"No graph has symbolic tensors of {type(symbolic)}.")


def symbolic_in(values: Iterable[Any]) -> Symbolic | None:
    """Return the first symbolic tensor in nested lists, tuples and dicts, or None."""
    items: Any
    for value in values:
        kind = type(value)
        if kind in _plain:
            continue
        if isinstance(value, Symbolic):
            return value
        # Those of the base classes: a shape of an unknown rank is a tuple that raises in a loop.
        if isinstance(value, list):
            items = list.__iter__
        elif isinstance(value, tuple):
            items = tuple.__iter__
        elif isinstance(value, dict):
            items = dict.values
        else:
            if kind.__module__.partition(".")[0] in _LASTING:
                _plain.add(kind)
            continue
        if not _plain.issuperset(map(type, items(value))):  # A list of numbers may be long.
            symbolic = symbolic_in(items(value))
            if symbolic is not None:
                return symbolic
    return None
