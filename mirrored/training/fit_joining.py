"""Hands the state of a running `fit` to processes that are started in place of dead workers."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.distribute.finished_runs import finished_runs
from mirrored.distribute.loop_joining import hand_over, require_state
from mirrored.distribute.on_read_variables import SyncOnReadVariable
from mirrored.training.callbacks import Callback
from mirrored.training.files.checkpoint import Checkpoint
from mirrored.training.files.checkpoint_state import collect, find_parts
from mirrored.training.files.restoration import ALIASES, Restoration
from mirrored.training.files.tensor_file import checked_spec
from mirrored.training.fit_state import FitState
from mirrored.training.run_plan import RunPlan

_WHAT = "the state of a fit"  # As errors of workers call it.


class Joining(Callback):
    """Lets new processes join a `fit`, between two of its steps.

    Args:
        plan: The plan of the run.
        state: The state of the fit.
    """

    def __init__(self, plan: RunPlan, state: FitState) -> None:
        super().__init__()
        self._workers: Any = plan.strategy.workers  # type: ignore[attr-defined]
        self._plan, self._fit = plan, state
        self._welcome: Any = None
        self._checkpoint = Checkpoint(model=plan.model, metrics=state.metrics)
        state.trained.keeps_places = True
        state.backups.append(self)

    def _follow_fit(self, state: FitState) -> None:
        """Take the position of the other workers, where this process has not joined yet."""
        if self._workers.welcome is not None:
            self._welcome = self._workers.welcome[1]
            state.check("The state of the first worker", self._welcome[0])
            state.begin(*self._welcome)

    def _resume_fit(self) -> None:
        """Set the state to that of the first worker."""
        if self._welcome is not None:
            self._fit.load(*self._welcome)
            self._welcome = None

    def _handed_over(self) -> tuple[Any, str]:
        """Return what a new process gets, and why there can be none; empty: there can."""
        refusal = finished_runs.refusal
        if finished_runs.runs_several_models:  # It gets the state of one.
            refusal = refusal or "a program that runs several models"
        try:
            return (finished_runs.results, self._fit.state()), refusal
        except TypeError as error:
            return None, str(error)

    def meet(self, done: int, reform: Callable[[], None]) -> None:
        """Start processes in place of dead workers, or join the others in a new process.

        Args:
            done: The number of batches of the epoch before the next step; 0: it has not begun.
            reform: Shares the steps out among all workers.
        """
        workers, fit = self._workers, self._fit
        is_new = workers.welcome is not None
        own: Any = None
        tensors: dict[str, Any] = {}
        if is_new:
            workers.join()
        else:
            fit.batches = done
            if workers.vacant < 1:
                return
            with self._plan.strategy.scope():  # A new process does not send new variables.
                state, refusal = self._handed_over()
            tensors, aliases = collect(find_parts(self._checkpoint.held(), some=True))
            if not workers.refill(state, refusal):
                return
            own = {name: checked_spec(name, tensor) for name, tensor in tensors.items()}, aliases
        of_first = workers.gather(own, _WHAT)[0]
        require_state(workers, is_new=is_new)
        specs, aliases = of_first
        arrays = {
            name: _value(tensors[name]) if tensors else np.empty(*specs[name]) for name in specs
        }
        workers.broadcast([a.reshape(-1).view(np.uint8) for a in arrays.values()], _WHAT)
        if is_new:
            received: Any = SimpleNamespace(
                **dict.fromkeys(("name", "noun"), "The state of the first worker"),
                specs=specs,
                texts={ALIASES: json.dumps(aliases)},
                read=lambda names: [(name, arrays[name]) for name in names],
            )
            restoration = Restoration(self._checkpoint, received, ExitStack())
            restoration.silence()
            restoration.go_on()
        strategy: Any = self._plan.strategy
        if hand_over(workers, strategy.on_read_variables(), is_new=is_new):
            reform()
            self._plan.is_shared = True


def _value(tensor: Any) -> NDArray[Any]:
    """Return a value as an array, without asking the other workers."""
    return tensor.total() if isinstance(tensor, SyncOnReadVariable) else np.array(tensor)
