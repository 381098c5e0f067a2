"""Accuracies: which part of the predictions is right, by what the targets are.

"accuracy" alone is the kind that fits the loss, or the shapes.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._numbers import check_count
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.ops.spec import INDICES
from mirrored.training.losses import Loss, SparseCategoricalCrossentropy
from mirrored.training.losses.values import (
    aligned,
    cast,
    check_same_shape,
    class_indices,
    labels_of,
    of_one_rank,
)
from mirrored.training.metrics.metric import Metric
from mirrored.training.metrics.quotient import Comparison, integers_or_predictions


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

    def __init__(self, name: str = "accuracy", dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)

    def _as_predictions(self, y_pred: Any) -> Tensor:
        return integers_or_predictions(y_pred)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(y_true, y_pred)
        return ops.equal(y_true, y_pred)


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
        self, name: str = "binary_accuracy", dtype: DTypeLike | None = None, threshold: float = 0.5
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

    def __init__(self, name: str = "categorical_accuracy", dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _same_class(y_true, y_pred)


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

    def __init__(
        self, name: str = "sparse_categorical_accuracy", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(dtype, name)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
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
    return ops.equal(classes(y_true, y_pred), ops.argmax(y_pred, axis=-1))


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


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Tensor:
    """Return for each prediction whether it is on the side of the threshold that its target says.

    Args:
        y_true: The targets, 0 or 1.
        y_pred: The predictions, of the same shape.
        threshold: What a prediction is 1 above.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.metrics.binary_accuracy([[1], [0]], [[0.9], [0.8]]).numpy()
        array([[1.],
               [0.]], dtype=float32)
    """
    true, predicted = of_one_rank(ops.convert_to_tensor(y_true), _scores(y_pred))
    check_same_shape(true, predicted)
    return _right(true, ops.cast(ops.greater(predicted, threshold), true.dtype))


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Return for each row of predictions whether its largest is that of its one-hot target.

    Args:
        y_true: The targets.
        y_pred: The predictions, of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.metrics.categorical_accuracy([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]]).numpy()
        array([1., 0.], dtype=float32)
    """
    predicted = _scores(y_pred)
    return _right(classes(y_true, predicted), ops.argmax(predicted, axis=-1))


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Return for each row of predictions whether its largest is that of its label.

    Args:
        y_true: The labels, of the predictions' shape without its last axis, or with 1 there, or of
            a shape that broadcasts to it.
        y_pred: The predictions.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.metrics.sparse_categorical_accuracy([1, 0], [[0.1, 0.9], [0.2, 0.8]]).numpy()
        array([1., 0.], dtype=float32)
    """
    predicted = _scores(y_pred)
    labels = labels_beside(y_true, predicted)
    matches = _right(labels, ops.cast(ops.argmax(predicted, axis=-1), labels.dtype))
    return ops.squeeze(matches, -1) if matches.ndim > 1 and matches.shape[-1] == 1 else matches


def top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Tensor:
    """Return for each row of predictions whether its one-hot target's is among the k best.

    Args:
        y_true: The targets.
        y_pred: The predictions, of the same shape.
        k: How many of the best count.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> scores = [[0.1, 0.9], [0.2, 0.8]]
        >>> mr.metrics.top_k_categorical_accuracy([[0, 1], [1, 0]], scores, k=1).numpy()
        array([1., 0.], dtype=float32)
    """
    predicted = _scores(y_pred)
    return among(classes(y_true, predicted), predicted, k)


def sparse_top_k_categorical_accuracy(
    y_true: TensorLike, y_pred: TensorLike, k: int = 5, from_sorted_ids: bool = False
) -> Tensor:
    """Return for each row of predictions whether its label is among the k best.

    Args:
        y_true: The labels, of the predictions' shape without its last axis, or with 1 there.
        y_pred: The predictions.
        k: How many of the best count.
        from_sorted_ids: Whether predictions are labels themselves, the best first.

    Returns:
        1 and 0, of the labels' shape.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> scores = [[0.1, 0.9, 0.0], [0.2, 0.8, 0.1]]
        >>> mr.metrics.sparse_top_k_categorical_accuracy([2, 0], scores, k=2).numpy()
        array([0., 1.], dtype=float32)
    """
    predicted = ops.convert_to_tensor(y_pred) if from_sorted_ids else _scores(y_pred)
    targets = ops.convert_to_tensor(y_true)
    labels = labels_of(targets, predicted)
    if from_sorted_ids:
        equal = ops.equal(cast(labels, predicted.dtype)[..., None], predicted[..., :k])
        matches = ops.cast(ops.reduce_any(equal, axis=-1), ops.floatx())
    else:
        matches = among(labels, predicted, k)
    return ops.reshape(matches, targets.shape)


def _scores(y_pred: Any) -> Tensor:
    """Return predictions in a dtype of numbers that have halves."""
    predicted = ops.convert_to_tensor(y_pred)
    return predicted if predicted.dtype.kind == "f" else ops.cast(predicted, ops.floatx())


def _right(true: Tensor, predicted: Tensor) -> Tensor:
    return ops.cast(ops.equal(true, predicted), ops.floatx())


def classes(y_true: Any, predicted: Tensor) -> Tensor:
    """Return the labels of one-hot rows."""
    true = ops.convert_to_tensor(y_true)
    check_same_shape(true, predicted)
    # argmax knows no bool, which one-hot rows from a comparison are.
    return ops.argmax(cast(true, predicted.dtype), axis=-1)


def labels_beside(y_true: Any, predicted: Tensor) -> Tensor:
    """Return labels as integers that broadcast against the classes of predictions.

    Args:
        y_true: The labels, of the predictions' shape without its last axis, or with 1 there, or, as
            Keras takes them, with 1 in the place of another axis.
        predicted: The predictions.

    Raises:
        ValueError: The shapes do not fit.
    """
    labels, expected = ops.convert_to_tensor(y_true), predicted.shape[:-1]
    pairs = list(zip(labels.shape, expected, strict=False))
    broadcasts = len(labels.shape) == len(expected) and all(1 in p or p[0] == p[1] for p in pairs)
    if not (broadcasts and predicted.shape):
        labels = labels_of(labels, predicted)
    return labels if labels.dtype in (ops.int32, ops.int64) else ops.cast(labels, ops.int64)


def among(labels: Tensor, predicted: Tensor, k: int) -> Tensor:
    """Return for each row of predictions 1 where its label is among the k best, and 0."""
    rows = ops.reshape(predicted, (-1, predicted.shape[-1]))
    places = ops.reshape(labels if labels.dtype in INDICES else ops.cast(labels, ops.int64), (-1,))
    # The op takes float32 alone, as TensorFlow's.
    hits = ops.in_top_k(places, cast(rows, ops.float32), k)
    return ops.cast(ops.reshape(hits, labels.shape), ops.floatx())


class _TopK(Comparison):
    """The part of examples whose class is among the k best: a subclass says what targets are."""

    _direction = "up"
    _default: ClassVar[str]
    _classes: ClassVar[Callable[..., Tensor]]

    def __init__(self, k: int = 5, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        self.k = check_count("k", k, least=1)
        super().__init__(dtype, name or self._default)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return among(type(self)._classes(y_true, y_pred), y_pred, self.k)


class TopKCategoricalAccuracy(_TopK):
    """The part of one-hot targets whose class is among the k best predictions.

    Args:
        k: How many of the best count.
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Raises:
        ValueError: `k` is less than 1.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.TopKCategoricalAccuracy(k=1)
        >>> metric.update_state([[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    _default = "top_k_categorical_accuracy"
    _classes = staticmethod(classes)


class SparseTopKCategoricalAccuracy(_TopK):
    """The part of labels whose class is among the k best predictions.

    Args:
        k: How many of the best count.
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Raises:
        ValueError: `k` is less than 1.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.SparseTopKCategoricalAccuracy(k=1)
        >>> metric.update_state([1, 0], [[0.1, 0.9], [0.2, 0.8]])
        >>> float(metric.result())
        0.5
    """

    _default = "sparse_top_k_categorical_accuracy"
    _classes = staticmethod(class_indices)


explain_functions(__name__, all_but="accuracy_for among classes labels_beside")
