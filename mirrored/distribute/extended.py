"""The methods of strategies for custom training loops and optimizers.

It is apart from the strategy, as in TensorFlow, so that what most people use stays easy to see.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import _nest, _overrides, devices
from mirrored.distribute.context import check_cross_replica, enter
from mirrored.distribute.cross_device_ops.collectives import per_replica_copies
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.distribute.distributed_variables import (
    DistributedVariable,
    MirroredVariable,
    copies_of,
)
from mirrored.distribute.per_replica import Mirrored, check_parts, select
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.variables import Variable


class StrategyExtended(_overrides.Subclassable):
    """The further methods of a strategy, as `strategy.extended`.

    Args:
        strategy: The strategy.

    Example:
        >>> import mirrored as mr
        >>> mr.MirroredStrategy(["CPU:0"]).extended.worker_devices
        ('/job:localhost/replica:0/task:0/device:CPU:0',)
    """

    __overrides__ = _overrides.STRATEGY_EXTENDED

    def __init__(self, strategy: StrategyBase) -> None:
        self._strategy = strategy

    def __repr__(self) -> str:
        return f"<extended of {self._strategy!r}>"

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The full names of the devices that replicas run on."""
        return tuple(device.full_name for device in self._strategy.devices)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The full names of the devices that have copies of the variables."""
        return tuple(device.full_name for device in self._strategy.variable_devices)

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Return whether a variable belongs to this strategy.

        Args:
            v: The variable.
        """
        return self._strategy.owns(v)

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Call a function on every copy of a variable, on the copy's device.

        Args:
            var: The variable.
            fn: Called as `fn(copy, *args, **kwargs)`; values with one part a replica are taken
                apart.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
            group: Whether the results come as one value with a copy a replica, or as a tuple.

        Returns:
            What `fn` returned for each copy.

        Raises:
            ValueError: The variable was made in another strategy's scope.
            RuntimeError: The call is made in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> with strategy.scope():
            ...     v = mr.Variable(1.0)
            >>> _ = strategy.extended.update(v, lambda copy, x: copy.assign_add(x), args=(2.0,))
            >>> float(v)
            3.0
        """
        check_cross_replica(
            "Method requires being in cross-replica context, use get_replica_context().merge_call()"
        )
        if not isinstance(var, Variable) or not self._strategy.owns(var):
            raise ValueError(
                f"A strategy updates only variables created in its scope. Received: {var!r:.80} "
                f"for {self._strategy}. Create the variable inside `with strategy.scope():`."
            )
        check_parts((tuple(args), kwargs or {}), self._strategy.local_replicas)
        copies, results = copies_of(var), dict[int, Any]()
        updating: Sequence[int] = range(self._strategy.local_replicas)
        if isinstance(var, MirroredVariable):
            updating = self._strategy.updating_replicas
        for replica, copy in zip(updating, copies, strict=True):
            local = select(replica, (tuple(args), kwargs or {}))
            # As in TensorFlow other variables are those of the copy's replica.
            with enter(self._strategy, None, updated=replica), devices.device(copy.device):
                results[id(copy)] = fn(copy, *local[0], **local[1])
        if not group:
            return tuple(results.values())
        users = var.by_replica if isinstance(var, DistributedVariable) else copies
        return Mirrored([results[id(copy)] for copy in users])

    def reduce_to(
        self, reduce_op: ReduceOp | str, value: Any, destinations: Variable | str | None = None
    ) -> Any:
        """Return the sum or mean of the replicas' values, on the devices that are named.

        Args:
            reduce_op: `ReduceOp.SUM`, `ReduceOp.MEAN` or their names in any case.
            value: Per-replica values, or a structure of them.
            destinations: A device; or a variable: the devices of its copies. None: as `reduce`.

        Returns:
            A tensor, or a `Mirrored` value where `destinations` is a variable with several copies;
            in the structure of `value`.

        Raises:
            ValueError: An unknown `reduce_op`.
            InvalidArgumentError: There is no such device.
            RuntimeError: The call is made in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> mr.config.experimental.set_simulated_gpus(2)
            >>> strategy = mr.MirroredStrategy()
            >>> losses = strategy.run(lambda: mr.constant(1.5))
            >>> float(strategy.extended.reduce_to("sum", losses, "GPU:1"))
            3.0
        """
        reduced = self._strategy.reduce(reduce_op, value, axis=None)
        if destinations is None:
            return reduced
        if isinstance(destinations, DistributedVariable):
            targets = [devices.get_device(copy.device) for copy in destinations.by_replica]
            return _nest.map_structure(
                lambda leaf: Mirrored(per_replica_copies(leaf, targets)), reduced
            )
        name = destinations.device if isinstance(destinations, Variable) else destinations
        target = devices.get_device(name)
        return _nest.map_structure(lambda leaf: leaf.copy_to(target), reduced)

    def batch_reduce_to(
        self, reduce_op: ReduceOp | str, value_destination_pairs: Sequence[tuple[Any, Any]]
    ) -> list[Any]:
        """Return the reductions of several values; see `reduce_to`.

        Args:
            reduce_op: Sum or mean.
            value_destination_pairs: Each value with its destinations.

        Raises:
            ValueError: An unknown `reduce_op`.
            InvalidArgumentError: There is no such device.
            RuntimeError: The call is made in a replica's context.
        """
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]
