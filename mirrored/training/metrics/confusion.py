"""True and false positives and negatives: counts, precision, recall, and what follows from them."""

from collections.abc import Sequence
from typing import Any, ClassVar

from mirrored import ops
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import serialized
from mirrored.training.losses.values import EPSILON, cast, example_weights
from mirrored.training.metrics.counting import (
    ALL,
    NEGATIVE_INFINITY,
    Counting,
    Thresholds,
    check_number,
    confusion,
    parsed,
)

# Rates: the part that the first of two conditions is of both.
_Rate = tuple[str, str]
_PRECISION: _Rate = ("true_positives", "false_positives")
_RECALL: _Rate = ("true_positives", "false_negatives")  # And sensitivity.
_SPECIFICITY: _Rate = ("true_negatives", "false_positives")


class _AtThresholds(Counting):
    """Sums of weights at thresholds: a subclass says of which conditions, and what they are for."""

    _conditions: ClassVar[tuple[str, ...]]  # Those of `ALL` that are counted, in their order.
    _levels: Thresholds
    top_k: int | None = None
    class_id: int | None = None

    def _start_at(self, levels: Thresholds) -> None:
        """Make the counts, 0 at each of the thresholds."""
        self._levels, self.thresholds = levels, levels.values
        self._start((len(levels.values),))

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: The targets, true where they are not 0.
            y_pred: The predictions, of the same shape.
            sample_weight: Weights that broadcast to the predictions, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        arguments = y_true, y_pred, sample_weight, self._levels
        options: dict[str, Any] = {"top_k": self.top_k, "class_id": self.class_id}
        self._count(confusion(self._conditions, *arguments, dtype=self.dtype, **options))


