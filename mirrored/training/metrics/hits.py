"""Whether each prediction is right, as functions: 1 where it is, and 0."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.spec import INDICES
from mirrored.training.losses.values import cast, check_same_shape
from mirrored.training.metrics.counting import of_one_rank


@explained
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
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


@explained
def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
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


@explained
def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
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


@explained
def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
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


@explained
def sparse_top_k_categorical_accuracy(
    y_true: Any, y_pred: Any, k: int = 5, from_sorted_ids: bool = False
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
    labels = _labels(targets, predicted)
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


def _labels(y_true: Any, predicted: Tensor) -> Tensor:
    labels, expected = ops.convert_to_tensor(y_true), predicted.shape[:-1]
    if not predicted.shape or labels.shape not in (expected, (*expected, 1)):
        raise ValueError(
            "Labels must have the shape of the predictions without the last axis, the classes. "
            f"Received: y_true with shape {labels.shape} and y_pred with shape {predicted.shape}."
        )
    return ops.reshape(labels, expected)


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
        labels = _labels(labels, predicted)
    return labels if labels.dtype in (ops.int32, ops.int64) else ops.cast(labels, ops.int64)


def among(labels: Tensor, predicted: Tensor, k: int) -> Tensor:
    """Return for each row of predictions 1 where its label is among the k best, and 0."""
    rows = ops.reshape(predicted, (-1, predicted.shape[-1]))
    places = ops.reshape(labels if labels.dtype in INDICES else ops.cast(labels, ops.int64), (-1,))
    # The op takes float32 alone, as TensorFlow's.
    hits = ops.in_top_k(places, cast(rows, ops.float32), k)
    return ops.cast(ops.reshape(hits, labels.shape), ops.floatx())
