"""How a value that one replica computes relates to the value that one device would compute.

One device computes from the whole batch, a replica from its shard of it.
"""

import enum
from typing import NamedTuple


class Kind(enum.Enum):
    """The relation to the value of the whole batch.

    Attributes:
        SAME: Equal on all replicas, as weights are.
        ROWS: A row or a block of rows per example: shards joined along an axis are the whole.
        SUM: The replicas' values, each with its weight, add up to the whole.
        OTHER: Computed from the shard in another way, as its largest number is.
    """

    SAME = "same"
    ROWS = "rows"
    SUM = "sum"
    OTHER = "other"


class Scale(NamedTuple):
    """A factor of a replica's value that one device has with other numbers.

    Attributes:
        examples: The power of the number of examples: of the shard here, of the batch there.
        replicas: The power of the number of replicas, of which one device has one.
    """

    examples: int = 0
    replicas: int = 0

    def times(self, other: "Scale", power: int = 1) -> "Scale":
        """Return the scale of a product; with power -1 of a quotient."""
        return Scale(self.examples + power * other.examples, self.replicas + power * other.replicas)


UNIT = Scale()


class Operation(NamedTuple):
    """An operation of a step.

    Attributes:
        owner: The name of the layer, the model or the loss in whose call it is; empty: the step.
        name: The operation's name, as in the placement log.
        kind: What the owner is.
    """

    owner: str
    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.name} in the {self.kind}{f' {self.owner!r}' if self.owner else ''}"


class ShardValue(NamedTuple):
    """What is known of a value.

    Attributes:
        kind: Its relation to the value of the whole batch.
        axis: Of ROWS the axis of the examples.
        scale: Its factors; None where it depends on the number of examples in another way.
        sources: Of SUM the operations that summed over examples, of OTHER those that made it so.
        mixing: The operations by which rows of other examples got into its rows.
        reordered: The operations that put its rows into another order, which no sum depends on.
        is_zero: Whether it is the number 0, which fits every scale.
        blocks: Of ROWS the number of blocks along the axis in each of which all examples follow
            one another, as two after two shards were joined; None: all rows are equal.
        step: Of places of the examples in the shard the distance of two places; `OWN`: an index
            of a row of the same example; 0: it contains no places.
        example: Of OTHER the place of the only example that it was computed from; None: several.
    """

    kind: Kind = Kind.SAME
    axis: int = 0
    scale: Scale | None = UNIT
    sources: frozenset[Operation] = frozenset()
    mixing: frozenset[Operation] = frozenset()
    reordered: frozenset[Operation] = frozenset()
    is_zero: bool = False
    blocks: int | None = 1
    step: int = 0
    example: int | None = None

    def moved(self, axis: int) -> "ShardValue":
        """Return it with its examples along another axis."""
        return self._replace(axis=axis)


SAME = ShardValue()
OWN = -1
