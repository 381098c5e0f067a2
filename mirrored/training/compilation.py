"""What `compile` makes of an optimizer, a loss and metrics, and whether they fit together.

Everything that has a name is looked up here, so that a typing error shows before training.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mirrored import _overrides
from mirrored._arguments import explained
from mirrored._numbers import check_count
from mirrored._overrides import Subclassable, check_overrides
from mirrored.devices import refuse_reset_where
from mirrored.distribute import Strategy, get_strategy, has_strategy
from mirrored.errors import InvalidArgumentError
from mirrored.optim import Optimizer
from mirrored.optim import get as get_optimizer
from mirrored.program import TraceCache
from mirrored.training import losses
from mirrored.training import metrics as metrics_module
from mirrored.training.callbacks import History
from mirrored.training.losses import Loss
from mirrored.training.metrics import Metric
from mirrored.training.network import Network


@dataclass
class Compilation:
    """How a model is trained.

    Attributes:
        optimizer: The optimizer.
        given_loss: The loss as it was given.
        loss: The loss; None where the model is only to predict.
        identifiers: The metrics as they were given, each with whether weights count for it.
        metrics: The metrics with whether weights count, once the output's shape is known.
        run_eagerly: Whether Python runs for every op of every step.
        steps_per_execution: How many steps run between two calls of callbacks, or "auto".
    """

    optimizer: Optimizer
    given_loss: Any
    loss: Loss | None
    identifiers: list[tuple[Any, bool]]
    metrics: list[tuple[Metric, bool]] = field(default_factory=list)
    run_eagerly: bool = False
    steps_per_execution: int | str = "auto"

    @property
    def all_metrics(self) -> list[Metric]:
        """The metrics in the order in which they were given."""
        return [metric for metric, _ in self.metrics]

    @property
    def has_names_to_resolve(self) -> bool:
        """Whether metrics were given that are not made yet."""
        return bool(self.identifiers) and not self.metrics

    def resolve_metrics(self, output_shape: tuple[int | None, ...]) -> None:
        """Make the metrics that were given by name, now that the output's shape is known.

        Args:
            output_shape: The model's output shape, (None, ...).

        Raises:
            ValueError: There is no such metric.
        """
        if not self.has_names_to_resolve:
            return
        found = [
            (_resolved(each, self.loss, output_shape), weighted)
            for each, weighted in self.identifiers
        ]
        _make_names_differ(found)
        self.metrics = found

    def required_loss(self) -> Loss:
        """Return the loss.

        Raises:
            ValueError: None was given.
        """
        if self.loss is None:
            raise ValueError(
                "No loss to compute. Provide a `loss` argument in `compile()`. Received: loss=None"
            )
        return self.loss


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
        """The optimizer, once the model is compiled."""
        return None if self._compilation is None else self._compilation.optimizer

    @property
    def loss(self) -> Any:
        """The loss, as it was given to `compile`."""
        return None if self._compilation is None else self._compilation.given_loss

    @property
    def metrics(self) -> list[Metric]:
        """The metrics, once the model is compiled and built."""
        return [] if self._compilation is None else self._compilation.all_metrics

    @property
    def metrics_names(self) -> list[str]:
        """The names of what `evaluate` returns."""
        return ["loss", *(metric.name for metric in self.metrics)]

    @property
    def compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compilation is not None

    @property
    def run_eagerly(self) -> bool:
        """Whether Python runs for every op of every step; it may be set once compiled."""
        return self._compilation is not None and self._compilation.run_eagerly

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        self.required_compilation().run_eagerly = bool(value)

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


def compile_model(
    model: Network, optimizer: Any, loss: Any, metrics: Any, weighted_metrics: Any
) -> Compilation:
    """Return what `Model.compile` keeps; its arguments are those of that method.

    Raises:
        ValueError: A name is unknown, the loss has no mean or sum to minimise, or the parts were
            made in different strategies' scopes.
    """
    strategy = get_strategy() if has_strategy() else model.distribute_strategy
    _check_variables(model, strategy)
    given = [(each, False) for each in _listed("metrics", metrics)]
    given += [(each, True) for each in _listed("weighted_metrics", weighted_metrics)]
    _check_scopes(strategy, optimizer, [each for each, _ in given])
    for part in (*model._walk(), optimizer, loss, *(each for each, _ in given)):
        if isinstance(part, Subclassable):  # Its class may have changed since it was defined.
            check_overrides(type(part))
    with strategy.scope():
        compilation = Compilation(get_optimizer(optimizer), loss, _loss(loss), given)
        if model.built:
            compilation.resolve_metrics(model.output_shape)
        else:  # Names are checked now, whatever the shape will be.
            for identifier, _ in given:
                _resolved(identifier, compilation.loss, (None, 2))
    return compilation


def check_steps_per_execution(steps: int | str) -> None:
    """Raise ValueError unless it is a number of steps, or "auto"."""
    if steps != "auto":
        check_count("steps_per_execution", steps, least=1)


def _loss(identifier: Any) -> Loss | None:
    if identifier is None:
        return None
    loss = losses.get(identifier)
    if loss.reduction == losses.Reduction.NONE:
        raise ValueError(
            f"Training minimises one number a batch. Received: the loss {loss.name!r} with "
            "reduction='none'. Use 'sum_over_batch_size', the default, or 'sum'."
        )
    return loss


def _listed(argument: str, value: Any) -> list[Any]:
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(each, list | tuple | dict) for each in items):
        raise ValueError(
            f"`{argument}` is a list of metrics; models have one output for now. "
            f"Received: {value!r}"
        )
    return list(items)


def _resolved(identifier: Any, loss: Loss | None, output_shape: tuple[int | None, ...]) -> Metric:
    if loss is None:
        return metrics_module.get(identifier)
    return metrics_module.resolve(identifier, loss, output_shape)


def _make_names_differ(metrics: list[tuple[Metric, bool]]) -> None:
    """Rename what is there twice, as Keras does, to mse, weighted_mse, mse_1: logs go by name."""
    taken = {"loss"}
    for metric, weighted in metrics:
        name, number = metric.name, 0
        if weighted and name in taken:
            metric.name = f"weighted_{name}"
        while metric.name in taken:
            number += 1
            metric.name = f"{name}_{number}"
        taken.add(metric.name)


def _check_variables(model: Network, strategy: Strategy) -> None:
    for variable in model.variables:
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
    for one, part, base in parts:
        if isinstance(part, base) and part._strategy is not strategy:
            kind = one.split()[-1]
            raise ValueError(
                f"{kind.capitalize()} ({part}) passed to `model.compile` was created inside a "
                f"different distribution strategy scope than the model. All {kind}s must be "
                "created in the same distribution strategy scope as the model (in this case "
                f"{strategy}). If you pass in a string identifier for {one} to compile, the {kind} "
                "will automatically be created in the correct distribution strategy scope."
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
        yield
    finally:
        _running.remove(entry)


def what_runs(model: Any) -> str | None:
    """Return the name of the method that a model runs, the outermost one; None: it is at rest."""
    return next((method for each, method in _running if each is model), None)


refuse_reset_where(lambda: f"a running `{_running[0][1]}`" if _running else None)
