"""Losses of rates and probabilities: how unlikely targets are by what is predicted.

The cross-entropies are in `crossentropy`.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.training.losses.elementwise import Elementwise, mean_of
from mirrored.training.losses.values import EPSILON, check_same_shape, converted


def poisson_losses(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return y_pred - y_true log(y_pred), element by element."""
    return y_pred - y_true * ops.log(y_pred + EPSILON)


def divergences(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return y_true log(y_true / y_pred), element by element, of numbers between 0 and 1."""
    true, pred = (ops.clip_by_value(tensor, EPSILON, 1.0) for tensor in (y_true, y_pred))
    return true * ops.log(true / pred)


@explained
def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean of y_pred - y_true log(y_pred) over the last axis.

    Args:
        y_true: Counts of shape (batch, ...).
        y_pred: Predicted rates of the same shape, above 0.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.poisson([[1.0, 3.0]], [[1.0, 1.0]]).numpy().round(4)
        array([1.], dtype=float32)
    """
    return mean_of(poisson_losses, y_true, y_pred)


@explained
def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """Return the sum of y_true log(y_true / y_pred) over the last axis.

    Args:
        y_true: Probabilities of shape (batch, ...).
        y_pred: Predicted ones of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.kl_divergence([[0.5, 0.5]], [[0.5, 0.5]]).numpy()
        array([0.], dtype=float32)
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    return ops.reduce_sum(divergences(true, pred), axis=-1)


class Poisson(Elementwise):
    """The mean of y_pred - y_true log(y_pred) over an example's elements.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.Poisson()([[1.0, 3.0]], [[1.0, 1.0]])), 4)
        1.0
    """

    _name = "poisson"
    values = staticmethod(poisson_losses)


class KLDivergence(Elementwise):
    """The sum of y_true log(y_true / y_pred) over an example's last axis.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.losses.KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]]))
        0.0
    """

    _name = "kl_divergence"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the last axis."""
        check_same_shape(y_true, y_pred)
        return ops.reduce_sum(divergences(y_true, y_pred), axis=-1)


KLD = kld = kullback_leibler_divergence = kl_divergence
