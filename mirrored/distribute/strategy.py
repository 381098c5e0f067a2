"""Strategies: on which devices a model is trained, and what a variable made for them is.

A strategy's scope makes variables with a copy on every replica, and `run` calls a function on all.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mirrored import _nest, devices, ops
from mirrored.devices import Device
from mirrored.distribute.context import (
    ReplicaContext,
    enter,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
    set_default_strategy,
)
from mirrored.distribute.cross_device_ops import CrossDeviceOps, ReductionToOneDevice
from mirrored.distribute.reduce_op import ReduceOp
from mirrored.distribute.replicas import merge_alone, run_replicas
from mirrored.distribute.values import MirroredVariable, PerReplica, regroup, select
from mirrored.ops.dispatch import adopt
from mirrored.ops.listeners import only
from mirrored.ops.random import ShardPosition
from mirrored.ops.recording import active_recorder
from mirrored.ops.tensor import Tensor
from mirrored.program import Function, Team
from mirrored.variables import Variable, variable_creator_scope


class Strategy:
    """What all strategies have in common. Use `MirroredStrategy`."""

    def __init__(self, cross_device_ops: CrossDeviceOps, executor: str = "auto") -> None:
        """Name the collectives and the executor to use."""
        self._cross_device_ops = cross_device_ops
        self._executor = executor
        self._team: Team | None = None

    @property
    def executor(self) -> str:
        """Who runs recorded steps: "threads", "serial" or "auto"."""
        return self._executor

    def team(self, threads: int) -> Team | None:
        """Return the threads that run recorded steps, which start with the first of them.

        Args:
            threads: How many they are, the caller included; 1: there are none.
        """
        if threads == 1:
            return None
        if self._team is None or self._team.size != threads:
            self.close()
            self._team = Team(threads)
        return self._team

    def close(self) -> None:
        """End the threads that recorded steps were run by; another step starts new ones.

        They also end when the strategy is collected and when the interpreter exits.

        Example:
            >>> import mirrored as mr
            >>> mr.MirroredStrategy(["CPU:0"]).close()
        """
        team, self._team = self._team, None
        if team is not None:
            team.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The logical device of each replica."""
        raise NotImplementedError

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas gradients are summed over."""
        return 1

    @property
    def shares_host_memory(self) -> bool:
        """Whether the host reads the memory of all replicas' devices."""
        return all(device.backend.host_readable for device in self.devices)

    def replica_device_scope(self, replica: int) -> AbstractContextManager[None]:
        """Return the device scope that one replica runs in."""
        return devices.device(self.devices[replica])

    @contextlib.contextmanager
    def replica_scope(self, replica: int) -> Iterator[None]:
        """Work for one replica: on its device, and what is raised says which one it was."""
        try:
            with self.replica_device_scope(replica):
                yield
        except BaseException as error:
            note = f"Raised in replica {replica} on {self.devices[replica].full_name}."
            if note not in getattr(error, "__notes__", ()):  # It may pass here more than once.
                error.add_note(note)
            raise

    @contextlib.contextmanager
    def scope(self) -> Iterator["Strategy"]:
        """Enter the strategy: variables that are made inside have a copy on every replica.

        Raises:
            RuntimeError: Another strategy is in force, or a replica is running.
        """
        current = get_strategy()
        if has_strategy() and current is not self:
            raise RuntimeError(
                "Mixing different mr.distribute.Strategy objects: "
                f"{current} is not {self}. Leave the scope of the one first."
            )
        _require_cross_replica(
            "A strategy's scope is entered in the cross-replica context, and so are `fit`, "
            "`evaluate` and `predict`. Received: a call inside a replica, from the function that "
            "strategy.run calls. Make the call outside it."
        )
        # Entered again, it must not mirror twice.
        entered = current is self
        creator = variable_creator_scope(self._create_variable)
        with enter(self, None), contextlib.nullcontext() if entered else creator:
            yield self

    def owns(self, variable: Variable) -> bool:
        """Return whether a variable was made in this strategy's scope."""
        raise NotImplementedError

    def _create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        return next_creator(**kwargs)

    def run(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...] | list[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `fn` once a replica, on that replica's device, and return what it returns.

        Args:
            fn: The function.
            args: Its positional arguments; per-replica values are taken apart.
            kwargs: Its keyword arguments, likewise.

        Returns:
            A structure of per-replica values; of plain ones where there is one replica.

        Raises:
            ValueError: `args` is no list or tuple, or the replicas return different structures.
            RuntimeError: The replicas made different numbers of merge calls, or this is called
                in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> float(strategy.run(lambda x: x + 1.0, args=(mr.constant(1.0),)))
            2.0
        """
        if not isinstance(args, list | tuple):
            raise ValueError(f"positional args must be a list or tuple, got {type(args)}")
        if not callable(fn):
            raise TypeError(f"`fn` must be callable. Received: {fn!r}")
        _require_cross_replica(
            "strategy.run is called in the cross-replica context. Received: a call inside a "
            "replica, from the function that another run calls. Call the function itself."
        )
        kwargs = kwargs or {}
        recorder = active_recorder()
        recorded = Function.behind(fn)
        if recorder is not None:
            recorder.run_by(self)
        elif recorded is not None:
            # Recorded as a whole, so that its replicas can meet and run side by side.
            function, bound = recorded
            return function.under(self, self.run)(*bound, *args, **kwargs)
        count = self.num_replicas_in_sync
        self._check_values((args, kwargs))
        with self.scope():
            results = run_replicas(
                self,
                fn,
                [(tuple(select(i, list(args))), select(i, kwargs)) for i in range(count)],
                self._positions((args, kwargs)),
            )
        return regroup(results) if count > 1 else results[0]

    def _check_values(self, structure: Any) -> None:
        count = self.num_replicas_in_sync
        for leaf in _nest.flatten(structure):
            if isinstance(leaf, PerReplica) and len(leaf.values) != count:
                raise ValueError(
                    f"A per-replica value has one part a replica, here {count}. Received: "
                    f"{len(leaf.values)} parts."
                )

    def _positions(self, structure: Any) -> list[ShardPosition]:
        run = object()
        starts: Sequence[int] = [0] * self.num_replicas_in_sync
        for leaf in _nest.flatten(structure):
            if isinstance(leaf, PerReplica) and leaf.first_examples is not None:
                starts = leaf.first_examples
                break
        return [ShardPosition(run, i, start) for i, start in enumerate(starts)]

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None = None) -> Any:
        """Return the sum or mean of a value over the replicas, and over an axis of its parts.

        Args:
            reduce_op: `ReduceOp.SUM`, `ReduceOp.MEAN` or their names in any case.
            value: Per-replica values, or a structure of them.
            axis: None reduces over the replicas alone; an axis is reduced too, and a mean then
                divides by the number of all elements along it, whatever the parts' sizes.

        Raises:
            ValueError: An unknown `reduce_op`, an `axis` that is not there, or the sum of a value
                that is not per-replica.
            RuntimeError: The call is made in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> float(strategy.reduce("sum", mr.constant([1.0, 2.0]), axis=0))
            3.0
        """
        op = ReduceOp.of(reduce_op)
        _require_cross_replica(
            "mr.distribute.Strategy.reduce requires cross-replica context, use "
            "get_replica_context().all_reduce() instead."
        )
        self._check_values(value)
        with enter(self, None):
            return _nest.map_structure(lambda leaf: self._reduce_leaf(op, leaf, axis), value)

    def _reduce_leaf(self, op: ReduceOp, leaf: Any, axis: Any) -> Tensor:
        parts = [adopt(part, None) for part in self._parts(op, leaf)]
        if axis is None:
            return self._reduce_parts(op, parts)
        for part in parts:
            if not isinstance(axis, int) or not -part.ndim <= axis < part.ndim:
                raise ValueError(
                    f"`axis` = {axis!r} out of range for `value` with rank {part.ndim}"
                )
        sums = []
        for part in parts:
            with devices.device(part._device):
                sums.append(ops.reduce_sum(part, axis=axis))
        total = self._reduce_parts(ReduceOp.SUM, sums)
        if op is ReduceOp.SUM:
            return total
        with devices.device(total._device):
            return total / float(sum(part.shape[axis] for part in parts))

    def _parts(self, op: ReduceOp, leaf: Any) -> list[Any]:
        count = self.num_replicas_in_sync
        if isinstance(leaf, MirroredVariable) and leaf.strategy is self:
            return [copy.read_value() for copy in leaf.copies]
        if isinstance(leaf, PerReplica):
            return list(leaf.values)
        if count > 1 and op is ReduceOp.SUM:
            raise ValueError(
                f"A non-DistributedValues value {leaf} cannot be reduced with the given reduce "
                f"op {op}."
            )
        return [leaf]

    def _reduce_parts(self, op: ReduceOp, parts: list[Tensor]) -> Tensor:
        destination = parts[0]._device if len(parts) == 1 else devices.get_device("CPU:0")
        return self._cross_device_ops.reduce(op, parts, destination)

    def batch_all_reduce(self, reduce_op: ReduceOp | str, values: Sequence[Any]) -> list[Any]:
        """Reduce many per-replica values; each replica gets every result on its device.

        Args:
            reduce_op: Sum or mean.
            values: Per-replica tensors; a tensor that all replicas share counts once a replica.
        """
        # A tensor may come from elsewhere, such as a constant made outside the replicas.
        batch = [
            [select(i, value).copy_to(device) for i, device in enumerate(self.devices)]
            for value in values
        ]
        reduced = self._cross_device_ops.batch_all_reduce(reduce_op, batch)
        return [PerReplica(parts) for parts in reduced]

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the parts of a per-replica value, by replica; always a tuple.

        A structure of per-replica values gives one structure a replica.

        Example:
            >>> import mirrored as mr
            >>> mr.MirroredStrategy(["CPU:0"]).experimental_local_results(3)
            (3,)
        """
        if isinstance(value, list | tuple | dict):
            return tuple(
                _nest.map_structure(functools.partial(_local_part, self, replica), value)
                for replica in range(self.num_replicas_in_sync)
            )
        if isinstance(value, PerReplica):
            return value.values
        return value.copies if isinstance(value, MirroredVariable) else (value,)


class DefaultStrategy(Strategy):
    """What is in force outside all scopes: one replica, placed as any other code is."""

    def __init__(self) -> None:
        """Make the strategy and the context of its only replica."""
        super().__init__(ReductionToOneDevice())
        self.only_replica = ReplicaContext(self, 0, merge_alone(self))

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device that the placement rules choose now."""
        return (devices.place("Identity", ("GPU", "CPU")),)

    def replica_device_scope(self, replica: int) -> AbstractContextManager[None]:
        """Return a scope that changes nothing."""
        return contextlib.nullcontext()

    def batch_all_reduce(self, reduce_op: ReduceOp | str, values: Sequence[Any]) -> list[Any]:
        """Return the values: they are all that there is to reduce."""
        ReduceOp.of(reduce_op)
        with only():
            return [ops.identity(value) for value in values]

    def _reduce_parts(self, op: ReduceOp, parts: list[Tensor]) -> Tensor:
        return parts[0]

    def owns(self, variable: Variable) -> bool:
        """Return whether a variable was made outside all scopes."""
        return not isinstance(variable, MirroredVariable)


def _require_cross_replica(otherwise: str) -> None:
    """Raise RuntimeError in a replica; outside all scopes code is in neither of the two."""
    if has_strategy() and not in_cross_replica_context():
        raise RuntimeError(otherwise)


def _local_part(strategy: Strategy, replica: int, leaf: Any) -> Any:
    parts = strategy.experimental_local_results(leaf)
    return parts[replica] if len(parts) > 1 else parts[0]


DEFAULT_STRATEGY = DefaultStrategy()
set_default_strategy(DEFAULT_STRATEGY)
