"""Limits on values and on norms of gradients.

They are made of other ops, and so place, log and differentiate as those do.
"""

from collections.abc import Sequence
from typing import Any

from mirrored.ops.dispatch import adopt
from mirrored.ops.elementwise import MAXIMUM, MINIMUM, SQRT, SQUARE, add_n
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.tensor import Tensor


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Tensor:
    """Return `t` with each element brought into [clip_value_min, clip_value_max].

    Example:
        >>> import mirrored as mr
        >>> mr.clip_by_value([-2.0, 0.5, 2.0], -1.0, 1.0).numpy()
        array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return MAXIMUM(MINIMUM(adopt(t, None), clip_value_max), clip_value_min)


def clip_by_norm(t: Any, clip_norm: float, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return `t` scaled down so that its L2 norm is at most `clip_norm`.

    Args:
        t: the tensor.
        clip_norm: the largest norm, above 0.
        axes: the axes that a norm is taken over; None: all.

    Example:
        >>> import mirrored as mr
        >>> mr.clip_by_norm([3.0, 4.0], 1.0).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    t = adopt(t, None)
    norm = SQRT(reduce_sum(SQUARE(t), axis=axes, keepdims=True))
    if axes is None:
        norm = norm[(0,) * t.ndim]
    clipped: Tensor = t * float(clip_norm) / MAXIMUM(norm, float(clip_norm))
    return clipped


def global_norm(t_list: Sequence[Any]) -> Tensor:
    """Return the L2 norm of all elements of all tensors together.

    Raises:
        ValueError: there are none.

    Example:
        >>> import mirrored as mr
        >>> float(mr.linalg.global_norm([[3.0], [4.0]]))
        5.0
    """
    if not t_list:
        raise ValueError("The norm of no tensors is not defined. Received: an empty list.")
    return SQRT(add_n([reduce_sum(SQUARE(adopt(t, None))) for t in t_list]))


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: float, use_norm: Any = None
) -> tuple[list[Tensor], Tensor]:
    """Return tensors scaled down together so that their global norm is at most `clip_norm`.

    This keeps the direction of a gradient (Pascanu et al., "On the difficulty of training
    recurrent neural networks", ICML 2013).

    Args:
        t_list: the tensors.
        clip_norm: the largest norm, above 0.
        use_norm: the global norm, where it is known already.

    Returns:
        The scaled tensors, and the norm they had before.

    Example:
        >>> import mirrored as mr
        >>> clipped, norm = mr.clip_by_global_norm([[3.0], [4.0]], 1.0)
        >>> float(clipped[0][0]), float(norm)
        (0.6000000238418579, 5.0)
    """
    norm = global_norm(t_list) if use_norm is None else adopt(use_norm, None)
    scale = float(clip_norm) / MAXIMUM(norm, float(clip_norm))
    return [adopt(t, None) * scale for t in t_list], norm
