"""What `compile` makes of an optimizer, a loss and metrics, and whether they fit together.

Everything that has a name is looked up here, so that a typing error shows before training.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mirrored import _nest, ops
from mirrored._files import alone_unless, trains_together
from mirrored._numbers import check_count
from mirrored._overrides import Subclassable, check_overrides
from mirrored.devices import refuse_reset_where
from mirrored.distribute import Strategy
from mirrored.distribute.global_batch import assumed_replicas
from mirrored.layers.shapes import Shape, shapes_in
from mirrored.optim import Optimizer
from mirrored.training.compiled_outputs import (
    CompiledOutputs,
    compile_outputs,
    metrics_of,
    numbered,
)
from mirrored.training.metrics import Mean, Metric, gathered_batch
from mirrored.variables import Variable

# The names of what `Compilation.given` has.
COMPILED = ("loss", "loss_weights", "metrics", "weighted_metrics")


@dataclass
class Compilation:
    """How a model is trained.

    Attributes:
        optimizer: The optimizer; None where a step of the model's own has others, or none.
        given: The loss, its weights, the metrics and the weighted ones, as they were given.
        run_eagerly: Whether Python runs for every op of every step.
        steps_per_execution: How many steps run between two calls of callbacks, or "auto".
        jit_compile: What was given, and changes nothing.
        check_gradients: Whether a step whose gradients are not finite raises.
        loss_tracker: The mean of the loss, in steps that may be the model's own.
        outputs: The outputs with their losses and metrics, once their shapes are known.
        output_shapes: The flat output shapes for other inputs than the model was built for.
    """

    optimizer: Optimizer | None
    given: tuple[Any, Any, Any, Any]
    loss_tracker: Mean
    run_eagerly: bool = False
    steps_per_execution: int | str = "auto"
    jit_compile: bool | str | None = "auto"
    check_gradients: bool = False
    outputs: CompiledOutputs | None = None
    output_shapes: dict[Any, list[Shape]] = field(default_factory=dict)

    def kept_by(self, arguments: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        """Return what a later `compile` is given, where it gives nothing with what this one has.

        Args:
            arguments: The loss, its weights, the metrics and the weighted metrics.
        """
        loss, metrics = arguments[:2], arguments[2:]
        if loss[0] is None:
            loss = self.given[:2]
        return (*loss, *(self.given[2:] if metrics == (None, None) else metrics))

    @cached_property
    def has_loss(self) -> bool:
        """Whether a loss was given."""
        return any(loss is not None for loss in _nest.flatten(self.given[0]))

    @property
    def has_metrics(self) -> bool:
        """Whether metrics were given."""
        return self.given[2] is not None or self.given[3] is not None

    def resolve(self, shapes: Any, names: Sequence[str] | None) -> None:
        """Make the losses and metrics of the outputs, now that their shapes are known.

        Args:
            shapes: The shape of each of the model's outputs, (None, ...), in their structure.
            names: The outputs' names, where the model has some.

        Raises:
            ValueError: There is no such loss or metric, or no such output.
        """
        if self.outputs is None:
            flat = list(shapes_in(shapes))
            self.outputs = compile_outputs(flat, names, numbered(shapes), *self.given)

    def updated_metrics(self) -> list[Metric]:
        """Return the mean of the loss, all metrics as one, and the means of outputs' losses."""
        metrics: list[Metric] = [self.loss_tracker]
        if self.has_metrics:
            metrics.append(self.compiled_metrics)
        return metrics if self.outputs is None else [*metrics, *self.outputs.trackers]

    @cached_property
    def compiled_metrics(self) -> "CompiledMetrics":
        """All metrics as one."""
        return CompiledMetrics(self)

    def required_outputs(self) -> CompiledOutputs:
        """Return the outputs, of which one has a loss.

        Raises:
            ValueError: No loss was given.
        """
        if not self.has_loss or self.outputs is None:
            raise ValueError(
                "No loss to compute. Provide a `loss` argument in `compile()`. Received: loss=None"
            )
        return self.outputs

    def required_optimizer(self) -> Optimizer:
        """Return the optimizer.

        Raises:
            ValueError: None was given.
        """
        if self.optimizer is None:
            raise ValueError(
                "No optimizer to train with. Provide an `optimizer` argument in `compile()`, or "
                "define a custom `train_step`. Received: optimizer=None"
            )
        return self.optimizer


