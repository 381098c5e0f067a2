"""What a replica's loss is divided by, so that the gradients add up to the global batch's.

Custom training loops call these; `fit` does the same by itself.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored._types import TensorLike
from mirrored.distribute import ReplicaContext, get_replica_context
from mirrored.ops import Tensor
from mirrored.training.losses.values import weighted


def compute_average_loss(
    per_example_loss: TensorLike,
    sample_weight: TensorLike | None = None,
    global_batch_size: int | None = None,
) -> Tensor:
    """Return a replica's part of the mean loss over the global batch.

    Args:
        per_example_loss: The loss of each of the replica's examples, of shape (examples,) or more
            axes, all of which are summed.
        sample_weight: Weights of shape (examples,), (examples, 1) or (), weights that broadcast to
            the losses, or None.
        global_batch_size: The examples of all replicas together; None: those of this replica times
            the number of replicas, which is right where all have as many.

    Returns:
        A scalar: the weighted sum divided by the global batch size; 0 of an empty batch.

    Raises:
        ValueError: `per_example_loss` is a scalar, or the global batch size is not positive.
        TypeError: The global batch size is no integer.
        RuntimeError: The call is made in the cross-replica context.

    Example:
        >>> import mirrored as mr
        >>> float(mr.nn.compute_average_loss([1.0, 3.0], global_batch_size=8))
        0.5
    """
    context = _replica_context("compute_average_loss")
    losses = ops.convert_to_tensor(per_example_loss)
    if not losses.shape:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. "
            f"Received: the scalar {losses}."
        )
    if global_batch_size is None:
        size = losses.shape[0] * context.num_replicas_in_sync
    else:
        size = _checked_size(global_batch_size)
    losses = weighted(losses, sample_weight)
    if losses.ndim > 1:
        losses = ops.reduce_sum(losses, axis=tuple(range(1, losses.ndim)))
    return ops.reduce_sum(losses) / max(size, 1)


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """Return the penalties' sum divided by the number of replicas, each of which adds it.

    Args:
        regularization_loss: A penalty, or a list of them, of any shape.

    Raises:
        RuntimeError: The call is made in the cross-replica context.

    Example:
        >>> import mirrored as mr
        >>> float(mr.nn.scale_regularization_loss([1.0, 2.0]))
        3.0
    """
    context = _replica_context("scale_regularization_loss")
    total = ops.reduce_sum(ops.convert_to_tensor(regularization_loss))
    return total / context.num_replicas_in_sync


def _replica_context(function: str) -> ReplicaContext:
    context = get_replica_context()
    if context is None:
        raise RuntimeError(
            f"You are calling `{function}` in cross replica context, while it was expected to be "
            "called in replica context. Call it in the function that strategy.run calls."
        )
    return context


def _checked_size(value: Any) -> int:
    size = as_integer(value)
    if size is None:
        raise TypeError(
            f"global_batch_size must be an integer. Received: global_batch_size={value!r}"
        )
    if size <= 0:
        raise ValueError(
            f"global_batch_size must be positive. Received: global_batch_size={value!r}"
        )
    return size


explain_functions(__name__, all_but="")
