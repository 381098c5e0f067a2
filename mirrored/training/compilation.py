"""What `compile` makes of an optimizer, a loss and metrics, and whether they fit together.

Everything that has a name is looked up here, so that a typing error shows before training.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mirrored import _nest, _overrides
from mirrored._arguments import explained
from mirrored._files import alone_unless
from mirrored._numbers import check_count
from mirrored._overrides import Subclassable, check_overrides
from mirrored.devices import refuse_reset_where
from mirrored.distribute import Strategy, get_strategy, has_strategy
from mirrored.errors import InvalidArgumentError
from mirrored.layers.layer import walk, walk_with
from mirrored.layers.shapes import Shape, shapes_in
from mirrored.optim import Optimizer
from mirrored.optim import get as get_optimizer
from mirrored.program import TraceCache
from mirrored.training.callbacks import History
from mirrored.training.compiled_outputs import CompiledOutputs, numbered
from mirrored.training.matched_outputs import check_names, compile_outputs
from mirrored.training.metrics import Mean, Metric
from mirrored.training.network import Network

if TYPE_CHECKING:
    from mirrored.training.compiled_metrics import CompiledMetrics

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
    outputs: CompiledOutputs | None = None
    output_shapes: dict[Any, list[Shape]] = field(default_factory=dict)

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
        from mirrored.training.compiled_metrics import CompiledMetrics  # `fit` adds them up itself.

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
                "No optimizer to train with. Provide an `optimizer` argument in `compile()`, or a "
                "`train_step` of the model's own. Received: optimizer=None"
            )
        return self.optimizer


@explained
class CompiledNetwork(Network):
    """A network with what `compile` and the loops keep of it: all that these know of a model.

    `Model` says what the arguments are.
    """

    _never_called = _overrides.MODEL
    _for_itself = _overrides.MODEL_ITSELF

    def __init__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        name: str | None = None,
        *,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(inputs, outputs, name, dtype=dtype, trainable=trainable)
        self._compilation: Compilation | None = None
        self._uncompiled_optimizer: Any = None
        self._uncompiled_eagerly = False
        # What `fit`, `evaluate` and `predict` recorded, by what it was recorded for.
        self._traces = TraceCache(f"A step of the model {self.name!r}")
        self.history: History | None = None
        self.stop_training = self.stop_evaluating = self.stop_predicting = False

    def __getstate__(self) -> dict[str, Any]:
        method = what_runs(self)
        if method is not None:
            raise RuntimeError(
                f"A model is neither pickled nor copied while `{method}` runs: it is between two "
                f"states. Received: the model {self.name!r}. Take `get_weights()` or "
                "`save_weights(...)` in a callback, and the model itself afterwards."
            )
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.history is not None and self.history.model is None:  # It travelled without.
            self.history.model = self

    @property
    def optimizer(self) -> Optimizer | Any:
        """The optimizer of `compile`. Another one may be set, also by a model that does without."""
        if self._compilation is None:
            return self._uncompiled_optimizer
        return self._compilation.optimizer

    @optimizer.setter
    def optimizer(self, value: Any) -> None:
        if self._compilation is None:
            self._uncompiled_optimizer = value
            return
        strategy = self.distribute_strategy
        _check_scopes(strategy, value, [])
        with strategy.scope():
            self._compilation.optimizer = get_optimizer(value)
        self._forget_steps()

    def _forget_steps(self) -> None:
        """Let steps be recorded anew: what they were recorded with is another now."""
        self._traces.clear()

    @property
    def loss(self) -> Any:
        """The loss, as it was given to `compile`."""
        return None if self._compilation is None else self._compilation.given[0]

    @property
    def metrics(self) -> list[Metric]:
        """What a step updates: the mean of the loss, `compile`'s metrics, and the model's own.

        Those of `compile` are one, named "compile_metrics", whose result is a dict. Then come the
        means of the outputs' losses, where several have one, and the metrics in attributes of the
        model and of its layers.
        """
        own = [metric for _, held in walk_with(self, Metric) for metric in held]
        if self._compilation is None:
            return own
        return [*self._compilation.updated_metrics(), *own]

    @property
    def metrics_names(self) -> list[str]:
        """The names of `metrics`."""
        return [metric.name for metric in self.metrics]

    @property
    def compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compilation is not None

    @property
    def run_eagerly(self) -> bool:
        """Whether Python runs for every op of every step. It may be set; `compile` sets it anew."""
        if self._compilation is None:
            return self._uncompiled_eagerly
        return self._compilation.run_eagerly

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        if self._compilation is None:
            self._uncompiled_eagerly = bool(value)
        else:
            self._compilation.run_eagerly = bool(value)

    @property
    def steps_per_execution(self) -> int | str:
        """How many steps run between two calls of batch hooks; it may be set once compiled."""
        return "auto" if self._compilation is None else self._compilation.steps_per_execution

    @steps_per_execution.setter
    def steps_per_execution(self, value: int | str) -> None:
        compilation = self.required_compilation()
        check_steps_per_execution(value)
        compilation.steps_per_execution = value

    def required_compilation(self) -> Compilation:
        """Return what `compile` made.

        Raises:
            InvalidArgumentError: It was not called.
        """
        if self._compilation is None:
            raise InvalidArgumentError("You must call `compile()` before using the model.")
        return self._compilation


def compile_model(model: CompiledNetwork, optimizer: Any, *arguments: Any) -> Compilation:
    """Return what `Model.compile` keeps; its arguments are those of that method.

    Args:
        model: The model.
        optimizer: The optimizer, or None.
        *arguments: The loss, its weights, the metrics and the weighted metrics. Without a loss that
            of an earlier call stays, and so do metrics.

    Raises:
        ValueError: A name is unknown, a loss has no mean or sum to minimise, something is for an
            output that there is not, or the parts were made in different strategies' scopes.
    """
    strategy = get_strategy() if has_strategy() else model.distribute_strategy
    _check_variables(model, strategy)
    arguments = _with_earlier(model, arguments)
    loss, _, *metrics = arguments
    all_metrics = _nest.flatten(metrics)
    _check_scopes(strategy, optimizer, all_metrics)
    for part in (*walk(model), optimizer, *_nest.flatten(loss), *all_metrics):
        if isinstance(part, Subclassable):  # Its class may have changed since it was defined.
            check_overrides(type(part))
    with strategy.scope():
        instance = get_optimizer(optimizer)
        compilation = Compilation(instance, arguments, Mean(name="loss"))
        if model.built:
            compilation.resolve(model.output_shapes, output_names(model))
        else:
            check_names(*arguments)
    return compilation


def _with_earlier(model: CompiledNetwork, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what is given, and where nothing is what an earlier `compile` was, as in Keras."""
    if model._compilation is None:
        return arguments
    (loss, metrics), earlier = (arguments[:2], arguments[2:]), model._compilation.given
    if loss[0] is None:
        loss = earlier[:2]
    return (*loss, *(earlier[2:] if metrics == (None, None) else metrics))


