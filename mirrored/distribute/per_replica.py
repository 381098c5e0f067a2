"""Values with one part a replica: different ones, or copies of one.

They are put together when replicas meet and taken apart when they go on.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from mirrored import _nest
from mirrored._numbers import counted
from mirrored.distribute.context import get_replica_context
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.spec import DType
from mirrored.ops.tensor import Operators, Tensor
from mirrored.ops.tensor_shape import TensorShape
from mirrored.program import register_per_replica


class DistributedValues:
    """One value a replica. What strategies take and return is a `PerReplica` or a `Mirrored`.

    Args:
        values: The values, by replica.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, by replica."""
        return self._values

    def __str__(self) -> str:
        return listed(type(self).__name__, [str(value) for value in self._values])

    def __repr__(self) -> str:
        return listed(type(self).__name__, [repr(value) for value in self._values])

    def _repr_html_(self) -> str | None:
        from mirrored import _html

        shown = [
            value._repr_html_(f"Replica {replica}: Tensor")
            if isinstance(value, Tensor)
            else _html.titled(f"Replica {replica}", repr(value))
            for replica, value in enumerate(self._values)
        ]
        return "".join(part or "" for part in shown) or None


class PerReplica(DistributedValues):
    """Values that differ from replica to replica, as `strategy.run` takes and returns them.

    Args:
        values: The values, by replica.
        first_examples: Where these are parts of a global batch, how many of its examples come
            before each part.
        examples: How many the global batch has; None: as many as the parts.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.PerReplica([1, 2])
        PerReplica:{
          0: 1,
          1: 2
        }
    """

    def __init__(
        self,
        values: Iterable[Any],
        first_examples: Sequence[int] | None = None,
        examples: int | None = None,
    ) -> None:
        super().__init__(values)
        self.first_examples = None if first_examples is None else tuple(first_examples)
        self.examples = examples

    if not TYPE_CHECKING:  # To a type checker it would mean that there is every attribute.

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"'PerReplica' object has no attribute '{name}': it has a value per replica. Use "
                "`strategy.reduce('mean', value, axis=None)` for their mean, or "
                "`strategy.experimental_local_results(value)` for a tuple of them."
            )

    def _as_tensor(self) -> Tensor:
        raise InvalidArgumentError(
            f"A value with {counted(len(self._values), 'part')}, one per replica, cannot be used "
            f"as one tensor. Received: {self!r:.200}. Use strategy.reduce, or "
            "strategy.experimental_local_results to take it apart."
        )


class Mirrored(DistributedValues, Operators):
    """Copies of one value, as collectives leave them on the replicas' devices.

    Used as a tensor it is the running replica's copy, or the first one outside replicas.

    Args:
        values: The copies, by replica.

    Example:
        >>> import mirrored as mr
        >>> float(mr.distribute.Mirrored([mr.constant(2.0), mr.constant(2.0)]) + 1.0)
        3.0
    """

    def _as_tensor(self) -> Tensor:
        context = get_replica_context()
        replica = 0 if context is None else context._number
        return adopt(self._values[replica if replica < len(self._values) else 0], None)

    @property
    def dtype(self) -> DType:
        """The dtype of the copies."""
        return adopt(self._values[0], None).dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the copies."""
        return adopt(self._values[0], None).shape

    def numpy(self) -> Any:
        """Return a copy of the value on the host."""
        return self._as_tensor().numpy()


register_per_replica(
    PerReplica, lambda value, parts: PerReplica(parts, value.first_examples, value.examples)
)
register_per_replica(Mirrored, lambda value, parts: Mirrored(parts))


def check_part_count(value: Any, replicas: int, what: str = "") -> None:
    """Raise ValueError where a value has parts, and not one a replica."""
    if isinstance(value, DistributedValues) and len(value.values) != replicas:
        raise ValueError(
            f"A per-replica value must have one part per replica, here {replicas}. Received: "
            f"{counted(len(value.values), 'part')}{what}."
        )


def check_parts(structure: Any, replicas: int) -> None:
    """Raise ValueError where a value in a structure has parts, and not one a replica."""
    for leaf in _nest.flatten(structure):
        check_part_count(leaf, replicas)


def listed(kind: str, texts: Sequence[str]) -> str:
    """Return the text that shows values by replica."""
    lines = ",\n".join(f"  {i}: {text}" for i, text in enumerate(texts))
    return f"{kind}:{{\n{lines}\n}}"


def select(replica: int, structure: Any) -> Any:
    """Return a structure with each value that has one a replica replaced by that of one replica."""
    return _nest.map_structure(lambda leaf: select_leaf(replica, leaf), structure)


def select_leaf(replica: int, leaf: Any) -> Any:
    """Return the value that one replica has of a leaf; the leaf itself where it has one for all."""
    return leaf.values[replica] if isinstance(leaf, DistributedValues) else leaf


def regroup(results: Sequence[Any], *, always_wrap: bool = False) -> Any:
    """Return the replicas' results as one structure of per-replica values.

    One and the same object from every replica, such as a mirrored variable or None, stays one.
    """

    def group(first: Any, *others: Any) -> Any:
        is_one = not always_wrap and all(leaf is first for leaf in others)
        return first if is_one else PerReplica((first, *others))

    return _nest.map_structure(group, *results, label="replica")
