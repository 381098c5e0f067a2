"""Losses of the whole batch: how far regions overlap, as in segmentation, and of pairs of examples.

On several replicas sums are over all shards, and each replica is given all examples for its pairs.
"""

import math
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored._types import AxisLike, DTypeLike, TensorLike
from mirrored.distribute import get_replica_context
from mirrored.distribute.global_batch import global_batch
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor
from mirrored.ops.tensor_views import masked
from mirrored.training.losses import targets
from mirrored.training.losses.loss import BY_WEIGHTS, Loss, Reduction, share_of_batch, sum_of_values
from mirrored.training.losses.targets import OutputShape, check_labels
from mirrored.training.losses.values import (
    EPSILON,
    as_predictions,
    cast,
    class_indices,
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


def dice(y_true: TensorLike, y_pred: TensorLike, axis: AxisLike | None = None) -> Tensor:
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
    both, of_true, of_pred = _sums([true * pred, true, pred], axis)
    return 1.0 - 2.0 * both / (of_true + of_pred + EPSILON)


def tversky(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: float = 0.5,
    beta: float = 0.5,
    axis: AxisLike | None = None,
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
    both, missed, wrong = _sums([true * pred, (1.0 - pred) * true, pred * (1.0 - true)], axis)
    return 1.0 - both / (both + missed * alpha + wrong * beta + EPSILON)


class _Overlap(Loss):
    """What losses of sums share: over axes with the batch, all replicas have its one number."""

    def __init__(
        self, name: str, reduction: str | None, axis: AxisLike | None, dtype: DTypeLike | None
    ) -> None:
        super().__init__(name, reduction, dtype)
        axes = axis if isinstance(axis, tuple | list) else (axis,)
        if axis is not None and None in [as_integer(index) for index in axes]:
            raise ValueError(
                f"`axis` must be None, an integer or several integers. Received: axis={axis!r}"
            )
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
                f"The loss {self.name!r} over axis={self.axis} has no values per example. Use a "
                "reduction other than 'none', or axes without the batch."
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
            values = self._loss_values(y_true, y_pred, sample_weight)
            total = sum_of_values(self, values, self._mask_of_values(values, y_pred), sample_weight)
            return total * (y_pred.shape[0] / examples)
        return super().shard(y_true, y_pred, sample_weight, examples)

    def _reduced_loss(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Tensor:
        y_pred = ops.convert_to_tensor(y_pred)
        if not y_pred.shape or not self._has_batch(y_pred):
            return super()._reduced_loss(y_true, y_pred, sample_weight)
        refuse_parts(
            f"The loss {self.name!r} over axis={self.axis} is one number for the batch",
            ", or use axes without the batch",
        )
        if not self._is_one_number(y_pred, sample_weight):
            return super()._reduced_loss(y_true, y_pred, sample_weight)
        share_of_batch(self)
        return weighted(self._loss_values(y_true, y_pred, sample_weight), sample_weight)

    def _loss_values(self, y_true: Any, y_pred: Tensor, sample_weight: Any) -> Tensor:
        """Return what `call` does; with weights the batch's number once for each, as in Keras."""
        by_weights = self.reduction == BY_WEIGHTS and sample_weight is not None
        if by_weights and self._has_other_axes(y_pred):
            raise ValueError(
                f"The loss {self.name!r} over axis={self.axis} has no mean by sample weights. Use "
                "another reduction, or axes without the batch."
            )
        is_of_all = y_pred.shape and len(_axes(self.axis, y_pred.ndim)) == y_pred.ndim
        if not is_of_all or self._is_one_number(y_pred, sample_weight):
            return super()._loss_values(y_true, y_pred, sample_weight)
        mask = y_pred._keras_mask
        value = super()._loss_values(y_true, y_pred, None)
        return ops.broadcast_to(value, y_pred.shape[:1] if mask is None else mask.shape)

    def _mask_of_values(self, values: Tensor, y_pred: Tensor) -> Tensor | None:
        if y_pred._keras_mask is not None and self._has_other_axes(y_pred):
            raise InvalidArgumentError(
                f"The loss {self.name!r} over axis={self.axis} has no examples, so a mask does "
                "not apply. Let the last layers drop the mask, or use axes without the batch."
            )
        return super()._mask_of_values(values, y_pred)

    def _has_other_axes(self, y_pred: Tensor) -> bool:
        """Whether the sums are over the batch, but not over all."""
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
        axis: AxisLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, axis, dtype)

    def _overlap(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return dice(y_true, y_pred, self.axis)


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
        axis: AxisLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, axis, dtype)
        self.alpha = alpha
        self.beta = beta

    def _overlap(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return tversky(y_true, y_pred, self.alpha, self.beta, self.axis)


def _of_replicas(labels: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return the labels and embeddings of all shards of a step, and where this one begins."""
    batch, context = global_batch(), get_replica_context()
    if batch is None or context is None or context.num_replicas_in_sync == 1:
        return labels, embeddings, 0
    start = sum(batch.sizes[: context.replica_id_in_sync_group])
    return context.all_gather(labels, 0), context.all_gather(embeddings, 0), start


def circle(
    y_true: TensorLike,
    y_pred: TensorLike,
    ref_labels: TensorLike | None = None,
    ref_embeddings: TensorLike | None = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Tensor:
    """Return the circle loss of each example, by the cosines of all pairs (Sun et al. 2020).

    A mask leaves what is not above 0 out of the mean of a loss.

    Args:
        y_true: Labels of shape (batch,) or (batch, 1).
        y_pred: Embeddings of length 1, of shape (batch, features).
        ref_labels: The labels of what they are compared with; None: `y_true`.
        ref_embeddings: What they are compared with; None: `y_pred`, in a step that `fit` runs that
            of all replicas.
        remove_diagonal: Whether an example is no pair with the one of its number.
        gamma: The scale of the losses.
        margin: How far pairs may be from what is best.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.losses.circle([0, 0, 1], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).numpy().round(4)
        array([0., 0., 0.], dtype=float32)
    """
    y_pred = as_predictions(y_pred)
    if y_pred.ndim != 2:
        raise ValueError(
            f"Embeddings must have the shape (batch, features). Received: y_pred with shape "
            f"{y_pred.shape}."
        )
    labels = class_indices(ops.convert_to_tensor(y_true), y_pred)
    others, embeddings, start = labels, y_pred, 0
    if ref_embeddings is None and ref_labels is None:
        others, embeddings, start = _of_replicas(labels, y_pred)
    if ref_embeddings is not None:
        embeddings = cast(ops.convert_to_tensor(ref_embeddings), y_pred.dtype)
    if ref_labels is not None:
        others = class_indices(ops.convert_to_tensor(ref_labels), embeddings)
    others = cast(others, labels.dtype)
    positive = ops.equal(ops.expand_dims(labels, 1), ops.expand_dims(others, 0))
    negative = ops.logical_not(positive)
    if remove_diagonal:
        numbers = np.arange(labels.size)[:, np.newaxis] + start
        apart = ops.constant(numbers != np.arange(others.size))
        positive = ops.logical_and(positive, apart)
    distances = ops.maximum(1.0 - ops.matmul(y_pred, ops.transpose(embeddings)), 0.0)
    values = _circle(distances, positive, negative, gamma, margin)
    return masked(values, ops.greater(values, 0.0))


def _circle(d: Tensor, positive: Tensor, negative: Tensor, gamma: float, margin: float) -> Tensor:
    """Return the loss of rows of distances, of which some are to be small and others large."""
    near = ops.maximum((margin + d) * cast(positive, d.dtype), 0.0)
    far = ops.maximum((1.0 + margin - d) * cast(negative, d.dtype), 0.0)
    none = ops.fill(d.shape, ops.constant(-math.inf, d.dtype))
    p = ops.where(positive, -gamma * near * (margin - d), none)
    n = ops.where(negative, gamma * far * (1.0 - margin - d), none)
    return ops.softplus(ops.reduce_logsumexp(p, axis=1) + ops.reduce_logsumexp(n, axis=1))


class Circle(Loss):
    """The circle loss of embeddings of length 1, by the cosines of all pairs (Sun et al. 2020).

    The mean is over the examples whose loss is above 0, on all replicas.

    Args:
        gamma: The scale of the losses.
        margin: How far pairs may be from what is best.
        remove_diagonal: Whether an example is no pair with itself.
        reduction: As in `Loss`.
        name: The name that errors show.
        dtype: As in `Loss`.

    Example:
        >>> import mirrored as mr
        >>> loss = mr.losses.Circle(gamma=1.0)
        >>> round(float(loss([0, 0, 1], [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])), 4)
        1.4704
    """

    targets_are_labels = True

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        name: str = "circle",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.gamma = gamma
        self.margin = margin
        self.remove_diagonal = remove_diagonal

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the loss of each example."""
        options = self.remove_diagonal, self.gamma, self.margin
        return circle(y_true, y_pred, None, None, *options)

    def _reduced_loss(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Tensor:
        refuse_parts(f"The loss {self.name!r} is of pairs of the whole batch")
        return super()._reduced_loss(y_true, y_pred, sample_weight)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return integer labels, one for each example."""
        return check_labels(self.name, y, (*output_shape[:-1], None))


explain_functions(__name__)
