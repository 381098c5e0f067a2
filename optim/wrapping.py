"""Optimizers around others, which keep the slots and have the rules.

Their own step calls those of the others, and is one step: all of it is written, or nothing.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar, NoReturn, Self

from mirrored import _overrides, devices, ops
from mirrored._arguments import explained
from mirrored._naming import name_scope
from mirrored._reprs import made_with
from mirrored._types import TensorLike
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import LearningRate, check_number
from mirrored.optim.optimizer import SETTINGS, Optimizer, read_config
from mirrored.optim.slots import SAME_SCOPE, Kept, Slots
from mirrored.optim.updates import Rule, Target, Values
from mirrored.serialization.constructor_arguments import arguments_of
from mirrored.variables import Variable


class Wrapping(Optimizer):
    """Base of such optimizers: a subclass says which one is for which variable."""

    _inner: list[Optimizer]

    def __repr__(self) -> str:
        return made_with(self, never=("name", "learning_rate"))  # Those inside have theirs.

    def _wrap(self, optimizer: Any) -> None:
        """Have an optimizer inside.

        Raises:
            TypeError: It is none.
            ValueError: It was made in another strategy's scope.
        """
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__} needs an `Optimizer`. Received: {optimizer!r}")
        if optimizer._strategy is not self._strategy:
            raise ValueError(
                f"Optimizer ({optimizer.name}) was not created in the distribution strategy scope "
                f"of ({self._strategy}), in which {self.name} was created. {SAME_SCOPE}"
            )
        self._inner.append(optimizer)

    def _inner_of(self, variable: Variable) -> Optimizer:
        """Return the optimizer of a variable."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an optimizer like it, by name, as plain values."""
        return arguments_of(self)

    @property
    def slots(self) -> "InnerSlots":
        """What the optimizers inside keep for each variable."""
        return InnerSlots(self)

    @property
    def rule(self) -> Rule:
        """How the optimizers inside compute a step."""
        return InnerRules(self)

    @property
    def within(self) -> tuple[Optimizer, ...]:
        """This optimizer, and those inside."""
        return (self, *(optimizer for inner in self._inner for optimizer in inner.within))

    @property
    def variables(self) -> list[Variable]:
        """Its own variables, and those of the optimizers inside, one after the other."""
        return [*super().variables, *(v for inner in self._inner for v in inner.variables)]

    @property
    def built(self) -> bool:
        """Whether it has been told of variables, by `build` or by a first step."""
        return any(inner.built for inner in self._inner)

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> NoReturn:
        """Refuse: the optimizers inside take weight away.

        Args:
            var_list: Variables.
            var_names: Regular expressions.
        """
        raise ValueError(
            f"{type(self).__name__} takes no weight away. Received: {var_list or var_names}. Call "
            "`exclude_from_weight_decay` of the optimizer inside."
        )


class InnerSlots(Slots):
    """The slots of the optimizers inside another one."""

    _optimizer: Wrapping

    def parts(self, variables: Sequence[Variable]) -> list[tuple[Optimizer, list[int]]]:
        """Return the optimizers that have some of the variables, with the places of these."""
        places: dict[int, list[int]] = {}
        for i, variable in enumerate(variables):
            places.setdefault(id(self._optimizer._inner_of(variable)), []).append(i)
        return [(inner, places[id(inner)]) for inner in self._all if id(inner) in places]

    @property
    def _all(self) -> list[Optimizer]:
        return self._optimizer._inner

    def names(self, variable: Variable) -> tuple[str, ...]:
        """Return the names of all that is kept for a variable."""
        return self._optimizer._inner_of(variable).slots.names(variable)

    def shape(self, variable: Variable, name: str) -> Shape:
        """Return the shape of what is kept for a variable under one of its `names`."""
        return self._optimizer._inner_of(variable).slots.shape(variable, name)

    def snapshot(self) -> Kept:
        """Return each variable that has slots, with them, by the variable's identity."""
        return {key: row for inner in self._all for key, row in inner.slots.snapshot().items()}

    def restore(self, kept: Kept) -> None:
        """Have the slots that `snapshot` returned before, and no others."""
        for inner in self._all:
            own = inner.slots.snapshot()
            inner.slots.restore({key: kept[key] for key in own if key in kept})

    @property
    def keeps_averages(self) -> bool:
        """Whether an optimizer inside keeps moving averages."""
        return any(inner.slots.keeps_averages for inner in self._all)

    def averages(self) -> list[tuple[Variable, Variable]]:
        """Return each variable that was updated, with its average, where one is kept."""
        return [pair for inner in self._all for pair in inner.slots.averages()]

    def build(self, variables: Sequence[Variable]) -> None:
        """Make the slots of variables, where they have none yet."""
        for inner, places in self.parts(variables):
            inner.build([variables[i] for i in places])
        self._remember(variables)

    @property
    def builds_once(self) -> bool:
        """Whether the `build` of an optimizer inside has to be called with all variables."""
        return not self._all or any(inner.slots.builds_once for inner in self._all)

    def build_for(self, variables: Sequence[Variable], among: Sequence[Variable]) -> None:
        """Make the slots for a step; see `Slots`."""
        updated = {id(inner): places for inner, places in self.parts(variables)}
        for inner, places in self.parts(among):
            own = [variables[i] for i in updated.get(id(inner), ())]
            inner.slots.build_for(own, [among[i] for i in places])
        self._remember(among)

    def build_from_values(self, variables: Sequence[Variable]) -> None:
        """Make the slots that begin as their variables; see `Slots`."""
        for inner, places in self.parts(variables):
            inner.slots.build_from_values([variables[i] for i in places])


