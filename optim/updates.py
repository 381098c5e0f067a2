"""How a step's new values are computed, for every replica, before the first one is written.

The rule is a pure function, which a subclass gives; so a step happens wholly or not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mirrored import devices, ops
from mirrored.distribute import DistributedValues
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops import Tensor
from mirrored.ops.hooks import active_recorder, only, recorded_by
from mirrored.ops.spec import DType
from mirrored.optim.accumulation import Accumulating
from mirrored.optim.clipping import clipped
from mirrored.variables import DeviceVariable, Variable
from mirrored.variables.flat import FlatVariable, pack, packing_groups

Target = DeviceVariable | FlatVariable
Values = list[tuple[Target, Tensor]]


@dataclass(frozen=True, slots=True)
class Update:
    """New values that are computed and not written yet."""

    values: tuple[tuple[Target, Tensor], ...]

    def commit(self) -> None:
        """Write them all; nothing here can fail or allocate."""
        for variable, value in self.values:
            variable.commit(value)


@dataclass(frozen=True, slots=True)
class Step:
    """What is the same for all variables of one dtype in a step.

    Attributes:
        rate: The learning rate.
        number: The number of the step, from 1.
        shared: The numbers of `shared_names`.
        count: The number of the step, as an integer.
        due: Whether the variables change in it; None: in every one.
    """

    rate: Tensor
    number: Tensor
    shared: tuple[Tensor, ...]
    count: Tensor
    due: Tensor | None

    def cast(self, dtype: DType) -> "Step":
        """Return the same for variables of a dtype."""
        shared = tuple([ops.cast(each, dtype) for each in self.shared])
        rate, number = ops.cast(self.rate, dtype), ops.cast(self.number, dtype)
        return Step(rate, number, shared, self.count, self.due)

    def if_due(self, new: Tensor, old: Tensor) -> Tensor:
        """Return the new value, or the old one where the variables do not change."""
        return new if self.due is None else ops.where(self.due, new, old)


class Updating(Accumulating):
    """Computes updates; `Optimizer` says what the attributes mean."""

    elementwise: ClassVar[bool] = False
    shared_names: ClassVar[Mapping[str, float]] = {}
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    _iterations: Variable
    _shared: list[Variable]

    def update(
        self,
        gradient: Tensor,
        value: Tensor,
        slots: tuple[Tensor, ...],
        learning_rate: Tensor,
        step: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the new value of a variable and of its slots; it changes nothing.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            value: The variable's value.
            slots: The values of `slot_names`; behind them those of `shared_names`, as `advance`
                returned them, scalars of the variable's dtype.
            learning_rate: A scalar of the variable's dtype.
            step: The number of this step, from 1, a scalar of the variable's dtype.
        """
        raise NotImplementedError(
            f"The optimizer {type(self).__name__} has no `update`. Define `update(self, gradient, "
            "value, slots, learning_rate, step)` that returns the new value and the new slots, or "
            "`update_step(self, gradient, variable, learning_rate)` that assigns them."
        )

    def advance(self, shared: tuple[Tensor, ...], step: Tensor) -> tuple[Tensor, ...]:
        """Return what the numbers of `shared_names` become in a step: once for all variables.

        Args:
            shared: The numbers before the step, scalars.
            step: The number of this step, from 1, a scalar of their dtype.
        """
        del step
        return shared

    def pack(self, variables: Sequence[Variable]) -> None:
        """Bring variables together on every replica, as a recorded step updates them.

        Args:
            variables: The variables that are to be trained.

        Raises:
            ResourceExhaustedError: A device has no room for them beside where they are now.
        """
        if not self.elementwise:
            return
        for replica in range(self._strategy.updating_replicas):
            with self._strategy.replica_scope(replica):
                copies = [copy_of(each, replica) for each in variables]
                for places in self._groups(variables, copies):
                    pack([copies[i] for i in places])

    def prepare(
        self,
        variables: Sequence[Variable],
        gradients: Any,
        among: Sequence[Variable] | None = None,
    ) -> Update:
        """Return one step's new values, on every replica, from gradients that are reduced.

        Args:
            variables: The variables to update.
            gradients: For each the gradient, equal on all replicas: per-replica or plain, in a
                list; or as `Strategy.sum_gradients` returns them.
            among: All variables that are trained, where not each has a gradient.

        Raises:
            ValueError: A gradient has another shape or dtype than its variable, or that was made in
                another strategy's scope than this optimizer.
            ResourceExhaustedError: A device has no room for the new values.
        """
        replicas = range(self._strategy.updating_replicas)
        packed = [_of_replica(gradients, replica) for replica in replicas]
        for i, variable in enumerate(variables):
            spec = packed[0].spec(i)
            if spec != (variable.shape, variable.dtype):
                raise ValueError(
                    "A gradient has the shape and dtype of its variable. Received: "
                    f"{spec.shape} {spec.dtype.name} for {variable.name} of {variable.shape} "
                    f"{variable.dtype.name}."
                )
        known = self.slots()
        recorder = active_recorder()
        if recorder is not None:
            recorder.on_failure(lambda: self.restore_slots(known))
        values: Values = []
        try:
            self.build_for(variables, variables if among is None else among)
            with only():
                if recorder is not None and self._strategy.shares_memory and len(replicas) > 1:
                    values = self._updates_of_all(variables, packed[0])
                else:
                    for replica in replicas:
                        with self._strategy.replica_scope(replica):
                            values += self._updates(replica, variables, packed[replica])
        except BaseException:
            self.restore_slots(known)  # There is no step, so its new slots take no memory.
            raise
        return Update(tuple(values))

    # ------------------------------------------------------------------ all replicas

    def _updates_of_all(self, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return one replica's new values for it and, as copies, for all others.

        In one memory a copy costs less than to compute the same again. The gradients, the
        variables and the slots are equal on all replicas, and so are the results.
        """
        with self._strategy.replica_scope(0):
            updates = self._updates(0, variables, gradients)
        values = list(updates)
        for replica, device in enumerate(self._strategy.devices[1:], start=1):
            targets = self._targets(replica, variables)
            for target, (_, value) in zip(targets, updates, strict=True):
                values.append((target, value.copy_to(device)))
        return values

    def _targets(self, replica: int, variables: Sequence[Variable]) -> list[Target]:
        """Return what `_updates` has new values for, in its order."""
        counts: list[Target] = [
            copy_of(each, replica) for each in (self._iterations, *self._shared)
        ]
        return counts + [each for _, unit in self._units(replica, variables) for each in unit]

    def _groups(
        self, variables: Sequence[Variable], copies: Sequence[DeviceVariable]
    ) -> list[list[int]]:
        """Return the places of variables that the rule updates as one vector, in a program."""
        groups: list[list[int]] = []
        decays = [self._decay(each) for each in variables]
        for decay in sorted(set(decays), reverse=True):
            places = [
                i
                for i, each in enumerate(variables)
                if each.constraint is None and decays[i] == decay
            ]
            found = packing_groups([copies[i] for i in places])
            groups += [[places[i] for i in group] for group in found]
        return groups

    def _decay(self, variable: Variable) -> float:
        """Return the part of a variable's value, times the rate, that a step takes away; or 0."""
        raise NotImplementedError

    def _units(
        self, replica: int, variables: Sequence[Variable]
    ) -> list[tuple[list[int], Sequence[Target]]]:
        """Return what the rule updates in one call: a variable, or in a program all of a dtype.

        Each is the places of its variables, and one replica's copy of them and of their slots.
        """
        copies = [
            [copy_of(each, replica) for each in (variable, *self._slots_of(variable))]
            for variable in variables
        ]
        if not self.elementwise or active_recorder() is None:
            return [([i], each) for i, each in enumerate(copies)]
        units: list[tuple[list[int], Sequence[Target]]] = []
        with recorded_by(None):
            for places in self._groups(variables, [each[0] for each in copies]):
                columns = zip(*(copies[i] for i in places), strict=True)
                units.append((places, [pack(column) for column in columns]))
        # A constraint is given a variable of its own shape.
        constrained = [i for i, each in enumerate(variables) if each.constraint is not None]
        return units + [([i], copies[i]) for i in constrained]

    # ------------------------------------------------------------------ one replica

    def _updates(self, replica: int, variables: Sequence[Variable], gradients: Buckets) -> Values:
        """Return the new values of one replica's copies."""
        updates, step = self._counts(replica)
        totals = self._totals(replica, variables, gradients)
        gradients = self._clipped(gradients, totals)
        cast: dict[tuple[str, DType], Step] = {}  # Made once.
        for places, copies in self._units(replica, variables):
            gradient = _taken(gradients, places, copies[0])
            total = None if totals is None else _taken(totals, places, copies[0])
            values = [each.read_value() for each in copies]
            with devices.device(copies[0].device):
                kind = copies[0].device, values[0].dtype
                if kind not in cast:
                    cast[kind] = step.cast(values[0].dtype)
                decay = self._decay(variables[places[0]])
                results = self._ruled(copies[0].name, values, gradient, cast[kind], decay)
                results = self._with_kept(results, values, total, cast[kind])
                # As in Keras also where the step changes nothing else, and behind the average.
                results[0] = constrained(variables[places[0]], results[0])
            updates += zip(copies, results, strict=True)
        return updates

    def _counts(self, replica: int) -> tuple[Values, Step]:
        """Return the new values of one replica's counts, and what its variables are given."""
        iterations = copy_of(self._iterations, replica)
        shared = [copy_of(each, replica) for each in self._shared]
        with devices.device(iterations.device):
            taken = iterations.read_value() + 1
            before = tuple([each.read_value() for each in shared])
            step = self._step(replica, taken, before)
            updates: Values = [(iterations, taken)]
            for each, new, old in zip(shared, step.shared, before, strict=True):
                updates.append((each, step.if_due(new, old)))
        return updates, step

    def _clipped(self, gradients: Buckets, totals: Buckets | None) -> Buckets:
        """Return what the rule is given: gradients, or means of sums, within their bound."""
        gradients = gradients if totals is None else self._mean_gradients(totals)
        return clipped(gradients, self.clipnorm, self.clipvalue, self.global_clipnorm)

    def _step(self, replica: int, taken: Tensor, shared: tuple[Tensor, ...]) -> Step:
        """Return what all variables are given in a step, whose number among all is `taken`."""
        count, due = self._counted(taken)
        if shared:
            shared = self.advance(shared, ops.cast(count, shared[0].dtype))
        return Step(self._rate(replica, taken), count, shared, count, due)

    def _rate(self, replica: int, taken: Tensor) -> Tensor:
        """Return the learning rate of the step that is the `taken`-th."""
        raise NotImplementedError

    def _ruled(
        self, name: str, values: list[Tensor], gradient: Tensor, step: Step, decay: float
    ) -> list[Tensor]:
        """Return what the rule makes of a variable and of its slots, the first of the values."""
        value, *slots = values[: len(values) - len(self.beside_names)]
        shrunk = value - value * (step.rate * decay) if decay else value
        given = (*slots, *step.shared)
        new_value, new_slots = self.update(gradient, shrunk, given, step.rate, step.number)
        results = [new_value, *new_slots]
        if [each.spec for each in results] != [each.spec for each in (value, *slots)]:
            raise ValueError(
                f"{type(self).__name__}.update returns the new value and {len(slots)} new slots, "
                f"each of the shape and dtype of the old one. For {name}, where these are "
                f"{[each.spec for each in (value, *slots)]}, received: "
                f"{[each.spec for each in results]}."
            )
        return [step.if_due(*each) for each in zip(results, (value, *slots), strict=True)]

    def _with_kept(
        self, results: list[Tensor], values: list[Tensor], total: Tensor | None, step: Step
    ) -> list[Tensor]:
        """Return the results, and behind them what else is kept: an average, a sum of gradients."""
        if self.use_ema:
            average = values[len(results)]
            results[0], average = self._averaged(results[0], average, step.count, step.number)
            results.append(average)
        if total is not None:
            results.append(step.if_due(ops.zeros_like(total), total))
        return results


def constrained(variable: Variable, value: Tensor) -> Tensor:
    """Return what a variable's constraint makes of its new value.

    Args:
        variable: The variable.
        value: The value.
    """
    if variable.constraint is None:
        return value
    result = ops.cast(ops.convert_to_tensor(variable.constraint(value)), value.dtype)
    if result.shape != value.shape:
        raise ValueError(
            f"A constraint returns a value of the variable's shape. For {variable.name} of "
            f"{value.shape}, received: a value of {result.shape}."
        )
    return result.copy_to(value._device)


def _taken(tensors: Buckets, places: list[int], target: Target) -> Tensor:
    """Return what is for one target: a tensor, or for several variables a vector."""
    return tensors.vector(places) if isinstance(target, FlatVariable) else tensors[places[0]]


def _of_replica(gradients: Any, replica: int) -> Buckets:
    """Return one replica's part of what `prepare` is given."""
    if isinstance(gradients, DistributedValues):
        gradients = gradients.values[replica]
    if isinstance(gradients, Buckets):
        return gradients
    return Buckets(
        each.values[replica] if isinstance(each, DistributedValues) else each for each in gradients
    )