class CompiledMetrics(Metric):
    """The metrics of a compiled model, as its `metrics` has them.

    Args:
        compilation: Where the outputs will be, once their shapes are known.
    """

    def __init__(self, compilation: Compilation) -> None:
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


def check_steps_per_execution(steps: int | str) -> None:
    """Raise ValueError unless it is a number of steps, or "auto"."""
    if steps != "auto":
        check_count("steps_per_execution", steps, least=1)


def check_variables(model: Any, strategy: Strategy) -> None:
    """Raise ValueError where a model or a weight of it was made in another strategy's scope.

    Args:
        model: The model.
        strategy: The strategy that it is compiled for.
    """
    for variable in model.weights:
        if not strategy.owns(variable):
            raise ValueError(
                f"Variable ({variable.name}) was not created in the distribution strategy scope "
                f"of ({strategy}). It is most likely because some layers, model, or optimizer was "
                "being created outside the distribution strategy scope. Try to make sure your "
                "code looks similar to the following.\nwith strategy.scope():\n"
                "  model=_create_model()\n  model.compile(...)"
            )
    if model.distribute_strategy is not strategy:
        raise ValueError(
            f"Model ({model.name}) was not created in the distribution strategy scope of "
            f"({strategy}), in which `compile` was called, but in the scope of "
            f"({model.distribute_strategy}). Create and compile the model in the same scope."
        )


def check_scopes(strategy: Strategy, optimizer: Any, metrics: list[Any]) -> None:
    """Raise ValueError where an optimizer or a metric was made in another strategy's scope.

    Args:
        strategy: The strategy that a model is compiled for.
        optimizer: The optimizer, or None.
        metrics: The metrics.
    """
    parts: list[tuple[str, Any, type[Any]]] = [("an optimizer", optimizer, Optimizer)]
    parts += [("a metric", metric, Metric) for metric in metrics]
    for label, part, base in parts:
        if isinstance(part, base) and part._strategy is not strategy:
            kind = label.split()[-1]
            raise ValueError(
                f"{kind.capitalize()} ({part}) passed to `model.compile` was created inside a "
                f"different distribution strategy scope than the model. All {kind}s must be "
                "created in the same distribution strategy scope as the model (in this case "
                f"{strategy}). If you pass in a string identifier for {label} to compile, the "
                f"{kind} will automatically be created in the correct distribution strategy scope."
            )


def check_alterations(parts: Iterable[Any]) -> None:
    """Raise TypeError where the class of a part overrides by now what nothing calls.

    Args:
        parts: Layers, an optimizer, losses and metrics.
    """
    for part in parts:
        if isinstance(part, Subclassable):  # Its class may have changed since it was defined.
            check_overrides(type(part))


# Models that run just now, with their methods: known for all threads, since what one of them runs
# another one could take away.
_running: list[tuple[Any, str]] = []


def begin_running(model: Any, method: str, stack: ExitStack) -> None:
    """Have a model run until a stack is closed: it is not copied, nor loses its devices meanwhile.

    Args:
        model: The model.
        method: The method that runs it.
        stack: The stack.
    """
    entry = (model, method)
    _running.append(entry)
    stack.callback(_running.remove, entry)
    if trains_together():
        stack.enter_context(alone_unless(model.distribute_strategy.is_shared))


def what_runs(model: Any) -> str | None:
    """Return the name of the method that a model runs, the outermost one; None: it is at rest."""
    return next((method for owner, method in _running if owner is model), None)


refuse_reset_where(lambda: f"a running `{_running[0][1]}`" if _running else None)
