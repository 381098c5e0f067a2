"""Hinge losses: predictions on the right side, and far enough from the border, cost nothing.

Targets are -1 and 1, or 0 and 1; of several classes they are one-hot rows.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.distribute.global_batch import global_batch
from mirrored.ops import Tensor
from mirrored.training.losses import targets
from mirrored.training.losses.elementwise import Elementwise
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import check_same_shape, converted


def signs(y_true: Tensor) -> Tensor:
    """Return -1 and 1 for targets that are all 0 and 1; others as they are.

    A shard's targets become what those of its batch become: if these are -1 and 1, a shard of ones
    alone is one of ones in both.
    """
    is_zero, is_one = ops.equal(y_true, 0.0), ops.equal(y_true, 1.0)
    are_binary = ops.reduce_all(ops.logical_or(is_zero, is_one))
    batch = global_batch()
    if batch is not None:
        batch.note_totals([are_binary])
    return ops.where(are_binary, y_true * 2.0 - 1.0, y_true)


def hinges(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return max(1 - y_true y_pred, 0), element by element, for signs as targets."""
    return ops.maximum(1.0 - signs(y_true) * y_pred, 0.0)


def squared_hinges(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return max(1 - y_true y_pred, 0)^2, element by element, for signs as targets."""
    return ops.square(hinges(y_true, y_pred))


@explained
def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of max(1 - y_true y_pred, 0) over the last axis.

    Args:
        y_true: Targets of shape (batch, ...), -1 and 1; where all are 0 and 1, 0 stands for -1.
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.hinge([[-1.0, 1.0]], [[0.0, 3.0]]).numpy()
        array([0.5], dtype=float32)
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    return ops.reduce_mean(hinges(true, pred), axis=-1)


@explained
def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of max(1 - y_true y_pred, 0)^2 over the last axis.

    Args:
        y_true: Targets of shape (batch, ...), -1 and 1; where all are 0 and 1, 0 stands for -1.
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.squared_hinge([[-1.0, 1.0]], [[1.0, 3.0]]).numpy()
        array([2.], dtype=float32)
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    return ops.reduce_mean(squared_hinges(true, pred), axis=-1)


@explained
def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return max(neg - pos + 1, 0): the best of the wrong classes, less the right one.

    Args:
        y_true: One-hot rows of shape (batch, ..., classes).
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.categorical_hinge([[0.0, 1.0]], [[0.5, 0.75]]).numpy()
        array([0.75], dtype=float32)
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    right = ops.reduce_sum(true * pred, axis=-1)
    wrong = ops.reduce_max((1.0 - true) * pred, axis=-1)
    return ops.maximum(wrong - right + 1.0, 0.0)


class Hinge(Elementwise):
    """The mean of max(1 - y_true y_pred, 0) over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.Hinge()([[-1.0, 1.0]], [[0.0, 3.0]]))
        0.5
    """

    _name = "hinge"
    values = staticmethod(hinges)


class SquaredHinge(Elementwise):
    """The mean of max(1 - y_true y_pred, 0)^2 over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.SquaredHinge()([[-1.0, 1.0]], [[1.0, 3.0]]))
        2.0
    """

    _name = "squared_hinge"
    values = staticmethod(squared_hinges)


@explained
class CategoricalHinge(LossByLastAxis):
    """The best of the wrong classes, less the right one, plus 1; 0 where that is negative.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.CategoricalHinge()([[0.0, 1.0]], [[0.5, 0.75]]))
        0.75
    """

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "categorical_hinge",
        dtype: Any = None,
    ) -> None:
        super().__init__(name, reduction, dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return categorical_hinge(y_true, y_pred)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Integer labels become such rows with `one_hot`."
        return targets.match_output(self.name, y, output_shape, hint=hint)
