"""What the operations of a graph ask while a session runs them: variables' values, and a tape."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from mirrored import _nest
from mirrored._contexts import Within
from mirrored.autodiff import GradientTape


class Run:
    """One run of a part of a graph.

    Args:
        storage: From a graph's variable to the one that holds its value.
        watched: The placeholders by which something is differentiated.
        once: Whether that is done once, so that what it computes need not be followed itself.
    """

    def __init__(
        self, storage: Callable[[Any], Any], watched: Sequence[Any] = (), once: bool = True
    ) -> None:
        self.storage = storage
        self.watched = frozenset(watched)
        self.tape = GradientTape(persistent=True, watch_accessed_variables=False)
        self._once = once

    def watch(self, placeholders: Sequence[Any], values: Any) -> None:
        """Let the tape follow those values whose placeholders are watched."""
        for placeholder, value in zip(placeholders, _nest.flatten(values), strict=True):
            if placeholder in self.watched and value is not None:
                self.tape.watch(value)

    def gradients(self, ys: Any, xs: Any, grad_ys: Any) -> list[Any]:
        """Return the gradients of the sum of `ys` by each of `xs`."""
        if not self._once:
            found: list[Any] = self.tape.gradient(ys, xs, grad_ys)
            return found
        with self.tape.stop_recording():
            found = self.tape.gradient(ys, xs, grad_ys)
            return found


_run: ContextVar[Run | None] = ContextVar("mirrored_graph_run", default=None)

# Returns the run that an operation is part of; None: its shape is looked for.
current_run = _run.get


def running(run: Run) -> Within:
    """Within this context operations are part of a run."""
    return Within(_run, run)


def storage_of(variable: Any) -> Any:
    """Return what holds the value of a graph's variable in the run that asks."""
    run = current_run()
    if run is None:  # Shapes of such operations are known, so sessions alone run them.
        raise RuntimeError(f"{variable!r} has a value in a session alone. Run it in one.")
    return run.storage(variable)


# The sessions that are entered.
entered_sessions: ContextVar[tuple[Any, ...]] = ContextVar("mirrored_sessions", default=())


def default_session() -> Any:
    """Return the session that was entered last; None: none is."""
    sessions = entered_sessions.get()
    return sessions[-1] if sessions else None
