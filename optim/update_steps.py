"""Rules that a subclass writes as Keras' optimizers do: `update_step`, variable by variable.

They assign what they compute at once. So that a step still happens wholly or not at all, that is
taken back, and written with all else that a step has computed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from mirrored import ops
from mirrored.distribute.context import enter
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops.hooks import active_recorder
from mirrored.optim.transforms import constrained
from mirrored.optim.updates import Rule, Target, Values
from mirrored.variables import Variable
from mirrored.variables.device_variable import Undone


class RuleByVariable(Rule):
    """Runs `update_step` of a subclass, within the transforms."""

    by_variable: ClassVar[bool] = True

    def _written(self) -> list[Variable]:
        """Return what `update_step` may write beside the variables that it is for."""
        kept = self.optimizer._slots.values()
        rules = [slot for variable, _ in kept for slot in self._slots.of_rule(variable)]
        return [*rules, *self._slots.of_subclass()]

    def targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        """Return what `updates` has new values for, in its order."""
        targets = [self.optimizer._iterations, *self.optimizer._shared]
        for variable in variables:
            targets += [variable, *self._slots.of_transforms(variable)]
        return [copy_of(target, replica) for target in (*targets, *self._written())]

    def updates(self, replica: int, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return the new values of one replica's copies."""
        updates, step = self._counts(replica)
        gradients, totals = self._gradients(replica, variables, gradients)
        own = [copy_of(variable, replica) for variable in self._written()]
        copies = [copy_of(variable, replica) for variable in variables]
        before = [copy.read_value() for copy in (*copies, *own)]
        with self._writing(replica, [*copies, *own]):
            for variable, copy in zip(variables, copies, strict=True):
                decay = self._decay.of(variable)
                if decay:
                    value = copy.read_value()
                    copy.assign(value - value * ops.cast(step.rate * decay, value.dtype))
            for i, variable in enumerate(variables):
                self.optimizer.update_step(gradients[i], variable, step.rate)
            after = [copy.read_value() for copy in (*copies, *own)]
        results = [step.if_due(*pair) for pair in zip(after, before, strict=True)]
        for i, variable in enumerate(variables):
            kept = [copy_of(slot, replica) for slot in self._slots.of_transforms(variable)]
            values = [copy.read_value() for copy in kept]
            total = None if totals is None else totals[i]
            new = self._finished([results[i]], values, total, step.cast(before[i].dtype))
            new[0] = constrained(variable, new[0])
            updates += zip((copies[i], *kept), new, strict=True)
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
        for key, variable in written.items():
            if key not in expected:
                raise ValueError(
                    f"`update_step` of {type(self.optimizer).__name__} writes the variable that it "
                    "is given, and those of the optimizer. Received: a new value of "
                    f"{variable.name!r}. Make variables with `add_variable`, or keep them in "
                    "attributes of the optimizer."
                )
