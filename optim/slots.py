"""What an optimizer keeps for each variable: the slots of its rule, and more.

They are mirrored as the variable is, and all of a step's are made or none.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mirrored import _nest, devices, ops
from mirrored._naming import free_name
from mirrored.ops import Tensor
from mirrored.ops.hooks import only, recorded_by
from mirrored.ops.spec import Shape
from mirrored.optim.transforms import Accumulation, MovingAverage
from mirrored.program.variable_access import ruled_by
from mirrored.variables import Variable

if TYPE_CHECKING:
    from mirrored.optim.optimizer import Optimizer

Kept = dict[int, tuple[Variable, tuple[Variable, ...]]]

SAME_SCOPE = "Create the model and its optimizer inside the same `with strategy.scope():`."
_HOLDERS = (Variable, list, tuple, dict)


class Slots:
    """The slots of an optimizer: their names and shapes, how they are made, kept and taken back.

    Behind the slots of the rule a variable has those of moving averages and of accumulation, and
    then the variables that a subclass added for it.

    Args:
        optimizer: The optimizer, in whose attributes they are.
    """

    def __init__(self, optimizer: "Optimizer") -> None:
        self._optimizer = optimizer

    @property
    def accumulation(self) -> Accumulation:
        """How gradients of several steps become one."""
        return Accumulation(self._optimizer.gradient_accumulation_steps)

    @property
    def transforms(self) -> list[MovingAverage | Accumulation]:
        """What has slots behind those of the rule."""
        optimizer, accumulation = self._optimizer, self.accumulation
        own: list[MovingAverage | Accumulation] = [accumulation] * bool(accumulation.steps)
        if optimizer.use_ema:
            own.insert(0, MovingAverage(optimizer.ema_momentum, optimizer.ema_overwrite_frequency))
        return own

    # ------------------------------------------------------------------ names and shapes

    def names(self, variable: Variable) -> tuple[str, ...]:
        """Return the names of all that is kept for a variable."""
        return (*self._own_names(variable), *self._added(variable))

    def shape(self, variable: Variable, name: str) -> Shape:
        """Return the shape of what is kept for a variable under one of its `names`."""
        added = self._added(variable)
        if name in added:
            return added[name].shape
        return self._optimizer.slot_start(name, variable.shape)[0]

    def _own_names(self, variable: Variable) -> tuple[str, ...]:
        rules = self._optimizer.slot_names_for(variable)
        return (*rules, *(transform.slot for transform in self.transforms))

    def _added(self, variable: Variable) -> dict[str, Variable]:
        """Return what a subclass added for a variable, by names that differ."""
        added: dict[str, Variable] = {}
        for reference, name, slot in self._optimizer._added:
            if reference is variable:
                added[free_name(name, added)] = slot
        return added

    # ------------------------------------------------------------------ what there is

    def snapshot(self) -> Kept:
        """Return each variable that has slots, with them, by the variable's identity."""
        return {
            key: (variable, (*slots, *self._added(variable).values()))
            for key, (variable, slots) in self._optimizer._slots.items()
        }

    def restore(self, kept: Kept) -> None:
        """Have the slots that `snapshot` returned before, and no others.

        What a subclass's own `build` made is removed where nothing of it was there before.
        """
        if self._optimizer._unbuilt is None:
            self._optimizer._slots = dict(kept)
        elif not kept:
            reset(self._optimizer, self._optimizer._unbuilt)

    def of(self, variable: Variable) -> tuple[Variable, ...]:
        """Return the slots of a variable, without what a subclass added."""
        return self._optimizer._slots[id(variable)][1]

    def of_rule(self, variable: Variable) -> tuple[Variable, ...]:
        """Return the slots that the rule has for a variable."""
        return self.of(variable)[: len(self._optimizer.slot_names_for(variable))]

    def of_transforms(self, variable: Variable) -> tuple[Variable, ...]:
        """Return the slots that lie behind the rule's: an average, a sum of gradients."""
        return self.of(variable)[len(self._optimizer.slot_names_for(variable)) :]

    @property
    def keeps_averages(self) -> bool:
        """Whether `averages` has some, once there was a step."""
        return bool(self._optimizer.use_ema)

    def averages(self) -> list[tuple[Variable, Variable]]:
        """Return each variable that was updated, with its average; none without `use_ema`.

        Example:
            >>> import mirrored as mr
            >>> v = mr.Variable(1.0)
            >>> optimizer = mr.optim.SGD(1.0, use_ema=True, ema_momentum=0.5)
            >>> for _ in range(2):
            ...     _ = optimizer.apply_gradients([(mr.constant(1.0), v)])
            >>> [(float(w), float(average)) for w, average in optimizer.slots.averages()]
            [(-1.0, -0.5)]
        """
        if not self._optimizer.use_ema:
            return []
        kept = self._optimizer._slots.values()
        return [(variable, slots[-len(self.transforms)]) for variable, slots in kept]

    def ordered(self) -> list[Variable]:
        """Return all that is kept in Keras' order: transforms' slots come before the rule's.

        What a subclass made before `build` is at the beginning, and the rest of it at the end.
        """
        named = [
            dict(zip(self._own_names(variable), slots, strict=True))
            for variable, slots in self._optimizer._slots.values()
        ]
        beside = [(transform.slot,) for transform in self.transforms]
        groups = (*beside, *self._optimizer._slot_groups)
        slots = [row[name] for group in groups for row in named for name in group if name in row]
        if not (self._optimizer._added or self._optimizer.rule.by_variable):
            return slots
        early = self._optimizer._early
        known = set(map(id, early))
        return [*early, *slots, *[v for v in self.of_subclass() if id(v) not in known]]

    def of_subclass(self) -> list[Variable]:
        """Return the variables that a subclass added, and those that its attributes hold."""
        optimizer = self._optimizer
        added = [variable for _, _, variable in optimizer._added]
        known = set(map(id, (*added, *optimizer._trainable_variables, *optimizer._undecayed)))
        held = {
            id(value): value
            for name, attribute in vars(optimizer).items()
            if name not in optimizer._base_attributes and isinstance(attribute, _HOLDERS)
            for value in _nest.flatten(attribute)
            if isinstance(value, Variable) and id(value) not in known and not value.trainable
        }
        return [*added, *held.values()]

    # ------------------------------------------------------------------ how they are made

    def build(self, variables: Sequence[Variable]) -> None:
        """Make the slots of variables, equal on every replica, where they have none yet."""
        optimizer = self._optimizer
        if not optimizer._trainable_variables:
            optimizer._early = self.of_subclass()
        new, more = [], len(self.transforms)
        for variable in variables:
            kept = optimizer._slots.get(id(variable))
            if kept is None:
                new.append(variable)
            elif len(kept[1]) < len(optimizer.slot_names_for(variable)) + more:
                raise ValueError(
                    f"The optimizer {optimizer.name} has slots for {variable.name} that were "
                    f"created before its settings needed {self._own_names(variable)}. Create a new "
                    "optimizer with these settings."
                )
        for variable in new:
            if not optimizer._strategy.owns(variable):
                raise ValueError(
                    f"Variable ({variable.name}) was not created in the distribution strategy "
                    f"scope of ({optimizer._strategy}), in which the optimizer "
                    f"{optimizer.name} was created. {SAME_SCOPE}"
                )
        if new:
            # Slots that are alike share their zeros until they get other values.
            zeros = functools.cache(lambda shape, dtype, device: ops.zeros(shape, dtype))
            # They are kept with their variables: what makes slots may be recorded again.
            with ruled_by(None), optimizer._strategy.scope():
                rows = [(v, [self._slot(v, n, zeros) for n in self._own_names(v)]) for v in new]
            # All of them or none: the device may have no room for the last one.
            optimizer._slots.update({id(v): (v, tuple(slots)) for v, slots in rows})
        self._remember(variables)

    def _remember(self, variables: Sequence[Variable]) -> None:
        """Remember the order of variables that are trained."""
        known = set(map(id, self._optimizer._trainable_variables))
        self._optimizer._trainable_variables.extend(v for v in variables if id(v) not in known)

    @property
    def builds_once(self) -> bool:
        """Whether `build` is a subclass's, and still has to be called with all variables."""
        return self._optimizer.rule.by_variable and not self._optimizer.built

    def build_for(self, variables: Sequence[Variable], among: Sequence[Variable]) -> None:
        """Make the slots for a step.

        Args:
            variables: The variables that it updates.
            among: Those that are trained, of which some may have no gradient.
        """
        optimizer = self._optimizer
        if not optimizer.rule.by_variable:
            optimizer.build(variables)
            return
        if not optimizer.built:  # It may compute what no step is to compute again.
            with recorded_by(None), only(), ruled_by(None), optimizer._strategy.scope():
                optimizer.build(list(among))
        for variable in variables:
            if id(variable) not in optimizer._slots:
                raise ValueError(unknown(variable))

    def build_from_values(self, variables: Sequence[Variable]) -> None:
        """Make the slots that begin as their variables, which layers may write in the step.

        Those of `update_step` come with its step.

        Args:
            variables: The variables that are trained.
        """
        new = [v for v in variables if id(v) not in self._optimizer._slots and self._begins_as(v)]
        if new and not self._optimizer.rule.by_variable:
            self._optimizer.build(new)

    def _begins_as(self, variable: Variable) -> bool:
        return any(self._start(variable, name)[1] is None for name in self._own_names(variable))

    def _start(self, variable: Variable, name: str) -> tuple[Shape, float | None]:
        """Return a slot's shape and the number that it is full of; None: it is the variable's."""
        if self.keeps_averages and name == MovingAverage.slot:
            return variable.shape, None  # That of a variable that no step changes is its value.
        return self._optimizer.slot_start(name, variable.shape)

    def _slot(self, variable: Variable, name: str, zeros: Callable[..., Tensor]) -> Variable:
        shape, number = self._start(variable, name)

        def start() -> Tensor:
            if number is None:
                return variable.read_value()
            if number == 0:
                return zeros(shape, variable.dtype, variable.device)
            return ops.fill(shape, ops.constant(number, variable.dtype))

        owner = self._optimizer
        plain = variable.name.removesuffix(":0").replace("/", "_")
        with devices.device(variable.device):
            slot = Variable(start, trainable=False, name=f"{owner.name}/{plain}_{name}")
        slot._traits.path = f"{owner.name}/{variable.path.replace('/', '_')}_{name}"
        return slot


def build_once(build: Any) -> Any:
    """Return a `build` that makes nothing where it was called before, and all or nothing."""

    @functools.wraps(build)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        if self.built:
            return
        before = {k: list(v) if type(v) is list else v for k, v in vars(self).items()}
        before["_slots"] = dict(self._slots)
        try:
            build(self, *args, **kwargs)
        except BaseException:  # The device may have no room for the last of its variables.
            reset(self, before)
            raise
        self._unbuilt = before

    return run


def reset(optimizer: Any, before: dict[str, Any]) -> None:
    """Give an optimizer the attributes that it had before its `build`."""
    vars(optimizer).clear()
    vars(optimizer).update(before)


def unknown(variable: Variable) -> str:
    """Return the error for a variable that an optimizer was not built with."""
    return (
        f"Unknown variable: {variable!r}. This optimizer can only be called for the variables it "
        "was originally built with. When working with a new set of variables, you should recreate "
        "a new optimizer instance."
    )
