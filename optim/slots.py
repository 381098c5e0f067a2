"""What an optimizer keeps beside each variable: its slots.

They are mirrored as the variable is, and all of a step's are made or none.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from mirrored import _overrides, devices, ops
from mirrored._naming import snake_case, unique_name
from mirrored.distribute import get_strategy
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.program.variable_creation import ruled_by
from mirrored.variables import Variable

Slots = dict[int, tuple[Variable, tuple[Variable, ...]]]

SAME_SCOPE = "Create the model and its optimizer inside the same `with strategy.scope():`."


class SlotOwner(_overrides.Subclassable):
    """Keeps slots by variable; `Optimizer` says what for."""

    def __init__(self, name: str | None) -> None:
        """Have none yet; they belong to the strategy that is in force now."""
        self.name = name or unique_name(snake_case(type(self).__name__))
        self._strategy = get_strategy()
        self._slots: Slots = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_slots": list(self._slots.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Slots are known by their variables' identities, which are others now.
        self._slots = {id(variable): (variable, slots) for variable, slots in state["_slots"]}

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The names of the values that are kept for each variable beside it."""
        return ()

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return the shape of a slot and the number that it is full of before the first step.

        None in the place of the number: it begins as the variable itself.

        Args:
            name: One of the variable's `kept_names`.
            shape: The shape of the variable that it is kept for.
        """
        del name
        return shape, 0.0

    def slot_names_for(self, variable: Variable) -> tuple[str, ...]:
        """Return those of `slot_names` that a variable has: all, unless its rule is another.

        Args:
            variable: The variable.
        """
        del variable
        return self.slot_names

    @property
    def beside_names(self) -> tuple[str, ...]:
        """The names of what is kept for each variable behind the slots of the rule."""
        return ()

    def kept_names(self, variable: Variable) -> tuple[str, ...]:
        """Return the names of all that is kept for a variable, whoever asks for it.

        Args:
            variable: The variable.
        """
        return self._names(variable)

    def _names(self, variable: Variable) -> tuple[str, ...]:
        return (*self.slot_names_for(variable), *self.beside_names)

    def kept_shape(self, variable: Variable, name: str) -> Shape:
        """Return the shape of what is kept for a variable.

        Args:
            variable: The variable.
            name: One of its `kept_names`.
        """
        return self.slot_start(name, variable.shape)[0]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of `variables`, equal on every replica, where they have none yet.

        Raises:
            ValueError: A variable was made in another strategy's scope than this optimizer, or
                `slot_names` has names that its slots were made without.
        """
        given = list(variables)
        for variable in given:
            names = self._names(variable)
            if len(self._slots.get(id(variable), (variable, names))[1]) < len(names):
                raise ValueError(
                    f"The optimizer {self.name} has slots for {variable.name} that were made "
                    f"before its settings asked for {names}. Make a new optimizer, with these "
                    "settings from the start."
                )
        new = [each for each in given if id(each) not in self._slots]
        for variable in new:
            if not self._strategy.owns(variable):
                raise ValueError(
                    f"Variable ({variable.name}) was not created in the distribution strategy "
                    f"scope of ({self._strategy}), which is that of the optimizer {self.name}. "
                    f"{SAME_SCOPE}"
                )
        made = [(v, tuple(self._slot(v, name) for name in self._names(v))) for v in new]
        # All of them or none: the device may have no room for the last one.
        self._slots.update({id(variable): (variable, slots) for variable, slots in made})

    def build_for(self, variables: Sequence[Variable], among: Sequence[Variable]) -> None:
        """Make the slots for a step.

        Args:
            variables: The variables that it updates.
            among: Those that are trained, of which some may have no gradient.
        """
        del among
        self.build(variables)

    def build_from_values(self, variables: Sequence[Variable]) -> None:
        """Make the slots that begin as their variables, which layers may write in the step.

        Args:
            variables: The variables that are trained.
        """
        new = [each for each in variables if id(each) not in self._slots]
        begun = [each for each in new if self._begins_as(each)]
        if begun:
            self.build(begun)

    def _begins_as(self, variable: Variable) -> bool:
        starts = (self._start_of(name, variable.shape) for name in self._names(variable))
        return any(number is None for _, number in starts)

    @property
    def built(self) -> bool:
        """Whether it has been told of variables, by `build` or by a first step."""
        return bool(self._slots)

    def slots(self) -> Slots:
        """Return each variable that has slots, with them, by the variable's identity."""
        return dict(self._slots)

    def restore_slots(self, slots: Slots) -> None:
        """Have the slots that `slots` returned before, and no others."""
        self._slots = dict(slots)

    def _slots_of(self, variable: Variable) -> tuple[Variable, ...]:
        return self._slots[id(variable)][1]

    @property
    def _slot_groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of slots that lie together for each variable, before the next group's for all."""
        return (self.slot_names,)

    def _ordered_slots(self) -> list[Variable]:
        """Return all slots in Keras' order: what is kept beside the rule's comes before these."""
        named = [
            dict(zip(self._names(variable), slots, strict=True))
            for variable, slots in self._slots.values()
        ]
        groups = (*[(name,) for name in self.beside_names], *self._slot_groups)
        return [each[name] for group in groups for each in named for name in group if name in each]

    def _start_of(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return what `slot_start` does, of what is kept beside the rule's slots too."""
        return self.slot_start(name, shape)

    def _slot(self, variable: Variable, name: str) -> Variable:
        shape, number = self._start_of(name, variable.shape)

        def start() -> Tensor:
            if number is None:
                return variable.read_value()
            if number == 0:
                return ops.zeros(shape, variable.dtype)
            return ops.fill(shape, ops.constant(number, variable.dtype))

        plain = variable.name.removesuffix(":0").replace("/", "_")
        # It is kept with its variable: what makes slots may be recorded again.
        with ruled_by(None), self._strategy.scope(), devices.device(variable.device):
            slot = Variable(start, trainable=False, name=f"{self.name}/{plain}_{name}")
        slot._traits.path = f"{self.name}/{variable.path.replace('/', '_')}_{name}"
        return slot
