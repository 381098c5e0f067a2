"""What all metrics share: a total and a count, which replicas add up on their own.

Totals and counts add up exactly over batches and replicas, where means of means would not.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

from mirrored import _overrides, devices, ops
from mirrored._absent import absent_members, refused_members
from mirrored._arguments import explained
from mirrored._name_scope import name_scope
from mirrored._naming import snake_case
from mirrored.distribute import (
    DistributedVariable,
    PerReplica,
    get_replica_context,
    get_strategy,
    has_strategy,
)
from mirrored.ops import Tensor
from mirrored.ops.spec import INTEGERS
from mirrored.training.losses.values import (
    as_predictions,
    cast,
    check_one_weight,
    check_values,
    example_weights,
)
from mirrored.variables import Variable, VariableAggregation, VariableSynchronization

Statistics = tuple[Tensor, Tensor]


@explained
@absent_members("tf.keras.metrics.Metric")
@refused_members("tf.keras.metrics.Metric", "from_config")
class Metric(_overrides.Subclassable):
    """Base of the metrics; a subclass gives the total and the count of a batch in `statistics`.

    It is made in the scope of the strategy whose replicas update it. They do so without waiting for
    each other; outside of them, the result is that of all together.

    Args:
        dtype: Accepted for compatibility; totals and counts are float64, so that they stay exact.
        name: The name in logs and history; None takes that of the class.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryAccuracy()
        >>> metric.update_state([[1.0], [0.0]], [[0.9], [0.8]])
        >>> float(metric.result())
        0.5
    """

    _never_called = _overrides.METRIC
    _for_itself = _overrides.METRIC_ITSELF
    # "up" where more is better, "down" where less is: callbacks that look for the best ask for it.
    _direction: str | None = None

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        del dtype
        self.name = name or snake_case(type(self).__name__)
        # Training refuses a metric that was made for another strategy.
        self._strategy = get_strategy()
        self._total, self._count = self._summed("total"), self._summed("count")

    def _summed(self, name: str) -> Variable:
        with name_scope(""):  # As Keras' objects, it has names of its own.
            return Variable(
                0.0,
                dtype=ops.float64,
                name=f"{self.name}/{name}",
                synchronization=VariableSynchronization.ON_READ,
                aggregation=VariableAggregation.SUM,
            )

    @property
    def variables(self) -> list[Variable]:
        """The total and the count."""
        return [self._total, self._count]

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return the total and the count of a batch, scalars that add up over batches.

        It changes nothing, so that replicas can run it on their shards, empty ones included.
        Most metrics are given `(y_true, y_pred, sample_weight=None)`.
        """
        raise NotImplementedError(
            f"The metric {type(self).__name__} has no `statistics`. Define "
            "`statistics(self, y_true, y_pred, sample_weight=None)` that returns a total and a "
            "count."
        )

    def shard_statistics(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None, share: float
    ) -> Statistics:
        """Return the total and the count of a replica's shard of a batch in training.

        Args:
            y_true: The shard's targets.
            y_pred: The shard's predictions.
            sample_weight: Its weights, or None.
            share: The shard's part of the examples of the batch, in [0, 1].
        """
        del share  # Sums over examples add up to those of the batch.
        return self.statistics(y_true, y_pred, sample_weight)

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch, or in a replica its part of one: the arguments are those of `statistics`."""
        self.accumulate(*self.statistics(*args, **kwargs))

    def accumulate(self, total: Any, count: Any) -> None:
        """Add the total and the count of a batch.

        Args:
            total: The sum of the (weighted) values, a scalar.
            count: The number of values, or the sum of their weights, a scalar.
        """
        for variable, value in ((self._total, total), (self._count, count)):
            # Outside replicas the first one's copy gets it: it is the sum that counts.
            copy = variable.local() if isinstance(variable, DistributedVariable) else variable
            copy.assign_add(ops.cast(value, ops.float64))

    def set_totals(self, total: float, count: float) -> None:
        """Have this total and count, over all replicas together, instead of those so far.

        Args:
            total: The sum of the (weighted) values.
            count: The number of values, or the sum of their weights.
        """
        rest = [0.0] * (self._strategy.num_replicas_in_sync - 1)
        for variable, value in ((self._total, total), (self._count, count)):
            # Not in equal parts: those would be rounded.
            variable.assign(PerReplica([value, *rest]) if rest else value)

    def result(self) -> Tensor:
        """Return the total divided by the count since the last reset; 0 of nothing.

        In a replica, which then waits for the others, it is that of all of them too.
        """
        total, count = self._total.read_value(), self._count.read_value()
        context = get_replica_context()
        if has_strategy() and context is not None:
            total, count = context.all_reduce("sum", [total, count])
        with devices.device(total.device):  # No other device is to be used for it.
            return total / (count + ops.cast(ops.equal(count, 0.0), ops.float64))

    def reset_state(self) -> None:
        """Forget all batches; in a replica those that it added."""
        for variable in self.variables:
            variable.assign(0.0)

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Add a batch and return the result so far."""
        self.update_state(*args, **kwargs)
        return self.result()


