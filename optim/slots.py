"""What an optimizer keeps beside each variable: its slots.

They are mirrored as the variable is, and all of a step's are made or none.
"""

from collections.abc import Iterable
from typing import Any

from mirrored import _overrides, devices, ops
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
        self.name = name or type(self).__name__.lower()
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

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float]:
        """Return the shape of a slot and the number that it is full of before the first step.

        Args:
            name: One of `kept_names`.
            shape: The shape of the variable that it is kept for.
        """
        del name
        return shape, 0.0

    @property
    def kept_names(self) -> tuple[str, ...]:
        """The names of all that is kept for each variable, whoever asks for it."""
        return self.slot_names

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the slots of `variables`, equal on every replica, where they have none yet.

        Raises:
            ValueError: A variable was made in another strategy's scope than this optimizer, or
                `slot_names` has names that its slots were made without.
        """
        given, names = list(variables), self.kept_names
        for variable in given:
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
        made = [(each, tuple(self._slot(each, name) for name in names)) for each in new]
        # All of them or none: the device may have no room for the last one.
        self._slots.update({id(variable): (variable, slots) for variable, slots in made})

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

    def _slot(self, variable: Variable, name: str) -> Variable:
        shape, number = self.slot_start(name, variable.shape)

        def start() -> Tensor:
            if number == 0:
                return ops.zeros(shape, variable.dtype)
            return ops.fill(shape, ops.constant(number, variable.dtype))

        plain = variable.name.removesuffix(":0").replace("/", "_")
        # It is kept with its variable: what makes slots may be recorded again.
        with ruled_by(None), self._strategy.scope(), devices.device(variable.device):
            return Variable(start, trainable=False, name=f"{self.name}/{plain}_{name}")