class InnerRules(Rule):
    """The rules of the optimizers inside another one, which counts its own steps."""

    _slots: InnerSlots

    def pack(self, variables: Sequence[Variable]) -> None:
        """Bring variables together on every replica; see `Rule`."""
        for inner, places in self._slots.parts(variables):
            inner.rule.pack([variables[i] for i in places])

    def targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        """Return what `updates` has new values for, in its order."""
        targets: list[Target] = [copy_of(self.optimizer._iterations, replica)]
        return targets + self._inner_targets(replica, variables)

    def updates(self, replica: int, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return the new values of one replica's copies."""
        iterations = copy_of(self.optimizer._iterations, replica)
        with devices.device(iterations.device):
            taken = iterations.read_value() + 1
        return [(iterations, taken), *self._inner_updates(replica, variables, gradients)]

    def _inner_targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        targets: list[Target] = []
        for inner, places in self._slots.parts(variables):
            targets += inner.rule.targets(replica, [variables[i] for i in places])
        return targets

    def _inner_updates(
        self, replica: int, variables: Sequence[Variable], gradients: Buckets
    ) -> Values:
        values: Values = []
        for inner, places in self._slots.parts(variables):
            own = gradients.renumbered(dict(enumerate(places)))
            values += inner.rule.updates(replica, [variables[i] for i in places], own)
        return values


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
    __overrides__ = _overrides.OPTIMIZER  # By its subclasses: it has a `scale_loss` of its own.

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

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create it again, in Keras' order."""
        return {"name": self.name, **super().get_config()}

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
    def learning_rate(self, value: LearningRate) -> None:
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

    def scale_loss(self, loss: TensorLike) -> Any:
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


@explained
class OptimizerMap(MutableMapping[str, Optimizer]):
    """Which optimizer variables have, by their names.

    A name is looked for among the keys, then among what these match whole as regular expressions.
    A variable's name is that of its layer and its own, as in "dense/kernel".

    Args:
        default_optimizer: The optimizer of variables without a key.
        optimizer_map: Optimizers by key; None: no keys yet.

    Raises:
        TypeError: The first is no optimizer, or the second no dict.

    Example:
        >>> import mirrored as mr
        >>> by_name = mr.optim.OptimizerMap(mr.optim.SGD(), {"encoder/.*": mr.optim.Adam()})
        >>> by_name["encoder/kernel"].name, by_name["decoder/kernel"].name
        ('adam', 'sgd')
    """

    def __init__(
        self, default_optimizer: Optimizer, optimizer_map: dict[str, Optimizer] | None = None
    ) -> None:
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(
                f"default_optimizer must be an Optimizer instance. Received: {default_optimizer!r}"
            )
        if optimizer_map is not None and not isinstance(optimizer_map, dict):
            raise TypeError(f"optimizer_map must be a dictionary. Received: {optimizer_map!r}")
        self._default_optimizer = default_optimizer
        self.optimizer_map = optimizer_map or {}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name, as plain values."""
        return arguments_of(self)

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Return one that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that it may name, by these names.
        """
        return cls(**read_config(config, ("default_optimizer", "optimizer_map"), custom_objects))

    @property
    def default_optimizer(self) -> Optimizer:
        """The optimizer of variables without a key."""
        return self._default_optimizer

    def __getitem__(self, key: str) -> Optimizer:
        """Return the optimizer of a name."""
        if key in self.optimizer_map:
            return self.optimizer_map[key]
        matches = [pattern for pattern in self.optimizer_map if re.fullmatch(pattern, key)]
        if len(matches) > 1:
            raise ValueError(
                f"Multiple optimizers assigned to variable {key}. Received: the keys {matches}, "
                "which all match it."
            )
        return self.optimizer_map[matches[0]] if matches else self._default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        """Give what a key matches an optimizer."""
        if key in self.optimizer_map:
            raise ValueError(
                f"'{key}' already exists in the OptimizerMap with value "
                f"{self.optimizer_map[key]}. Please make sure to not use duplicated keys."
            )
        if not isinstance(key, str):
            raise ValueError(f"key must be a string. Received: {key!r}")
        _check_optimizer(optimizer, "optimizer")
        self.optimizer_map[key] = optimizer

    def __delitem__(self, key: str) -> None:
        """Take a key out."""
        del self.optimizer_map[key]

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.optimizer_map)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self.optimizer_map)

    def __call__(self, variable: Variable) -> Optimizer:
        """Return the optimizer of a variable."""
        return self[variable.name.removesuffix(":0")]


