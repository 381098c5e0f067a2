"""The cross-entropies: as formulas, as functions of Keras' names, and as losses.

They differ in what the targets are; predictions are probabilities, or logits.
"""

import math
from typing import Any, ClassVar

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses import targets
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import (
    as_predictions,
    check_same_shape,
    class_indices,
    converted,
    mean_of_last,
    shaped,
)

_EPSILON = 1e-7  # Keras' epsilon: probabilities are kept this far from 0 and 1.


@explained
class _Crossentropy(LossByLastAxis):
    """What the cross-entropies share: predictions are probabilities, or logits."""

    _name: ClassVar[str]

    def __init__(
        self,
        from_logits: bool = False,
        *,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ) -> None:
        super().__init__(name or self._name, reduction)
        self.from_logits = from_logits


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
    return ops.reduce_mean(binary_entropies(*converted(y_true, y_pred), from_logits), axis=-1)


class BinaryCrossentropy(_Crossentropy):
    """The mean of -(y log p + (1 - y) log(1 - p)) over an example's elements.

    Args:
        from_logits: Whether predictions are logits, p = sigmoid(y_pred), not probabilities.
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.BinaryCrossentropy()([[1.0], [0.0]], [[0.5], [0.5]])), 4)
        0.6931
    """

    _name = "binary_crossentropy"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return mean_of_last(binary_entropies(y_true, y_pred, self.from_logits))

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in [0, 1] in the shape of the model's output."""
        hint = "Labels of several classes go with 'sparse_categorical_crossentropy'."
        y = targets.match_output(self.name, y, output_shape, hint=hint)
        return targets.check_probabilities(self.name, y)


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
        return shaped(values, y_pred.shape[:-1])
    p = y_pred / ops.reduce_sum(y_pred, axis=-1, keepdims=True)
    p = ops.clip_by_value(p, _EPSILON, 1.0 - _EPSILON)
    return -ops.reduce_sum(y_true * ops.log(p), axis=-1)


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
    return categorical_entropies(*converted(y_true, y_pred), from_logits)


class CategoricalCrossentropy(_Crossentropy):
    """Minus the sum of y log p over the classes, which are the last axis.

    Args:
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])), 4)
        0.6931
    """

    _name = "categorical_crossentropy"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return categorical_entropies(y_true, y_pred, self.from_logits)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Integer labels go with 'sparse_categorical_crossentropy'."
        return targets.match_output(self.name, y, output_shape, hint=hint)


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
    flat = shaped(labels, (labels.size,))
    values = ops.sparse_softmax_cross_entropy_with_logits(flat, _rows(logits))
    return shaped(values, y_pred.shape[:-1])


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


class SparseCategoricalCrossentropy(_Crossentropy):
    """Minus log p of each example's class, given by its index; the classes are the last axis.

    Args:
        from_logits: Whether predictions are logits, p = softmax(y_pred), not probabilities.
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]])), 4)
        0.6931
    """

    _name = "sparse_categorical_crossentropy"
    targets_are_labels = True

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return sparse_entropies(y_true, y_pred, self.from_logits)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return labels in [0, classes), one for each prediction."""
        return targets.check_labels(self.name, y, output_shape)


def _rows(x: Tensor) -> Tensor:
    return x if x.ndim == 2 else ops.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
