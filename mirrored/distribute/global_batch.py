"""How much each replica counts in a step that `fit`, `evaluate` or `predict` runs.

Such a step is given a shard of the batch. What it makes of that counts by the shard's part of the
batch's examples, so that the replicas together make what one device makes of the whole batch.
"""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar

from mirrored._contexts import Within
from mirrored.ops.tensor import Tensor


class GlobalBatch:
    """The batch of a step: how many of its examples each replica has.

    Args:
        sizes: The number of examples of each replica's shard.
        of_means: Whether each replica differentiates the mean over its shard, which then counts by
            the shard's examples; else its part of the mean over the batch.

    Example:
        >>> batch = GlobalBatch([2, 1, 0])
        >>> batch.examples, batch.share(1) == 1 / 3, batch.is_empty(2)
        (3, True, True)
    """

    def __init__(self, sizes: Sequence[int], *, of_means: bool = False) -> None:
        self.sizes = tuple(sizes)
        self.of_means = of_means
        self._gradients: set[int] = set()
        self._totals: set[int] = set()

    @property
    def examples(self) -> int:
        """The number of examples of all replicas together."""
        return sum(self.sizes)

    def share(self, replica: int) -> float:
        """Return a replica's part of the examples, in [0, 1].

        Args:
            replica: The replica's number.
        """
        return self.sizes[replica] / max(self.examples, 1)

    def is_empty(self, replica: int) -> bool:
        """Return whether a replica has no examples: nothing that it computes counts.

        Args:
            replica: The replica's number.
        """
        return self.sizes[replica] == 0

    def in_force(self) -> Within:
        """Return the context in which replicas take this step."""
        return Within(_batch, self)

    def note_gradients(self, gradients: Iterable[Tensor | None]) -> None:
        """Remember gradients of shards, which the optimizer is to put together.

        Args:
            gradients: The gradients; None where there is none.
        """
        self._gradients.update(each._id for each in gradients if each is not None)

    def note_totals(self, values: Iterable[object]) -> None:
        """Remember what is that of all replicas on each of them, as results of metrics are.

        Args:
            values: The values, of which tensors are remembered.
        """
        self._totals.update(each._id for each in values if isinstance(each, Tensor))

    def is_an_example_each(self, value: Tensor, replica: int) -> bool:
        """Return whether what a replica of several has is as long as its shard, and no total.

        Args:
            value: What it has.
            replica: Its number.
        """
        rows = value.shape[0] if value.ndim and len(self.sizes) > 1 else None
        return rows == self.sizes[replica] and value._id not in self._totals

    def check_no_gradients(self, values: Iterable[Tensor]) -> None:
        """Raise where one of the values is a shard's gradient.

        Args:
            values: What is about to be summed over the replicas.

        Raises:
            RuntimeError: It is. The optimizer would count what is summed before once more.
        """
        if any(each._id in self._gradients for each in values):
            raise RuntimeError(
                "A step that `fit` runs leaves it to the optimizer to put gradients together: it "
                "weighs each replica's by its part of the examples. Received: `all_reduce` of a "
                "gradient. Give the shard's own gradients to `optimizer.apply_gradients`."
            )


_batch: ContextVar[GlobalBatch | None] = ContextVar("mirrored_global_batch", default=None)


def global_batch() -> GlobalBatch | None:
    """Return the batch of the step that is running; None in loops of users' own."""
    return _batch.get()