class _AtChosen(_AtThresholds):
    """Sums of weights at thresholds that a user chooses: one has one result."""

    _kept_otherwise = ("thresholds",)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a metric like it, by name, as plain values."""
        return {**super().get_config(), "thresholds": serialized(self.init_thresholds)}

    def _choose(self, thresholds: Any, default: float) -> None:
        self.init_thresholds = thresholds
        self._start_at(parsed(thresholds, default))

    def _of(self, *counts: Tensor) -> Tensor:
        results = self._result_of(*counts)
        return results[0] if len(self.thresholds) == 1 else results

    def _result_of(self, *counts: Tensor) -> Tensor:
        return counts[0]


class _Condition(_AtChosen):
    """The weights of predictions of one condition: a subclass says which."""

    _counted = ("accumulator",)

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(dtype, name)
        self._choose(thresholds, 0.5)


class TruePositives(_Condition):
    """The number of predictions that are positive and right, or the sum of their weights.

    Args:
        thresholds: What a prediction is positive above, 0.5 by default; of several, a list in
            [0, 1], there are as many results.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.TruePositives()
        >>> metric.update_state([0, 1, 1, 1], [0.9, 0.1, 0.8, 0.7])
        >>> float(metric.result())
        2.0
    """

    _conditions = ("true_positives",)


class TrueNegatives(_Condition):
    """The number of predictions that are negative and right, or the sum of their weights.

    Args:
        thresholds: What a prediction is positive above, 0.5 by default; of several, a list in
            [0, 1], there are as many results.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.TrueNegatives()
        >>> metric.update_state([0, 1, 0, 0], [0.9, 0.1, 0.2, 0.3])
        >>> float(metric.result())
        2.0
    """

    _conditions = ("true_negatives",)


class FalsePositives(_Condition):
    """The number of predictions that are positive and wrong, or the sum of their weights.

    Args:
        thresholds: What a prediction is positive above, 0.5 by default; of several, a list in
            [0, 1], there are as many results.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.FalsePositives()
        >>> metric.update_state([0, 1, 0, 0], [0.9, 0.1, 0.8, 0.3], [0.5, 1.0, 2.0, 1.0])
        >>> float(metric.result())
        2.5
    """

    _conditions = ("false_positives",)


class FalseNegatives(_Condition):
    """The number of predictions that are negative and wrong, or the sum of their weights.

    Args:
        thresholds: What a prediction is positive above, 0.5 by default; of several, a list in
            [0, 1], there are as many results.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.FalseNegatives(thresholds=[0.25, 0.75])
        >>> metric.update_state([0, 1, 1, 1], [0.0, 0.1, 0.5, 0.8])
        >>> metric.result().numpy()
        array([1., 2.])
    """

    _conditions = ("false_negatives",)


class _Share(_AtChosen):
    """The true positives by themselves and another count: a subclass says which."""

    _direction = "up"

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(dtype, name)
        self.top_k, self.class_id = top_k, class_id
        self._choose(thresholds, 0.5 if top_k is None else NEGATIVE_INFINITY)

    def _result_of(self, *counts: Tensor) -> Tensor:
        return ops.divide_no_nan(counts[0], counts[0] + counts[1])


class Precision(_Share):
    """The part of positive predictions that are right; 0 where there are none.

    Args:
        thresholds: What a prediction is positive above; of several, a list in [0, 1], there are as
            many results. None: 0.5, or all of the best where `top_k` is given.
        top_k: How many of the last axis, the best, can be positive; None: all.
        class_id: Which of the last axis counts; None: all.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Precision()
        >>> metric.update_state([0, 1, 1, 1], [0.9, 0.1, 0.8, 0.7])
        >>> round(float(metric.result()), 4)
        0.6667
    """

    _counted = _conditions = _PRECISION


class Recall(_Share):
    """The part of true targets that are predicted so; 0 where there are none.

    Args:
        thresholds: What a prediction is positive above; of several, a list in [0, 1], there are as
            many results. None: 0.5, or all of the best where `top_k` is given.
        top_k: How many of the last axis, the best, can be positive; None: all.
        class_id: Which of the last axis counts; None: all.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Recall(top_k=1)
        >>> metric.update_state([[0, 1, 1], [1, 0, 0]], [[0.1, 0.3, 0.2], [0.5, 0.1, 0.2]])
        >>> round(float(metric.result()), 4)
        0.6667
    """

    _counted = _conditions = _RECALL


class OperatingPoint(_AtThresholds):
    """The largest of one rate at thresholds where another is at least a given value; 0 at none.

    A subclass says which, and what its argument is called.
    """

    _direction = "up"
    _conditions = ALL
    _argument: ClassVar[str]
    _constrained: ClassVar[_Rate]
    _rate: ClassVar[_Rate]

    def __init__(
        self,
        value: float,
        num_thresholds: int,
        class_id: int | None,
        name: str | None,
        dtype: DTypeLike | None,
    ) -> None:
        if value < 0 or value > 1:
            raise ValueError(
                f"Argument `{self._argument}` must be in the range [0, 1]. "
                f"Received: {self._argument}={value!r}"
            )
        check_number(num_thresholds, above=0)
        super().__init__(dtype, name)
        self.value, self.num_thresholds, self.class_id = value, num_thresholds, class_id
        setattr(self, self._argument, value)
        steps = num_thresholds - 1
        values = [step / steps for step in range(num_thresholds)] if steps else [0.5]
        # Two are told apart by their places too, as in Keras.
        self._start_at(Thresholds(values, even=bool(steps)))

    def _of(self, *counts: Tensor) -> Tensor:
        enough = ops.greater_equal(_rate_of(counts, self._constrained), float(self.value))
        rates = _rate_of(counts, self._rate)
        return ops.reduce_max(ops.where(enough, rates, ops.zeros_like(rates)))


def _rate_of(counts: Sequence[Tensor], rate: _Rate) -> Tensor:
    """Return a rate of the counts of `ALL`, 0 where there are none."""
    part, rest = (counts[ALL.index(condition)] for condition in rate)
    return ops.divide_no_nan(part, part + rest)


class SensitivityAtSpecificity(OperatingPoint):
    """The best part of true targets that is found where enough of the others are left alone.

    Args:
        specificity: How much of these is enough, in [0, 1].
        num_thresholds: How many thresholds are tried, evenly in [0, 1].
        class_id: Which of the last axis counts; None: all.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A value is out of range.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SensitivityAtSpecificity(0.5)
        >>> metric.update_state([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])
        >>> float(metric.result())
        0.5
    """

    _argument, _constrained, _rate = "specificity", _SPECIFICITY, _RECALL

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


class SpecificityAtSensitivity(OperatingPoint):
    """The best part of false targets that is left alone where enough of the others are found.

    Args:
        sensitivity: How much of these is enough, in [0, 1].
        num_thresholds: How many thresholds are tried, evenly in [0, 1].
        class_id: Which of the last axis counts; None: all.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A value is out of range.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SpecificityAtSensitivity(0.5)
        >>> metric.update_state([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])
        >>> round(float(metric.result()), 4)
        0.6667
    """

    _argument, _constrained, _rate = "sensitivity", _RECALL, _SPECIFICITY

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


class PrecisionAtRecall(OperatingPoint):
    """The best precision where the recall is high enough.

    Args:
        recall: How high that is, in [0, 1].
        num_thresholds: How many thresholds are tried, evenly in [0, 1].
        class_id: Which of the last axis counts; None: all.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A value is out of range.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.PrecisionAtRecall(0.5)
        >>> metric.update_state([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])
        >>> float(metric.result())
        0.5
    """

    _argument, _constrained, _rate = "recall", _RECALL, _PRECISION

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)


class RecallAtPrecision(OperatingPoint):
    """The best recall where the precision is high enough.

    Args:
        precision: How high that is, in [0, 1].
        num_thresholds: How many thresholds are tried, evenly in [0, 1].
        class_id: Which of the last axis counts; None: all.
        name: The name in logs and history.
        dtype: The dtype in which predictions are compared.

    Raises:
        ValueError: A value is out of range.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.RecallAtPrecision(0.5)
        >>> metric.update_state([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])
        >>> float(metric.result())
        1.0
    """

    _argument, _constrained, _rate = "precision", _PRECISION, _RECALL

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)


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
        dtype: DTypeLike | None = None,
    ) -> None:
        _check(average, beta, threshold)
        super().__init__(dtype, name)
        self.average, self.beta, self.threshold = average, beta, threshold
        self.axis = None if average == "micro" else 0

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            y_true: The targets, 0 or 1, of shape (batch, classes).
            y_pred: The predictions, of the same shape.
            sample_weight: A weight for each example, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        true, predicted = (cast(ops.convert_to_tensor(x), self.dtype) for x in (y_true, y_pred))
        self._check_rows(true, predicted)
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
        dtype: DTypeLike | None = None,
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
