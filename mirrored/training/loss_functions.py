"""The maths of the losses, as functions of targets and predictions.

The classes in `losses` and the metrics compute with these, so that each formula is written once.
"""

import math
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.activations import cast_with_logits
from mirrored.ops.spec import DType, default_float, is_bfloat16
from mirrored.training.sample_weights import fitted_shape

_EPSILON = 1e-7  # Keras' epsilon: probabilities are kept this far from 0 and 1.


@explained
def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of (y_true - y_pred)^2 over the last axis.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.mean_squared_error([[0.0, 1.0]], [[1.0, 1.0]]).numpy()
        array([0.5], dtype=float32)
    """
    return ops.reduce_mean(squared_errors(*_converted(y_true, y_pred)), axis=-1)


@explained
def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """Return the mean binary cross-entropy over the last axis.

    Args:
        y_true: Targets in [0, 1] of shape (batch, ...).
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.binary_crossentropy([[1.0]], [[0.0]], from_logits=True).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    return ops.reduce_mean(binary_entropies(*_converted(y_true, y_pred), from_logits), axis=-1)


@explained
def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """Return the cross-entropy over the last axis, the classes.

    Args:
        y_true: Probabilities, as one-hot rows, of shape (batch, ..., classes).
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    return categorical_entropies(*_converted(y_true, y_pred), from_logits)


@explained
def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """Return the cross-entropy over the last axis, the classes, for integer labels.

    Args:
        y_true: Labels in [0, classes) of shape (batch, ...) or (batch, ..., 1).
        y_pred: Probabilities, or logits, of shape (batch, ..., classes).
        from_logits: Whether predictions are logits.

    Raises:
        ValueError: The shapes do not fit, or a label is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    return sparse_entropies(ops.convert_to_tensor(y_true), as_predictions(y_pred), from_logits)


