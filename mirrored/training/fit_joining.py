"""Hands the state of a running `fit` to processes that are started in place of dead workers."""

import json
import pickle
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np

from mirrored.distribute.on_read_variables import SyncOnReadVariable
from mirrored.training.callbacks import Callback, History
from mirrored.training.files.checkpoint import Checkpoint
from mirrored.training.files.checkpoint_state import collect, find_parts
from mirrored.training.files.restoration import ALIASES, Restoration
from mirrored.training.files.tensor_file import checked_spec
from mirrored.training.fit_state import FitState
from mirrored.training.run_plan import RunPlan

_WHAT = "the state of a fit"  # As errors of workers call it.
_MOST = 1 << 26  # The bytes of results that are kept for processes that start later.


class FinishedRuns:
    """The results of a program's runs that are over, for processes that start later."""

    def __init__(self) -> None:
        self._results: list[bytes] = []
        self._model: Any = None
        self._refusal = ""
        self._is_running = False

    def run(self, model: Any, take: Callable[[], Any]) -> Any:
        """Return the result of a run; a new process gets that of the others where it is over.

        Args:
            model: The model that runs, with a strategy that replaces workers.
            take: Takes the run.
        """
        if self._is_running:  # Callbacks may start other runs.
            return take()
        workers = model.distribute_strategy.workers
        if self._model is not None and self._model is not model:
            self._refusal = "a program that runs several models"
        known = [] if workers.welcome is None else workers.welcome[0]
        if len(self._results) < len(known):
            self._results.append(known[len(self._results)])
            result = pickle.loads(self._results[-1])
            if isinstance(result, History):
                result.set_model(model)
                model.history = result
            return result
        self._model, self._is_running = model, True
        try:
            result = take()
        except BaseException:
            self._refusal = "a run that failed before"
            raise
        finally:
            self._is_running = False
        self._results.append(pickle.dumps(result))
        if sum(map(len, self._results)) > _MOST:
            self._refusal = f"runs before with results of more than {_MOST >> 20} MiB"
            self._results.clear()
        return result

    def hand_over(self, fit: FitState) -> tuple[Any, str]:
        """Return what a new process gets, and why there can be none; empty: there can.

        Args:
            fit: The state of the running fit.
        """
        try:
            state, arrays = fit.state()
        except TypeError as error:
            return None, str(error)
        return (self._results, (state, arrays)), self._refusal


finished_runs = FinishedRuns()


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

    def meet(self, done: int, reform: Callable[[], None]) -> None:
        """Start processes in place of dead workers, or join the others in a new process.

        Args:
            done: The number of batches of the epoch before the next step; 0: it has not begun.
            reform: Shares the steps out among all workers.
        """
        workers, fit = self._workers, self._fit
        is_new, own = workers.welcome is not None, None
        tensors: dict[str, Any] = {}
        if is_new:
            workers.join()
        else:
            fit.batches = done
            if workers.vacant < 1:
                return
            with self._plan.strategy.scope():  # A new process does not send new variables.
                state, refusal = finished_runs.hand_over(fit)
            tensors, aliases = collect(find_parts(self._checkpoint.held(), some=True))
            if any(isinstance(tensor, SyncOnReadVariable) for tensor in tensors.values()):
                refusal = "variables that are summed when they are read"
            if not workers.refill(state, refusal):
                return
        if not is_new:
            own = {name: checked_spec(name, tensor) for name, tensor in tensors.items()}, aliases
        specs, aliases = workers.gather(own, _WHAT)[0]
        arrays = {
            name: np.array(tensors[name]) if tensors else np.empty(*specs[name]) for name in specs
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
        reform()
        self._plan.is_shared = True
