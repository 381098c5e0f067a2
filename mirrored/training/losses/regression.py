"""Losses of numbers, rates, probabilities and sides: how far predictions are from their targets.

Each is a formula, which its function and its metric have too. The cross-entropies are in
`crossentropy`.
"""

import math

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_integer, as_real
from mirrored._types import DTypeLike, TensorLike
from mirrored.distribute.global_batch import global_batch
from mirrored.ops import Tensor
from mirrored.training.losses.elementwise_losses import Elementwise, function_of
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.values import EPSILON, converted

_LOG_2 = math.log(2.0)
_SIGNS = ", -1 and 1; where all are 0 and 1, 0 stands for -1"


class MeanAbsoluteError(Elementwise):
    """The mean of |y_true - y_pred|."""

    _example = "[[0.0, 1.0]], [[1.0, 1.0]] -> 0.5"

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return |y_true - y_pred|, element by element."""
        return ops.abs(y_true - y_pred)


mean_absolute_error = function_of(MeanAbsoluteError)


class MeanAbsolutePercentageError(Elementwise):
    """The mean of 100 |y_true - y_pred| / |y_true|."""

    _example = "[[2.0, 4.0]], [[1.0, 4.0]] -> 25.0"

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the percentages, element by element; of 0 that of a tiny number."""
        return ops.abs((y_true - y_pred) / ops.maximum(ops.abs(y_true), EPSILON)) * 100.0


mean_absolute_percentage_error = function_of(MeanAbsolutePercentageError)


class MeanSquaredLogarithmicError(Elementwise):
    """The mean of (log(y_true + 1) - log(y_pred + 1))^2."""

    _example = "[[0.0, 1.0]], [[0.0, 0.0]] -> 0.2402"

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the squares, element by element, 0 for negative numbers."""
        logs = [ops.log(ops.maximum(tensor, EPSILON) + 1.0) for tensor in (y_pred, y_true)]
        return ops.square(logs[0] - logs[1])


mean_squared_logarithmic_error = function_of(MeanSquaredLogarithmicError)


def huber_errors(y_true: Tensor, y_pred: Tensor, delta: float = 1.0) -> Tensor:
    """Return half the squared errors up to `delta`, and from there on what goes on straight."""
    error = y_pred - y_true
    size = ops.abs(error)
    straight = size * delta - 0.5 * delta**2
    return ops.where(ops.less_equal(size, delta), ops.square(error) * 0.5, straight)


@explained
def huber(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Tensor:
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
    true, pred = converted(y_true, y_pred)
    return ops.reduce_mean(huber_errors(true, pred, delta), axis=-1)


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
        dtype: DTypeLike | None = None,
    ) -> None:
        number = as_real(delta)
        if number is None or not 0 <= number < math.inf:
            raise ValueError(f"`delta` must be a number of 0 or more. Received: delta={delta!r}")
        super().__init__(reduction, name, dtype)
        self.delta = number

    def values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return Huber's losses, element by element."""
        return huber_errors(y_true, y_pred, self.delta)


class LogCosh(Elementwise):
    """The mean of log(cosh(y_pred - y_true))."""

    _example = "[[0.0, 1.0]], [[1.0, 1.0]] -> 0.2169"

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return log(cosh(y_pred - y_true)), element by element, without computing the cosh."""
        error = y_pred - y_true
        return error + ops.softplus(error * -2.0) - _LOG_2


log_cosh = function_of(LogCosh)


@explained
def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
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
    true, pred = (  # Vectors of length 1.
        value * ops.minimum(ops.rsqrt(ops.reduce_sum(ops.square(value), axis, keepdims=True)), 1e12)
        for value in (true, pred)
    )
    return -ops.reduce_sum(true * pred, axis=axis)


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
        dtype: DTypeLike | None = None,
    ) -> None:
        number = as_integer(axis)
        if number is None or number == 0:
            raise ValueError(
                "`axis` must be the axis of the vectors, not 0, the axis of the batch. Received: "
                f"axis={axis!r}"
            )
        super().__init__(name, reduction, dtype)
        self.axis = number

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the vectors' axis."""
        return cosine_similarity(y_true, y_pred, self.axis)


class Poisson(Elementwise):
    """The mean of y_pred - y_true log(y_pred)."""

    _example = "[[1.0, 3.0]], [[1.0, 1.0]] -> 1.0"
    _targets = ", counts; predictions are rates above 0"

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return y_pred - y_true log(y_pred), element by element."""
        return y_pred - y_true * ops.log(y_pred + EPSILON)


poisson = function_of(Poisson)


class KLDivergence(Elementwise):
    """The sum of y_true log(y_true / y_pred)."""

    _example = "[[0.5, 0.5]], [[0.5, 0.5]] -> 0.0"
    _targets = ", probabilities, as predictions are"
    _sums = True

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return y_true log(y_true / y_pred), element by element, of numbers between 0 and 1."""
        true, pred = (ops.clip_by_value(tensor, EPSILON, 1.0) for tensor in (y_true, y_pred))
        return true * ops.log(true / pred)


kl_divergence = function_of(KLDivergence)


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


class Hinge(Elementwise):
    """The mean of max(1 - y_true y_pred, 0)."""

    _example = "[[-1.0, 1.0]], [[0.0, 3.0]] -> 0.5"
    _targets = _SIGNS

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return max(1 - y_true y_pred, 0), element by element, for signs as targets."""
        return ops.maximum(1.0 - signs(y_true) * y_pred, 0.0)


hinge = function_of(Hinge)


class SquaredHinge(Elementwise):
    """The mean of max(1 - y_true y_pred, 0)^2."""

    _example = "[[-1.0, 1.0]], [[1.0, 3.0]] -> 2.0"
    _targets = _SIGNS

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return max(1 - y_true y_pred, 0)^2, element by element, for signs as targets."""
        return ops.square(Hinge.values(y_true, y_pred))


squared_hinge = function_of(SquaredHinge)


@explained
def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
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
    right = ops.reduce_sum(true * pred, axis=-1)
    wrong = ops.reduce_max((1.0 - true) * pred, axis=-1)
    return ops.maximum(wrong - right + 1.0, 0.0)


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

    _hint = "Integer labels become such rows with `one_hot`."

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "categorical_hinge",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        return categorical_hinge(y_true, y_pred)