def output_names(model: Network) -> list[str] | None:
    """Return the names of a functional model's outputs; None of others'."""
    return model.output_names or None


def check_steps_per_execution(steps: int | str) -> None:
    """Raise ValueError unless it is a number of steps, or "auto"."""
    if steps != "auto":
        check_count("steps_per_execution", steps, least=1)


def _check_variables(model: Network, strategy: Strategy) -> None:
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
            f"({strategy}), in which `compile` was called, but in that of "
            f"({model.distribute_strategy}). Create and compile the model in the same scope."
        )


def _check_scopes(strategy: Strategy, optimizer: Any, metrics: list[Any]) -> None:
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


# Models that run just now, with their methods: known for all threads, since what one of them runs
# another one could take away.
_running: list[tuple[Any, str]] = []


@contextmanager
def running(model: Any, method: str) -> Iterator[None]:
    """Within this context a model runs: it is not copied, nor loses its devices meanwhile."""
    entry = (model, method)
    _running.append(entry)
    try:
        with alone_unless(model.distribute_strategy.is_shared):
            yield
    finally:
        _running.remove(entry)


def what_runs(model: Any) -> str | None:
    """Return the name of the method that a model runs, the outermost one; None: it is at rest."""
    return next((method for owner, method in _running if owner is model), None)


refuse_reset_where(lambda: f"a running `{_running[0][1]}`" if _running else None)
