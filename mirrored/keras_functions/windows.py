"""`keras.ops` that return windows for signals."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room
from mirrored.ops.spec import default_float


def _define(name: str) -> Callable[[Any], Tensor]:
    function = getattr(np, name)

    def f(x: Any) -> Tensor:
        take_constant_room((int(x),), 8)
        return ops.constant(function(int(x)), default_float())

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return the {name} window of so many points.

    Args:
        x: How many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.{name}(4).shape
        (4,)
    """
    return explained(f)


bartlett, blackman, hamming, hanning = map(_define, ("bartlett", "blackman", "hamming", "hanning"))


@explained
def kaiser(x: Any, beta: Any) -> Tensor:
    """Return the Kaiser window of N points.

    Args:
        x: How many.
        beta: How narrow it is.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.kaiser(3, 0.0).numpy()
        array([1., 1., 1.], dtype=float32)
    """
    take_constant_room((int(x),), 8)
    return ops.constant(np.kaiser(int(x), float(beta)), default_float())
