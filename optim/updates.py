"""How a step's new values are computed, for every replica, before the first one is written.

The rule is a pure function, which a subclass gives; so a step happens wholly or not at all.
What an `update_step` assigns is taken back, and written with all else that a step has computed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mirrored import devices, ops
from mirrored.distribute import DistributedValues
from mirrored.distribute.context import enter
from mirrored.distribute.cross_device_ops.buckets import Buckets, bucket_ranges
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops import Tensor
from mirrored.ops.hooks import active_recorder, only, recorded_by
from mirrored.ops.spec import DType, TensorSpec
from mirrored.optim.hyperparameters import Tensors, scheduled
from mirrored.optim.transforms import Clipping, Step, WeightDecay, constrained
from mirrored.variables import DeviceVariable, Variable
from mirrored.variables.device_variable import Undone
from mirrored.variables.flat import FlatVariable, pack, packing_groups

if TYPE_CHECKING:
    from mirrored.optim.optimizer import Optimizer

# Elements of a variable that is joined with others outside of programs, and of all of them: to copy
# these takes less time than an operation for each.
_SMALL, _TOGETHER = 1 << 12, 1 << 14

Target = DeviceVariable | FlatVariable
Values = list[tuple[Target, Tensor]]
# The places of variables, and one replica's copies of them and of their slots.
Unit = tuple[list[int], Sequence[Target]]
_MOST_PLANS = 16  # Of an optimizer, until they are forgotten.


class Plan(NamedTuple):
    """What steps outside of programs have in common that update the same variables.

    Attributes:
        specs: The shapes and dtypes of the variables, none of which has a constraint.
        units: What the rule updates in one call.
        one: What the number of a step is more than that of the step before.
    """

    specs: list[TensorSpec]
    units: list[Unit]
    one: Tensor


@dataclass(frozen=True, slots=True)
class Update:
    """New values that are computed and not written yet."""

    values: tuple[tuple[Target, Tensor], ...]

    def commit(self) -> None:
        """Write them all; nothing here can fail or allocate."""
        for variable, value in self.values:
            variable.commit(value)


class Rule:
    """An optimizer's `update` within its transforms: what a step computes.

    Args:
        optimizer: The optimizer, with the settings that the step has.
    """

    by_variable: ClassVar[bool] = False  # Whether it is `update_step` of a subclass.

    def __init__(self, optimizer: "Optimizer") -> None:
        self.optimizer = optimizer
        self._slots = optimizer.slots
        self._strategy = optimizer._strategy
        self._decay = WeightDecay(
            optimizer._weight_decay_for, optimizer._undecayed, optimizer._undecayed_names
        )
        self._clip = Clipping(optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm)

    def pack(self, variables: Sequence[Variable]) -> None:
        """Bring variables together on every replica, as a recorded step updates them.

        Args:
            variables: The variables that are to be trained.

        Raises:
            ResourceExhaustedError: A device has no room for them beside where they are now.
        """
        if not self.optimizer.elementwise:
            return
        for replica in self._strategy.updating_replicas:
            with self._strategy.replica_scope(replica):
                copies = [copy_of(variable, replica) for variable in variables]
                for places in self._groups(variables, copies):
                    pack([copies[i] for i in places])

    def prepare(
        self, variables: Sequence[Variable], gradients: Any, among: Sequence[Variable] | None
    ) -> Update:
        """Return one step's new values; `Optimizer.prepare` says what the arguments are."""
        replicas = self._strategy.updating_replicas
        packed = [_of_replica(gradients, replica) for replica in replicas]
        plan = self._plan(variables)
        specs = plan.specs if plan else [copy_of(v, 0)._tensor._spec for v in variables]
        for i, variable in enumerate(variables):
            spec = packed[0].spec(i)
            if spec != specs[i]:
                raise ValueError(
                    "A gradient must have the shape and dtype of its variable. Received: "
                    f"{spec.shape} {spec.dtype.name} for {variable.name} of {variable.shape} "
                    f"{variable.dtype.name}."
                )
        known = {} if plan else self._slots.snapshot()
        recorder = active_recorder()
        if recorder is not None:
            recorder.on_failure(lambda: self._slots.restore(known))
        values: Values = []
        try:
            if plan is None:
                self._slots.build_for(variables, variables if among is None else among)
            with only():
                if recorder is not None and self._strategy.shares_memory and len(replicas) > 1:
                    values = self._updates_of_all(variables, packed[0])
                else:
                    for replica, own in zip(replicas, packed, strict=True):
                        with self._strategy.replica_scope(replica):
                            values += self.updates(replica, variables, own)
        except BaseException:
            if plan is None:
                self._slots.restore(known)  # There is no step, so its new slots take no memory.
            raise
        return Update(tuple(values))

    # ------------------------------------------------------------------ all replicas

    def _updates_of_all(self, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return one replica's new values for it and, as copies, for all others.

        In one memory a copy costs less than to compute the same again. The gradients, the
        variables and the slots are equal on all replicas, and so are the results.
        """
        with self._strategy.replica_scope(0):
            updates = self.updates(0, variables, gradients)
        values = list(updates)
        for replica in self._strategy.updating_replicas[1:]:
            device, targets = self._strategy.devices[replica], self.targets(replica, variables)
            for target, (_, value) in zip(targets, updates, strict=True):
                values.append((target, value.copy_to(device)))
        return values

    def targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        """Return what `updates` has new values for, in its order."""
        counts = (self.optimizer._iterations, *self.optimizer._shared)
        targets: list[Target] = [copy_of(variable, replica) for variable in counts]
        return targets + [t for _, unit in self._units(replica, variables) for t in unit]

    def _groups(
        self, variables: Sequence[Variable], copies: Sequence[DeviceVariable]
    ) -> list[list[int]]:
        """Return the places of variables that the rule updates as one vector, in a program."""
        groups: list[list[int]] = []
        decays = [self._decay.of(variable) for variable in variables]
        for decay in sorted(set(decays), reverse=True):
            places = [
                i
                for i, variable in enumerate(variables)
                if variable.constraint is None and decays[i] == decay
            ]
            alike = packing_groups([copies[i] for i in places])
            groups += [[places[i] for i in group] for group in alike]
        return groups

    def _plan(self, variables: Sequence[Variable]) -> Plan | None:
        """Return the plan of a step, where it was made and still holds."""
        plan = self.optimizer._plans.get(tuple(map(id, variables)))
        if plan is None or active_recorder() is not None:
            return None
        for variable in variables:
            if variable._traits.constraint is not None:
                return None
        return plan

    def _units(self, replica: int, variables: Sequence[Variable]) -> list[Unit]:
        """Return what the rule updates in one call: a variable, or several of a dtype as a vector.

        In a program these are all that it may join, and else the small ones.
        """
        plan = self._plan(variables)
        if plan is not None:
            return plan.units
        copies = [
            [copy_of(kept, replica) for kept in (variable, *self._slots.of(variable))]
            for variable in variables
        ]
        units: list[Unit] = []
        eager = active_recorder() is None
        if self.optimizer.elementwise:
            groups = self._groups(variables, [row[0] for row in copies])
            with recorded_by(None):
                for places in _small(variables, groups) if eager else groups:
                    columns = zip(*(copies[i] for i in places), strict=True)
                    join = FlatVariable if eager else pack
                    units.append((places, [join(column) for column in columns]))
        joined_places = {i for places, _ in units for i in places}
        # A constraint is called with a variable of its own shape.
        alone = [i for i in range(len(copies)) if i not in joined_places]
        units += [([i], copies[i]) for i in alone]
        if (
            eager
            and self.optimizer._plannable
            and all(type(v) is DeviceVariable and v.constraint is None for v in variables)
        ):
            plans = self.optimizer._plans
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            specs = [row[0]._tensor._spec for row in copies]
            with devices.device(self.optimizer._iterations.device):
                plans[tuple(map(id, variables))] = Plan(specs, units, ops.constant(1, ops.int64))
        return units

    # ------------------------------------------------------------------ one replica

    def updates(self, replica: int, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return the new values of one replica's copies."""
        plan = self._plan(variables)
        updates, step = self._counts(replica, plan.one if plan else 1)
        gradients, totals = self._gradients(replica, variables, gradients)
        cast: dict[tuple[str, DType], Step] = {}  # Made once.
        for places, copies in plan.units if plan else self._units(replica, variables):
            gradient = _taken(gradients, places, copies[0])
            total = None if totals is None else _taken(totals, places, copies[0])
            values = [copy.read_value() for copy in copies]
            with devices.device(copies[0].device):
                kind = copies[0].device, values[0].dtype
                if kind not in cast:
                    cast[kind] = step.cast(values[0].dtype, self.optimizer.update)
                decay = self._decay.of(variables[places[0]])
                rules = len(values) - len(self._slots.transforms)
                results = self._ruled(copies[0], values[:rules], gradient, cast[kind], decay)
                results = self._finished(results, values[rules:], total, cast[kind])
                # As in Keras also where the step changes nothing else, and behind the average.
                results[0] = constrained(variables[places[0]], results[0])
            updates += zip(copies, results, strict=True)
        return updates

    def _counts(self, replica: int, one: Tensor | int = 1) -> tuple[Values, Step]:
        """Return the new values of one replica's counts, and what its variables are given."""
        iterations = copy_of(self.optimizer._iterations, replica)
        shared = [copy_of(variable, replica) for variable in self.optimizer._shared]
        with devices.device(iterations.device):
            taken = iterations.read_value() + one
            before = tuple([variable.read_value() for variable in shared])
            count, due = self._slots.accumulation.counted(taken)
            advanced = self._advanced(before, count)
            step = Step(self._rate(replica, taken), count, advanced, count, due)
            updates: Values = [(iterations, taken)]
            for variable, new, old in zip(shared, advanced, before, strict=True):
                updates.append((variable, step.if_due(new, old)))
        return updates, step

    def _advanced(self, shared: Tensors, count: Tensor) -> Tensors:
        if not shared:
            return shared
        return self.optimizer.advance(shared, ops.cast(count, shared[0].dtype))

    def _rate(self, replica: int, taken: Tensor) -> Tensor:
        """Return the learning rate of the step that is the `taken`-th."""
        rate = self.optimizer._learning_rate
        if isinstance(rate, Variable):
            value: Tensor = copy_of(rate, replica).read_value()
            return value
        return scheduled(rate, taken - 1)

    def _gradients(
        self, replica: int, variables: Sequence[Variable], gradients: Buckets
    ) -> tuple[Buckets, Buckets | None]:
        """Return what the rule is given, within its bound, and the sums where there are some."""
        accumulation = self._slots.accumulation
        if accumulation.steps is None:
            return self._clip(gradients), None
        sums = [copy_of(self._slots.of(variable)[-1], replica) for variable in variables]
        totals = accumulation.totals(gradients, sums)
        return self._clip(accumulation.means(totals)), totals

    def _ruled(
        self, target: Any, values: list[Tensor], gradient: Tensor, step: Step, decay: float
    ) -> list[Tensor]:
        """Return what the rule makes of a variable and of its slots, the first of the values."""
        value, *slots = values
        shrunk = value - value * (step.rate * decay) if decay else value
        new_value, new_slots = self.optimizer.update(
            gradient, shrunk, (*slots, *step.shared), step.rate, step.number
        )
        results = [new_value, *new_slots]
        if [result.spec for result in results] != [old.spec for old in values]:
            raise ValueError(
                f"{type(self.optimizer).__name__}.update must return the new value and "
                f"{len(slots)} new slots, each of the shape and dtype of the old one. For "
                f"{target.name}, with the old ones {[old.spec for old in values]}, received: "
                f"{[result.spec for result in results]}."
            )
        return [step.if_due(*pair) for pair in zip(results, values, strict=True)]

    def _finished(
        self, results: list[Tensor], kept: Sequence[Tensor], total: Tensor | None, step: Step
    ) -> list[Tensor]:
        """Return the results, and behind them what transforms keep: an average, a sum."""
        value, *slots = results
        for transform, old in zip(self._slots.transforms, kept, strict=True):
            value, new = transform.finish(value, old, total, step)
            slots.append(new)
        return [value, *slots]

    def update_in_place(self, gradient: Tensor, variable: Variable, learning_rate: Any) -> None:
        """Assign a variable and its slots what `update` makes of them, for one `update_step`."""
        targets = (variable, *self._slots.of_rule(variable))
        values = [target.read_value() for target in targets]
        count, _ = self._slots.accumulation.counted(self.optimizer._iterations.read_value() + 1)
        shared = tuple([number.read_value() for number in self.optimizer._shared])
        step = Step(learning_rate, count, self._advanced(shared, count), count, None)
        step = step.cast(values[0].dtype, self.optimizer.update)
        results = self._ruled(variable, values, gradient, step, 0.0)
        for target, result in zip(targets, results, strict=True):
            target.assign(result)


def _taken(tensors: Buckets, places: list[int], target: Target) -> Tensor:
    """Return what is for one target: a tensor, or for several variables a vector."""
    if not isinstance(target, FlatVariable):
        return tensors[places[0]]
    if active_recorder() is None:
        return target.joined([tensors[i] for i in places])
    return tensors.vector(places)


def _small(variables: Sequence[Variable], groups: list[list[int]]) -> Iterator[list[int]]:
    """Return the small variables among groups, as many together as the cache of a core holds."""
    sizes = [variable.size for variable in variables]
    for group in groups:
        small = [i for i in group if sizes[i] <= _SMALL]
        for places in bucket_ranges([sizes[i] for i in small], _TOGETHER):
            if len(places) > 1:
                yield [small[place] for place in places]


def _of_replica(gradients: Any, replica: int) -> Buckets:
    """Return one replica's part of what `prepare` is given."""
    if isinstance(gradients, DistributedValues):
        gradients = gradients.values[replica]
    if isinstance(gradients, Buckets):
        return gradients
    return Buckets(g.values[replica] if isinstance(g, DistributedValues) else g for g in gradients)


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
            new = self._finished(
                [results[i]], values, total, step.cast(before[i].dtype, self.optimizer.update)
            )
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
                    f"`update_step` of {type(self.optimizer).__name__} may write only its "
                    "variable argument and the optimizer's variables. Received: a new value of "
                    f"{variable.name!r}. Create variables with `add_variable`, or keep them in "
                    "attributes of the optimizer."
                )
