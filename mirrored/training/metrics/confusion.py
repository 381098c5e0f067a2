"""True and false positives and negatives: counts, precision, recall, and the best of such rates."""

from collections.abc import Callable
from typing import Any, ClassVar

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import serialized
from mirrored.training.metrics.counting import (
    ALL,
    NEGATIVE_INFINITY,
    Counting,
    Thresholds,
    check_most,
    confusion,
    parsed,
)


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

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
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
        raise NotImplementedError


@explained
class _Condition(_AtChosen):
    """The weights of predictions of one condition: a subclass says which."""

    _counted = ("accumulator",)

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self._choose(thresholds, 0.5)

    def _result_of(self, *counts: Tensor) -> Tensor:
        return counts[0]


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


@explained
class _Share(_AtChosen):
    """The true positives by themselves and another count: a subclass says which."""

    _direction = "up"

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
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

    _counted = _conditions = ("true_positives", "false_positives")


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

    _counted = _conditions = ("true_positives", "false_negatives")


class OperatingPoint(_AtThresholds):
    """The largest of one rate at thresholds where another is at least a given value; 0 at none.

    A subclass says which, and what its argument is called.
    """

    _direction = "up"
    _conditions = ALL
    _argument: ClassVar[str]
    _constrained: ClassVar[Callable[..., Tensor]]
    _rate: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, value: float, num_thresholds: int, class_id: int | None, name: Any, dtype: Any
    ) -> None:
        if value < 0 or value > 1:
            raise ValueError(
                f"Argument `{self._argument}` must be in the range [0, 1]. "
                f"Received: {self._argument}={value!r}"
            )
        if num_thresholds <= 0:
            raise ValueError(
                "Argument `num_thresholds` must be an integer > 0. "
                f"Received: num_thresholds={num_thresholds!r}"
            )
        check_most(num_thresholds)
        super().__init__(dtype, name)
        self.value, self.num_thresholds, self.class_id = value, num_thresholds, class_id
        setattr(self, self._argument, value)
        steps = num_thresholds - 1
        values = [step / steps for step in range(num_thresholds)] if steps else [0.5]
        # Two are told apart by their places too, as in Keras.
        self._start_at(Thresholds(values, even=bool(steps)))

    def _of(self, *counts: Tensor) -> Tensor:
        kind = type(self)
        enough = ops.greater_equal(kind._constrained(*counts), float(self.value))
        rates = kind._rate(*counts)
        return ops.reduce_max(ops.where(enough, rates, ops.zeros_like(rates)))


def recalls(right: Tensor, wrong: Tensor, _: Tensor, missed: Tensor) -> Tensor:
    """Return what part of the true targets is found, which is the sensitivity too."""
    del wrong
    return ops.divide_no_nan(right, right + missed)


def precisions(right: Tensor, wrong: Tensor, _: Tensor, missed: Tensor) -> Tensor:
    """Return what part of the positive predictions is right."""
    del missed
    return ops.divide_no_nan(right, right + wrong)


def specificities(right: Tensor, wrong: Tensor, left: Tensor, missed: Tensor) -> Tensor:
    """Return what part of the false targets is left alone."""
    del right, missed
    return ops.divide_no_nan(left, left + wrong)


@explained
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

    _argument, _constrained, _rate = "specificity", specificities, recalls

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


@explained
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

    _argument, _constrained, _rate = "sensitivity", recalls, specificities

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


@explained
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

    _argument, _constrained, _rate = "recall", recalls, precisions

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)


@explained
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

    _argument, _constrained, _rate = "precision", precisions, recalls

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
