"""The state of a running `fit` in addition to its model: positions, metrics, callbacks and streams.

`BackupAndRestore` saves it next to the model, so that a run continues in the middle of an epoch.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._host_streams import host_streams, set_host_streams
from mirrored.data.epochs import Epochs
from mirrored.errors import WeightsFileError
from mirrored.training.callbacks import Callback, CallbackList
from mirrored.training.run_plan import RunPlan
from mirrored.training.running_means import EpochLogs

_ARRAY = "$array"  # The key of an array's number, where a state has the array.
_WHAT = "the state of a fit"  # As errors of workers call it.


class FitState:
    """Where a `fit` is, and what its callbacks, its data and Python's streams know.

    Args:
        plan: The plan of the run.
        callbacks: Its callbacks.

    Attributes:
        trained: What it trains on.
        validated: What it validates on, if it does.
        backups: The callbacks that save and restore this state.
        epoch: The epoch that runs, or runs next, from 0.
        batches: The number of its batches that were trained on; 0 between two epochs.
        means: Its loss and metrics so far; None between two epochs.
        logs: The logs of the epoch before.
        has_stopped: Whether the run that is continued had been stopped.
        is_ending: Returns whether hooks are to be called after the step that runs.
    """

    trained: Epochs
    validated: Epochs | None

    def __init__(self, plan: RunPlan, callbacks: CallbackList) -> None:
        self.epoch = self.batches = 0
        self.means: EpochLogs | None = None
        self.logs: dict[str, Any] = {}
        self.has_stopped = False
        self.is_ending: Callable[[], bool] = bool
        self._plan, self._callbacks = plan, callbacks
        self.backups = [*filter(attrgetter("_backs_up"), callbacks.callbacks)]
        self._own: Any = None  # What this worker has of a state that was checked.

    def resume(self) -> None:
        """Let callbacks restore their backup, now that hooks have begun what they begin."""
        for backup in self.backups:
            backup._resume_fit()

    def end_where(self, is_ending: Callable[[], bool]) -> None:
        """End the steps that run between two calls of hooks where a function returns True.

        Args:
            is_ending: The function, called after each step.
        """
        if not self._plan.is_shared:  # Else workers would end after different steps.
            self.is_ending = is_ending
            self.trained.keeps_places = True

    @property
    def facts(self) -> dict[str, Any]:
        """What differs between runs that cannot continue each other."""
        optimizers = [type(optimizer).__name__ for optimizer in self._plan.optimizers]
        return {"optimizers": optimizers, **self.trained.facts}

    def state(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Return the state as JSON holds it, and the arrays in it; all workers call it.

        Raises:
            TypeError: The state of a callback has something that a file cannot hold.
        """
        validated = self.validated
        own = {
            "trained": self.trained.place(self.batches),
            "validated": None if validated is None else validated.place(0),
            "streams": host_streams(),
            "facts": self.facts,
        }
        arrays: list[NDArray[Any]] = []
        state = {
            "epoch": self.epoch,
            "batches": self.batches,
            "stop_training": bool(self._plan.model.stop_training),
            "means": None if self.means is None else self.means.state(),
            "logs": self.logs,
            "callbacks": {
                name: saved for name, callback in self._named() if (saved := callback.state_dict())
            },
            "workers": self._plan.strategy.of_each_worker(own, _WHAT),
        }
        return _packed(state, "its state", arrays), arrays

    @property
    def metrics(self) -> list[Any]:
        """The metrics whose variables are part of the state."""
        return [*self._plan.model.metrics] if self._plan.is_custom("train") else []

    def begin(self, state: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
        """Take the position of a state, and the callbacks' states, before hooks are called.

        Args:
            state: What `state` returned, after `check`.
            arrays: The arrays in it.
        """
        self._load_callbacks(state, arrays)
        self.epoch, self.batches = state["epoch"], state["batches"]
        self.has_stopped = state["stop_training"]
        self.logs = _unpacked(state["logs"], arrays)

    def check(self, noun: str, state: Mapping[str, Any]) -> None:
        """Raise WeightsFileError if a state is of another optimizer or other data.

        Args:
            noun: The file, for the error.
            state: What `state` returned.
        """
        own = self._own_of(noun, state)
        saved, here = own["facts"], self.facts
        if state["batches"] == 0:  # Another epoch may have other batches of the same data.
            saved, here = ({**facts, "steps": 0, "batch_size": 0} for facts in (saved, here))
        if saved != here:
            raise WeightsFileError(
                f"{noun} is of a run with another optimizer or other data. Received: {here}, and "
                f"a file of {saved}. Pass those of the earlier run, or delete the file to begin at "
                "the first epoch."
            )
        self._own = own

    def _load_callbacks(self, state: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
        """Set the callbacks' states; a callback that the earlier run did not have keeps its own."""
        saved = _unpacked(state["callbacks"], arrays)
        for name, callback in self._named():
            if name in saved:
                callback.load_state_dict(saved[name])

    def load(self, state: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
        """Set all state, after `begin` and after the hooks that begin something."""
        own = self._own
        self.trained.go_to(own["trained"])
        if self.validated is not None and own["validated"] is not None:
            self.validated.go_to(own["validated"])
        self._load_callbacks(state, arrays)
        self._plan.model.stop_training = state["stop_training"]
        if self.means is not None and state["means"] is not None:
            self.means.load(_unpacked(state["means"], arrays))
        set_host_streams(own["streams"])

    def _named(self) -> Iterator[tuple[str, Callback]]:
        """Yield the callbacks with their names: their classes, and the numbers among these."""
        numbers: Counter[str] = Counter()
        for callback in self._callbacks.callbacks:
            kind = type(callback).__qualname__
            yield f"{kind}/{numbers[kind]}", callback
            numbers[kind] += 1

    def _own_of(self, noun: str, state: Mapping[str, Any]) -> Any:
        """Return what this worker saved; where there are more or fewer, what all of them have."""
        saved, strategy = state["workers"], self._plan.strategy
        firsts = strategy.of_each_worker(strategy.first_replica, _WHAT)
        if len(firsts) == len(saved):
            return saved[firsts.index(strategy.first_replica)]
        if any(other["trained"] != saved[0]["trained"] for other in saved):
            raise WeightsFileError(
                f"{noun} has another position in the data for each of its {len(saved)} workers. "
                f"Received: {len(firsts)} workers. Continue with as many as before."
            )
        return saved[0]


def _packed(value: Any, name: str, arrays: list[NDArray[Any]]) -> Any:
    """Return a value as JSON holds it; arrays are appended to a list, and replaced by numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_packed(item, f"{name}[{i}]", arrays) for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _packed(item, f"{name}[{key!r}]", arrays) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}
    raise TypeError(
        "The state of a callback may have numbers, strings, arrays, None, and lists and dicts of "
        f"these. Received: {value!r:.200} at {name}. Change what its `state_dict` returns."
    )


def _unpacked(value: Any, arrays: Sequence[NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {key: _unpacked(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    return value
