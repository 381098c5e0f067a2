"""Who is told of each op that runs: tapes now, recorders of programs later.

They stand above the ops and are pushed here from there, so that the ops know nothing of them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from mirrored.ops.registry import Op

if TYPE_CHECKING:
    from mirrored.ops.tensor import Tensor


class Listener(Protocol):
    """Something that follows what is computed."""

    def on_op(
        self, op: Op, inputs: tuple["Tensor", ...], attrs: Mapping[str, Any], output: "Tensor"
    ) -> None:
        """Called after an op ran."""

    def on_read(self, variable: Any, value: "Tensor") -> None:
        """Called after a variable was read."""


_active: ContextVar[tuple[Listener, ...]] = ContextVar("mirrored_listeners", default=())


def active_listeners() -> tuple[Listener, ...]:
    """Return the listeners of this context, outermost first."""
    return _active.get()


def add_listener(listener: Listener) -> None:
    """Tell `listener` of what this context computes from now on."""
    _active.set((*_active.get(), listener))


def remove_listener(listener: Listener) -> None:
    """Stop telling `listener`; nothing happens where it was not told."""
    _active.set(tuple(each for each in _active.get() if each is not listener))


@contextmanager
def only(*listeners: Listener) -> Iterator[None]:
    """Within this context tell these listeners and no others; no argument: nobody."""
    token = _active.set(listeners)
    try:
        yield
    finally:
        _active.reset(token)
