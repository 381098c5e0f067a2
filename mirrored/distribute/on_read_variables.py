"""Variables whose copies on the replicas differ, and are aggregated when they are read.

Metrics count with them: replicas need not wait for each other.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import devices, ops
from mirrored._contexts import Within
from mirrored.distribute.context import get_replica_context
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.distribute.distributed_variables import REDUCED, DistributedVariable
from mirrored.distribute.global_batch import global_batch
from mirrored.distribute.per_replica import DistributedValues, PerReplica, check_part_count, select
from mirrored.errors import WorkersChangedError
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

    Attributes:
        kept: The copies of the replicas of all workers, as rows; None where no worker may die.

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

    __slots__ = ("_is_written", "kept")

    def __init__(self, strategy: Any, copies: Sequence[DeviceVariable]) -> None:
        self.kept: DeviceVariable | None = None
        self._is_written = False  # Whether replicas have written since these were gathered.
        super().__init__(strategy, copies)

    def share(self) -> None:
        """Let each replica use its copy; those of other workers get new ones."""
        devices = self._strategy.devices
        new = [self._copies[0].state().restored(place) for place in devices[len(self._copies) :]]
        self._copies = self._by_replica = (*self._copies[: len(devices)], *new)

    # ------------------------------------------------------------------ the death of workers

    @property
    def is_kept_outside(self) -> bool:
        """Whether the code runs outside replicas, and workers may die."""
        return self.kept is not None and not self._in_replica

    def keep(self, rows: NDArray[Any] | None = None) -> None:
        """Keep what the replicas of all workers have from now on, in case that workers die.

        Args:
            rows: A row for each replica; None: all have the first copy's value.
        """
        state = self._copies[0].state()
        if rows is None:
            count = self._strategy.num_replicas_in_sync
            rows = np.repeat(state.value[np.newaxis], count, axis=0)
        state = state._replace(value=rows, name=f"{self.name}/replicas")
        self.kept = state.restored(self._copies[0].device)

    def rows(self) -> NDArray[Any]:
        """Return what the replicas of all workers have, a row for each."""
        if self.kept is not None:
            return np.array(self.kept.numpy(), order="C")
        return np.stack([copy.numpy() for copy in self._copies])  # Of the only worker.

    def total(self) -> NDArray[Any]:
        """Return what `rows` are together, on the host."""
        return self._aggregated([*self.rows()])

    def pop_written(self) -> bool:
        """Return whether replicas have written it since the last call, and it is kept."""
        is_written, self._is_written = self._is_written, False
        return is_written and self.kept is not None

    def take_over(self) -> None:
        """Give each replica its kept value after workers have died.

        With another number of replicas, the first one gets the sum.
        """
        self._is_written = False
        if self.kept is None:
            return
        strategy, rows = self._strategy, self.kept.numpy()
        count = strategy.num_replicas_in_sync
        if len(rows) != count:
            rows = np.repeat(self._aggregated(rows)[np.newaxis], count, axis=0)
            if self.aggregation is VariableAggregation.SUM:
                rows[1:] = 0
            self.keep(rows)
        for copy, row in zip(self._copies, rows[strategy.first_replica :], strict=False):
            copy.assign(row)
        if count == len(self._copies):
            self.kept = None  # The last worker has nobody to keep them for.

    def _aggregated(self, values: Sequence[Any]) -> NDArray[Any]:
        """Return what the values of replicas are together, on the host."""
        if self.aggregation not in REDUCED:
            return np.asarray(values[0])
        if self._strategy.lanes:
            total = tree_sum(list(values), np.add)
        else:
            total = np.sum(values, axis=0, dtype=self.dtype)
        if self.aggregation is VariableAggregation.MEAN:
            total = (total / len(values)).astype(self.dtype)
        return np.asarray(total)

    def _kept_pairs(self, method: str, value: Any) -> list[tuple[DeviceVariable, Prepared]]:
        """Return what a write outside replicas makes of the kept values."""
        if self.kept is None or isinstance(value, DistributedValues):
            return []
        with only(), devices.device(self.kept.device):
            value, count = adopt(value, self.dtype), self.kept.shape[0]
            rows = [value] * count
            if self.aggregation is VariableAggregation.SUM:
                if writes_once():
                    rows[1:] = [ops.zeros(self.shape, self.dtype)] * (count - 1)
                else:
                    rows = [self._share(number, value) for number in range(count)]
            return self.kept.prepare(method, ops.stack(rows))

    def whole(self) -> VariableState:
        """Return the state of a variable with the aggregated value."""
        states = [copy.state() for copy in self._copies]
        if self.aggregation not in REDUCED:
            return states[0]
        if self._strategy.num_replicas_in_sync > len(states):
            return states[0]._replace(value=self.read_value().numpy())
        return states[0]._replace(value=self._aggregated([state.value for state in states]))

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

    def _value(self, *, lasts: bool) -> Tensor:
        if self._in_replica:
            known = _totals.get()
            return super()._value(lasts=lasts) if id(self) not in known else known[id(self)]
        with only():
            return self._of_all(DeviceVariable.read_value if lasts else DeviceVariable._view)

    def _of_all(self, read: Callable[[DeviceVariable], Tensor]) -> Tensor:
        if self.aggregation is VariableAggregation.NONE:
            raise ValueError(
                "Could not convert from `mr.VariableAggregation` VariableAggregation.NONE to "
                f"`mr.distribute.ReduceOp` type. Received: a read of {self.name!r} outside of "
                "replicas, and its copies differ. Create it with an `aggregation`, or read its "
                "copies with strategy.experimental_local_results."
            )
        if len(self._copies) == 1 == self._strategy.num_replicas_in_sync:
            return read(self._copies[0])
        try:
            if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
                return self._strategy.of_first_replica(read(self._copies[0]))
            parts = PerReplica([read(copy) for copy in self._copies])
            op = ReduceOp[self.aggregation.name]
            return self._strategy.reduce(op, parts, axis=None)
        except WorkersChangedError:  # All workers that are left take this path.
            if self.kept is None:
                raise
            return adopt(self._aggregated(self.kept.numpy()), self.dtype)

    @property
    def counts(self) -> bool:
        """Whether the running code may write it: not a replica without examples in `fit`'s step.

        Replicas ask it before they write, also those that may not.
        """
        self._is_written = self._is_written or self._in_replica
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
            return self._to_first(method, value) + self._kept_pairs(method, value)
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
                with devices.device(copy.device):
                    part = self._share(self._strategy.first_replica + replica, value)
            pairs += copy.prepare(method, part)
        return pairs + self._kept_pairs(method, value)

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

    def _share(self, number: int, value: Any) -> Tensor:
        """Return a replica's part of a value that is the sum of the copies."""
        count, total = self._strategy.num_replicas_in_sync, adopt(value, self.dtype)
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
