"""Metrics that are a total divided by a count, which replicas add up on their own.

Totals and counts add up exactly over batches and replicas, where means of means would not.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mirrored import _overrides, devices, ops
from mirrored._naming import snake_case
from mirrored._tracebacks import shorten
from mirrored._types import DTypeLike
from mirrored.distribute import get_replica_context
from mirrored.distribute.distributed_variables import copies_of
from mirrored.distribute.global_batch import global_batch
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INTEGERS
from mirrored.training.losses.values import as_predictions, cast, check_one_weight, example_weights
from mirrored.training.metrics.metric import Metric, add
from mirrored.variables import Variable

Statistics = tuple[Tensor, Tensor]
_NOTHING = np.array(0.0)


class Quotient(Metric):
    """A total divided by a count; a subclass gives those of a batch in `statistics`.

    `Metric` says what the arguments are.
    """

    _has_count: ClassVar[bool] = True  # False: the result is the total.
    __overrides__ = _overrides.QUOTIENT

    def __init__(self, dtype: DTypeLike | None = None, name: str | None = None) -> None:
        super().__init__(dtype, name)
        # Exact for as long as an epoch lasts, whatever the metric's dtype.
        self._total = self.add_variable((), "zeros", ops.float64, name="total")
        self._count: Variable | None = None
        if self._has_count:
            self._count = self.add_variable((), "zeros", ops.float64, name="count")

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return the total and the count of a batch, scalars that add up over batches.

        It changes nothing, so that replicas can run it on their shards, empty ones included.
        """
        raise NotImplementedError

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch, or in a replica its part of one: the arguments are those of `statistics`."""
        try:
            self.accumulate(*self.statistics(*args, **kwargs))
        except Exception as error:
            shorten(error)
            raise

    def accumulate(self, total: Any, count: Any) -> None:
        """Add the total and the count of a batch.

        Args:
            total: The sum of the (weighted) values, a scalar.
            count: The number of values, or the sum of their weights, a scalar.
        """
        add(self._total, total)
        if self._count is not None:
            add(self._count, count)

    def set_totals(self, total: float, count: float) -> None:
        """Have this total and count, over all replicas together, instead of those so far.

        Args:
            total: The sum of the (weighted) values.
            count: The number of values, or the sum of their weights.
        """
        for variable, value in ((self._total, total), (self._count, count)):
            if variable is None:
                continue
            # Not in equal parts: those would be rounded. From the host right to where they stay,
            # since an epoch may be as short as a few steps.
            first, *others = copies_of(variable)
            strategy = getattr(variable, "_strategy", None)
            leads = strategy is None or strategy.first_replica == 0  # Of all workers' replicas.
            first.set_in_place(np.array(value) if leads else _NOTHING)
            for copy in others:
                copy.set_in_place(_NOTHING)

    @property
    def totals(self) -> tuple[float, float]:
        """The total and the count since the last reset."""
        return float(self._total), 0.0 if self._count is None else float(self._count)

    def result(self) -> Any:
        """Return the total divided by the count since the last reset; 0 of nothing."""
        total = self._total.read_value()
        if self._count is None:
            return self.finished(total)
        count = self._count.read_value()
        with devices.device(total.device):  # No other device is to be used for it.
            quotient: Tensor = total / (count + ops.cast(ops.equal(count, 0.0), ops.float64))
            return self.finished(quotient)

    def finished(self, quotient: Any) -> Any:
        """Return the result, of a quotient of all batches and replicas.

        Args:
            quotient: A tensor, or a number on the host.
        """
        return quotient


def share_of_batch() -> float:
    """Return what part of the examples of the step that `fit` runs this replica has; else 1."""
    batch, context = global_batch(), get_replica_context()
    if batch is None or context is None:
        return 1.0
    return batch.share(context.replica_id_in_sync_group)


def float_dtype(x: Tensor) -> Any:
    """Return the dtype that the statistics of values are computed in."""
    return x.dtype if x.dtype in (ops.float32, ops.float64) else ops.as_dtype(ops.floatx())


def integers_or_predictions(y_pred: Any) -> Tensor:
    """Return predictions as they are where they are integers, else as losses compute with them.

    Integers are compared as such: floats would not tell large ones apart.
    """
    y_pred = ops.convert_to_tensor(y_pred)
    return y_pred if y_pred.dtype in INTEGERS else as_predictions(y_pred)


def weighted_sums(
    values: Tensor, sample_weight: Any, averaged: int = 0, *, by_example: bool = True
) -> Statistics:
    """Return the sum of the values and that of their weights, both in the values' dtype.

    Args:
        values: Numbers of shape (batch, ...).
        sample_weight: Weights that broadcast to the values or to their first axes, or None.
        averaged: The number of last axes that weights cannot tell apart.
        by_example: Whether an example has the mean of its values and of its weights, as in Keras.

    Raises:
        ValueError: The weights do not broadcast to the values.
    """
    per_example = math.prod(values.shape[1:]) or 1 if by_example else 1
    if sample_weight is None:
        count = ops.constant(float(values.size) / per_example, dtype=values.dtype)
    else:
        # As in Keras, weights of fewer axes than the values are for their first ones.
        weights = ops.convert_to_tensor(sample_weight)
        axes = min(max(weights.ndim, 1), values.ndim - averaged)
        weights = example_weights(weights, values, axes)
        first, rest = values.shape[: max(weights.ndim, 1)], values.shape[max(weights.ndim, 1) :]
        weights = ops.broadcast_to(weights, first)
        count = _divided(ops.reduce_sum(weights), per_example / (math.prod(rest) or 1))
        if rest:
            values = ops.reduce_sum(values, axis=tuple(range(len(first), values.ndim)))
        values = values * weights
    return _divided(ops.reduce_sum(values), per_example), count


def _divided(total: Tensor, divisor: float) -> Tensor:
    return total if divisor == 1 else total / divisor


def counted_weights(sample_weight: Any, x: Any, dtype: Any) -> Any:
    """Return sample weights, 0 where the mask of a tensor says so; as they are where it has none.

    Args:
        sample_weight: The weights, or None.
        x: The tensor.
        dtype: The dtype of the result.
    """
    mask = getattr(x, "_keras_mask", None)
    if mask is None:
        return sample_weight
    from mirrored.training.losses.masked_means import mask_weights  # Few programs need it.

    return mask_weights(sample_weight, mask, dtype)


def counted_values(values: Any, sample_weight: Any, dtype: Any = None) -> tuple[Tensor, Any]:
    """Return values in the dtype of their statistics, and their weights, which a mask may reduce.

    Args:
        values: The values.
        sample_weight: The weights, or None.
        dtype: The dtype; None: the values' own, if it is a float.
    """
    values = ops.convert_to_tensor(values)
    dtype = float_dtype(values) if dtype is None else dtype
    if sample_weight is not None:
        sample_weight = counted_weights(sample_weight, values, dtype)
    return cast(values, dtype), sample_weight


class Comparison(Quotient):
    """The mean of what a comparison of targets and predictions gives, element by element."""

    axis: int = -1  # Along which values are computed.
    _averaged: ClassVar[int] = 0  # The last axes that sample weights cannot tell apart.
    _heeds_masks: ClassVar[bool] = True  # Whether what predictions' masks leave out does not count.

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum over a batch and the number of elements, or the sum of their weights.

        Raises:
            ValueError: The shapes do not fit.
        """
        values, sample_weight = self._weighed_values(y_true, y_pred, sample_weight)
        return weighted_sums(values, sample_weight, self._averaged if values.ndim > 1 else 0)

    def _weighed_values(self, y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Tensor, Any]:
        """Return the values, in their dtype, and their weights, of which masks leave some."""
        original, y_pred = y_pred, self._as_predictions(y_pred)
        values, dtype = self._values(ops.convert_to_tensor(y_true), y_pred), float_dtype(y_pred)
        if self._heeds_masks:
            sample_weight = counted_weights(sample_weight, original, dtype)
        # As in Keras, their own masks are for weights alone.
        return counted_values(values, sample_weight, dtype)

    def _mixes_examples(self, y_true: Any, y_pred: Any) -> bool:
        # Of vectors some make one number, as the functions of losses do.
        if y_pred.ndim > 1:
            return is_first_axis(self.axis, y_pred)
        return not self._values(ops.convert_to_tensor(y_true), self._as_predictions(y_pred)).shape

    def _as_predictions(self, y_pred: Any) -> Tensor:
        return as_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return a value for each element, of shape (batch, ...)."""
        raise NotImplementedError


class FunctionMetric(Comparison):
    """A user's function of targets and predictions that returns a value an example, or one in all.

    One number for a batch counts once, as in Keras, however many examples the batch has.
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        if name is None:
            name = getattr(function, "__name__", None) or type(function).__name__
            underscores = name[: len(name) - len(name.lstrip("_"))]
            name = underscores + snake_case(name)  # As in Keras' logs.
        super().__init__(name=name)
        self._function = function
        self._options: dict[str, Any] = {}  # Further arguments of the function.
        self._stands_for = function  # In configurations.
        self._by_example: dict[Any, bool] = {}  # By the shapes and dtypes of an example.
        # As in Keras: a loss as a metric is to become less.
        if getattr(function, "__module__", "").startswith("mirrored.training.losses"):
            self._direction = "down"

    def _mixes_examples(self, y_true: Any, y_pred: Any) -> bool:
        key = tuple([(tensor.shape[1:], tensor.dtype) for tensor in (y_true, y_pred)])
        if key not in self._by_example:
            from mirrored.training.shard_analysis.shard_recorder import is_by_example

            self._by_example[key] = is_by_example(self._values, (y_true, y_pred))
        return not self._by_example[key]

    def statistics(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Statistics:
        """Return the total and the count of a batch."""
        values, sample_weight = self._weighed_values(y_true, y_pred, sample_weight)
        if values.shape:
            return weighted_sums(values, sample_weight)
        if sample_weight is None:
            return values, ops.constant(1.0, dtype=values.dtype)
        weight = cast(check_one_weight(f"metric {self.name!r}", sample_weight), values.dtype)
        return values * weight, weight

    def _as_predictions(self, y_pred: Any) -> Tensor:
        return integers_or_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_true.dtype not in INTEGERS and y_pred.dtype in FLOATS:
            y_true = cast(y_true, y_pred.dtype)
        return ops.convert_to_tensor(self._function(y_true, y_pred, **self._options))


def is_first_axis(axis: int, x: Any) -> bool:
    """Return whether an axis of a tensor is that of the examples.

    Args:
        axis: The axis, counted from the end where it is negative.
        x: The tensor.
    """
    return axis in (0, -x.ndim)
