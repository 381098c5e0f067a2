"""Variables with a copy on every replica: their base class, and mirrored ones.

In a replica they stand for that replica's copy.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mirrored import devices, ops
from mirrored._types import late_type
from mirrored.backends.stream_backend import is_offloaded
from mirrored.distribute.context import (
    ReplicaContext,
    get_replica_context,
    updated_replica,
)
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.distribute.global_batch import GlobalBatch, global_batch
from mirrored.distribute.per_replica import (
    DistributedValues,
    PerReplica,
    check_part_count,
    listed,
    select,
)
from mirrored.ops import IndexedSlices
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import active_listeners, active_recorder, only
from mirrored.ops.spec import DType
from mirrored.ops.tensor import Tensor
from mirrored.ops.tensor_shape import TensorShape
from mirrored.program import register_variable
from mirrored.variables import DeviceVariable, Prepared, Variable, VariableAggregation
from mirrored.variables.device_variable import VariableState, stand_ins
from mirrored.variables.scatters import Change

if TYPE_CHECKING:
    from mirrored.distribute.strategy_base import StrategyBase
else:
    StrategyBase = late_type("mirrored.distribute.strategy_base", "StrategyBase")

# The aggregations of all replicas' values.
REDUCED = (VariableAggregation.SUM, VariableAggregation.MEAN)


class DistributedVariable(Variable):
    """A variable with several copies, of which each replica uses one.

    Args:
        strategy: The strategy whose replicas have the copies.
        copies: The copies.
    """

    __slots__ = ("_by_replica", "_copies", "_strategy")

    def __init__(self, strategy: "StrategyBase", copies: Sequence[DeviceVariable]) -> None:
        self._strategy = strategy
        self._copies = tuple(copies)
        self.share()
        first = self._copies[0]
        self._name, self._trainable, self._traits = first._name, first._trainable, first._traits
        self._synchronization, self._aggregation = first._synchronization, first._aggregation

    def share(self) -> None:
        """Let each replica use the copy of its device."""
        self._by_replica = copies = self._copies
        if len(copies) < len(numbers := self._strategy.copy_numbers):  # Some share one.
            self._by_replica = tuple(copies[number] for number in numbers)

    @property
    def copies(self) -> tuple[DeviceVariable, ...]:
        """The copies: by replica, or one per device where the replicas of a device share it."""
        return self._copies

    @property
    def strategy(self) -> Any:
        """The strategy whose replicas have the copies."""
        return self._strategy

    @property
    def by_replica(self) -> tuple[DeviceVariable, ...]:
        """The copy that each replica uses."""
        return self._by_replica

    def local(self) -> DeviceVariable:
        """Return the copy of the replica that runs or is updated; elsewhere the first copy."""
        context = get_replica_context()
        if context is None:
            return self._by_replica[updated_replica(self._strategy) or 0]
        if context.strategy is not self._strategy:
            return self._copies[0]
        return self._by_replica[context._number]

    @classmethod
    def _devices(cls, strategy: Any) -> Sequence[devices.Device]:
        """Return the devices of the copies."""
        return tuple(strategy.devices)

    @property
    def _in_replica(self) -> bool:
        """Whether a replica of the variable's strategy is running."""
        context = get_replica_context()
        return context is not None and context.strategy is self._strategy

    @property
    def _id(self) -> int:
        return self.local()._id

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self.copies[0].dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the value."""
        return self.copies[0].shape

    @property
    def device(self) -> str:
        """The full name of the device of the running replica's copy."""
        return self.local().device

    def read_value(self) -> Tensor:
        """Return the value of the running replica's copy; later assignments do not change it."""
        return self._read(lasts=True)

    def _view(self) -> Tensor:
        return self._read(lasts=False)

    def _read(self, *, lasts: bool) -> Tensor:
        value = self._value(lasts=lasts)
        for listener in active_listeners():
            # Told of this variable, not of its copy: what a tape watched is what optimizers take.
            listener.on_read(self, value)
        return value

    def _value(self, *, lasts: bool) -> Tensor:
        """Return the value, as `DeviceVariable._unnoted` does."""
        return self.local()._unnoted(lasts=lasts)

    def _scatter_nd(self, method: str, indices: Any, updates: Any) -> Any:
        raise NotImplementedError(
            f"`{method}` is for variables outside of strategies, as in TensorFlow. Received: the "
            f"variable {self.name!r}. Use `v.assign(mr.tensor_{method}(v, indices, updates))`."
        )

    def whole(self) -> VariableState:
        """Return the state of a variable that has the value of all copies together."""
        return self._copies[0].state()

    def __reduce__(self) -> Any:
        others = stand_ins()
        if others is not None:
            return others.make, (self.whole(),)
        states: list[VariableState] = []
        for copy in self._copies:
            state = copy.state()
            # What is equal travels once; copies on cards and the host may differ in the last bits.
            if states and same_bits(states[0].value, state.value):
                state = state._replace(value=states[0].value)
            states.append(state)
        return _restored, (type(self), self._strategy, states)

    def __repr__(self) -> str:
        return listed(type(self).__name__, [repr(copy) for copy in self._copies])

    def _repr_html_(self) -> str | None:
        return "".join(copy._repr_html_() or "" for copy in self._copies) or None


