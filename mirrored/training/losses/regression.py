"""Losses of numbers: how far predictions are from their targets, in several measures.

Each is a formula, a function of Keras' name that takes the mean over the last axis, and a loss.
"""

import math
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_integer, as_real
from mirrored.ops import Tensor
from mirrored.training.losses import targets
from mirrored.training.losses.elementwise import Elementwise, mean_of
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import EPSILON, check_same_shape, converted

_LOG_2 = math.log(2.0)


def absolute_errors(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return |y_true - y_pred|, element by element."""
    return ops.abs(y_true - y_pred)


def percentage_errors(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return 100 |y_true - y_pred| / |y_true|, element by element; of 0 that of a tiny number."""
    return ops.abs((y_true - y_pred) / ops.maximum(ops.abs(y_true), EPSILON)) * 100.0


def squared_logarithmic_errors(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return (log(y_true + 1) - log(y_pred + 1))^2, element by element, 0 for negative numbers."""
    logs = [ops.log(ops.maximum(tensor, EPSILON) + 1.0) for tensor in (y_pred, y_true)]
    return ops.square(logs[0] - logs[1])


def huber_errors(y_true: Tensor, y_pred: Tensor, delta: float = 1.0) -> Tensor:
    """Return half the squared errors up to `delta`, and from there on what goes on straight."""
    error = y_pred - y_true
    size = ops.abs(error)
    straight = size * delta - 0.5 * delta**2
    return ops.where(ops.less_equal(size, delta), ops.square(error) * 0.5, straight)


def log_cosh_errors(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return log(cosh(y_pred - y_true)), element by element, without computing the cosh."""
    error = y_pred - y_true
    return error + ops.softplus(error * -2.0) - _LOG_2


def cosines(y_true: Tensor, y_pred: Tensor, axis: int = -1) -> Tensor:
    """Return the products of the elements of vectors of length 1: they add up to the cosine."""
    true, pred = (
        value * ops.minimum(ops.rsqrt(ops.reduce_sum(ops.square(value), axis, keepdims=True)), 1e12)
        for value in (y_true, y_pred)
    )
    return true * pred


@explained
def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of |y_true - y_pred| over the last axis.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.mean_absolute_error([[0.0, 1.0]], [[1.0, 1.0]]).numpy()
        array([0.5], dtype=float32)
    """
    return mean_of(absolute_errors, y_true, y_pred)


@explained
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of 100 |y_true - y_pred| / |y_true| over the last axis.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.mean_absolute_percentage_error([[2.0, 4.0]], [[1.0, 4.0]]).numpy()
        array([25.], dtype=float32)
    """
    return mean_of(percentage_errors, y_true, y_pred)


@explained
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of (log(y_true + 1) - log(y_pred + 1))^2 over the last axis.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.mean_squared_logarithmic_error([[1.0]], [[1.0]]).numpy()
        array([0.], dtype=float32)
    """
    return mean_of(squared_logarithmic_errors, y_true, y_pred)


@explained
def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Return the mean of Huber's losses over the last axis: squares of small errors, large as such.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.
        delta: From which error on the loss goes on straight.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.huber([[0.0, 0.0]], [[1.0, 3.0]]).numpy()
        array([1.5], dtype=float32)
    """
    return mean_of(huber_errors, y_true, y_pred, delta)


@explained
def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of log(cosh(y_pred - y_true)) over the last axis.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.log_cosh([[1.0]], [[1.0]]).numpy()
        array([0.], dtype=float32)
    """
    return mean_of(log_cosh_errors, y_true, y_pred)


@explained
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return the cosine of the angle between targets and predictions, with its sign turned.

    Args:
        y_true: Targets of shape (batch, ...).
        y_pred: Predictions of the same shape.
        axis: The axis of the vectors.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.cosine_similarity([[0.0, 2.0]], [[0.0, 3.0]]).numpy()
        array([-1.], dtype=float32)
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    return -ops.reduce_sum(cosines(true, pred, axis), axis=axis)


class MeanAbsoluteError(Elementwise):
    """The mean of |y_true - y_pred| over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.MeanAbsoluteError()([[0.0, 1.0]], [[1.0, 1.0]]))
        0.5
    """

    _name = "mean_absolute_error"
    values = staticmethod(absolute_errors)


class MeanAbsolutePercentageError(Elementwise):
    """The mean of 100 |y_true - y_pred| / |y_true| over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 4.0]]))
        25.0
    """

    _name = "mean_absolute_percentage_error"
    values = staticmethod(percentage_errors)


class MeanSquaredLogarithmicError(Elementwise):
    """The mean of (log(y_true + 1) - log(y_pred + 1))^2 over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.MeanSquaredLogarithmicError()([[1.0]], [[1.0]]))
        0.0
    """

    _name = "mean_squared_logarithmic_error"
    values = staticmethod(squared_logarithmic_errors)


@explained
class Huber(Elementwise):
    """Squares of small errors, and large ones as such (Huber 1964), over an example's elements.

    Args:
        delta: From which error on the loss goes on straight.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Raises:
        ValueError: `delta` is no number of 0 or more.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.Huber()([[0.0, 0.0]], [[1.0, 3.0]]))
        1.5
    """

    _if_changed = ("delta",)
    _name = "huber_loss"

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "huber_loss",
        dtype: Any = None,
    ) -> None:
        number = as_real(delta)
        if number is None or not 0 <= number < math.inf:
            raise ValueError(f"`delta` is a number of 0 or more. Received: delta={delta!r}")
        super().__init__(reduction, name, dtype)
        self.delta = number

    def values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return Huber's losses, element by element."""
        return huber_errors(y_true, y_pred, self.delta)


class LogCosh(Elementwise):
    """The mean of log(cosh(y_pred - y_true)) over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.LogCosh()([[1.0]], [[1.0]]))
        0.0
    """

    _name = "log_cosh"
    values = staticmethod(log_cosh_errors)


@explained
class CosineSimilarity(LossByLastAxis):
    """The cosine of the angle between targets and predictions, with its sign turned.

    Args:
        axis: The axis of the vectors, not that of the batch.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Raises:
        ValueError: `axis` is no integer, or that of the batch.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
        -1.0
    """

    _if_changed = ("axis",)

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "cosine_similarity",
        dtype: Any = None,
    ) -> None:
        number = as_integer(axis)
        if number is None or number == 0:
            raise ValueError(
                f"`axis` is that of the vectors, and 0 that of the batch. Received: axis={axis!r}"
            )
        super().__init__(name, reduction, dtype)
        self.axis = number

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the vectors' axis."""
        return cosine_similarity(y_true, y_pred, self.axis)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        hint = "Reshape them, or change the units of the last layer."
        return targets.match_output(self.name, y, output_shape, hint=hint)


MAE = mae = mean_absolute_error
MAPE = mape = mean_absolute_percentage_error
MSLE = msle = mean_squared_logarithmic_error
logcosh = log_cosh
