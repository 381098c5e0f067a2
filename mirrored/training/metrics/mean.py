"""Means of values, and of the squared differences between targets and predictions.

Both are weighted where sample weights are given.
"""

from typing import Any, ClassVar

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses.elementwise import squared_errors
from mirrored.training.losses.values import aligned, cast, check_same_shape
from mirrored.training.metrics.quotient import (
    Comparison,
    Quotient,
    Statistics,
    counted_weights,
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
        dtype = float_dtype(values)
        if sample_weight is not None:
            sample_weight = counted_weights(sample_weight, values, dtype)
        values = cast(values, dtype)
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
class Errors(Comparison):
    """The mean over elements of a formula of a loss: a subclass says which."""

    _averaged = 1
    _direction = "down"
    _default: ClassVar[str]

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(dtype, name or self._default)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(true, y_pred)
        return self._errors(true, y_pred)

    def _errors(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        raise NotImplementedError


class MeanSquaredError(Errors):
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

    _default = "mean_squared_error"
    _errors = staticmethod(squared_errors)
