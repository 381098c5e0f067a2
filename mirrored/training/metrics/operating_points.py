"""The best of one rate where another is high enough, over thresholds."""

from collections.abc import Callable
from typing import Any, ClassVar

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.metrics.counting import ALL, Counting, Thresholds, check_most, confusion


class OperatingPoint(Counting):
    """The largest of one rate at thresholds where another is at least a given value; 0 at none.

    A subclass says which, and what its argument is called.
    """

    _direction = "up"
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
        self._levels = Thresholds(values, even=bool(steps))
        self.thresholds = values
        self._start((num_thresholds,))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: The targets, true where they are not 0.
            y_pred: The predictions in [0, 1], of the same shape.
            sample_weight: Weights that broadcast to the predictions, or None.

        Raises:
            ValueError: The shapes do not fit.
        """
        arguments = y_true, y_pred, sample_weight, self._levels
        self._count(confusion(ALL, *arguments, dtype=self.dtype, class_id=self.class_id))

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

    _argument, _constrained, _rate = (
        "specificity",
        staticmethod(specificities),
        staticmethod(recalls),
    )

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

    _argument, _constrained, _rate = (
        "sensitivity",
        staticmethod(recalls),
        staticmethod(specificities),
    )

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

    _argument, _constrained, _rate = "recall", staticmethod(recalls), staticmethod(precisions)

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

    _argument, _constrained, _rate = "precision", staticmethod(precisions), staticmethod(recalls)

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
