"""How far predictions vary with their targets."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from mirrored import ops
from mirrored._arguments import explained
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.training.losses.values import EPSILON, cast, converted, of_one_rank
from mirrored.training.metrics.counting import Counting
from mirrored.training.metrics.metric import add
from mirrored.training.metrics.quotient import Comparison


@explained
def pearson_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """Return the covariances of targets and predictions over their standard deviations.

    Args:
        y_true: The targets.
        y_pred: The predictions, of the same shape.
        axis: The axis along which they vary.

    Returns:
        Values in [-1, 1], without that axis; NaN where one of both does not vary.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.metrics.pearson_correlation([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])), 4)
        1.0
    """
    y_true, y_pred = converted(y_true, y_pred)
    true, predicted = (
        tensor - ops.reduce_mean(tensor, axis=axis, keepdims=True) for tensor in (y_true, y_pred)
    )
    true, predicted = (
        tensor / ops.reduce_std(tensor, axis=axis, keepdims=True) for tensor in (true, predicted)
    )
    return ops.reduce_mean(true * predicted, axis=axis)


@explained
def concordance_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """Return how close targets and predictions are to the line of their being equal.

    Args:
        y_true: The targets.
        y_pred: The predictions, of the same shape.
        axis: The axis along which they vary.

    Returns:
        Values in [-1, 1], without that axis.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.metrics.concordance_correlation([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])), 4)
        0.3636
    """
    y_true, y_pred = converted(y_true, y_pred)
    true, predicted = (ops.reduce_mean(side, axis=axis, keepdims=True) for side in (y_true, y_pred))
    spread = ops.reduce_variance(y_true - true, axis=axis, keepdims=True) + ops.reduce_variance(
        y_pred - predicted, axis=axis, keepdims=True
    )
    both = (y_true - predicted) * (y_pred - predicted)
    norm = spread + ops.square(true - predicted)
    return ops.reduce_mean(2.0 * both / (norm + EPSILON), axis=axis)


class _Correlation(Comparison):
    """The mean of the examples' correlations: a subclass says which."""

    _direction = "up"
    _default: ClassVar[str]
    _correlation: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(dtype, name or self._default)
        self.axis = axis

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return type(self)._correlation(y_true, y_pred, self.axis)


class PearsonCorrelation(_Correlation):
    """The mean of the examples' covariances of targets and predictions over their deviations.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        axis: The axis along which they vary, of an example or of a batch.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.PearsonCorrelation()
        >>> metric.update_state([[0.0, 1.0, 2.0]], [[5.0, 3.0, 1.0]])
        >>> round(float(metric.result()), 4)
        -1.0
    """

    _default = "pearson_correlation"
    _correlation = staticmethod(pearson_correlation)


class ConcordanceCorrelation(_Correlation):
    """The mean of how close the examples' targets and predictions are to being equal.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        axis: The axis along which they vary, of an example or of a batch.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.ConcordanceCorrelation()
        >>> metric.update_state([[0.0, 1.0, 2.0]], [[1.0, 3.0, 5.0]])
        >>> round(float(metric.result()), 4)
        0.3636
    """

    _default = "concordance_correlation"
    _correlation = staticmethod(concordance_correlation)


class R2Score(Counting):
    """The part of the targets' variance that predictions explain.

    Args:
        class_aggregation: None: one score a column; "uniform_average": their mean;
            "variance_weighted_average": their mean weighted by the columns' variances.
        num_regressors: How many independent regressors the score is adjusted for; 0: it is not.
        name: The name in logs and history.
        dtype: The dtype that targets and predictions are compared in.

    Raises:
        ValueError: An argument is none of these.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.R2Score()
        >>> metric.update_state([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]])
        >>> round(float(metric.result()), 4)
        0.5714
    """

    _direction = "up"
    _unknown = "columns"
    _counted = ("squared_sum", "sum", "total_mse", "count")
    _variable_names: ClassVar[Mapping[str, str]] = {"total_mse": "residual"}

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str = "r2_score",
        dtype: DTypeLike | None = None,
    ) -> None:
        ways = (None, "uniform_average", "variance_weighted_average")
        if class_aggregation not in ways:
            raise ValueError(
                f"Invalid value for argument `class_aggregation`. Expected one of {ways}. "
                f"Received: class_aggregation={class_aggregation}"
            )
        if num_regressors < 0:
            raise ValueError(
                "Invalid value for argument `num_regressors`. Expected a value >= 0. "
                f"Received: num_regressors={num_regressors!r}"
            )
        super().__init__(dtype, name)
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self.num_samples = self.add_variable((), "zeros", ops.float64, name="num_samples")

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: The targets, of shape (batch, columns).
            y_pred: The predictions, of the same shape.
            sample_weight: A weight for each example, or weights that broadcast, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        true, predicted = of_one_rank(
            *(cast(ops.convert_to_tensor(tensor), self.dtype) for tensor in (y_true, y_pred))
        )
        self._check_rows(true, predicted)
        weights = ops.ones_like(true)
        if sample_weight is not None:
            weights = cast(ops.convert_to_tensor(sample_weight), self.dtype)
            weights = weights[:, None] if weights.ndim == 1 else weights
            weights = ops.broadcast_to(weights, true.shape)
        weights = cast(weights, ops.float64)
        values = (true * true, true, ops.square(true - predicted), ops.ones_like(true))
        sums = [ops.reduce_sum(cast(value, ops.float64) * weights, axis=0) for value in values]
        if not self._built:
            self._start(true.shape[1:])
        self._count(sums)
        add(self.num_samples, float(true.size))

    def _of(self, *counts: Tensor) -> Tensor:
        squares, total, errors, count = counts
        variances = squares - total * (total / count)
        scores = 1.0 - errors / variances
        scores = ops.where(ops.is_inf(scores), ops.zeros_like(scores), scores)
        if self.class_aggregation == "uniform_average":
            scores = ops.reduce_mean(scores)
        elif self.class_aggregation == "variance_weighted_average":
            scores = ops.reduce_sum(variances * scores) / ops.reduce_sum(variances)
        return self._adjusted(scores) if self.num_regressors else scores

    def _adjusted(self, scores: Tensor) -> Tensor:
        """Return the scores adjusted, where there are examples enough."""
        rest = self.num_samples.read_value() - 1.0
        free = rest - float(self.num_regressors)
        divisor = ops.where(ops.greater(free, 0.0), free, ops.ones_like(free))
        adjusted = 1.0 - (1.0 - scores) * rest / divisor
        return ops.where(ops.greater(free, 0.0), adjusted, scores)
