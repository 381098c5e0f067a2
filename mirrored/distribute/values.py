"""Values that differ from replica to replica, and variables that have a copy on each.

They are put together when replicas meet and taken apart when they go on.
"""

from collections.abc import Sequence
from typing import Any

from mirrored import _nest
from mirrored.distribute.context import get_replica_context
from mirrored.distribute.reduce_op import ReduceOp
from mirrored.errors import InvalidArgumentError
from mirrored.ops.dispatch import adopt
from mirrored.ops.listeners import active_listeners, only
from mirrored.ops.spec import DType, Shape
from mirrored.ops.tensor import Tensor
from mirrored.program import register_per_replica
from mirrored.variables import DeviceVariable, Variable, VariableAggregation


class PerReplica:
    """One value a replica, as `strategy.run` takes and returns them.

    Args:
        values: The values, by replica.
        first_examples: Where these are parts of a global batch, how many of its examples come
            before each part.
    """

    def __init__(self, values: Sequence[Any], first_examples: Sequence[int] | None = None) -> None:
        """Hold the values."""
        self._values = tuple(values)
        self.first_examples = None if first_examples is None else tuple(first_examples)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, by replica."""
        return self._values

    def _as_tensor(self) -> Tensor:
        raise InvalidArgumentError(
            f"A value with {len(self._values)} parts, one a replica, cannot be used as one "
            f"tensor. Received: {self!r:.200}. Use strategy.reduce, or "
            "strategy.experimental_local_results to take it apart."
        )

    def __repr__(self) -> str:
        return _listed("PerReplica", self._values)


register_per_replica(PerReplica, lambda value, parts: PerReplica(parts, value.first_examples))


def _listed(kind: str, values: Sequence[Any]) -> str:
    lines = ",\n".join(f"  {i}: {value!r}" for i, value in enumerate(values))
    return f"{kind}:{{\n{lines}\n}}"


def select(replica: int, structure: Any) -> Any:
    """Return a structure with each per-replica value replaced by that of one replica."""

    def part(leaf: Any) -> Any:
        return leaf.values[replica] if isinstance(leaf, PerReplica) else leaf

    return _nest.map_structure(part, structure)


def regroup(results: Sequence[Any]) -> Any:
    """Return the replicas' results as one structure of per-replica values.

    One and the same object from every replica, such as a mirrored variable or None, stays one.

    Raises:
        ValueError: The replicas' structures differ; the message names the path.
    """
    return _nest.map_structure(_regroup_leaf, *results, each="replica")


def _regroup_leaf(*leaves: Any) -> Any:
    return leaves[0] if all(leaf is leaves[0] for leaf in leaves) else PerReplica(leaves)


class MirroredVariable(Variable):
    """A variable with one copy a replica, all of them equal. Strategies make them.

    Args:
        strategy: The strategy whose replicas have the copies.
        copies: The copies, by replica.
    """

    __slots__ = ("_copies", "_strategy")

    def __init__(self, strategy: Any, copies: Sequence[DeviceVariable]) -> None:
        """Hold the copies."""
        self._strategy = strategy
        self._copies = tuple(copies)

    @property
    def copies(self) -> tuple[DeviceVariable, ...]:
        """The copies, by replica."""
        return self._copies

    @property
    def strategy(self) -> Any:
        """The strategy whose replicas have the copies."""
        return self._strategy

    def local(self) -> DeviceVariable:
        """Return the copy of the running replica, the first one outside replicas."""
        context = get_replica_context()
        if context is None or context.strategy is not self.strategy:
            return self.copies[0]
        return self.copies[context.replica_id_in_sync_group]

    @property
    def _id(self) -> int:
        return self.local()._id

    @property
    def name(self) -> str:
        """The name of the first copy."""
        return self.copies[0].name

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it and optimizers get it."""
        return self.copies[0].trainable

    @property
    def aggregation(self) -> VariableAggregation:
        """How values that replicas assign become one."""
        return self.copies[0].aggregation

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self.copies[0].dtype

    @property
    def shape(self) -> Shape:
        """The shape of the value."""
        return self.copies[0].shape

    @property
    def device(self) -> str:
        """The full name of the device of the running replica's copy."""
        return self.local().device

    def read_value(self) -> Tensor:
        """Return the value of the running replica's copy; a later assign does not change it."""
        with only():
            value = self.local().read_value()
        for listener in active_listeners():
            # Told of this variable, not of its copy: what a tape watched is what optimizers take.
            listener.on_read(self, value)
        return value

    def _write(self, method: str, value: Any) -> Variable:
        context = get_replica_context()
        in_replica = context is not None and context.strategy is self.strategy
        if not in_replica and not isinstance(value, PerReplica):
            return super()._write(method, value)
        if self.aggregation is VariableAggregation.NONE:
            # The replicas' values may differ, and the copies may not.
            raise ValueError(
                "You must specify an aggregation method to update a MirroredVariable in Replica "
                "Context. You can do so by passing an explicit value for argument `aggregation` "
                f"to mr.Variable(..), e.g. mr.VariableAggregation.SUM. Received: {method} of the "
                f"replicas' values on the variable {self.name!r}."
            )
        if context is None or not in_replica:
            self._aggregate(self.strategy, method, value)
            return self
        if isinstance(value, list | tuple):
            value = adopt(value, self.dtype)  # One value, not a structure of several.
        context.merge_call(self._aggregate, (method, value))
        return self

    def _aggregate(self, strategy: Any, method: str, value: Any) -> None:
        if isinstance(value, PerReplica):
            # Numbers take the variable's dtype, as in any assign.
            value = PerReplica([adopt(part, self.dtype) for part in value.values])
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            total = select(0, value)
        else:
            total = strategy.reduce(ReduceOp[self.aggregation.name], value, axis=None)
        super()._write(method, total)

    def prepare(self, method: str, value: Any) -> list[tuple[DeviceVariable, Tensor]]:
        """Return every copy with what the method would write into it."""
        return [pair for copy in self.copies for pair in copy.prepare(method, value)]

    def __repr__(self) -> str:
        return _listed("MirroredVariable", self.copies)
