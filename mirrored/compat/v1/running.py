"""What the operations of a graph ask while a session runs them: variables' values, and a tape."""

from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

from mirrored import _nest
from mirrored._contexts import Within
from mirrored.autodiff import GradientTape
from mirrored.ops.rng_state import WORD, Key, RngState, derived_seed, first_word, global_rng_state

# TensorFlow's seed of a graph that has none, for operations that have one.
_DEFAULT_SEED = 87654321


class OpStream(RngState):
    """The random stream of one operation in one session; each session starts it again.

    Draws follow from the seed that the graph had when the operation was drawn, and from that of the
    operation or its number; without either seed they are others in each session.

    Args:
        operation: The operation.
    """

    def __init__(self, operation: Any) -> None:
        super().__init__(0)
        self._of_graph: int | None = operation.graph_seed
        self._number: int = operation.number
        self._key: int | None = None

    def next(self, seed: int | None = None) -> tuple[Key, int]:
        """Return key and number of the next draw."""
        self.draws += 1
        if seed is not None:
            of_graph = _DEFAULT_SEED if self._of_graph is None else self._of_graph
            return (of_graph % WORD, 1 + seed % (WORD - 1)), self.draws - 1
        if self._key is None:
            graph_seed = self._of_graph
            if graph_seed is None:
                self._key = first_word(*global_rng_state().next())
            else:
                self._key = derived_seed(graph_seed % WORD, self._number)
        return (self._key, 0), self.draws - 1


class Run:
    """One run of a part of a graph.

    Args:
        kept: What the session keeps: `storage` of a variable, and `stream` and `count` of an
            operation.
        watched: The placeholders by which something is differentiated.
        once: Whether that is done once, so that what it computes need not be followed itself.
        fed: The tensors that are fed.

    Attributes:
        written: The variables that were written so far, each with its value; None: nobody has
            taken it since.
        fed: The same.
    """

    def __init__(
        self, kept: Any, watched: Sequence[Any] = (), once: bool = True, fed: Sequence[Any] = ()
    ) -> None:
        self.kept = kept
        self.watched = frozenset(watched)
        self.tape = GradientTape(persistent=True, watch_accessed_variables=False)
        self.written: dict[Any, Any] = {}
        self._once = once
        self.fed = frozenset(fed)
        self._taken: dict[Any, list[Any]] = {}

    def wrote(self, variables: Sequence[Any]) -> None:
        """Let what takes variables' values from now on have the new ones."""
        if not self.kept.has_no_values:
            self.written.update(dict.fromkeys(variables))

    def latest(self, variable: Any, value: Any) -> Any:
        """Return the value that a variable has by now.

        Args:
            variable: The variable, or what is none.
            value: The value that it had before the run wrote it, which what is none keeps.
        """
        if variable not in self.written:
            return value
        latest = self.written[variable]
        if latest is None:
            latest = self.written[variable] = self.kept.storage(variable).read_value()
            self._taken.setdefault(variable, []).append(latest)
            if variable in self.watched:
                self.tape.watch(latest)
        return latest

    def taken(self, tensor: Any) -> list[Any]:
        """Return the values of a variable that were taken since it was written in this run."""
        return self._taken.get(tensor, [])

    def watch(self, placeholders: Sequence[Any], values: Any) -> None:
        """Let the tape follow those values whose placeholders are watched."""
        for placeholder, value in zip(placeholders, _nest.flatten(values), strict=True):
            if placeholder in self.watched and value is not None:
                self.tape.watch(value)

    def gradients(self, ys: Any, xs: Any, grad_ys: Any) -> list[Any]:
        """Return the gradients of the sum of `ys` by each of `xs`."""
        with self.tape.stop_recording() if self._once else nullcontext():
            grads: list[Any] = self.tape.gradient(ys, xs, grad_ys)
            return grads


_run: ContextVar[Run | None] = ContextVar("mirrored_graph_run", default=None)

# Returns the run that an operation is part of; None: its shape is looked for.
current_run = _run.get


def running(run: Run) -> Within:
    """Within this context operations are part of a run."""
    return Within(_run, run)


def storage_of(variable: Any) -> Any:
    """Return what holds the value of a graph's variable in the run that asks."""
    run: Any = current_run()  # Shapes of such operations are known, so sessions alone run them.
    return run.kept.storage(variable)


def is_initialized(variable: Any) -> bool:
    """Return whether a graph's variable has a value in the session of the run that asks."""
    run: Any = current_run()
    return variable in run.kept.initialized


def has_values() -> bool:
    """Return whether a session runs the operation that asks; else its shape is looked for."""
    run = current_run()
    return run is not None and not run.kept.has_no_values


# The sessions that are entered.
entered_sessions: ContextVar[tuple[Any, ...]] = ContextVar("mirrored_sessions", default=())


def default_session() -> Any:
    """Return the session that was entered last; None: none is."""
    sessions = entered_sessions.get()
    return sessions[-1] if sessions else None