class MultiOptimizer(Wrapping):
    """Has each variable updated by one of several optimizers, all of them in one step.

    `learning_rate` is that of each of `optimizers`, and there is none of all together.

    Args:
        optimizer_map: An `OptimizerMap`; or a function, which is given a variable and returns its
            optimizer, once for each variable.
        loss_scale_factor: That of all of them, whatever they were made with; see `Optimizer`.
        name: What messages call it; None: the class's name in snake case.

    Raises:
        TypeError: `optimizer_map` cannot be called.
        ValueError: One of them is itself around others, or made in another strategy's scope.

    Example:
        >>> import mirrored as mr
        >>> kernel, bias = mr.Variable(1.0, name="kernel"), mr.Variable(1.0, name="bias")
        >>> slow, fast = mr.optim.SGD(0.25), mr.optim.SGD(0.5)
        >>> optimizer = mr.optim.MultiOptimizer(mr.optim.OptimizerMap(slow, {"bias": fast}))
        >>> _ = optimizer.apply_gradients([(mr.constant(1.0), v) for v in (kernel, bias)])
        >>> float(kernel), float(bias)
        (0.75, 0.5)
    """

    _configured = ("optimizer_map",)

    def __init__(
        self,
        optimizer_map: OptimizerMap | Callable[[Variable], Optimizer],
        loss_scale_factor: float | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(optimizer_map):
            raise TypeError(
                "`optimizer_map` must be an OptimizerMap, or a function that returns the optimizer "
                f"of a variable. Received: {optimizer_map!r}"
            )
        self._inner = []
        self._chosen: dict[int, tuple[Variable, Optimizer]] = {}
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        self.optimizer_map = optimizer_map
        if isinstance(optimizer_map, OptimizerMap):
            for optimizer in (*optimizer_map.values(), optimizer_map.default_optimizer):
                self._take(optimizer)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_chosen": list(self._chosen.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._chosen = {id(variable): (variable, chosen) for variable, chosen in state["_chosen"]}

    def _take(self, optimizer: Any) -> None:
        """Have an optimizer inside, once."""
        if not any(optimizer is inner for inner in self._inner):
            _check_optimizer(optimizer, "An optimizer of a MultiOptimizer")
            self._wrap(optimizer)
            optimizer.loss_scale_factor = self.loss_scale_factor

    def _inner_of(self, variable: Variable) -> Optimizer:
        if id(variable) not in self._chosen:
            optimizer = self.optimizer_map(variable)
            self._take(optimizer)
            self._chosen[id(variable)] = (variable, optimizer)
        return self._chosen[id(variable)][1]

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers inside."""
        return list(self._inner)

    @property
    def loss_scale_factor(self) -> float | None:
        """What losses are multiplied by; all optimizers inside have it."""
        return self._loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, value: float | None) -> None:
        self._loss_scale_factor = value
        for inner in self._inner:
            inner.loss_scale_factor = value

    @property
    def learning_rate(self) -> NoReturn:
        """There is none: each of `optimizers` has its own."""
        raise AttributeError(
            "Learning rate cannot be accessed on a MultiOptimizer. Access the learning rate on the "
            "individual sub-optimizers instead."
        )

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        raise AttributeError(
            "Learning rate cannot be set on a MultiOptimizer. Set the learning rate on the "
            "individual sub-optimizers instead."
        )


def _check_optimizer(optimizer: Any, role: str) -> None:
    """Refuse what cannot be one of several optimizers, as Keras does."""
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"{role} must be an Optimizer instance. Received: {optimizer!r}")
    if isinstance(optimizer, LossScaleOptimizer | MultiOptimizer):
        raise ValueError(f"{role} cannot be {type(optimizer).__name__}. Received: {optimizer!r}")
