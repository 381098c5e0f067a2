"""The facts that a run of `fit`, `evaluate` or `predict` looks up once, when it begins."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mirrored import _nest
from mirrored.layers.layer import Layer, walk_with
from mirrored.layers.weights import find
from mirrored.optim import Optimizer
from mirrored.training.metrics import Metric
from mirrored.training.model_steps import SteppedNetwork
from mirrored.training.running_means import is_mean
from mirrored.variables import Variable

# The methods that a model overrides to have custom steps, by the kind of step.
_FOR_ALL = ("compute_loss", "compute_metrics", "get_metrics_result", "reset_metrics", "metrics")
_METHODS = {
    "train": ("train_step", *_FOR_ALL),
    "test": ("test_step", *_FOR_ALL),
    "predict": ("predict_step",),
}


class RunPlan:
    """The facts about a model that stay as they are while it runs.

    Args:
        model: The model, which is compiled but for prediction.

    Attributes:
        model: The model.
        strategy: The strategy that it runs in.
        is_shared: Whether replicas run in other processes too.
        layers: The model and the layers inside it, with the variables that are held by each.
    """

    layers: list[tuple[Layer, list[Variable]]]

    def __init__(self, model: SteppedNetwork) -> None:
        self.model, self.strategy = model, model.distribute_strategy
        self.is_shared = self.strategy.is_shared
        self.look_up()

    def look_up(self) -> None:
        """Look the facts up again, after the model was built."""
        self._custom: dict[str, bool] = {}
        self._walk()

    def _walk(self) -> None:
        self._was_built = self.model.built  # Else layers may get metrics and weights yet.
        self.layers, self._has_metrics = [], False
        kinds: Any = (Variable, Metric)
        parts: list[Any]
        for layer, parts in walk_with(self.model, kinds):
            variables = [part for part in parts if isinstance(part, Variable)]
            self._has_metrics = self._has_metrics or len(variables) < len(parts)
            self.layers.append((layer, variables))

    @cached_property
    def optimizers(self) -> Sequence[Optimizer]:
        """The optimizers of the model."""
        return optimizers_of(self.model)

    def is_custom(self, kind: str) -> bool:
        """Return whether a step of a kind is the model's own, or updates metrics of its own.

        It is too where `compile` was called without a loss.

        Args:
            kind: "train", "test" or "predict".
        """
        if kind not in self._custom:
            if not self._was_built:
                self._walk()
            self._custom[kind] = self._overrides(kind) or (
                kind != "predict" and self._has_custom_parts()
            )
        return self._custom[kind]

    def _overrides(self, kind: str) -> bool:
        cls, own = type(self.model), vars(self.model)
        for name in _METHODS[kind]:
            if name in own or getattr(cls, name) is not getattr(SteppedNetwork, name):
                return True
        return False

    def _has_custom_parts(self) -> bool:
        compilation = self.model.required_compilation()
        if not compilation.has_loss:
            return True  # Then there is what layers add: whether they do shows in the step.
        if self._has_metrics:
            return True
        metrics = compilation.given[2:]
        return metrics != (None, None) and not all(map(is_mean, _nest.flatten(metrics)))


def optimizers_of(model: Any) -> list[Optimizer]:
    """Return the optimizers of a model: that of `compile`, and those in its attributes.

    Args:
        model: The model.
    """
    held = find(vars(model).values(), Optimizer)
    compiled = model.optimizer
    optimizers = held if compiled is None else [compiled, *held]
    return list({id(optimizer): optimizer for optimizer in optimizers}.values())