def same_bits(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Return whether two arrays of one shape and dtype have the same bits.

    Example:
        >>> same_bits(np.array([0.0, np.nan]), np.array([-0.0, np.nan]))
        False
    """
    kind = f"u{x.dtype.itemsize}"
    return np.array_equal(x.view(kind), y.view(kind))


def _restored(
    kind: type[DistributedVariable], strategy: "StrategyBase", states: Sequence[VariableState]
) -> DistributedVariable:
    pairs = zip(states, kind._devices(strategy), strict=True)
    return kind(strategy, [state.restored(device) for state, device in pairs])


def copies_of(variable: Variable) -> Sequence[Any]:
    """Return a variable's copies; one that is not distributed is its own.

    Args:
        variable: The variable.
    """
    return variable._copies if isinstance(variable, DistributedVariable) else (variable,)


def copy_of(variable: Variable, replica: int) -> Any:
    """Return one replica's copy of a variable.

    Args:
        variable: The variable.
        replica: The replica's number.
    """
    return variable._by_replica[replica] if isinstance(variable, DistributedVariable) else variable


class MirroredVariable(DistributedVariable):
    """A variable with one copy per device of its strategy's `variable_devices`, all of them equal.

    What replicas assign is first made one value, as `aggregation` says.

    Args:
        strategy: The strategy whose replicas have the copies.
        copies: The copies, by device.
    """

    __slots__ = ()

    def __init__(self, strategy: "StrategyBase", copies: Sequence[DeviceVariable]) -> None:
        super().__init__(strategy, copies)
        _alive[self._copies[0]._id] = self

    @classmethod
    def _devices(cls, strategy: Any) -> Sequence[devices.Device]:
        return tuple(strategy.variable_devices)

    def _repr_html_(self) -> str | None:
        names = [copy._device.short_name for copy in self._copies]
        return self._copies[0]._repr_html_(f"the same on {', '.join(names)}")

    def _write(self, method: str, value: Any) -> Any:
        if not self._in_replica and not isinstance(value, PerReplica):
            if updated_replica(self._strategy) is not None:
                self.local()._write(method, value)
                return self
            return super()._write(method, value)
        context = get_replica_context()
        if context is None or not self._in_replica:
            count = self._strategy.local_replicas
            check_part_count(value, count, f" for the variable {self.name!r}")
            self._aggregate(self.strategy, method, value)
            return self
        if isinstance(value, list | tuple):
            value = adopt(value, self.dtype)  # One value, not a structure of several.
        self._check_dependence(context, method, value)
        context.merge_call(self._aggregate, (method, value))
        return self.read_value()  # Its own copy's value: to write that alone would part the copies.

    def _check_dependence(self, context: ReplicaContext, method: str, value: Any) -> None:
        """Raise ValueError if replicas cannot assign equal values.

        That is the size of a shard, which is one device's on no replica, also where all shards are
        of one size; and in a recorded function for cards, which compare no values, whatever depends
        on a shard.
        """
        if self.aggregation is not VariableAggregation.NONE:
            return
        depends = context.dependence(value)
        unseen = active_recorder() is not None and not self._are_compared
        if depends == "size" or (depends and unseen):
            raise ValueError(
                self.differing(method, f"a value that depends on the {depends} of a shard")
            )

    @property
    def _are_compared(self) -> bool:
        return not any(is_offloaded(copy._device.backend) for copy in self._copies)

    def differing(self, method: str, received: str) -> str:
        """Return the error text for values that differ between replicas.

        Args:
            method: The method that they call.
            received: What they give it.
        """
        return (
            "You must specify an aggregation method to update a MirroredVariable in Replica "
            "Context. You can do so by passing an explicit value for argument `aggregation` to "
            f"mr.Variable(..), e.g. mr.VariableAggregation.SUM. Received: {method} of {received} "
            f"on the variable {self.name!r}. Without an aggregation, assign the same value on all "
            "replicas, for example the result of get_replica_context().all_reduce."
        )

    def _alike(self, strategy: "StrategyBase", method: str, parts: Sequence[Tensor]) -> Tensor:
        """Return the value that all replicas assign, or raise an error if one differs."""
        from mirrored.ops import checks  # Few programs need it.

        first = strategy.of_first_replica(parts[0])
        batch, few = global_batch(), checks.listed
        if active_recorder() is not None and not self._are_compared:
            return first
        for number, part in enumerate(parts, strategy.first_replica):
            if part is first or (batch is not None and batch.is_empty(number)):
                continue

            def text(_: Any, reference: Any, other: Any, number: int = number) -> str:
                shown = f"{few(reference, None)} in the first replica and {few(other, None)}"
                return self.differing(method, f"{shown} in replica {number}")

            if part.shape != first.shape or part.dtype != first.dtype:
                specs = f"a value of {first.spec} in the first replica and of {part.spec}"
                raise ValueError(self.differing(method, f"{specs} in replica {number}"))
            with only(), devices.device(first._device):
                both_nan = ops.logical_and(first != first, part != part)
                checks.require(text, ops.logical_or(first == part, both_nan), first, part)
        return first

    def _scatter(self, method: str, sparse_delta: Any) -> Any:
        summed = self.aggregation in REDUCED
        if summed and method in ("scatter_update", "scatter_max", "scatter_min"):
            raise NotImplementedError(
                f"{method} is only supported for mirrored variable (variable created within "
                "certain `mr.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` "
                f"aggregation, got: {self.aggregation}."
            )
        context = get_replica_context()
        local = self._strategy.local_replicas
        if self._in_replica and self._strategy.num_replicas_in_sync > local:
            raise NotImplementedError(
                "With several workers, rows of a mirrored variable can be set only outside of "
                f"replicas. Received: {method} on {self.name!r} in a replica. Assign the whole "
                "value."
            )
        if context is None or not self._in_replica or local == 1:
            return super()._scatter(method, sparse_delta)
        if not isinstance(sparse_delta, IndexedSlices):
            return super()._scatter(method, sparse_delta)  # Which says that it is none.
        for tensor in (sparse_delta.values, sparse_delta.indices):
            self._check_dependence(context, method, tensor)
        context.merge_call(self._scatter_all, (method, sparse_delta))
        return self.read_value()

    def _scatter_all(self, strategy: "StrategyBase", method: str, value: Any) -> None:
        """Concatenate the rows of all replicas in replica order, as TensorFlow does."""
        parts = [select(replica, value) for replica in range(strategy.local_replicas)]
        total = parts[0]
        if self.aggregation is VariableAggregation.NONE:
            total = IndexedSlices(
                self._alike(strategy, method, [part.values for part in parts]),
                self._alike(strategy, method, [part.indices for part in parts]),
            )
        elif self.aggregation is not VariableAggregation.ONLY_FIRST_REPLICA:
            with devices.device(self._copies[0].device):
                values = ops.concat([part.values for part in parts], 0)
                if self.aggregation is VariableAggregation.MEAN:
                    values = ops.cast(values / len(parts), values.dtype)
                indices = ops.concat([part.indices for part in parts], 0)
                total = IndexedSlices(values, indices)
        super()._scatter(method, total)

    def _change(self, method: str, change: Change) -> Any:
        if self._in_replica and self._strategy.num_replicas_in_sync > 1:
            raise NotImplementedError(
                "A part of a mirrored variable can be set only outside of replicas, because the "
                f"values of replicas may differ. Received: {method} of a part of {self.name!r} in "
                "a replica. Assign the whole value, which `aggregation` combines."
            )
        return super(DistributedVariable, self)._write("change", change)

    def _aggregate(self, strategy: "StrategyBase", method: str, value: Any) -> None:
        across = strategy.num_replicas_in_sync > strategy.local_replicas
        if across and strategy.local_replicas == 1 and not isinstance(value, DistributedValues):
            value = PerReplica([value])  # The only one here, and not the only one.
        if isinstance(value, DistributedValues):
            # Numbers take the variable's dtype, as in any assign.
            value = PerReplica([adopt(part, self.dtype) for part in value.values])
            batch = global_batch()
            if batch is not None and self.aggregation in REDUCED:
                super()._write(method, self._by_examples(strategy, batch, value))
                return
        elif not is_tensor(value):
            value = adopt(value, self.dtype)
        if self.aggregation is VariableAggregation.NONE:
            parts = value.values if isinstance(value, DistributedValues) else (value,)
            total = self._alike(strategy, method, parts)
        elif self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            total = strategy.of_first_replica(select(0, value)) if across else select(0, value)
        else:
            total = strategy.reduce(ReduceOp[self.aggregation.name], value, axis=None)
        super()._write(method, total)

    def _by_examples(
        self, strategy: "StrategyBase", batch: GlobalBatch, value: PerReplica
    ) -> Tensor:
        """Return the combined value in a step of `fit`: replicas are weighted by their examples."""
        parts: list[Tensor] = []
        for replica, part in enumerate(value.values):
            with strategy.replica_scope(replica):
                if batch.is_empty(strategy.first_replica + replica):
                    part = ops.zeros(part.shape, part.dtype)
                elif self.aggregation is VariableAggregation.MEAN:
                    part = part * batch.share(strategy.first_replica + replica)
            parts.append(part)
        total: Tensor = strategy.reduce(ReduceOp.SUM, PerReplica(parts))
        return total

    def prepare(self, method: str, value: Any) -> list[tuple[DeviceVariable, Prepared]]:
        """Return every copy with the value that the method would write into it."""
        return [pair for copy in self.copies for pair in copy.prepare(method, value)]


_alive: WeakValueDictionary[int, MirroredVariable] = WeakValueDictionary()


def mirrored_by(strategy: "StrategyBase") -> list[MirroredVariable]:
    """Return a strategy's mirrored variables, in the order in which they were created.

    Args:
        strategy: The strategy.
    """
    alive = (reference() for reference in _alive.valuerefs())  # Other threads may create some.
    return [
        variable for variable in alive if variable is not None and variable.strategy is strategy
    ]


class CentralVariable(MirroredVariable):
    """A variable that all replicas of a strategy share, on one device.

    Args:
        strategy: The strategy.
        copies: The variable itself, in a list.
    """

    __slots__ = ()

    @property
    def by_replica(self) -> tuple[DeviceVariable, ...]:
        """The single copy."""
        return self._copies


register_variable(MirroredVariable, lambda variable: variable.copies)
register_variable(CentralVariable, lambda variable: variable.copies)