def squared_errors(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return (y_true - y_pred)^2, element by element.

    Args:
        y_true: Targets in the dtype of the predictions.
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.
    """
    check_same_shape(y_true, y_pred)
    return ops.square(y_pred - y_true)


def binary_entropies(y_true: Tensor, y_pred: Tensor, from_logits: bool) -> Tensor:
    """Return -(y log p + (1 - y) log(1 - p)), element by element.

    Args:
        y_true: Targets in the dtype of the predictions.
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.

    Raises:
        ValueError: The shapes differ.
    """
    check_same_shape(y_true, y_pred)
    logits = y_pred if from_logits else ops.logits_of(y_pred, "sigmoid")
    if logits is not None:
        return ops.sigmoid_cross_entropy_with_logits(y_true, logits)
    p = ops.clip_by_value(y_pred, _EPSILON, 1.0 - _EPSILON)
    return -(y_true * ops.log(p) + (1.0 - y_true) * ops.log(1.0 - p))


def categorical_entropies(y_true: Tensor, y_pred: Tensor, from_logits: bool) -> Tensor:
    """Return -sum(y log p) over the last axis.

    Args:
        y_true: Targets of shape (..., classes) in the dtype of the predictions.
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.

    Raises:
        ValueError: The shapes differ.
    """
    check_same_shape(y_true, y_pred)
    logits = y_pred if from_logits else ops.logits_of(y_pred, "softmax")
    if logits is not None:
        values = ops.softmax_cross_entropy_with_logits(_rows(y_true), _rows(logits))
        return _shaped(values, y_pred.shape[:-1])
    p = y_pred / ops.reduce_sum(y_pred, axis=-1, keepdims=True)
    p = ops.clip_by_value(p, _EPSILON, 1.0 - _EPSILON)
    return -ops.reduce_sum(y_true * ops.log(p), axis=-1)


def sparse_entropies(y_true: Tensor, y_pred: Tensor, from_logits: bool) -> Tensor:
    """Return -log p of the classes that labels name.

    Args:
        y_true: Labels of shape (...) or (..., 1).
        y_pred: Probabilities, or logits, of shape (..., classes).
        from_logits: Whether predictions are logits.

    Raises:
        ValueError: The shapes do not fit, or a label is out of range.
    """
    labels = class_indices(y_true, y_pred)
    logits = y_pred if from_logits else ops.logits_of(y_pred, "softmax")
    if logits is None:  # The logarithms of probabilities are logits of their softmax.
        logits = ops.log(ops.clip_by_value(y_pred, _EPSILON, 1.0 - _EPSILON))
    flat = _shaped(labels, (labels.size,))
    values = ops.sparse_softmax_cross_entropy_with_logits(flat, _rows(logits))
    return _shaped(values, y_pred.shape[:-1])


def class_indices(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return labels as integers of the predictions' shape without its last axis.

    Args:
        y_true: Labels of shape (...) or (..., 1).
        y_pred: Predictions of shape (..., classes).

    Raises:
        ValueError: The shapes do not fit.
    """
    expected = y_pred.shape[:-1]
    if y_pred.shape and y_true.shape in (expected, (*expected, 1)):
        labels = _shaped(y_true, expected)
        return labels if labels.dtype in (ops.int32, ops.int64) else cast(labels, ops.int64)
    raise ValueError(
        "Labels must have the shape of the predictions without the last axis, the classes. "
        f"Received: y_true with shape {y_true.shape} and y_pred with shape {y_pred.shape}. "
        "One-hot targets go with categorical cross-entropy and accuracy."
    )


def check_same_shape(y_true: Tensor, y_pred: Tensor) -> None:
    """Refuse shapes that would be broadcast against each other.

    Args:
        y_true: Targets.
        y_pred: Predictions.

    Raises:
        ValueError: The shapes differ.
    """
    if y_true.shape != y_pred.shape:
        raise ValueError(
            "Targets and predictions must have the same shape. Received: y_true with shape "
            f"{y_true.shape} and y_pred with shape {y_pred.shape}."
        )


def loss_dtype(dtype: DType) -> DType:
    """Return the dtype that losses of predictions are computed in.

    Bfloat16 would be too coarse; integers, which wrap around and have no halves, become floats.

    Args:
        dtype: That of the predictions.
    """
    if is_bfloat16(dtype):
        return ops.float32
    return dtype if dtype.kind == "f" else default_float()


def as_predictions(y_pred: Any) -> Tensor:
    """Return predictions as a tensor of the dtype that losses are computed in.

    Args:
        y_pred: What a model gave, of shape (batch, ...).
    """
    y_pred = ops.convert_to_tensor(y_pred)
    dtype = loss_dtype(y_pred.dtype)
    return y_pred if y_pred.dtype == dtype else cast_with_logits(y_pred, dtype)


def cast(x: Tensor, dtype: Any) -> Tensor:
    """Return `x` in `dtype`, itself where it has it.

    Args:
        x: A tensor.
        dtype: A dtype that tensors have.
    """
    return x if x.dtype == dtype else ops.cast(x, dtype)


def aligned(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return targets with a last axis of size 1 added or removed, where that gives y_pred's shape.

    Without this (batch,) against (batch, 1) would be broadcast to (batch, batch).

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of shape (batch, ...).
    """
    if y_pred.shape in ((*y_true.shape, 1), y_true.shape[:-1]) and y_true.size == y_pred.size:
        return ops.reshape(y_true, y_pred.shape)
    return y_true


def mean_of_rest(values: Tensor) -> Tensor:
    """Return the mean over all axes but the first, the batch.

    Args:
        values: A tensor of shape (batch, ...).
    """
    return ops.reduce_mean(values, axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values


def mean_of_last(values: Tensor) -> Tensor:
    """Return the mean over the last axis, unless that is the batch.

    Args:
        values: A tensor of shape (batch, ...).
    """
    return ops.reduce_mean(values, axis=-1) if values.ndim > 1 else values


def example_weights(sample_weight: Any, values: Tensor, axes: int | None = None) -> Tensor:
    """Return weights in the dtype of `values`, one an example, one for all, or as many axes.

    Args:
        sample_weight: Weights of shape (batch,), (batch, 1) or (), or one that broadcasts to that
            of the values.
        values: What they weigh, of shape (batch, ...).
        axes: How many of the values' first axes they are for; None: all.

    Returns:
        A tensor of shape () or (batch,), or of as many axes as the values.

    Raises:
        ValueError: The shape is another.
    """
    weights = cast(ops.convert_to_tensor(sample_weight), values.dtype)
    return _shaped(weights, fitted_shape(weights.shape, values.shape[:axes]))


def check_one_weight(what: str, sample_weight: Any) -> Tensor:
    """Return the weight of a whole batch; refuse weights of examples.

    Args:
        what: What returned one number for the batch, for the error.
        sample_weight: The weight.

    Raises:
        ValueError: It is no scalar.
    """
    weight = ops.convert_to_tensor(sample_weight)
    if weight.shape:
        raise ValueError(
            f"The {what} returned one number for the batch, which weights of its examples cannot "
            f"weigh. Received: sample_weight with shape {weight.shape}. Return one value an "
            "example."
        )
    return weight


def check_values(what: str, values: Tensor, y_pred: Tensor, advice: str) -> None:
    """Raise where a loss or metric returned neither a value an example nor one for the batch.

    Args:
        what: What returned them, for messages.
        values: What it returned.
        y_pred: The predictions, of shape (batch, ...).
        advice: What to do, as sentences.

    Raises:
        ValueError: It did not.
    """
    if values.shape and values.shape[:1] != y_pred.shape[:1]:
        raise ValueError(
            f"The {what} must return one value an example, shape ({y_pred.shape[0]},) or "
            f"({y_pred.shape[0]}, ...), or one number for the batch. Received: a tensor of shape "
            f"{values.shape}. {advice}"
        )


def weighted(values: Tensor, sample_weight: Any) -> Tensor:
    """Return the values times their weights.

    Args:
        values: A tensor of shape (batch, ...).
        sample_weight: Weights as in `example_weights`, or None.

    Raises:
        ValueError: The weights' shape does not fit.
    """
    if sample_weight is None:
        return values
    weights = example_weights(sample_weight, values)
    if weights.ndim == 1 and values.ndim > 1:
        weights = ops.reshape(weights, (*weights.shape, *[1] * (values.ndim - 1)))
    return values * weights


def weighted_means(values: Tensor, sample_weight: Any) -> Tensor:
    """Return the means over all axes but the first of the values times their weights.

    Args:
        values: A tensor of shape (batch, ...).
        sample_weight: Weights as in `example_weights`, or None.

    Raises:
        ValueError: The weights' shape does not fit.
    """
    if sample_weight is None:
        return mean_of_rest(values)
    weights = example_weights(sample_weight, values)
    if weights.ndim > 1:
        return mean_of_rest(values * weights)
    return mean_of_rest(values) * weights


def _converted(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    y_pred = as_predictions(y_pred)
    return aligned(cast(ops.convert_to_tensor(y_true), y_pred.dtype), y_pred), y_pred


def _rows(x: Tensor) -> Tensor:
    return x if x.ndim == 2 else ops.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x.shape == shape else ops.reshape(x, shape)
