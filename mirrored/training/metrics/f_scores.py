"""Harmonic means of precision and recall."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses.values import EPSILON, cast, check_same_shape, example_weights
from mirrored.training.metrics.counting import Counting


@explained
class FBetaScore(Counting):
    """The weighted harmonic mean of precision and recall, of each class or of all.

    That is (1 + beta^2) precision recall / (beta^2 precision + recall).

    Args:
        average: None: one score a class; "micro": of all counts together; "macro": the mean over
            classes; "weighted": their mean weighted by how often they are the target.
        beta: How much more recall counts than precision, a float above 0.
        threshold: What a prediction is positive above, a float in (0, 1]; None: the largest of a
            row is.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: An argument is none of these.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.FBetaScore(beta=2.0, threshold=0.5)
        >>> metric.update_state([[1, 1], [1, 0], [0, 1]], [[0.2, 0.6], [0.6, 0.8], [0.1, 0.7]])
        >>> metric.result().numpy().round(4)
        array([0.5556, 0.9091])
    """

    _direction = "up"
    _unknown = "classes"
    _counted = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str = "fbeta_score",
        dtype: Any = None,
    ) -> None:
        _check(average, beta, threshold)
        super().__init__(dtype, name)
        self.average, self.beta, self.threshold = average, beta, threshold
        self.axis = None if average == "micro" else 0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: The targets, 0 or 1, of shape (batch, classes).
            y_pred: The predictions, of the same shape.
            sample_weight: A weight for each example, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        true, predicted = (cast(ops.convert_to_tensor(x), self.dtype) for x in (y_true, y_pred))
        if true.ndim != 2 or predicted.ndim != 2:
            raise ValueError(
                f"{type(self).__name__} expects 2D inputs with shape (batch_size, output_dim). "
                f"Received input shapes: y_pred.shape={predicted.shape} and "
                f"y_true.shape={true.shape}."
            )
        check_same_shape(true, predicted)
        weights = None
        if sample_weight is not None:
            weights = example_weights(sample_weight, true, 1)
            weights = ops.reshape(cast(weights, ops.float64), (-1, 1))
        counts = self._counts(cast(true, ops.float64), self._positive(predicted), weights)
        if not self._built:
            self._start(() if self.axis is None else predicted.shape[1:])
        self._count(counts)

    def _positive(self, predicted: Tensor) -> Tensor:
        if self.threshold is not None:
            return ops.cast(ops.greater(predicted, self.threshold), ops.float64)
        best = ops.greater_equal(predicted, ops.reduce_max(predicted, axis=-1, keepdims=True))
        # Rows of zeros have no positive.
        return ops.cast(ops.logical_and(best, ops.greater(ops.abs(predicted), 1e-9)), ops.float64)

    def _counts(self, true: Tensor, positive: Tensor, weights: Tensor | None) -> list[Tensor]:
        parts = (positive * true, positive * (1.0 - true), (1.0 - positive) * true, true)
        weighted = parts if weights is None else [part * weights for part in parts]
        return [ops.reduce_sum(part, axis=self.axis) for part in weighted]

    def _of(self, *counts: Tensor) -> Tensor:
        right, wrong, missed, targets = counts
        precision = right / (right + wrong + EPSILON)
        recall = right / (right + missed + EPSILON)
        square = self.beta**2
        scores = precision * recall / (square * precision + recall + EPSILON) * (1.0 + square)
        if self.average == "weighted":
            return ops.reduce_sum(scores * (targets / (ops.reduce_sum(targets) + EPSILON)))
        return scores if self.average is None else ops.reduce_mean(scores)


@explained
class F1Score(FBetaScore):
    """The harmonic mean of precision and recall, of each class or of all.

    Args:
        average: None: one score a class; "micro": of all counts together; "macro": the mean over
            classes; "weighted": their mean weighted by how often they are the target.
        threshold: What a prediction is positive above, a float in (0, 1]; None: the largest of a
            row is.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: An argument is none of these.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.F1Score("micro")
        >>> metric.update_state([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> round(float(metric.result()), 4)
        0.5
    """

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str = "f1_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)


def _check(average: Any, beta: Any, threshold: Any) -> None:
    if average not in (None, "micro", "macro", "weighted"):
        raise ValueError(
            "Invalid `average` argument value. Expected one of: {None, 'micro', 'macro', "
            f"'weighted'}}. Received: average={average}"
        )
    for name, value in (("beta", beta), ("threshold", threshold)):
        if not isinstance(value, float) and (name == "beta" or value is not None):
            raise ValueError(
                f"Invalid `{name}` argument value. It should be a Python float. "
                f"Received: {name}={value} of type '{type(value)}'"
            )
    if beta <= 0.0:
        raise ValueError(
            f"Invalid `beta` argument value. It should be > 0. Received: beta={beta!r}"
        )
    if threshold is not None and not 0.0 < threshold <= 1.0:
        raise ValueError(
            "Invalid `threshold` argument value. It should verify 0 < threshold <= 1. "
            f"Received: threshold={threshold!r}"
        )
