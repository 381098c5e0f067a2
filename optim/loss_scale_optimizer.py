"""Losses that are scaled so that small gradients do not become zero, by a factor that adapts.

Where a gradient is not finite, that step is left out, and the factor halved.
"""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from mirrored import _overrides, devices, ops
from mirrored._arguments import explained
from mirrored._naming import name_scope
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import check_number
from mirrored.optim.optimizer import SETTINGS, Optimizer
from mirrored.optim.updates import Rule, Target, Values
from mirrored.optim.wrapping import InnerRules, Wrapping
from mirrored.variables import Variable


@explained
class LossScaleOptimizer(Wrapping):
    """Scales losses for another optimizer, by a factor that it adapts while it trains.

    Losses are multiplied by the factor and gradients divided by it. A step whose gradients are not
    all finite, on whichever replica, changes nothing and halves the factor; after
    `dynamic_growth_steps` steps without such a one it doubles. A loss that is not finite is no
    error then: `fit` shows it in its logs and goes on.

    Args:
        inner_optimizer: The optimizer that takes the steps; its `loss_scale_factor` becomes None.
        initial_scale: The factor at first, above 0.
        dynamic_growth_steps: How many steps without infinite gradients double the factor.
        name: What messages call it; None: the class's name in snake case.
        **settings: Those of other optimizers, as older configurations have them; they say nothing.

    Raises:
        TypeError: `inner_optimizer` is no optimizer.
        ValueError: The factor is not above 0, the optimizer was made in another strategy's scope,
            or a setting is that of the inner optimizer.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> optimizer = mr.optim.LossScaleOptimizer(mr.optim.SGD(0.5), initial_scale=8.0)
        >>> for factor in (1.0, float("inf")):
        ...     with mr.GradientTape() as tape:
        ...         loss = optimizer.scale_loss(v * factor)
        ...     _ = optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        >>> float(v), float(optimizer.dynamic_scale), int(optimizer.iterations)
        (0.5, 4.0, 1)
    """

    skips_non_finite: ClassVar[bool] = True
    _configured = ("inner_optimizer",)
    _arguments = ("name", "inner_optimizer", "initial_scale", "dynamic_growth_steps")
    _never_called = _overrides.OPTIMIZER  # By its subclasses: it has a `scale_loss` of its own.

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **settings: Any,
    ) -> None:
        _check_settings(settings)
        super().__init__(0.0, name=name)
        self.initial_scale = check_number("initial_scale", initial_scale, above_zero=True)
        self.dynamic_growth_steps = dynamic_growth_steps
        self._inner = []
        self._wrap(inner_optimizer)
        inner_optimizer.loss_scale_factor = None  # Or gradients would be scaled twice.
        with name_scope(""):
            self.step_counter = Variable(0, trainable=False, name="step_counter", dtype=ops.int64)
            self.dynamic_scale = Variable(
                self.initial_scale, trainable=False, name="dynamic_scale", dtype=ops.float32
            )

    @property
    def inner_optimizer(self) -> Optimizer:
        """The optimizer that takes the steps."""
        return self._inner[0]

    def _inner_of(self, variable: Variable) -> Optimizer:
        return self._inner[0]

    @property
    def rule(self) -> Rule:
        """How the inner optimizer computes a step, from gradients of the scaled loss."""
        return ScaledRule(self)

    @property
    def variables(self) -> list[Variable]:
        """Its own variables, and those of the inner optimizer."""
        own = super(Wrapping, self).variables
        return [*own, self.step_counter, self.dynamic_scale, *self.inner_optimizer.variables]

    @property
    def learning_rate(self) -> Any:
        """That of the inner optimizer, which may be set too."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def iterations(self) -> Any:
        """The number of steps that the inner optimizer took."""
        return self.inner_optimizer.iterations

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Set variables to their averages, where the inner optimizer keeps some.

        Args:
            var_list: The variables.
        """
        self.inner_optimizer.finalize_variable_values(var_list)

    def scale_loss(self, loss: Any) -> Any:
        """Return a loss times the factor, inside the tape; `apply_gradients` undoes it.

        Args:
            loss: A scalar.
        """
        loss = ops.convert_to_tensor(loss)
        return loss * ops.cast(self.dynamic_scale.read_value(), loss.dtype)


class ScaledRule(InnerRules):
    """The inner optimizer's rule, for gradients that are scaled, and finite or not."""

    optimizer: LossScaleOptimizer

    def targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        """Return what `updates` has new values for, in its order."""
        own = (self.optimizer.step_counter, self.optimizer.dynamic_scale)
        return [copy_of(v, replica) for v in own] + self._inner_targets(replica, variables)

    def updates(self, replica: int, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return the new values of one replica's copies; the old ones where it is left out."""
        counter, scale, *targets = self.targets(replica, variables)
        before = [target.read_value() for target in targets]
        with devices.device(scale.device):
            steps, factor = counter.read_value(), scale.read_value()
            finite = _all_finite(gradients)
            grows = ops.equal(steps, self.optimizer.dynamic_growth_steps - 1)
            zero = ops.zeros((), steps.dtype)
            counted = ops.where(finite, ops.where(grows, zero, steps + 1), zero)
            scaled = ops.where(finite, ops.where(grows, factor * 2.0, factor), factor * 0.5)
        unscaled = gradients.mapped(lambda vector: vector / ops.cast(factor, vector.dtype))
        values: Values = [(counter, counted), (scale, scaled)]
        inner = self._inner_updates(replica, variables, unscaled)
        for (target, new), old in zip(inner, before, strict=True):
            with devices.device(target.device):
                values.append((target, ops.where(finite, new, old)))
        return values


def _all_finite(gradients: Buckets) -> Tensor:
    flags = [ops.reduce_all(ops.is_finite(vector)) for vector in gradients.vectors()]
    return flags[0] if len(flags) == 1 else ops.reduce_all(ops.stack(flags))


def _check_settings(settings: dict[str, Any]) -> None:
    """Refuse settings that are the inner optimizer's, as Keras does."""
    if not settings.pop("dynamic", True):
        raise ValueError(
            "LossScaleOptimizer no longer supports `dynamic=False`. Instead, simply set "
            "`loss_scale_factor` directly on the `inner_optimizer`."
        )
    defaults = inspect.signature(Optimizer).parameters
    for name in SETTINGS:  # Older configurations have them, and Keras reads those.
        default = defaults[name].default
        if settings.pop(name, default) != default:
            raise ValueError(
                f"LossScaleOptimizer does not support `{name}`. Instead, set `{name}` on the "
                "`inner_optimizer`."
            )
    if settings:
        raise ValueError(
            f"LossScaleOptimizer does not support arguments: `{'`, `'.join(settings)}`."
        )
