"""The loss and the metrics of an epoch, over all of its steps.

Totals and counts are added up, so that batches of different sizes count as they should.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored.training.compilation import CompiledMetrics
from mirrored.training.metrics import kind_of
from mirrored.training.metrics.quotient import Quotient

if TYPE_CHECKING:
    from mirrored.training.model import Model


class EpochLogs(ABC):
    """What logs show of the steps of an epoch so far.

    Attributes:
        steps: The number of steps that were added.
        examples: The number of examples so far.
    """

    steps = examples = 0

    def add(self, rows: list[Any], examples: int) -> None:
        """Add global batches of one size.

        Args:
            rows: For each what its step left: numbers, or values by name of a custom step.
            examples: How many examples each has.
        """
        self.steps += len(rows)
        self.examples += examples * len(rows)

    @abstractmethod
    def logs(self) -> dict[str, float]:
        """Return the values by name."""

    def finish(self) -> dict[str, float]:
        """Return the values by name at the end of an epoch."""
        return self.logs()

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the sums so far, but for those in the metrics' variables."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state.

        Args:
            state: What `state` returned.
        """
        self.examples = state["examples"]


class RunningMeans(EpochLogs):
    """The means over an epoch so far: of the losses by example, of the metrics by their counts.

    Args:
        model: A model that is compiled, and knows its outputs.
        goes_on: Whether the metrics keep their values, or are reset.
    """

    def __init__(self, model: "Model", *, goes_on: bool = False) -> None:
        compilation = model.required_compilation()
        outputs = compilation.required_outputs()
        self._trackers: list[Any] = [compilation.loss_tracker, *outputs.trackers]
        self._metrics: dict[str, Any] = outputs.named_metrics
        self._names = sorted({*[tracker.name for tracker in self._trackers], *self._metrics})
        metrics: list[Any] = list(self._metrics.values())
        if not goes_on:
            for metric in (*self._trackers, *metrics):
                metric.set_totals(0.0, 0.0)
        # On the host: the metrics are told of the sums where somebody asks.
        self.examples = int(self._trackers[0].totals[1]) if goes_on else 0
        self._losses = [tracker.totals[0] if goes_on else 0.0 for tracker in self._trackers]
        self._sums = [list(metric.totals) if goes_on else [0.0, 0.0] for metric in metrics]

    def add(self, rows: list[Any], examples: int) -> None:
        """Add global batches: of each the losses, and every metric's total and count."""
        super().add(rows, examples)
        first = len(self._losses)
        for number in range(first):
            for row in rows:
                self._losses[number] += row[number] * examples
        for number, sums in enumerate(self._sums):
            for row in rows:
                sums[0] += row[first + 2 * number]
                sums[1] += row[first + 2 * number + 1]

    def logs(self) -> dict[str, float]:
        """Return the means by name, in the order of the names."""
        count = self.examples or 1
        logs = dict.fromkeys(self._names, 0.0)
        for tracker, loss in zip(self._trackers, self._losses, strict=True):
            logs[tracker.name] = loss / count
        for (name, metric), (total, number) in zip(self._metrics.items(), self._sums, strict=True):
            metric.set_totals(total, number)
            # What its `result` is, without an operation.
            logs[name] = metric.finished(total / (number or 1.0))
        return logs

    def state(self) -> dict[str, Any]:
        """Return the sums so far."""
        return {"examples": self.examples, "losses": [*self._losses], "sums": [*self._sums]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        super().load(state)
        self._losses, self._sums = [*state["losses"]], [[*sums] for sums in state["sums"]]

    def finish(self) -> dict[str, float]:
        """Return the means by name at the end of an epoch, when all metrics have theirs."""
        for tracker, total in zip(self._trackers, self._losses, strict=True):
            tracker.set_totals(total, float(self.examples))
        return self.logs()


class LatestLogs(EpochLogs):
    """What a model's own step returned last: its metrics go on from step to step by themselves.

    Args:
        model: The model.
        goes_on: Whether its metrics keep their values, or are reset.
    """

    def __init__(self, model: Any, *, goes_on: bool = False) -> None:
        self._model = model
        self._logs: dict[str, Any] = {}
        if not goes_on:
            model.reset_metrics()

    def add(self, rows: list[Any], examples: int) -> None:
        """Take what steps returned: of each the values by name."""
        super().add(rows, examples)
        if rows:
            self._logs = rows[-1]

    def logs(self) -> dict[str, float]:
        """Return the values by name."""
        return dict(self._logs)

    def state(self) -> dict[str, Any]:
        """Return the number of examples, and the logs; metrics have variables."""
        return {"examples": self.examples, "logs": self._logs}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, with the metrics' variables as they were."""
        super().load(state)
        self._logs = state["logs"]

    def finish(self) -> dict[str, float]:
        """Return what the metrics say at the end of an epoch, where that is what steps return."""
        results = _logged(self._model.get_metrics_result())
        if results.keys() != self._logs.keys():
            return self.logs()
        tracker = self._model.required_compilation().loss_tracker
        if tracker in self._model.metrics and not tracker.totals[1]:
            # Where no step updated it: Keras shows 0.
            results[tracker.name] = self._logs[tracker.name]
        return {name: results[name] for name in self._logs}


def _logged(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metrics say as logs have it: floats, or arrays of numbers, in no dicts."""
    numbers: dict[str, Any] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            numbers |= _logged(value)
        else:
            array = np.asarray(value)
            numbers[name] = array if array.ndim else float(array)
    return numbers


def is_mean(metric: Any) -> bool:
    """Return whether a metric can be added up on the host: nothing of it is of the user's own.

    Args:
        metric: The metric, or a name, class or function of one as `compile` takes it.
    """
    own = ("update_state", "result", "reset_state", "__call__")
    kind = kind_of(metric)
    return kind is None or (
        issubclass(kind, Quotient)
        and all(_defined(kind, name) is _defined(Quotient, name) for name in own)
    )


def _defined(kind: type[Any], name: str) -> Any:
    """Return a method as its class defines it."""
    return inspect.unwrap(getattr(kind, name))


def in_order(model: Any, logs: dict[str, float]) -> Any:
    """Return the values of logs without their names, in Keras' order.

    That is the order of the model's metrics, and then of the other names. The metrics that
    `compile` has for one of several outputs are among these.

    Args:
        model: The model.
        logs: The values by name.

    Returns:
        A list; where there is one value, that.
    """
    names: list[str] = []  # Without those of outputs, under which Keras does not look for them.
    for metric in model.metrics:
        parts = metric.metrics if isinstance(metric, CompiledMetrics) else [metric]
        names += [part.name for part in parts]
    values = [logs[name] for name in names if name in logs]
    values += [logs[name] for name in sorted(logs.keys() - set(names))]
    return values[0] if len(values) == 1 else values
