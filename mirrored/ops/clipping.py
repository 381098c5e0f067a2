"""Limits on values and on norms, and norms themselves.

They are made of other ops, and so place, log and differentiate as those do.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.ops.add_n import add_n
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.elementwise import MAXIMUM, MINIMUM, MUL
from mirrored.ops.hooks import RecordedTensor
from mirrored.ops.powers import RSQRT, SQRT, SQUARE
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.shaping import IDENTITY, cast
from mirrored.ops.spec import FLOATS, DType, bool_, check_dtype, float_limits, number_limits
from mirrored.ops.tensor import Tensor


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor:
    """Return `t` with each element brought into [clip_value_min, clip_value_max].

    Raises:
        ValueError: The limits broadcast to more than the shape of `t`.

    Example:
        >>> import mirrored as mr
        >>> mr.clip_by_value([-2.0, 0.5, 2.0], -1.0, 1.0).numpy()
        array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = adopt(t, None)
    clipped = MAXIMUM(MINIMUM(x, clip_value_max), clip_value_min)
    if clipped.shape != x.shape:
        raise ValueError(
            f"Shapes {x.shape} and {clipped.shape} are incompatible. Broadcast `t` before."
        )
    return clipped


def saturated(x: Tensor, dtype: DType) -> Tensor:
    """Return the elements in another dtype, in which what is beyond its limits is at them."""
    if bool_ in (x.dtype, dtype) or x.dtype == dtype:
        return cast(x, dtype)
    own, to = number_limits(x.dtype), number_limits(dtype)
    low, high = max(own[0], to[0]), min(own[1], to[1])
    if x.dtype in FLOATS and float(np.asarray(high, x.dtype)) > high:
        # The largest float that is no larger.
        high = float(np.nextafter(np.asarray(high, x.dtype), np.asarray(0, x.dtype)))
    return cast(clip_by_value(x, low, high), dtype)


def clip_by_norm(
    t: TensorLike,
    clip_norm: float,
    axes: int | Sequence[int] | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `t` scaled down so that its L2 norm is at most `clip_norm`.

    Args:
        t: The tensor.
        clip_norm: The largest norm, above 0. In a recorded function a tensor below counts as 0.
        axes: The axes that a norm is taken over; None: all.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        ValueError: `clip_norm` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> mr.clip_by_norm([3.0, 4.0], 1.0).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    limit, t = _checked_limit(clip_norm), adopt(t, None)
    squared = _sum_of_squares(t, axes, keepdims=axes is not None)
    if t.dtype in FLOATS:  # At 0 the square root has no slope, and the gradient would be NaN.
        squared = MAXIMUM(squared, float_limits(t.dtype)[0])
    # By a factor that is exactly 1 where nothing is to be clipped.
    return MUL(t, limit / MAXIMUM(SQRT(squared), limit))


def _sum_of_squares(
    t: Tensor, axes: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    # The gradient of `square` overflows to NaN where that of a product does not. The product is of
    # another name of `t`, so that its two gradients are added to each other before any other.
    same = IDENTITY(t)
    return reduce_sum(MUL(same, same), axis=axes, keepdims=keepdims)


def _checked_limit(clip_norm: Any) -> Any:
    """Return a limit of norms: a number, or a tensor, by which there is a gradient."""
    limit = adopt(clip_norm, None) if is_tensor(clip_norm) else float(clip_norm)
    if isinstance(limit, RecordedTensor):  # Its value is not known yet.
        return MAXIMUM(limit, 0.0)
    if not float(limit) > 0.0:
        raise ValueError(f"clip_norm must be a number above 0. Received: {clip_norm}")
    return limit


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Return the L2 norm of all elements of all tensors together.

    Args:
        t_list: The tensors; None among them counts nothing, as a gradient that does not exist.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        TypeError: `t_list` is not a list.
        ValueError: There are no tensors in it.

    Example:
        >>> import mirrored as mr
        >>> float(mr.linalg.global_norm([[3.0], [4.0]]))
        5.0
    """
    if not isinstance(t_list, list | tuple):
        raise TypeError(
            f"`t_list` should be a sequence of tensors. Received: {type(t_list).__name__}. Put it "
            "in a list."
        )
    tensors = [adopt(t, None) for t in t_list if t is not None]
    if not tensors:
        raise ValueError(f"The norm of an empty list is not defined. Received: {t_list!r}")
    return SQRT(add_n([_sum_of_squares(t) for t in tensors]))


def l2_normalize(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
) -> Tensor:
    """Return `x` divided by its L2 norm; zeros stay zeros.

    Args:
        x: Floats.
        axis: The axes that a norm is taken over; None: all.
        epsilon: The least that the sum of squares counts as.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: There is no such axis, one is named twice, or it holds no floats.

    Example:
        >>> import mirrored as mr
        >>> mr.math.l2_normalize([[3.0, 4.0], [0.0, 0.0]], axis=1).numpy()
        array([[0.6, 0.8],
               [0. , 0. ]], dtype=float32)
    """
    x = adopt(x, None)
    check_dtype("Rsqrt", FLOATS, x.spec)
    squared = reduce_sum(SQUARE(x), axis=axis, keepdims=True)
    return MUL(x, RSQRT(MAXIMUM(squared, epsilon)))


def clip_by_global_norm(
    t_list: Sequence[Any],
    clip_norm: float,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[Any], Tensor]:
    """Return tensors scaled down together so that their global norm is at most `clip_norm`.

    This keeps the direction of a gradient (Pascanu et al., "On the difficulty of training
    recurrent neural networks", ICML 2013).

    Args:
        t_list: The tensors; None among them stays None.
        clip_norm: The largest norm, above 0. In a recorded function a tensor below counts as 0.
        use_norm: The global norm, where it is known already.
        name: Accepted for compatibility; eager ops have no name.

    Returns:
        The scaled tensors, and the norm they had before. Where that is not finite they are NaN.

    Raises:
        TypeError: `t_list` is not a list.
        ValueError: There are no tensors in it, or `clip_norm` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> clipped, norm = mr.clip_by_global_norm([[3.0], [4.0]], 1.0)
        >>> float(clipped[0][0]), float(norm)
        (0.6000000238418579, 5.0)
    """
    limit = _checked_limit(clip_norm)
    norm = global_norm(t_list) if use_norm is None else adopt(use_norm, None)
    # A norm that is not finite makes all of them NaN, as in TensorFlow.
    scale = limit / MAXIMUM(norm, limit) + (norm - norm)
    return [None if t is None else adopt(t, None) * scale for t in t_list], norm


explain_functions(__name__, all_but="global_norm saturated")
