"""How a call that is given a placeholder becomes a node of a graph in the place of a result.

Whatever asks a placeholder for what a tensor has raises `NotComputed`, which ends the call; the
outermost public function that it passes makes a node of itself and its arguments. Calls on tensors
with values pay nothing for it.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
# The code of what makes nodes of calls, and who makes them: the graph, which stands far above.
_nodes_begin: set[CodeType] = set()
_make: list[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = []


class Symbolic:
    """What placeholders are, for those who stand below the graph."""

    __slots__ = ()


class NotComputed(BaseException):
    """A placeholder was asked for what it has not; the library's own handlers let it pass."""


def begins_nodes(function: Any) -> Any:
    """Note that a function catches `NotComputed`, and return it."""
    _nodes_begin.add(function.__code__)
    return function


def inside_call() -> bool:
    """Return whether the caller of the caller runs within a call that becomes a node."""
    return _within(sys._getframe(2))


def _within(frame: FrameType | None) -> bool:
    """Return whether a frame, or one further out up to the user's code, begins a node."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        if frame.f_code in _nodes_begin:
            return True
        frame = frame.f_back
    return False


def as_node(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call as a node of a graph, where the call is the outermost such.

    Args:
        function: What was called.
        args: Its arguments by position.
        kwargs: Its arguments by name.

    Raises:
        NotComputed: A call further out is the one.
    """
    if _within(sys._getframe(2)):
        raise NotComputed
    return _make[0](function, args, kwargs)


def set_maker(make: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Name the function that makes a node of a call."""
    _make[:] = [make]