def float_dtype(x: Tensor) -> Any:
    """Return the dtype that the statistics of values are computed in."""
    return x.dtype if x.dtype in (ops.float32, ops.float64) else ops.as_dtype(ops.floatx())


def weighted_sums(values: Tensor, sample_weight: Any, averaged: int = 0) -> Statistics:
    """Return the sums of the values and of their weights, both in the values' dtype.

    Elements are summed, not means of an example's elements: ones and zeros add up exactly.

    Raises:
        ValueError: The weights do not broadcast to the values.
    """
    if sample_weight is None:
        return ops.reduce_sum(values), ops.constant(float(values.size), dtype=values.dtype)
    # As in Keras, weights of fewer axes than the values are for their first ones.
    weights = ops.convert_to_tensor(sample_weight)
    weights = example_weights(weights, values, min(max(weights.ndim, 1), values.ndim - averaged))
    first, rest = values.shape[: max(weights.ndim, 1)], values.shape[max(weights.ndim, 1) :]
    weights = ops.broadcast_to(weights, first)
    if rest:
        values = ops.reduce_sum(values, axis=tuple(range(len(first), values.ndim)))
    return ops.reduce_sum(values * weights), ops.reduce_sum(weights) * float(math.prod(rest))


class Comparison(Metric):
    """The mean of what a comparison of targets and predictions gives, element by element."""

    _averaged: ClassVar[int] = 0  # The last axes that sample weights cannot tell apart.

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum over a batch and the number of elements, or the sum of their weights.

        Raises:
            ValueError: The shapes do not fit.
        """
        y_pred = self._as_predictions(y_pred)
        values = self._values(ops.convert_to_tensor(y_true), y_pred)
        averaged = self._averaged if values.ndim > 1 else 0
        return weighted_sums(cast(values, float_dtype(y_pred)), sample_weight, averaged)

    def _as_predictions(self, y_pred: Any) -> Tensor:
        return as_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return a value for each element, of shape (batch, ...)."""
        raise NotImplementedError


class FunctionMetric(Comparison):
    """A user's function of targets and predictions that returns a value an example, or one in all.

    One number for a batch counts once, as in Keras, however many examples the batch has.
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        name = getattr(function, "__name__", None) or type(function).__name__
        underscores = name[: len(name) - len(name.lstrip("_"))]
        super().__init__(name=underscores + snake_case(name))  # As in Keras' logs.
        self._function = function
        # As in Keras: a loss as a metric is to become less.
        if getattr(function, "__module__", "").startswith("mirrored.training.losses"):
            self._direction = "down"

    def shard_statistics(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None, share: float
    ) -> Statistics:
        """Return a shard's total and count, in which one number for it counts by its share."""
        values = self._values_in_its_dtype(y_true, y_pred)
        total, count = self._counted(values, sample_weight)
        return (total, count) if values.shape or share == 1 else (total * share, count * share)

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        """Return the total and the count of a batch."""
        return self._counted(self._values_in_its_dtype(y_true, y_pred), sample_weight)

    def _counted(self, values: Tensor, sample_weight: Any) -> Statistics:
        if values.shape:
            return weighted_sums(values, sample_weight)
        if sample_weight is None:
            return values, ops.constant(1.0, dtype=values.dtype)
        weight = cast(check_one_weight(f"metric {self.name!r}", sample_weight), values.dtype)
        return values * weight, weight

    def _values_in_its_dtype(self, y_true: Any, y_pred: Any) -> Tensor:
        y_pred = as_predictions(y_pred)
        values = self._values(ops.convert_to_tensor(y_true), y_pred)
        return cast(values, float_dtype(y_pred))

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_true.dtype not in INTEGERS:
            y_true = cast(y_true, y_pred.dtype)
        values = ops.convert_to_tensor(self._function(y_true, y_pred))
        advice = "Leave the mean over the batch to the metric."
        check_values(f"metric {self.name!r}", values, y_pred, advice)
        return values
