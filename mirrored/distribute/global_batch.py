"""The weight of every replica in a step of `fit`, `evaluate` or `predict`.

Such a step is given a shard of the batch. What it makes of that counts by the shard's part of the
batch's examples, so that the replicas together make what one device makes of the whole batch.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from mirrored._contexts import Within
from mirrored.ops.tensor import Tensor

# By the use of a value, the powers of the numbers of examples and of replicas in it.
Scales = Mapping[Any, tuple[int, int]]


class GlobalBatch:
    """The batch of a step, and the number of its examples per replica.

    Args:
        sizes: The number of examples of each replica's shard.
        of_means: Whether each replica differentiates a loss of its shard alone; else its part of
            the mean over the batch.
        scales: By the use of a value the powers of the number of examples and of the number of
            replicas that it is scaled with. Values without an entry are means over a shard.

    Example:
        >>> batch = GlobalBatch([2, 1, 0])
        >>> batch.examples, batch.share(1) == 1 / 3, batch.is_empty(2)
        (3, True, True)
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        of_means: bool = False,
        scales: Scales | None = None,
    ) -> None:
        self.sizes = tuple(sizes)
        self.of_means = of_means
        self._scales = {} if scales is None else scales
        self._loss_weights: dict[int, float] = {}
        self._uses: Counter[tuple[str, int]] = Counter()
        self._gradients: set[int] = set()
        self._totals: set[int] = set()
        self._used: dict[int, Sequence[bool]] = {}

    @property
    def is_analysed(self) -> bool:
        """Whether the weights of the replicas' values are known."""
        return bool(self._scales)

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

    def weights(
        self, use: str, replica: int, values: Sequence[Any], names: Sequence[str] = ()
    ) -> list[float]:
        """Return the weights of a replica's values in the sums over replicas.

        A mean over a shard counts by the shard's part of the examples, a sum with weight 1.

        Args:
            use: What the values are, such as "loss" or "gradients".
            replica: The replica's number.
            values: The values.
            names: Their names; none: they are known by how often this use came before.
        """
        keys = self._keys(use, replica, values, names)
        return [self._weight((use, key), replica) for key in keys]

    def _keys(
        self, use: str, replica: int, values: Sequence[Any], names: Sequence[str]
    ) -> Sequence[Any]:
        """Return the keys of values: their names, or the number of earlier uses."""
        if names:
            return names
        self._uses[use, replica] += 1
        return [(self._uses[use, replica], i) for i in range(len(values))]

    def draws_by_example(self, replica: int) -> bool:
        """Return whether the next random numbers of a replica may be drawn per example.

        Other numbers can be as many as the shard has examples, which its analysis knows.

        Args:
            replica: The replica's number.
        """
        self._uses["draw", replica] += 1
        return ("draw", (self._uses["draw", replica],)) not in self._scales

    def note_means(self, values: Iterable[Tensor]) -> None:
        """Treat values as means over a shard, whatever they were computed from.

        Args:
            values: The values.
        """

    def note_losses(self, losses: Sequence[Any], replica: int) -> None:
        """Note the losses that a replica differentiates next.

        Args:
            losses: The losses.
            replica: The replica's number.
        """
        self._loss_weights[replica] = self.weights("differentiated loss", replica, losses)[0]

    def loss_weight(self, replica: int) -> float:
        """Return the weight of the loss that a replica differentiates.

        Args:
            replica: The replica's number.
        """
        return self._loss_weights.get(replica, self.share(replica))

    def _weight(self, use: Any, replica: int) -> float:
        if self.is_empty(replica):
            return 0.0
        examples, replicas = self._scales.get(use, _MEAN)
        share = 1.0 if examples == 0 else self.share(replica)
        return share * float(len(self.sizes)) ** -replicas

    def is_empty(self, replica: int) -> bool:
        """Return whether a replica has no examples, so that its values do not count.

        Args:
            replica: The replica's number.
        """
        return self.sizes[replica] == 0

    def as_mean(self, use: str, replica: int, value: Tensor) -> Tensor:
        """Return a replica's value as the mean over its shard that adds up to the same whole.

        Args:
            use: What it is; see `weights`.
            replica: The replica's number.
            value: The value.
        """
        (weight,) = self.weights(use, replica, [value])
        share = self.share(replica)
        if weight == share:
            return value
        mean = value * (weight / share)
        self.note_means([mean])
        return mean

    def in_force(self) -> Within:
        """Return the context in which replicas take this step."""
        return Within(_batch, self)

    def note_gradients(self, gradients: Iterable[Tensor | None]) -> None:
        """Note gradients of shards, which the optimizer will sum.

        Args:
            gradients: The gradients; None where there is none.
        """
        self._gradients.update(gradient._id for gradient in gradients if gradient is not None)

    def used(self, replica: int, are_used: Sequence[bool]) -> Sequence[bool]:
        """Return which variables have gradients; without examples, those of the first replica.

        Args:
            replica: The replica's number.
            are_used: Whether each variable has a gradient there.
        """
        self._uses["used", replica] += 1
        first = self._used.setdefault(self._uses["used", replica], are_used)
        return first if self.is_empty(replica) else are_used

    def note_totals(self, values: Iterable[object]) -> None:
        """Note values that are equal on all replicas, such as results of metrics.

        Args:
            values: The values, of which tensors are remembered.
        """
        self._totals.update(value._id for value in values if isinstance(value, Tensor))

    def is_an_example_each(self, value: Tensor, replica: int) -> bool:
        """Return whether what a replica of several has is as long as its shard, and no total.

        Args:
            value: What it has.
            replica: Its number.
        """
        rows = value.shape[0] if value.ndim and len(self.sizes) > 1 else None
        return rows == self.sizes[replica] and value._id not in self._totals

    def check_no_gradients(self, values: Iterable[Tensor]) -> None:
        """Raise an error if one of the values is a shard's gradient.

        Args:
            values: What is about to be summed over the replicas.

        Raises:
            RuntimeError: It is. The optimizer would count what is summed before once more.
        """
        if any(value._id in self._gradients for value in values):
            raise RuntimeError(
                "In a step that `fit` runs, the optimizer adds up the gradients, weighted by "
                "shard size. Received: `all_reduce` of a gradient. Pass the shard's gradients to "
                "`optimizer.apply_gradients`."
            )


_MEAN = (-1, 0)
_batch: ContextVar[GlobalBatch | None] = ContextVar("mirrored_global_batch", default=None)
_assumed: ContextVar[int | None] = ContextVar("mirrored_assumed_replicas", default=None)
# Returns the number of replicas that strategies say there are; None: as many as there are.
assumed_replicas: Callable[[], int | None] = _assumed.get


def assuming_replicas(count: int) -> Within:
    """Return a context in which strategies report another number of replicas.

    Args:
        count: The number, for a step that is analysed and not run.
    """
    return Within(_assumed, count)


def global_batch() -> GlobalBatch | None:
    """Return the batch of the running step; None in custom training loops."""
    return _batch.get()
