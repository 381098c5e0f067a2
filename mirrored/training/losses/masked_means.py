"""What masks leave of losses and metrics: they count as weights of 0 and 1, under Keras' rules.

A mean is over what a mask leaves, on all replicas: a shard that has less of it counts less.
"""

import math
from typing import Any

from mirrored import ops
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor
from mirrored.ops.hooks import only
from mirrored.training.losses.values import cast, of_one_rank, sum_of_replicas


def mask_weights(sample_weight: Any, mask: Tensor, dtype: Any) -> Tensor:
    """Return sample weights, 0 where a mask says so.

    Args:
        sample_weight: One weight an example, one for all, weights that broadcast to the mask, with
            or without a last axis of size 1, or None: 1.
        mask: The mask.
        dtype: The dtype of the result.

    Raises:
        InvalidArgumentError: The shapes do not fit.
    """
    counts = cast(mask, dtype)
    if sample_weight is None:
        return counts
    weights = cast(ops.convert_to_tensor(sample_weight), dtype)
    if weights.ndim == 1:  # One an example, whatever they would broadcast to.
        weights = ops.reshape(weights, (*weights.shape, *[1] * (mask.ndim - 1)))
    counts, weights = of_one_rank(counts, weights)
    if weights.shape and not _broadcasts(weights, counts):
        raise InvalidArgumentError(
            "`sample_weight` must have one weight an example, or broadcast to the mask of the "
            f"predictions, of shape {mask.shape}. Received: sample_weight with shape "
            f"{ops.convert_to_tensor(sample_weight).shape}."
        )
    return counts * weights


def weighed(values: Tensor, weights: Tensor) -> Tensor:
    """Return the values of a loss times what `mask_weights` returned.

    Args:
        values: What the loss's `call` returned.
        weights: The weights.

    Raises:
        InvalidArgumentError: The shapes do not fit.
    """
    values, weights = of_one_rank(values, weights)
    if values.shape and not _broadcasts(weights, values):
        raise InvalidArgumentError(
            f"The mask of the predictions, of shape {weights.shape}, does not fit losses of shape "
            f"{values.shape}. Let the last layers drop the mask: a layer drops it if its "
            "`compute_mask` returns None."
        )
    return values * weights


def masked_mean(
    values: Tensor, mask: Tensor, sample_weight: Any, *, by_weights: bool
) -> tuple[Tensor, bool]:
    """Return a shard's part of a mean over what a mask leaves on all replicas, 0 where that is 0.

    Also whether it is the shard's own mean: `call` returned one number.

    Args:
        values: What the loss's `call` returned.
        mask: The mask.
        sample_weight: Weights, or None.
        by_weights: Whether it is divided by the sum of the weights.

    Raises:
        InvalidArgumentError: The shapes do not fit.
    """
    # Of a mask of numbers what is not 0 counts, as in Keras; by weights they are such themselves.
    counts = mask if by_weights else cast(mask, ops.bool_)
    weights = mask_weights(sample_weight, counts, values.dtype)
    with only():  # No tape has to do with what they add up to.
        counted = weights if by_weights else cast(mask, values.dtype)
        divisor = sum_of_replicas(ops.reduce_sum(counted))
    if not values.shape:
        if not by_weights and sample_weight is not None:
            values = values * ops.convert_to_tensor(sample_weight)
        return values * cast(ops.not_equal(divisor, 0.0), values.dtype), True
    if not by_weights:  # An element of the mask may stand for several values.
        divisor = divisor * (math.prod(values.shape[1:]) / math.prod(mask.shape[1:]))
    return ops.divide_no_nan(ops.reduce_sum(weighed(values, weights)), divisor), False


def _broadcasts(first: Tensor, other: Tensor) -> bool:
    pairs = zip(first.shape, other.shape, strict=False)
    return first.ndim == other.ndim and all(size in (1, its) for size, its in pairs)
