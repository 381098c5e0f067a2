"""Which strategy and which replica the running code belongs to.

Code is in a replica's context, where it computes on that replica's part, or in the cross-replica
context, where it deals with all replicas at once.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from mirrored import _nest
from mirrored._absent import absent_members
from mirrored._arguments import explained
from mirrored._contexts import Within
from mirrored._numbers import as_integer
from mirrored._types import late_type
from mirrored.backends.product_settings import one_thread
from mirrored.devices import hold_devices, refuse_reset_where
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.global_batch import global_batch
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import active_listeners, active_recorder, only
from mirrored.ops.op import Op, OpCall
from mirrored.ops.tensor import Tensor
from mirrored.program import register_in_force
from mirrored.variables import set_variable_creators

if TYPE_CHECKING:
    from mirrored.distribute.strategy_base import StrategyBase
else:
    StrategyBase = late_type("mirrored.distribute.strategy_base", "StrategyBase")

MergeCall = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


@absent_members("tf.distribute.ReplicaContext")
class ReplicaContext:
    """The context of one replica, for functions that `strategy.run` calls.

    Args:
        strategy: The strategy that runs the replica.
        number: The replica's number among those of this process, counted from 0.
        merge: What hands over to the cross-replica context.
        dependence: From a value to what it depends on; see `dependence`.

    Example:
        >>> import mirrored as mr
        >>> strategy = mr.MirroredStrategy(["CPU:0"])
        >>> strategy.run(lambda: mr.distribute.get_replica_context().replica_id_in_sync_group)
        0
    """

    def __init__(
        self,
        strategy: "StrategyBase",
        number: int,
        merge: MergeCall,
        dependence: Callable[[Any], str] | None = None,
    ) -> None:
        self._dependence = dependence
        self._made: set[int] = set()
        self._strategy = strategy
        self._number = number
        self._merge = merge

    @property
    def strategy(self) -> Any:
        """The strategy that runs this replica."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica among all, counted from 0."""
        recorder = active_recorder()
        if recorder is not None:
            recorder.ask_number()
        return self._strategy.first_replica + self._number

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self._strategy.num_replicas_in_sync

    def note_made(self, thing: object) -> None:
        """Note that this replica created an object, which the others may not have.

        Args:
            thing: The object.
        """
        self._made.add(id(thing))

    def made(self, thing: object) -> bool:
        """Return whether this replica created an object.

        Args:
            thing: The object.
        """
        return id(thing) in self._made

    def dependence(self, value: Any) -> str:
        """Return "size" or "examples", if a value depends on those of this replica's shard."""
        return "" if self._dependence is None else self._dependence(value)

    def merge_call(
        self,
        merge_fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Wait for all replicas, then call a function once with the values of all of them.

        Args:
            merge_fn: Called as `merge_fn(strategy, *args, **kwargs)` in the cross-replica
                context, with per-replica values where the replicas' arguments differ.
            args: This replica's positional arguments.
            kwargs: This replica's keyword arguments.

        Returns:
            This replica's part of what `merge_fn` returns.

        Raises:
            RuntimeError: Another replica ended without making this call, or this is not called by
                the replica whose context it is.

        Example:
            >>> import mirrored as mr
            >>> mr.config.experimental.set_simulated_gpus(2)
            >>> def step():
            ...     context = mr.distribute.get_replica_context()
            ...     largest = lambda strategy, number: max(number.values)
            ...     return context.merge_call(largest, args=(context.replica_id_in_sync_group,))
            >>> mr.MirroredStrategy().run(step)
            1
        """
        if get_replica_context() is not self:
            # There is nobody to wait for: the call would never return.
            raise RuntimeError(
                f"The context of replica {self.replica_id_in_sync_group} is not the one that is "
                "running. Use its merge_call and all_reduce, and gradients through all_reduce, "
                "only inside the function that strategy.run calls."
            )
        recorder = active_recorder()
        if recorder is not None and self.num_replicas_in_sync > 1:
            recorder.meet()
        return self._merge(merge_fn, tuple(args), kwargs or {})

    def all_reduce(
        self, reduce_op: ReduceOp | str, value: Any, options: CommunicationOptions | None = None
    ) -> Any:
        """Return the sum or the mean of all replicas' values, on every replica.

        Args:
            reduce_op: `ReduceOp.SUM`, `ReduceOp.MEAN` or their names in any case.
            value: A tensor, or a structure of them; every replica gives the same shapes. A
                gradient flows through it: that of a sum is the sum of the gradients.
            options: `CommunicationOptions`, such as the size of packs; None: those by default.

        Raises:
            ValueError: An unknown `reduce_op`, or structures that differ between replicas.
            InvalidArgumentError: Shapes or dtypes that differ between replicas.
            RuntimeError: Gradients are reduced in a step that `fit` runs, where optimizers do it.

        Example:
            >>> import mirrored as mr
            >>> mr.config.experimental.set_simulated_gpus(2)
            >>> def step():
            ...     context = mr.distribute.get_replica_context()
            ...     return context.all_reduce("sum", mr.constant([1.0, 2.0]))
            >>> mr.MirroredStrategy().run(step).values[1].numpy()
            array([2., 4.], dtype=float32)
        """
        op = ReduceOp.of(reduce_op)
        local = [adopt(leaf, None) for leaf in _nest.flatten(value)]
        batch = global_batch()
        if batch is not None:
            batch.check_no_gradients(local)
        with only():  # The tapes are told below of one op instead of the copies and sums.
            reduced = self.merge_call(_batch_all_reduce, (op, local, options))
        for tensor, result in zip(local, reduced, strict=True):
            for listener in active_listeners():
                listener.on_op(ALL_REDUCE, (tensor,), {"reduce_op": op, "context": self}, result)
        return _nest.pack_like(value, reduced)

    def all_gather(self, value: Any, axis: int, options: CommunicationOptions | None = None) -> Any:
        """Return all replicas' values, concatenated along an axis, on every replica.

        Args:
            value: A tensor, or a structure of them. The replicas' sizes may differ along `axis`
                alone. A gradient flows through it: the sum over the replicas of its own part's.
            axis: The axis, counted from the end where it is negative.
            options: Accepted for compatibility.

        Raises:
            ValueError: `axis` is not there, or structures differ between replicas.
            InvalidArgumentError: The shapes differ along another axis.

        Example:
            >>> import mirrored as mr
            >>> mr.config.experimental.set_simulated_gpus(2)
            >>> def step():
            ...     context = mr.distribute.get_replica_context()
            ...     return context.all_gather(mr.constant([context.replica_id_in_sync_group]), 0)
            >>> mr.MirroredStrategy().run(step).values[1].numpy()
            array([0, 1], dtype=int32)
        """
        known = as_integer(axis)
        axis = axis if known is None else known
        local = [adopt(leaf, None) for leaf in _nest.flatten(value)]
        with only():
            gathered, starts = self.merge_call(_batch_all_gather, (axis, local))
        for tensor, result, start in zip(local, gathered, starts, strict=True):
            attrs = {"axis": axis, "context": self, "start": start}
            for listener in active_listeners():
                listener.on_op(ALL_GATHER, (tensor,), attrs, result)
        return _nest.pack_like(value, gathered)


def _batch_all_reduce(
    strategy: "StrategyBase", op: Any, values: list[Any], options: Any
) -> list[Any]:
    # Equal arguments of all replicas arrive as one; the operation is the same on each.
    return strategy.batch_all_reduce(op, values, options)


def _batch_all_gather(strategy: "StrategyBase", axis: Any, values: list[Any]) -> tuple[Any, Any]:
    # The replicas' numbers, which are equal objects but for small ones: one, where they agree.
    axes = getattr(axis, "values", (axis,))
    if all(other == axes[0] for other in axes):
        axis = axes[0]
    gathered = [strategy.batch_all_gather(value, axis) for value in values]
    return [tensors for tensors, _ in gathered], [starts for _, starts in gathered]


def _summed_gradient(context: Any, op: ReduceOp, g: Tensor) -> Tensor:
    """Return one replica's gradient for a value that every replica has a copy of."""
    batch = global_batch()
    if batch is None or not batch.of_means:
        reduced: Tensor = context.all_reduce(op, g)
        return reduced
    # The optimizer weighs by the shard what this replica makes of it; the others' parts have to be
    # weighed by theirs.
    weight = batch.loss_weight(context.replica_id_in_sync_group)
    total: Tensor = context.all_reduce(op, g * weight)
    return total / weight if weight else total


# What tapes see of a collective. It is not in the table of ops: the strategy computes it.
ALL_REDUCE = Op(
    name="CollectiveReduceV2",
    infer=lambda x, reduce_op, context: x,
    view=lambda x, reduce_op, context: x,
    gradient=lambda call, g: [_summed_gradient(call.attrs["context"], call.attrs["reduce_op"], g)],
)


def _grad_all_gather(call: OpCall, g: Tensor) -> list[Tensor | None]:
    """Return this replica's part of the gradients for the gathered tensor."""
    axis, start = call.attrs["axis"], call.attrs["start"]
    total = _summed_gradient(call.attrs["context"], ReduceOp.SUM, g)
    (x,) = call.inputs
    index: list[Any] = [slice(None)] * x.ndim
    index[axis] = slice(start, start + x.shape[axis])
    return [total[tuple(index)]]


ALL_GATHER = Op(
    name="CollectiveGatherV2",
    infer=lambda x, axis, context, start: x,
    view=lambda x, axis, context, start: x,
    gradient=_grad_all_gather,
)


class _Frame(NamedTuple):
    strategy: "StrategyBase"
    replica: ReplicaContext | None
    lasting: bool = False
    updated: int | None = None


_frame: ContextVar[_Frame | None] = ContextVar("mirrored_strategy", default=None)
# The replica of code outside all scopes, which is one of the default strategy.
_default: ReplicaContext


def _in_scope() -> str | None:
    """Return why devices cannot be set up again here; None: they can."""
    frame = _frame.get()
    if frame is None or frame.lasting:
        return None
    return "a strategy's scope" if frame.replica is None else "a replica"


class _Lasting:
    """Ends the strategy of `experimental_set_strategy` when its devices are removed."""

    def lose_devices(self) -> None:
        if _frame.get() is not None:
            experimental_set_strategy(None)


_lasting = _Lasting()
hold_devices(_lasting)
refuse_reset_where(_in_scope)

# A recorded function that asks for the strategy is another one in another strategy's scope.
register_in_force(_frame.get)


def set_default_replica(replica: ReplicaContext) -> None:
    """Set the replica context of code outside all scopes, and so its strategy."""
    global _default
    _default = replica


def enter(
    strategy: "StrategyBase", replica: ReplicaContext | None, *, updated: int | None = None
) -> Within:
    """Run as a replica of `strategy`, or, with None, in its cross-replica context.

    Args:
        strategy: The strategy.
        replica: The replica, or None.
        updated: In the cross-replica context: whose copies variables stand for.
    """
    return Within(_frame, _Frame(strategy, replica, updated=updated))


def outside_scopes() -> Within:
    """Return the context of code outside all scopes: one replica, that of the default strategy."""
    return Within(_frame, None)


def updated_replica(strategy: "StrategyBase") -> int | None:
    """Return the replica whose copies are updated in this context; None: all replicas.

    Args:
        strategy: The strategy of the variables.
    """
    frame = _frame.get()
    return None if frame is None or frame.strategy is not strategy else frame.updated


@explained
def experimental_set_strategy(strategy: Any) -> None:
    """Enter a strategy's scope from now on, without a `with` block.

    Args:
        strategy: The strategy; None ends what an earlier call put in force.

    Raises:
        RuntimeError: The call is made inside a strategy's scope or a replica.
        TypeError: It is no strategy.

    Example:
        >>> import mirrored as mr
        >>> strategy = mr.MirroredStrategy(["CPU:0"])
        >>> mr.distribute.experimental_set_strategy(strategy)
        >>> mr.distribute.get_strategy() is strategy
        True
        >>> mr.distribute.experimental_set_strategy(None)
    """
    frame = _frame.get()
    if frame is not None and not frame.lasting:
        raise RuntimeError(
            "Must not be called inside a `mr.distribute.Strategy` scope. Received: a call inside "
            f"the scope of {frame.strategy}. Leave that scope first."
        )
    if strategy is None or strategy is _default.strategy:
        _frame.set(None)
        one_thread.set(False)
        set_variable_creators()
        return
    if isinstance(strategy, type) or not callable(getattr(strategy, "create_variable", None)):
        raise TypeError(f"The argument must be a strategy or None. Received: {strategy!r}")
    _frame.set(_Frame(strategy, None, lasting=True))
    one_thread.set(bool(getattr(strategy, "lanes", ())))
    set_variable_creators(strategy.create_variable)


def strategy_in_force() -> Any:
    """Return the strategy of the innermost scope, else the default one; see `get_strategy`."""
    frame = _frame.get()
    return _default.strategy if frame is None else frame.strategy


def has_strategy() -> bool:
    """Return whether a strategy other than the default one is in force.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.has_strategy()
        False
    """
    frame = _frame.get()
    return frame is not None and frame.strategy is not _default.strategy


def get_replica_context() -> ReplicaContext | None:
    """Return the context of the replica that is running, None in the cross-replica context.

    Outside all scopes there is one replica, that of the default strategy.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.get_replica_context().num_replicas_in_sync
        1
    """
    frame = _frame.get()
    return _default if frame is None else frame.replica


def replica_number() -> int:
    """Return the number of the replica that is running; 0 in the cross-replica context."""
    context = get_replica_context()
    return 0 if context is None else int(context.replica_id_in_sync_group)


def one_of_several() -> ReplicaContext | None:
    """Return the context of the replica that is running, if this process runs several."""
    context = get_replica_context()
    return None if context is None or context._strategy.local_replicas == 1 else context


def in_cross_replica_context() -> bool:
    """Return whether the running code is in the cross-replica context.

    Example:
        >>> import mirrored as mr
        >>> with mr.MirroredStrategy(["CPU:0"]).scope():
        ...     mr.distribute.in_cross_replica_context()
        True
    """
    return get_replica_context() is None


def check_cross_replica(otherwise: str) -> None:
    """Raise RuntimeError in a replica; outside all scopes code is in neither context."""
    if has_strategy() and not in_cross_replica_context():
        raise RuntimeError(otherwise)
