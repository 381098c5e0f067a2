"""Variables whose copies on the replicas differ, and are aggregated when they are read.

Metrics count with them: replicas need not wait for each other.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from mirrored import devices, ops
from mirrored._contexts import Within
from mirrored.distribute.context import get_replica_context
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.distribute.distributed_variables import REDUCED, DistributedVariable
from mirrored.distribute.global_batch import global_batch
from mirrored.distribute.per_replica import DistributedValues, PerReplica, check_part_count, select
from mirrored.ops.add_n import tree_sum
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import only
from mirrored.ops.op import Op
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Tensor
from mirrored.program import register_variable
from mirrored.variables import DeviceVariable, Prepared, Variable, VariableAggregation
from mirrored.variables.device_variable import VariableState
from mirrored.variables.scatters import Change

# What on-read variables have over all replicas, by their ids, where a replica asks for that.
_totals: ContextVar[Mapping[int, Tensor]] = ContextVar(
    "mirrored_totals", default=MappingProxyType({})
)
_writes_once: ContextVar[bool] = ContextVar("mirrored_writes_once", default=False)


def writing_once() -> Within:
    """Return a context in which writes outside replicas are made once for all of them.

    Of a variable that is summed the first replica's copy then has the value, and the others zero.
    """
    return Within(_writes_once, True)


def writes_once() -> bool:
    """Return whether code runs once for all replicas; see `writing_once`."""
    return _writes_once.get()


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies are independent, and are aggregated when it is read.

    Replicas read and write their own copies. Outside of them, reading reduces the copies as
    `aggregation` says; so replicas count without waiting for each other.

    Args:
        strategy: The strategy whose replicas have the copies.
        copies: The copies, by replica.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> strategy = mr.MirroredStrategy()
        >>> with strategy.scope():
        ...     seen = mr.Variable(
        ...         0.0,
        ...         synchronization=mr.VariableSynchronization.ON_READ,
        ...         aggregation=mr.VariableAggregation.SUM,
        ...     )
        >>> _ = strategy.run(lambda: seen.assign_add(3.0))
        >>> float(seen)
        6.0
    """

    __slots__ = ()

    def share(self) -> None:
        """Let each replica use its copy; replicas that have come from other workers get new ones.

        What the others had counted with theirs is lost.
        """
        state = None
        for device in self._strategy.devices[len(self._copies) :]:
            if state is None:
                state = self._copies[0].state()
                if self.aggregation is VariableAggregation.SUM:
                    state = state._replace(value=np.zeros_like(state.value))
            self._copies = (*self._copies, state.restored(device))
        self._by_replica = self._copies

    def whole(self) -> VariableState:
        """Return the state of a variable with the aggregated value."""
        states = [copy.state() for copy in self._copies]
        if self.aggregation not in REDUCED:
            return states[0]
        if self._strategy.num_replicas_in_sync > len(states):
            return states[0]._replace(value=self.read_value().numpy())
        values = [state.value for state in states]
        if self._strategy.lanes:
            total = tree_sum(values, np.add)
        else:
            total = np.sum(values, axis=0, dtype=self.dtype)
        if self.aggregation is VariableAggregation.MEAN:
            total = (total / len(states)).astype(self.dtype)
        return states[0]._replace(value=np.asarray(total))

    @staticmethod
    def reading_totals(variables: Sequence[Variable]) -> Within:
        """Return a context in which reads in this replica return the aggregated value.

        The replicas meet here.

        Args:
            variables: What is going to be read; variables of other kinds are left alone.
        """
        context: Any = get_replica_context()
        own: list[SyncOnReadVariable] = []
        known = dict(_totals.get())
        if context is not None and context.num_replicas_in_sync > 1:
            own = [
                variable
                for variable in variables
                if isinstance(variable, SyncOnReadVariable)
                and variable.aggregation in REDUCED
                and id(variable) not in known  # As where a metric's result is made of others'.
            ]
        for op in dict.fromkeys(state.aggregation for state in own):  # All workers in one order.
            alike = [variable for variable in own if variable.aggregation is op]
            sums = context.all_reduce(ReduceOp[op.name], [state.read_value() for state in alike])
            known.update(zip(map(id, alike), sums, strict=True))
        return Within(_totals, known)

    def read_value(self) -> Tensor:
        """Return the running replica's value; outside replicas the aggregated value.

        Raises:
            ValueError: It is read outside replicas, and has no aggregation.
        """
        return super().read_value()

    def _scatter(self, method: str, sparse_delta: Any) -> Any:
        raise NotImplementedError(
            f"Variables with `synchronization=ON_READ` doesn't support `{method}`. Received: the "
            f"variable {self.name!r}. Assign the whole value of a replica's copy."
        )

    def _change(self, method: str, change: Change) -> Any:
        if not self._in_replica:
            raise NotImplementedError(
                "A part of a variable with `synchronization=ON_READ` can be set only in a "
                f"replica. Received: {method} of a part of {self.name!r}."
            )
        return super()._change(method, change)

    def _value(self, read: Callable[[DeviceVariable], Tensor]) -> Tensor:
        if self._in_replica:
            known = _totals.get()
            return super()._value(read) if id(self) not in known else known[id(self)]
        if self.aggregation is VariableAggregation.NONE:
            raise ValueError(
                "Could not convert from `mr.VariableAggregation` VariableAggregation.NONE to "
                f"`mr.distribute.ReduceOp` type. Received: a read of {self.name!r} outside of "
                "replicas, and its copies differ. Create it with an `aggregation`, or read its "
                "copies with strategy.experimental_local_results."
            )
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return self._strategy.of_first_replica(read(self._copies[0]))
        if len(self._copies) == 1 == self._strategy.num_replicas_in_sync:
            return read(self._copies[0])
        op = ReduceOp[self.aggregation.name]
        parts = PerReplica([read(copy) for copy in self._copies])
        return cast(Tensor, self._strategy.reduce(op, parts, axis=None))

    @property
    def counts(self) -> bool:
        """Whether the running code may write it: not a replica without examples in `fit`'s step."""
        batch, context = global_batch(), get_replica_context()
        if batch is None or context is None:
            return True
        return not batch.is_empty(context.replica_id_in_sync_group)

    def _write(self, method: str, value: Any) -> Any:
        if self.counts:
            super()._write(method, value)
        return self.local() if self._in_replica else self

    def prepare(self, method: str, value: Any) -> list[tuple[DeviceVariable, Prepared]]:
        """Return the copies that the method would write to, with their new values.

        In a replica that is its own copy. Outside, a sum is given out in equal parts; or, within
        `writing_once`, to the first replica.
        """
        if self._in_replica:
            return self.local().prepare(method, value)
        check_part_count(value, len(self._copies), f" for the variable {self.name!r}")
        summed = self.aggregation is VariableAggregation.SUM
        if summed and writes_once():
            return self._to_first(method, value)
        if summed and method != "assign":
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context when "
                "aggregation is set to `mr.VariableAggregation.SUM`. Received: the variable "
                f"{self.name!r}. Call it in replica context, or use `assign`."
            )
        pairs: list[tuple[DeviceVariable, Prepared]] = []
        for replica, copy in enumerate(self._copies):
            part = select(replica, value) if isinstance(value, DistributedValues) else value
            if summed and part is value:
                part = self._share(replica, value)
            pairs += copy.prepare(method, part)
        return pairs

    def _to_first(self, method: str, value: Any) -> list[tuple[DeviceVariable, Prepared]]:
        """Return the copies' new values if the first replica holds the whole value."""
        first, *others = self._copies
        if self._strategy.num_replicas_in_sync > len(self._copies):  # The same on all workers.
            is_first = self._strategy.first_replica == 0
            with only():
                old = first.read_value()
            value = _OF_FIRST_REPLICA(adopt(value, self.dtype), old, is_first=is_first)
        pairs = first.prepare(method, value)
        if method == "assign" and others:
            zeros = ops.zeros(self.shape, self.dtype)
            pairs += [pair for copy in others for pair in copy.prepare(method, zeros)]
        return pairs

    def _share(self, replica: int, value: Any) -> Tensor:
        """Return a replica's part of a value that is the sum of the copies."""
        count, number = self._strategy.num_replicas_in_sync, self._strategy.first_replica + replica
        with devices.device(self._copies[replica].device):
            total = adopt(value, self.dtype)
            if count == 1:
                return total
            if self.dtype in FLOATS:
                return total / float(count)
            # Shares are whole numbers: the first replica's is what the others leave.
            share = ops.cast(total / count, self.dtype)
            return share if number else total - share * (count - 1)


def _keep_of_first(xp: Any, out: Any, x: Any, _: Any, *, is_first: bool) -> None:
    xp.copyto(out, x if is_first else 0)


# The value on the worker with the first replica, zero on the others; beside the variable's, so that
# all record it, of constants too. Variables alone call it: it is not in the table of ops.
_OF_FIRST_REPLICA = Op(
    name="OfFirstReplica", infer=lambda x, _, is_first: x, kernel=_keep_of_first, may_alias=(0,)
)

register_variable(SyncOnReadVariable, lambda variable: variable.copies)
