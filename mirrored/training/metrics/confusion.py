"""Counts of true and false positives and negatives; precision and recall."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import serialized
from mirrored.training.metrics.counting import NEGATIVE_INFINITY, Counting, confusion, parsed


@explained
class _Condition(Counting):
    """The weights of predictions of one condition: a subclass says which."""

    _counted = ("accumulator",)
    _condition: str

    _kept_otherwise = ("thresholds",)

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.init_thresholds = thresholds
        self._levels = parsed(thresholds, 0.5)
        self.thresholds = self._levels.values
        self._start((len(self.thresholds),))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a metric like it, by name, as plain values."""
        return {**super().get_config(), "thresholds": serialized(self.init_thresholds)}

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
        self._count(confusion((self._condition,), *arguments, dtype=self.dtype))

    def _of(self, *counts: Tensor) -> Tensor:
        return counts[0][0] if len(self.thresholds) == 1 else counts[0]


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

    _condition = "true_positives"


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

    _condition = "true_negatives"


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

    _condition = "false_positives"


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

    _condition = "false_negatives"


@explained
class _Share(Counting):
    """The true positives by themselves and another count: a subclass says which."""

    _direction = "up"

    _kept_otherwise = ("thresholds",)

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        self.init_thresholds, self.top_k, self.class_id = thresholds, top_k, class_id
        self._levels = parsed(thresholds, 0.5 if top_k is None else NEGATIVE_INFINITY)
        self.thresholds = self._levels.values
        self._start((len(self.thresholds),))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a metric like it, by name, as plain values."""
        return {**super().get_config(), "thresholds": serialized(self.init_thresholds)}

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
        self._count(confusion(self._counted, *arguments, dtype=self.dtype, **options))

    def _of(self, *counts: Tensor) -> Tensor:
        shares = ops.divide_no_nan(counts[0], counts[0] + counts[1])
        return shares[0] if len(self.thresholds) == 1 else shares


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

    _counted = ("true_positives", "false_positives")


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

    _counted = ("true_positives", "false_negatives")
