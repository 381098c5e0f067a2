"""Rules that a subclass writes as Keras' optimizers do: `update_step`, variable by variable.

They assign what they compute at once. So that a step still happens wholly or not at all, that is
taken back, and written with all else that a step has computed.
"""

import functools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from mirrored import ops
from mirrored.distribute.context import enter
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copies_of, copy_of
from mirrored.ops import Tensor
from mirrored.ops.hooks import active_recorder, only, recorded_by
from mirrored.optim.added_variables import AddedVariables
from mirrored.optim.slots import Slots
from mirrored.optim.updates import Target, Values, constrained
from mirrored.program.variable_creation import ruled_by
from mirrored.variables import Variable
from mirrored.variables.device_variable import Undone


class UpdateSteps(AddedVariables):
    """Runs `update_step` where a subclass has one; `Optimizer` says what else there is."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Have a `build` of a subclass's own called once, whoever calls it how often."""
        super().__init_subclass__(**kwargs)
        build = vars(cls).get("build")
        if callable(build) and cls.update_step is not UpdateSteps.update_step:
            type.__setattr__(cls, "build", _once(build))

    @property
    def by_variable(self) -> bool:
        """Whether `update_step` of a subclass is the rule."""
        return type(self).update_step is not UpdateSteps.update_step

    # ------------------------------------------------------------------ what a subclass calls

    def assign(self, variable: Variable, value: Any) -> None:
        """Give a variable a value, in `update_step`.

        Args:
            variable: A variable that is trained, or one of the optimizer's.
            value: The value, in any dtype.
        """
        variable.assign(ops.cast(value, variable.dtype))

    def assign_add(self, variable: Variable, value: Any) -> None:
        """Add a value to a variable, in `update_step`.

        Args:
            variable: A variable that is trained, or one of the optimizer's.
            value: The value, in any dtype.
        """
        variable.assign_add(ops.cast(value, variable.dtype))

    def assign_sub(self, variable: Variable, value: Any) -> None:
        """Take a value from a variable, in `update_step`.

        Args:
            variable: A variable that is trained, or one of the optimizer's.
            value: The value, in any dtype.
        """
        variable.assign_sub(ops.cast(value, variable.dtype))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Any) -> None:
        """Update one variable: assign it and what is kept for it their new values.

        A subclass defines it, or `update`; one of an optimizer there is may call it. It is run in
        each step, or once where a step is recorded, for every variable that has a gradient. In it a
        variable has its value on the replica that is updated.

        Args:
            gradient: The gradient of the global batch, of the variable's shape and dtype.
            variable: The variable.
            learning_rate: A scalar.
        """
        slots = self._slots_of(variable)[: len(self.slot_names_for(variable))]
        value, *kept = [each.read_value() for each in (variable, *slots)]
        number, _ = self._counted(self._iterations.read_value() + 1)
        shared = tuple([each.read_value() for each in self._shared])
        if shared:
            shared = self.advance(shared, ops.cast(number, shared[0].dtype))
        given = (*kept, *[ops.cast(each, value.dtype) for each in shared])
        rate, number = (ops.cast(each, value.dtype) for each in (learning_rate, number))
        new, changed = self.update(gradient, value, given, rate, number)
        for each, result in zip((variable, *slots), (new, *changed), strict=True):
            each.assign(result)

    def _get_variable_index(self, variable: Variable) -> int:
        """Return the place of a variable among those that `build` was given, as Keras calls it."""
        for i, each in enumerate(self._trainable_variables):
            if variable is each or any(variable is copy for copy in copies_of(each)):
                return i
        raise KeyError(_unknown(variable))

    # ------------------------------------------------------------------ what is kept

    def _own_written(self) -> list[Variable]:
        """Return what `update_step` may write beside the variables that it is for."""
        rules = [
            slot
            for variable, slots in self._slots.values()
            for slot in slots[: len(self.slot_names_for(variable))]
        ]
        return [*rules, *(variable for _, _, variable in self._added), *self._in_attributes()]

    def restore_slots(self, slots: Slots) -> None:
        """Have the slots that `slots` returned before, and no others.

        What a subclass's own `build` made goes where nothing of it was there before.
        """
        if self._unbuilt is None:
            super().restore_slots(slots)
        elif not slots:
            _reset(self, self._unbuilt)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_unbuilt": None if self._unbuilt is None else {}}

    @property
    def builds_once(self) -> bool:
        """Whether `build` is a subclass's, and still has to be called with all variables."""
        return self.by_variable and not self.built

    def build_for(self, variables: Sequence[Variable], among: Sequence[Variable]) -> None:
        """Make the slots for a step.

        Args:
            variables: The variables that it updates.
            among: Those that are trained, of which some may have no gradient.
        """
        if not self.by_variable:
            super().build_for(variables, among)
            return
        if not self.built:  # It may compute what no step is to compute again.
            with recorded_by(None), only(), ruled_by(None), self._strategy.scope():
                self.build(list(among))
        for each in variables:
            if id(each) not in self._slots:
                raise ValueError(_unknown(each))

    def build_from_values(self, variables: Sequence[Variable]) -> None:
        """Make the slots that begin as their variables; those of `update_step` come with its step.

        Args:
            variables: The variables that are trained.
        """
        if not self.by_variable:
            super().build_from_values(variables)

    # ------------------------------------------------------------------ a step

    def _targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        if not self.by_variable:
            return super()._targets(replica, variables)
        targets = [self._iterations, *self._shared]
        for each in variables:
            targets += [each, *self._beside(each)]
        return [copy_of(each, replica) for each in (*targets, *self._own_written())]

    def _beside(self, variable: Variable) -> tuple[Variable, ...]:
        """Return what is kept for a variable beside the slots of the rule."""
        return self._slots_of(variable)[len(self.slot_names_for(variable)) :]

    def _updates(self, replica: int, variables: Sequence[Variable], gradients: Buckets) -> Values:
        if not self.by_variable:
            return super()._updates(replica, variables, gradients)
        updates, step = self._counts(replica)
        totals = self._totals(replica, variables, gradients)
        gradients = self._clipped(gradients, totals)
        own = [copy_of(each, replica) for each in self._own_written()]
        copies = [copy_of(each, replica) for each in variables]
        before = [each.read_value() for each in (*copies, *own)]
        with self._writing(replica, [*copies, *own]):
            for variable, copy in zip(variables, copies, strict=True):
                decay = self._decay(variable)
                if decay:
                    value = copy.read_value()
                    copy.assign(value - value * ops.cast(step.rate * decay, value.dtype))
            for i, variable in enumerate(variables):
                self.update_step(gradients[i], variable, step.rate)
            after = [each.read_value() for each in (*copies, *own)]
        results = [step.if_due(*pair) for pair in zip(after, before, strict=True)]
        for i, variable in enumerate(variables):
            beside = [copy_of(each, replica) for each in self._beside(variable)]
            values = [before[i], *[each.read_value() for each in beside]]
            total = None if totals is None else totals[i]
            kept = self._with_kept([results[i]], values, total, step.cast(before[i].dtype))
            kept[0] = constrained(variable, kept[0])
            updates += zip((copies[i], *beside), kept, strict=True)
        return [*updates, *zip(own, results[len(copies) :], strict=True)]

    @contextmanager
    def _writing(self, replica: int, copies: Sequence[Any]) -> Iterator[None]:
        """Let variables be those of a replica, and take back what is written to them."""
        undone, recorder = Undone(), active_recorder()
        known = set() if recorder is None else set(recorder.written_variables())
        with ExitStack() as stack:
            stack.enter_context(undone.in_force())
            if len(self._strategy.devices) > 1:
                stack.enter_context(enter(self._strategy, None, updated=replica))
            yield
        written = undone.written() if recorder is None else recorder.written_variables()
        expected = set(map(id, copies)) | known
        for key, each in written.items():
            if key not in expected:
                raise ValueError(
                    f"`update_step` of {type(self).__name__} writes the variable that it is given, "
                    f"and those of the optimizer. Received: a new value of {each.name!r}. Make "
                    "variables with `add_variable`, or keep them in attributes of the optimizer."
                )


def _once(build: Any) -> Any:
    """Return a `build` that makes nothing where it was called before, and all or nothing."""

    @functools.wraps(build)
    def run(self: UpdateSteps, *args: Any, **kwargs: Any) -> None:
        if self.built:
            return
        before = {k: list(v) if type(v) is list else v for k, v in vars(self).items()}
        before["_slots"] = dict(self._slots)
        try:
            build(self, *args, **kwargs)
        except BaseException:  # The device may have no room for the last of its variables.
            _reset(self, before)
            raise
        self._unbuilt = before

    return run


def _reset(optimizer: UpdateSteps, before: dict[str, Any]) -> None:
    """Give an optimizer the attributes that it had before its `build`."""
    vars(optimizer).clear()
    vars(optimizer).update(before)


def _unknown(variable: Variable) -> str:
    return (
        f"Unknown variable: {variable!r}. This optimizer can only be called for the variables it "
        "was originally built with. When working with a new set of variables, you should recreate "
        "a new optimizer instance."
    )
