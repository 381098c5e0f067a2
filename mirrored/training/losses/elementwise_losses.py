"""Losses that are means over an example's elements, and the squared error, the first of them.

A loss is a class with a formula, a sentence and an example. Its function, under Keras' name, and
its metric are made from it.
"""

from typing import Any, ClassVar, Protocol

from mirrored import ops
from mirrored._arguments import explained
from mirrored._naming import snake_case
from mirrored._types import DTypeLike, TensorLike
from mirrored.ops import Tensor
from mirrored.training.losses.loss import LossByLastAxis, Reduction
from mirrored.training.losses.values import check_same_shape, converted

_LOSS = """{sentence} over an example's {extent}.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.{title}()({arguments})), 4)
        {result}
    """
_FUNCTION = """Return {sentence} over the last axis.

    Args:
        y_true: Targets of shape (batch, ...){targets}.
        y_pred: Predictions of the same shape.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.{name}({arguments})[0]), 4)
        {result}
    """


class LossFunction(Protocol):
    """A loss as a function."""

    def __call__(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return the losses, without the last axis."""


class Elementwise(LossByLastAxis):
    """The mean over an example's elements of what a subclass computes for each.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.
    """

    _name: ClassVar[str]
    _example: ClassVar[str]  # Targets, predictions and the loss, as in "[[0.0]], [[2.0]] -> 4.0".
    _targets: ClassVar[str] = ""  # What the function's docstring adds of targets.
    _by_element = True
    _sums: ClassVar[bool] = False  # Whether it is the sum over the last axis, not the mean.

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
        dtype: DTypeLike | None = None,
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
        return losses_of(self, y_true, y_pred)


def losses_of(loss: Any, y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return what a loss, or its class, makes of the last axis."""
    check_same_shape(y_true, y_pred)
    total = ops.reduce_sum if loss._sums else ops.reduce_mean
    return total(loss.values(y_true, y_pred), axis=-1)


def function_of(loss: type[Elementwise]) -> LossFunction:
    """Return the function of a loss, and complete the docstring of the loss by its example.

    Args:
        loss: The class, whose docstring says what it is the mean, or the sum, of.
    """
    name, sentence = snake_case(loss.__name__), str(loss.__doc__).rstrip(".")
    arguments, _, result = loss._example.partition(" -> ")
    loss._name = name
    texts = {"name": name, "title": loss.__name__, "arguments": arguments, "result": result}
    extent = "last axis" if loss._sums else "elements"
    loss.__doc__ = _LOSS.format(sentence=sentence, extent=extent, **texts)

    def function(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        return losses_of(loss, *converted(y_true, y_pred))

    sentence = sentence[0].lower() + sentence[1:]
    function.__doc__ = _FUNCTION.format(sentence=sentence, targets=loss._targets, **texts)
    function.__name__ = function.__qualname__ = name
    function.__module__ = loss.__module__
    return explained(function)


class MeanSquaredError(Elementwise):
    """The mean of (y_true - y_pred)^2."""

    _example = "[[0.0, 1.0]], [[1.0, 1.0]] -> 0.5"

    @staticmethod
    def values(y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return (y_true - y_pred)^2, element by element."""
        return ops.square(y_pred - y_true)


mean_squared_error = function_of(MeanSquaredError)
