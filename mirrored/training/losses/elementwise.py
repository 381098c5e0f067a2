"""Losses that are means over an example's elements, and the squared error, the first of them.

Each is a formula, which the metric of its name has too, a function of Keras' name, and a loss.
"""

from typing import Any, ClassVar

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses import targets
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import check_same_shape, converted


@explained
class Elementwise(LossByLastAxis):
    """The mean over an example's elements of what a subclass computes for each.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.
    """

    _name: ClassVar[str]
    _by_element = True

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name or self._name, reduction, dtype)

    def values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return a value for each element.

        Args:
            y_true: Targets in the dtype and shape of the predictions.
            y_pred: Predictions of shape (batch, ...).
        """
        raise NotImplementedError

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        check_same_shape(y_true, y_pred)
        return ops.reduce_mean(self.values(y_true, y_pred), axis=-1)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Reshape them, or change the units of the last layer."
        return targets.match_output(self.name, y, output_shape, hint=hint)


def mean_of(values: Any, y_true: Any, y_pred: Any, *more: Any) -> Tensor:
    """Return the mean over the last axis of a formula of targets and predictions."""
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    return ops.reduce_mean(values(true, pred, *more), axis=-1)


def squared_errors(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return (y_true - y_pred)^2, element by element."""
    return ops.square(y_pred - y_true)


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
    return mean_of(squared_errors, y_true, y_pred)


class MeanSquaredError(Elementwise):
    """The mean of (y_true - y_pred)^2 over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.MeanSquaredError()([[0.0, 1.0]], [[1.0, 1.0]]))
        0.5
    """

    _name = "mean_squared_error"
    values = staticmethod(squared_errors)
