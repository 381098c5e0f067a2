"""Optimizers around others, which keep the slots and have the rules.

Their own step calls those of the others, and is one step: all of it is written, or nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from mirrored._reprs import made_with
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.ops.spec import Shape
from mirrored.optim.optimizer import Optimizer
from mirrored.optim.slots import SAME_SCOPE, Slots
from mirrored.optim.updates import Target, Values
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

    def _parts(self, variables: Sequence[Variable]) -> list[tuple[Optimizer, list[int]]]:
        """Return the optimizers that have some of the variables, with the places of these."""
        places: dict[int, list[int]] = {}
        for i, each in enumerate(variables):
            places.setdefault(id(self._inner_of(each)), []).append(i)
        return [(each, places[id(each)]) for each in self._inner if id(each) in places]

    # ------------------------------------------------------------------ what the others keep

    @property
    def within(self) -> tuple[Optimizer, ...]:
        """This optimizer, and those inside."""
        return (self, *(inner for each in self._inner for inner in each.within))

    @property
    def variables(self) -> list[Variable]:
        """Its own variables, and those of the optimizers inside, one after the other."""
        return [*super().variables, *(v for each in self._inner for v in each.variables)]

    @property
    def built(self) -> bool:
        """Whether it has been told of variables, by `build` or by a first step."""
        return any(each.built for each in self._inner)

    @property
    def keeps_averages(self) -> bool:
        """Whether an optimizer inside keeps moving averages."""
        return any(each.keeps_averages for each in self._inner)

    def kept_names(self, variable: Variable) -> tuple[str, ...]:
        """Return the names of all that is kept for a variable; see `Optimizer`."""
        return self._inner_of(variable).kept_names(variable)

    def kept_shape(self, variable: Variable, name: str) -> Shape:
        """Return the shape of what is kept for a variable; see `Optimizer`."""
        return self._inner_of(variable).kept_shape(variable, name)

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of `variables`, where they have none yet; see `Optimizer`."""
        given = list(variables)
        for inner, places in self._parts(given):
            inner.build([given[i] for i in places])
        self._know(given)

    def build_for(self, variables: Sequence[Variable], among: Sequence[Variable]) -> None:
        """Make the slots for a step; see `Optimizer`."""
        updated = {id(inner): places for inner, places in self._parts(variables)}
        for inner, places in self._parts(among):
            own = [variables[i] for i in updated.get(id(inner), ())]
            inner.build_for(own, [among[i] for i in places])
        self._know(among)

    def build_from_values(self, variables: Sequence[Variable]) -> None:
        """Make the slots that begin as their variables; see `Optimizer`."""
        for inner, places in self._parts(variables):
            inner.build_from_values([variables[i] for i in places])

    @property
    def builds_once(self) -> bool:
        """Whether the `build` of an optimizer inside has to be called with all variables."""
        return not self._inner or any(each.builds_once for each in self._inner)

    def slots(self) -> Slots:
        """Return each variable that has slots, with them, by the variable's identity."""
        return {key: slots for each in self._inner for key, slots in each.slots().items()}

    def restore_slots(self, slots: Slots) -> None:
        """Have the slots that `slots` returned before, and no others."""
        for each in self._inner:
            own = each.slots()
            each.restore_slots({key: slots[key] for key in own if key in slots})

    def averages(self) -> list[tuple[Variable, Variable]]:
        """Return each variable that was updated, with its average, where one is kept."""
        return [pair for each in self._inner for pair in each.averages()]

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

    # ------------------------------------------------------------------ a step of the others

    def pack(self, variables: Sequence[Variable]) -> None:
        """Bring variables together on every replica; see `Optimizer`."""
        for inner, places in self._parts(variables):
            inner.pack([variables[i] for i in places])

    def _inner_updates(
        self, replica: int, variables: Sequence[Variable], gradients: Buckets
    ) -> Values:
        """Return the new values of one replica's copies, of all optimizers inside."""
        values: Values = []
        for inner, places in self._parts(variables):
            taken = gradients.renumbered(dict(enumerate(places)))
            values += inner._updates(replica, [variables[i] for i in places], taken)
        return values

    def _inner_targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        """Return what `_inner_updates` has new values for, in its order."""
        targets: list[Target] = []
        for inner, places in self._parts(variables):
            targets += inner._targets(replica, [variables[i] for i in places])
        return targets
