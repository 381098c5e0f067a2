"""The squared error: as a formula, as a function of Keras' name, and as a loss.

The metric of that name has the same formula.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses import targets
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import check_same_shape, converted, mean_of_last


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
    return ops.reduce_mean(squared_errors(*converted(y_true, y_pred)), axis=-1)


@explained
class MeanSquaredError(LossByLastAxis):
    """The mean of (y_true - y_pred)^2 over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.MeanSquaredError()([[0.0, 1.0]], [[1.0, 1.0]]))
        0.5
    """

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "mean_squared_error",
    ) -> None:
        super().__init__(name, reduction)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return mean_of_last(squared_errors(y_true, y_pred))

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Reshape them, or change the units of the last layer."
        return targets.match_output(self.name, y, output_shape, hint=hint)
