"""All metrics that `compile` was given as one: updated together, with a dict of results."""

from typing import Any, Protocol

from mirrored import ops
from mirrored.distribute.global_batch import assumed_replicas
from mirrored.training.compiled_outputs import CompiledOutputs, metrics_of
from mirrored.training.metrics import Metric, gathered_batch
from mirrored.variables import Variable


class HasOutputs(Protocol):
    """What a model is compiled to."""

    outputs: CompiledOutputs | None


class CompiledMetrics(Metric):
    """The metrics of a compiled model, as its `metrics` has them.

    Args:
        compilation: Where the outputs will be, once their shapes are known.
    """

    def __init__(self, compilation: HasOutputs) -> None:
        super().__init__(name="compile_metrics")
        self._compilation = compilation

    @property
    def named(self) -> dict[str, Metric]:
        """The metrics by what logs call them; none before the model knows its outputs' shapes."""
        outputs = self._compilation.outputs
        return {} if outputs is None else outputs.named_metrics

    @property
    def metrics(self) -> list[Metric]:
        """The metrics."""
        return list(self.named.values())

    @property
    def variables(self) -> list[Variable]:
        """The variables of all of them."""
        return [variable for metric in self.metrics for variable in metric.variables]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Update each metric with its output's part.

        Args:
            y_true: The targets.
            y_pred: What the model returned.
            sample_weight: The weights of examples, for the metrics that count them.
        """
        outputs = self._compilation.outputs
        parts = [] if outputs is None else outputs.parts(y_true, y_pred, sample_weight)
        calls = (call for call in metrics_of(parts) if not _is_left_out(call[0]))
        of_batch, of_shard = gathered_batch.parted(calls)
        for metric, arguments in of_shard.values():
            _update(metric, *arguments)
        if of_batch:
            gathered_batch.call_once(of_batch.values(), _update)

    def result(self) -> dict[str, Any]:
        """Return the results by what logs call them."""
        return {
            name: ops.zeros(()) if _is_left_out(metric) else metric.result()
            for name, metric in self.named.items()
        }

    def reset_state(self) -> None:
        """Forget all batches."""
        for metric in self.metrics:
            metric.reset_state()


def _is_left_out(metric: Metric) -> bool:
    """Return whether a metric is custom, in a step that is only analysed.

    It might keep what it is given in Python. Its result does not matter there: it is that of the
    whole batch.
    """
    return assumed_replicas() is not None and metric._is_custom


def _update(metric: Metric, y_true: Any, y_pred: Any, sample_weight: Any) -> None:
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    metric.update_state(y_true, y_pred, **options)
