"""Losses of how far predicted regions and those of the targets overlap, as in segmentation.

Over axes with the batch they are one number for it: on several replicas sums are over all shards.
"""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_integer
from mirrored.distribute.global_batch import global_batch
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor
from mirrored.training.losses import targets
from mirrored.training.losses.loss import BY_WEIGHTS, Loss, Reduction
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import (
    EPSILON,
    check_same_shape,
    converted,
    refuse_parts,
    sum_of_replicas,
    weighted,
)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes as they are counted from the first one."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    if any(not -ndim <= index < ndim for index in axes):
        raise InvalidArgumentError(
            f"`axis` is out of bounds for {ndim} axes. Received: axis={axis}"
        )
    return tuple(index % ndim for index in axes)


def _sums(values: list[Tensor], axis: Any) -> list[Tensor]:
    """Return sums over axes: with the batch, in a step that `fit` runs, over all its shards."""
    axes = _axes(axis, values[0].ndim)
    sums = [ops.reduce_sum(value, axis=axes) for value in values]
    return sums if 0 not in axes or global_batch() is None else sum_of_replicas(sums)


@explained
def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """Return 1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred)).

    Args:
        y_true: Targets in [0, 1] of shape (batch, ...).
        y_pred: Predictions in [0, 1] of the same shape.
        axis: The axes of the sums; None: all, so that the batch has one number. In a step that
            `fit` runs, sums over the batch are those of all replicas.

    Raises:
        ValueError: The shapes differ.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.dice([[1.0, 0.0]], [[0.5, 0.5]])), 4)
        0.5
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    both, of_true, of_pred = _sums([true * pred, true, pred], axis)
    return 1.0 - 2.0 * both / (of_true + of_pred + EPSILON)


@explained
def tversky(
    y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None
) -> Tensor:
    """Return 1 - both / (both + alpha missed + beta wrong), of sums (Salehi et al. 2017).

    Args:
        y_true: Targets in [0, 1] of shape (batch, ...).
        y_pred: Predictions in [0, 1] of the same shape.
        alpha: How much targets count that are not predicted, sum(y_true (1 - y_pred)).
        beta: How much predictions count that are no targets, sum(y_pred (1 - y_true)).
        axis: The axes of the sums; None: all, so that the batch has one number. In a step that
            `fit` runs, sums over the batch are those of all replicas.

    Raises:
        ValueError: The shapes differ.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.tversky([[1.0, 0.0]], [[0.5, 0.5]])), 4)
        0.5
    """
    true, pred = converted(y_true, y_pred)
    check_same_shape(true, pred)
    both, missed, wrong = _sums([true * pred, (1.0 - pred) * true, pred * (1.0 - true)], axis)
    return 1.0 - both / (both + missed * alpha + wrong * beta + EPSILON)


class _Overlap(Loss):
    """What losses of sums share: over axes with the batch, all replicas have its one number."""

    def __init__(self, name: str, reduction: str | None, axis: Any, dtype: Any) -> None:
        super().__init__(name, reduction, dtype)
        axes = axis if isinstance(axis, tuple | list) else (axis,)
        if axis is not None and None in [as_integer(index) for index in axes]:
            raise ValueError(f"`axis` is None, an integer or several. Received: axis={axis!r}")
        self.axis = axis

    def _overlap(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        raise NotImplementedError

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the losses, without the axes of the sums."""
        values = self._overlap(y_true, y_pred)
        if not values.shape or not self._has_batch(y_pred):
            return values
        if self.reduction == Reduction.NONE:
            raise ValueError(
                f"The loss {self.name!r} over axis={self.axis} has no values of examples: a "
                "reduction other than 'none' is needed, or axes without the batch."
            )
        reduce = ops.reduce_sum if self.reduction == Reduction.SUM else ops.reduce_mean
        return reduce(values)

    def shard(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any, examples: int) -> Tensor:
        """Return a shard's part of the loss of its global batch: the parts add up to the loss.

        Args:
            y_true: The shard's targets.
            y_pred: The shard's predictions.
            sample_weight: The shard's weights, or None.
            examples: How many examples the global batch has.
        """
        if self.reduction == Reduction.SUM and self._is_one_number(y_pred, sample_weight):
            # Each replica has that of the batch, not its part of it.
            values = self._values(y_true, y_pred, sample_weight)
            total = self._sum(values, self._mask(values, y_pred), sample_weight)
            return total * (y_pred.shape[0] / examples)
        return super().shard(y_true, y_pred, sample_weight, examples)

    def _reduced(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Tensor:
        y_pred = ops.convert_to_tensor(y_pred)
        if not y_pred.shape or not self._has_batch(y_pred):
            return super()._reduced(y_true, y_pred, sample_weight)
        refuse_parts(
            f"The loss {self.name!r} over axis={self.axis} is one number for the batch",
            " or give axes without the batch",
        )
        if not self._is_one_number(y_pred, sample_weight):
            return super()._reduced(y_true, y_pred, sample_weight)
        self._share()
        return weighted(self._values(y_true, y_pred, sample_weight), sample_weight)

    def _values(self, y_true: Any, y_pred: Tensor, sample_weight: Any) -> Tensor:
        """Return what `call` does; with weights the batch's number once for each, as in Keras."""
        if self.reduction == BY_WEIGHTS and sample_weight is not None:
            self._check_weights_count(y_pred)
        is_of_all = y_pred.shape and len(_axes(self.axis, y_pred.ndim)) == y_pred.ndim
        if not is_of_all or self._is_one_number(y_pred, sample_weight):
            return super()._values(y_true, y_pred, sample_weight)
        mask = y_pred._keras_mask
        value = super()._values(y_true, y_pred, None)
        return ops.broadcast_to(value, y_pred.shape[:1] if mask is None else mask.shape)

    def _mask(self, values: Tensor, y_pred: Tensor) -> Tensor | None:
        if y_pred._keras_mask is not None and self._has_other_axes(y_pred):
            raise InvalidArgumentError(
                f"The loss {self.name!r} over axis={self.axis} has no examples, of which a mask "
                "would leave some. Have the last layers drop it, or use axes without the batch."
            )
        return super()._mask(values, y_pred)

    def _check_weights_count(self, y_pred: Tensor) -> None:
        """Refuse a mean by weights of what has no examples but other axes."""
        if self._has_other_axes(y_pred):
            raise ValueError(
                f"The loss {self.name!r} over axis={self.axis} has no mean by sample weights. Use "
                "another reduction, or axes without the batch."
            )

    def _has_other_axes(self, y_pred: Tensor) -> bool:
        axes = _axes(self.axis, y_pred.ndim)
        return 0 in axes and len(axes) < y_pred.ndim

    def _has_batch(self, y_pred: Tensor) -> bool:
        return 0 in _axes(self.axis, y_pred.ndim)

    def _is_one_number(self, y_pred: Tensor, sample_weight: Any) -> bool:
        """Whether there is one number for the batch, and no weights of its examples, or mask."""
        if y_pred._keras_mask is not None:
            return False
        weights = () if sample_weight is None else ops.convert_to_tensor(sample_weight).shape
        return self._has_batch(y_pred) and not weights

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output."""
        return targets.match_output(self.name, y, output_shape)


@explained
class Dice(_Overlap):
    """1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred)), of the whole batch or by axes.

    Args:
        reduction: As in `Loss`.
        name: The name that errors show.
        axis: The axes of the sums; None: all, so that the batch has one number, however many
            replicas share it.
        dtype: As in `Loss`.

    Raises:
        ValueError: `axis` is something else.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.Dice()([[1.0, 0.0]], [[0.5, 0.5]])), 4)
        0.5
    """

    def __init__(
        self,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "dice",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name, reduction, axis, dtype)

    def _overlap(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return dice(y_true, y_pred, self.axis)


@explained
class Tversky(_Overlap):
    """1 - both / (both + alpha missed + beta wrong), of sums (Salehi et al. 2017).

    Args:
        alpha: How much targets count that are not predicted.
        beta: How much predictions count that are no targets.
        reduction: As in `Loss`.
        name: The name that errors show.
        axis: The axes of the sums; None: all, so that the batch has one number, however many
            replicas share it.
        dtype: As in `Loss`.

    Raises:
        ValueError: `axis` is something else.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.losses.Tversky(alpha=1.0)([[1.0, 0.0]], [[0.5, 0.5]])), 4)
        0.6
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "tversky",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name, reduction, axis, dtype)
        self.alpha = alpha
        self.beta = beta

    def _overlap(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return tversky(y_true, y_pred, self.alpha, self.beta, self.axis)
