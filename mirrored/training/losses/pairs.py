"""A loss of pairs: examples of one class are to be near each other, those of others far.

On several replicas the pairs are those of the whole batch, so each replica is given all examples.
"""

import math
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.distribute import get_replica_context
from mirrored.distribute.global_batch import global_batch
from mirrored.ops import Tensor
from mirrored.ops.masks import masked
from mirrored.training.losses.loss import Loss, Reduction
from mirrored.training.losses.targets import OutputShape, check_labels
from mirrored.training.losses.values import (
    as_predictions,
    cast,
    class_indices,
    refuse_parts,
)


def _of_replicas(labels: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return the labels and embeddings of all shards of a step, and where this one begins."""
    batch, context = global_batch(), get_replica_context()
    if batch is None or context is None or context.num_replicas_in_sync == 1:
        return labels, embeddings, 0
    start = sum(batch.sizes[: context.replica_id_in_sync_group])
    return context.all_gather(labels, 0), context.all_gather(embeddings, 0), start


@explained
def circle(
    y_true: Any,
    y_pred: Any,
    ref_labels: Any = None,
    ref_embeddings: Any = None,
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
            f"Embeddings have the shape (batch, features). Received: y_pred with shape "
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


@explained
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
        dtype: Any = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.gamma = gamma
        self.margin = margin
        self.remove_diagonal = remove_diagonal

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the loss of each example."""
        options = self.remove_diagonal, self.gamma, self.margin
        return circle(y_true, y_pred, None, None, *options)

    def _reduced(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Tensor:
        refuse_parts(f"The loss {self.name!r} is of pairs of the whole batch")
        return super()._reduced(y_true, y_pred, sample_weight)

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return integer labels, one for each example."""
        return check_labels(self.name, y, (*output_shape[:-1], None))
