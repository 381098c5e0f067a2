"""Optimizers around others, which keep the slots and have the rules.

Their own step calls those of the others, and is one step: all of it is written, or nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn

from mirrored import devices
from mirrored._reprs import made_with
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops.spec import Shape
from mirrored.optim.optimizer import Optimizer
from mirrored.optim.slots import SAME_SCOPE, Kept, Slots
from mirrored.optim.updates import Rule, Target, Values
from mirrored.variables import Variable


class Wrapping(Optimizer):
    """Base of such optimizers: a subclass says which one is for which variable."""

    _inner: list[Optimizer]
    _arguments: ClassVar[tuple[str, ...]] = ()  # Those of its constructor, in Keras' order.

    def __repr__(self) -> str:
        return made_with(self, never=("name", "learning_rate"))  # Those inside have theirs.

    def _wrap(self, optimizer: Any) -> None:
        """Have an optimizer inside.

        Raises:
            TypeError: It is none.
            ValueError: It was made in another strategy's scope.
        """
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__} is made around an `Optimizer`. Received: {optimizer!r}"
            )
        if optimizer._strategy is not self._strategy:
            raise ValueError(
                f"Optimizer ({optimizer.name}) was not created in the distribution strategy scope "
                f"of ({self._strategy}), which is that of {self.name}. {SAME_SCOPE}"
            )
        self._inner.append(optimizer)

    def _inner_of(self, variable: Variable) -> Optimizer:
        """Return the optimizer of a variable."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an optimizer like it, by name, as plain values."""
        config = super().get_config()
        return {name: config[name] for name in self._arguments}

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
