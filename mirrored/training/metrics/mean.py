"""Means of values, and of the squared differences between targets and predictions.

Both are weighted where sample weights are given.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses.squared_error import squared_errors
from mirrored.training.losses.values import aligned, cast
from mirrored.training.metrics.quotient import (
    Comparison,
    Quotient,
    Statistics,
    float_dtype,
    share_of_batch,
    weighted_sums,
)


@explained
class Mean(Quotient):
    """The mean of values, weighted if weights are given.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mean = mr.metrics.Mean()
        >>> mean.update_state([1.0, 3.0])
        >>> mean.update_state(5.0)
        >>> float(mean.result())
        3.0
    """

    def __init__(self, name: str = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)

    def statistics(self, values: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum of the values and their number, or the sum of their weights.

        Args:
            values: Numbers of shape () or (batch, ...).
            sample_weight: Weights of shape (batch,), (batch, 1) or (), weights that broadcast to
                the values or to their first axes, or None.

        Raises:
            ValueError: The weights' shape does not fit.
        """
        values = ops.convert_to_tensor(values)
        values = cast(values, float_dtype(values))
        if values.ndim == 0:
            return self._of_one(values, sample_weight)
        return weighted_sums(values, sample_weight)

    def _of_one(self, value: Tensor, sample_weight: Any) -> Statistics:
        """Return the statistics of one number for all examples of a batch, or of a shard."""
        if sample_weight is not None:
            return weighted_sums(ops.reshape(value, (1,)), sample_weight)
        # In a step of `fit` it counts by the examples, so that a batch counts once in all.
        share = share_of_batch()
        count = ops.constant(share, dtype=value.dtype)
        return (value, count) if share == 1.0 else (value * count, count)


@explained
class MeanSquaredError(Comparison):
    """The mean of (y_true - y_pred)^2.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.MeanSquaredError()
        >>> metric.update_state([[0.0], [1.0]], [[2.0], [1.0]])
        >>> float(metric.result())
        2.0
    """

    _averaged = 1
    _direction = "down"

    def __init__(self, name: str = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(dtype, name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return squared_errors(aligned(cast(y_true, y_pred.dtype), y_pred), y_pred)
