"""The cross-entropies: as formulas, as functions of Keras' names, and as losses.

They differ in what the targets are; predictions are probabilities, or logits.
"""

import math
import warnings
from typing import ClassVar

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.ops.activations import ANY_ENTROPY, logits_for
from mirrored.training.losses import targets
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import (
    EPSILON,
    as_predictions,
    check_class_axis,
    check_last_axis,
    check_not_batch,
    check_same_shape,
    checked_class,
    class_indices,
    converted,
    example_axis,
    last_axis,
    mean_of_axis,
    shaped,
)


class _Crossentropy(LossByLastAxis):
    """What the cross-entropies share: predictions are probabilities, or logits."""

    _name: ClassVar[str]

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name or self._name, reduction, dtype)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = example_axis(axis)


def smoothed(y_true: Tensor, label_smoothing: float, towards: float) -> Tensor:
    """Return targets moved by a part of the way towards what they are when nothing is known."""
    if not label_smoothing:
        return y_true
    return y_true * (1.0 - label_smoothing) + label_smoothing * towards


def binary_entropies(
    y_true: Tensor, y_pred: Tensor, from_logits: bool, label_smoothing: float = 0.0
) -> Tensor:
    """Return -(y log p + (1 - y) log(1 - p)), element by element.

    Args:
        y_true: Targets in the dtype of the predictions.
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.
        label_smoothing: How far targets are moved towards 1/2.

    Raises:
        ValueError: The shapes differ.
    """
    check_same_shape(y_true, y_pred)
    y_true = smoothed(y_true, label_smoothing, 0.5)
    logits = logits_for("binary_crossentropy", y_pred, from_logits, "sigmoid")
    if logits is not None:
        return ops.sigmoid_cross_entropy_with_logits(y_true, logits)
    p = ops.clip_by_value(y_pred, EPSILON, 1.0 - EPSILON)
    return -(y_true * ops.log(p) + (1.0 - y_true) * ops.log(1.0 - p))


@explained
def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the mean binary cross-entropy over an axis, the last one if none is given.

    Args:
        y_true: Targets in [0, 1] of shape (batch, ...).
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.
        label_smoothing: How far targets are moved towards 1/2: 0 not at all, 1 all the way.
        axis: The axis that the mean is taken over.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.binary_crossentropy([[1.0]], [[0.0]], from_logits=True).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    values = binary_entropies(*converted(y_true, y_pred), from_logits, label_smoothing)
    return ops.reduce_mean(values, axis=axis)


class BinaryCrossentropy(_Crossentropy):
    """The mean of -(y log p + (1 - y) log(1 - p)) over an example's elements.

    Args:
        from_logits: Whether predictions are logits, p = sigmoid(y_pred), not probabilities.
        label_smoothing: How far targets are moved towards 1/2: 0 not at all, 1 all the way.
        axis: The axis that the mean is taken over, not that of the batch.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.BinaryCrossentropy()([[1.0], [0.0]], [[0.5], [0.5]])), 4)
        0.6931
    """

    _name = "binary_crossentropy"
    _by_element = True
    _hint = "For labels of several classes use 'sparse_categorical_crossentropy'."

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the axis."""
        values = binary_entropies(y_true, y_pred, self.from_logits, self.label_smoothing)
        return mean_of_axis(values, self.axis)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in [0, 1] in the shape of the model's output."""
        return targets.check_probabilities(self.name, super().check_targets(y, output_shape))


def class_targets(function: str, y_true: Tensor, y_pred: Tensor, label_smoothing: float) -> Tensor:
    """Return targets of classes, moved towards one part for each class.

    A warning with Keras' sentence says it where there is one class, of which every loss is 0.

    Args:
        function: The name of the cross-entropy.
        y_true: The targets.
        y_pred: The predictions.
        label_smoothing: How far targets are moved.

    Raises:
        ValueError: The shapes differ.
    """
    check_same_shape(y_true, y_pred)
    if y_pred.shape[-1:] == (1,):
        warnings.warn(
            f"In loss {function}, expected y_pred.shape to be (batch_size, num_classes) with "
            f"num_classes > 1. Received: y_pred.shape={tuple(y_pred.shape)}. Consider using "
            "'binary_crossentropy' if you only have 2 classes.",
            SyntaxWarning,
            stacklevel=2,
        )
    if label_smoothing:  # Keras counts the last axis, whichever is that of the classes.
        y_true = smoothed(y_true, label_smoothing, 1.0 / max(y_true.shape[-1], 1))
    return y_true


