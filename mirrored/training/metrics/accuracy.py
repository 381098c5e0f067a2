"""Accuracies: which part of the predictions is right, by what the targets are.

"accuracy" alone is the kind that fits the loss, or the shapes.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses import Loss, SparseCategoricalCrossentropy
from mirrored.training.losses.values import (
    aligned,
    cast,
    check_same_shape,
    class_indices,
)
from mirrored.training.metrics.metric import Metric
from mirrored.training.metrics.quotient import Comparison, integers_or_predictions


@explained
class Accuracy(Comparison):
    """The part of predictions that equal their targets.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.Accuracy()
        >>> metric.update_state([1, 2, 3, 4], [1.0, 2.0, 0.0, 4.0])
        >>> float(metric.result())
        0.75
    """

    _direction = "up"

    def __init__(self, name: str = "accuracy", dtype: Any = None) -> None:
        super().__init__(dtype, name)

    def _as_predictions(self, y_pred: Any) -> Tensor:
        return integers_or_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(y_true, y_pred)
        return ops.equal(y_true, y_pred)


@explained
class BinaryAccuracy(Comparison):
    """The part of predictions that are on the same side of the threshold as their targets, 0 or 1.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.
        threshold: The probability above which a prediction counts as 1.

    Raises:
        ValueError: The threshold is outside [0, 1].

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.BinaryAccuracy()
        >>> metric.update_state([[1.0], [0.0]], [[0.9], [0.8]])
        >>> float(metric.result())
        0.5
    """

    _direction = "up"

    def __init__(
        self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5
    ) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(
                "Invalid value for argument `threshold`. Expected a value in interval [0, 1]. "
                f"Received: threshold={threshold!r}"
            )
        super().__init__(dtype, name)
        self.threshold = threshold

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _same_side(y_true, y_pred, self.threshold)


@explained
class CategoricalAccuracy(Comparison):
    """The part of predictions whose largest class is that of their one-hot target.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.CategoricalAccuracy()
        >>> metric.update_state([[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    _direction = "up"

    def __init__(self, name: str = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(dtype, name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _same_class(y_true, y_pred)


@explained
class SparseCategoricalAccuracy(Comparison):
    """The part of predictions whose largest class is that of their integer label.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseCategoricalAccuracy()
        >>> metric.update_state([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    _direction = "up"

    def __init__(self, name: str = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(dtype, name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        # Late, since functions are seldom asked for.
        from mirrored.training.metrics.hits import labels_beside

        labels = labels_beside(y_true, y_pred)
        return ops.equal(labels, ops.argmax(y_pred, axis=-1, output_type=labels.dtype))


class AccuracyByShape(Comparison):
    """The kind of accuracy that the shapes call for, as a loss of the user's own does not tell."""

    _direction = "up"

    def __init__(self) -> None:
        super().__init__(name="accuracy")

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_pred.ndim == 1 or y_pred.shape[-1] == 1:
            return _same_side(y_true, y_pred, 0.5)
        if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1:
            return _right_label(y_true, y_pred)
        return _same_class(y_true, y_pred)


def _same_side(y_true: Tensor, y_pred: Tensor, threshold: float) -> Tensor:
    y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
    check_same_shape(y_true, y_pred)
    return ops.equal(y_true, cast(ops.greater(y_pred, threshold), y_pred.dtype))


def _same_class(y_true: Tensor, y_pred: Tensor) -> Tensor:
    check_same_shape(y_true, y_pred)
    # argmax knows no bool, which one-hot rows from a comparison are.
    classes = ops.argmax(cast(y_true, y_pred.dtype), axis=-1)
    return ops.equal(classes, ops.argmax(y_pred, axis=-1))


def _right_label(y_true: Tensor, y_pred: Tensor) -> Tensor:
    labels = class_indices(y_true, y_pred)
    return ops.equal(labels, ops.argmax(y_pred, axis=-1, output_type=labels.dtype))


def accuracy_for(loss: Loss | None, output_shape: tuple[int | None, ...]) -> Metric:
    """Return the kind of accuracy that fits a loss and the shape of the outputs."""
    if len(output_shape) == 1 or output_shape[-1] == 1:
        return BinaryAccuracy()
    if isinstance(loss, SparseCategoricalCrossentropy):
        return SparseCategoricalAccuracy()
    return AccuracyByShape()
