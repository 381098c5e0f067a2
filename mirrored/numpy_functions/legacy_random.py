"""NumPy's legacy random functions, drawn from the library's global stream in float64."""

from typing import Any, SupportsFloat, SupportsInt

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.numpy_functions.array_conversion import FLOAT, array, result_type
from mirrored.ops import Tensor
from mirrored.ops.spec import INDICES


def seed(s: int) -> None:
    """Set the global seed, as `mr.random.set_seed` does.

    Args:
        s: An integer.

    Raises:
        ValueError: It is none.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.seed(1)
    """
    try:
        number = int(s)
    except TypeError:
        raise ValueError(f"The seed must be an integer. Received: {s!r}") from None
    ops.set_seed(number)


def _sizes(size: Any) -> Any:
    """Return a shape, of which one number is a vector's length."""
    if size is None:
        return ()
    return (int(size),) if np.ndim(size) == 0 else size


def standard_normal(size: ShapeLike | None = None) -> Tensor:
    """Return normal numbers of mean 0 and deviation 1.

    Args:
        size: The shape; None: one number.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.standard_normal(3).shape
        (3,)
    """
    return ops.random_normal(_sizes(size), dtype=FLOAT)


def randn(*args: int) -> Tensor:
    """Return normal numbers of mean 0 and deviation 1.

    Args:
        *args: The sizes of the axes.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.randn(2, 3).shape
        (2, 3)
    """
    return standard_normal(args)


def uniform(low: TensorLike = 0.0, high: TensorLike = 1.0, size: ShapeLike | None = None) -> Tensor:
    """Return numbers evenly drawn between limits.

    Args:
        low: The lower limit, or several.
        high: The upper limit, or several.
        size: The shape; None: that of the limits.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.uniform(1, 2, (3,)).shape
        (3,)
    """
    lower, upper = array(low, FLOAT), array(high, FLOAT)
    together = np.broadcast_shapes(tuple(lower.shape), tuple(upper.shape))
    drawn = ops.random_uniform(together if size is None else _sizes(size), dtype=FLOAT)
    return drawn * (upper - lower) + lower


def random(size: ShapeLike | None = None) -> Tensor:
    """Return numbers evenly drawn between 0 and 1.

    Args:
        size: The shape; None: one number.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.random(3).shape
        (3,)
    """
    return uniform(size=size)


def rand(*size: int) -> Tensor:
    """Return numbers evenly drawn between 0 and 1.

    Args:
        *size: The sizes of the axes.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.rand(2, 3).shape
        (2, 3)
    """
    return uniform(size=size)


def randint(
    low: SupportsInt,
    high: SupportsFloat | None = None,
    size: ShapeLike | None = None,
    dtype: DTypeLike = np.int64,
) -> Tensor:
    """Return integers evenly drawn below a limit.

    Args:
        low: The least; the only argument is the limit, and 0 the least.
        high: The limit, which is not drawn itself.
        size: The shape; None: one number.
        dtype: Int32 or int64.

    Raises:
        ValueError: The dtype is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.random.randint(5, size=3).shape
        (3,)
    """
    least, limit = (0, int(low)) if high is None else (int(low), high)
    kind = result_type(dtype)
    if kind not in INDICES:
        raise ValueError(f"Argument `dtype` must be int32 or int64. Received: {dtype}")
    return ops.random_uniform(_sizes(size), least, limit, kind)


explain_functions(__name__)
