"""Means of values, and of what losses measure of each element.

They are weighted where sample weights are given.
"""

from typing import Any, ClassVar

from mirrored import ops
from mirrored._types import DTypeLike
from mirrored.ops import Tensor
from mirrored.training.losses import MeanSquaredError as _SquaredError
from mirrored.training.losses.elementwise_losses import Elementwise
from mirrored.training.losses.values import aligned, cast, check_same_shape
from mirrored.training.metrics.quotient import (
    Comparison,
    Quotient,
    Statistics,
    counted_values,
    share_of_batch,
    weighted_sums,
)


class Mean(Quotient):
    """The mean of values, weighted if weights are given.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mean = mr.metrics.Mean()
        >>> mean.update_state([1.0, 3.0])
        >>> mean.update_state(5.0)
        >>> float(mean.result())
        3.0
    """

    def __init__(self, name: str = "mean", dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name)

    def statistics(self, values: Any, sample_weight: Any = None) -> Statistics:
        """Return the sum of the values and their number, or the sum of their weights.

        Args:
            values: Numbers of shape () or (batch, ...).
            sample_weight: Weights of shape (batch,), (batch, 1) or (), weights that broadcast to
                the values or to their first axes, or None.

        Raises:
            ValueError: The weights' shape does not fit.
        """
        values, sample_weight = counted_values(values, sample_weight)
        if values.ndim == 0 and sample_weight is None:
            # In a step of `fit` it counts by the examples, so that a batch counts once in all.
            share = share_of_batch()
            count = ops.constant(share, dtype=values.dtype)
            return (values, count) if share == 1.0 else (values * count, count)
        return weighted_sums(values if values.ndim else ops.reshape(values, (1,)), sample_weight)


_ERRORS = """{sentence}.

    Args:
        name: The name in logs and history.
        dtype: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> metric = mr.metrics.{title}()
        >>> metric.update_state({arguments})
        >>> round(float(metric.result()), 4)
        {result}
    """


class Errors(Comparison):
    """The mean over elements of the formula of a loss: a subclass says which."""

    _averaged = 1
    _direction = "down"
    _default: ClassVar[str]
    _loss: ClassVar[type[Elementwise]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Name the metric as its loss is named, and complete its docstring by the example."""
        super().__init_subclass__(**kwargs)
        if "_loss" not in vars(cls):
            return
        loss = cls._loss
        names = {"_default": loss._name, "_averaged": 0 if loss._sums else 1}
        for name in names.keys() - vars(cls).keys():
            setattr(cls, name, names[name])
        arguments, _, result = loss._example.partition(" -> ")
        texts = {"title": cls.__name__, "arguments": arguments, "result": result}
        cls.__doc__ = _ERRORS.format(sentence=str(cls.__doc__).rstrip("."), **texts)

    def __init__(self, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(dtype, name or self._default)

    def _values(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        true = aligned(cast(y_true, y_pred.dtype), y_pred)
        check_same_shape(true, y_pred)
        return self._errors(true, y_pred)

    def _errors(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        formula: Any = self._loss.values
        values: Tensor = formula(y_true, y_pred)
        return ops.reduce_sum(values, axis=-1) if self._loss._sums else values


class MeanSquaredError(Errors):
    """The mean of (y_true - y_pred)^2."""

    _loss = _SquaredError
