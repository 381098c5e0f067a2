"""Numbers in bfloat16, as memory has them: the upper half of a float32.

NumPy has no such dtype, so their bits are kept as uint16.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAN = 0x7FC0


def widened(bits: NDArray[Any]) -> NDArray[Any]:
    """Return bits as float32, which has every number of bfloat16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of the nearest numbers, of two the even one."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(numbers), _NAN, nearest).astype(np.uint16)