def categorical_entropies(
    y_true: Tensor, y_pred: Tensor, from_logits: bool, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """Return -sum(y log p) over the axis of the classes.

    Args:
        y_true: Targets of shape (..., classes) in the dtype of the predictions.
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.
        label_smoothing: How far targets are moved towards one part for each class.
        axis: The axis of the classes.

    Raises:
        ValueError: The shapes differ.
    """
    y_true = class_targets("categorical_crossentropy", y_true, y_pred, label_smoothing)
    is_last = axis in (-1, y_pred.ndim - 1)
    made_by = "softmax" if is_last else ANY_ENTROPY
    logits = logits_for("categorical_crossentropy", y_pred, from_logits, made_by)
    if not is_last:
        y_true, y_pred = last_axis(y_true, axis), last_axis(y_pred, axis)
        logits = None if logits is None else last_axis(logits, axis)
    if logits is not None:
        values = ops.softmax_cross_entropy_with_logits(_rows(y_true), _rows(logits))
        return shaped(values, y_pred.shape[:-1])
    p = y_pred / ops.reduce_sum(y_pred, axis=-1, keepdims=True)
    p = ops.clip_by_value(p, EPSILON, 1.0 - EPSILON)
    return -ops.reduce_sum(y_true * ops.log(p), axis=-1)


@explained
def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the cross-entropy over the axis of the classes, the last one if none is given.

    Args:
        y_true: Probabilities, as one-hot rows, of shape (batch, ..., classes).
        y_pred: Probabilities, or logits, of the same shape.
        from_logits: Whether predictions are logits.
        label_smoothing: How far targets are moved towards one part for each class, by the size of
            the last axis: 0 not at all, 1 all the way.
        axis: The axis of the classes.

    Raises:
        ValueError: The shapes differ, or `axis` is a boolean.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    check_class_axis(axis)
    return categorical_entropies(*converted(y_true, y_pred), from_logits, label_smoothing, axis)


class CategoricalCrossentropy(_Crossentropy):
    """Minus the sum of y log p over the classes.

    Args:
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        label_smoothing: How far targets are moved towards one part for each class, by the size of
            the last axis: 0 not at all, 1 all the way.
        axis: The axis of the classes, not that of the batch.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])), 4)
        0.6931
    """

    _name = "categorical_crossentropy"
    _hint = "For integer labels use 'sparse_categorical_crossentropy'."

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the axis of the classes."""
        check_not_batch(self.axis, y_pred)
        return categorical_entropies(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )


def sparse_entropies(
    y_true: Tensor, y_pred: Tensor, from_logits: bool, ignore_class: int | None = None
) -> Tensor:
    """Return -log p of the classes that labels name, masked where the label is `ignore_class`.

    Args:
        y_true: Labels of shape (...) or (..., 1).
        y_pred: Probabilities, or logits, of shape (..., classes).
        from_logits: Whether predictions are logits.
        ignore_class: The label of what does not count, or None.

    Raises:
        ValueError: The shapes do not fit, or a label is out of range.
    """
    labels = class_indices(y_true, y_pred)
    counts = None if ignore_class is None else ops.not_equal(labels, ignore_class)
    if counts is not None:  # Whatever is predicted there, were it NaN, gets a gradient of 0.
        labels = ops.where(counts, labels, ops.zeros_like(labels))
        y_pred = ops.where(ops.expand_dims(counts, -1), y_pred, ops.zeros_like(y_pred))
    logits = logits_for("sparse_categorical_crossentropy", y_pred, from_logits, "softmax")
    if logits is None:  # The logarithms of probabilities are logits of their softmax.
        logits = ops.log(ops.clip_by_value(y_pred, EPSILON, 1.0 - EPSILON))
    flat = shaped(labels, (labels.size,))
    values = ops.sparse_softmax_cross_entropy_with_logits(flat, _rows(logits))
    values = shaped(values, y_pred.shape[:-1])
    if counts is None:
        return values
    from mirrored.ops.tensor_views import masked  # Few programs need it.

    return masked(ops.where(counts, values, ops.zeros_like(values)), counts)


@explained
def sparse_categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Tensor:
    """Return the cross-entropy over the last axis, the classes, for integer labels.

    Args:
        y_true: Labels in [0, classes) of shape (batch, ...) or (batch, ..., 1).
        y_pred: Probabilities, or logits, of shape (batch, ..., classes).
        from_logits: Whether predictions are logits.
        ignore_class: The label of what does not count: its value is 0, which the result's mask
            leaves out of the mean of a loss. None: all count.
        axis: The axis of the classes, which is the last one: as in Keras on TensorFlow.

    Raises:
        ValueError: The shapes do not fit, a label is out of range, or `axis` is another.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    y_pred = as_predictions(y_pred)
    check_last_axis(axis, y_pred)
    return sparse_entropies(ops.convert_to_tensor(y_true), y_pred, from_logits, ignore_class)


class SparseCategoricalCrossentropy(LossByLastAxis):
    """Minus log p of each example's class, given by its index; the classes are the last axis.

    Args:
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        ignore_class: The label of what does not count, on no replica: means are over the others.
            None: all count.
        reduction: As in `Loss`.
        axis: The axis of the classes, which is the last one: as in Keras on TensorFlow.
        name: The name that errors show.
        dtype: As in `Loss`.

    Raises:
        ValueError: `ignore_class` is no integer.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]])), 4)
        0.6931
    """

    targets_are_labels = True

    _if_changed = ("axis",)

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        axis: int = -1,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name or "sparse_categorical_crossentropy", reduction, dtype)
        self.from_logits = from_logits
        self.ignore_class = checked_class(ignore_class)
        self.axis = axis

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        check_last_axis(self.axis, y_pred)
        return sparse_entropies(y_true, y_pred, self.from_logits, self.ignore_class)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return labels in [0, classes) or `ignore_class`, one for each prediction."""
        if self.ignore_class is None:
            return targets.check_labels(self.name, y, output_shape)
        ignored = y == self.ignore_class
        labels = targets.check_labels(self.name, np.where(ignored, 0, y), output_shape)
        return np.where(ignored.reshape(labels.shape), self.ignore_class, labels.astype(np.int64))


def _rows(x: Tensor) -> Tensor:
    return x if x.ndim == 2 else ops.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
