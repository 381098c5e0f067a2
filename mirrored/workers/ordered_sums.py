"""Sums of arrays in a fixed order, so that all workers compute the same bits.

Every element is added up by itself, so the result does not hang on how vectors are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes that are added up at a time where there are more than two arrays, so that what is between
# stays in the cache of a core.
_PIECE = 1 << 16
_NARROW = frozenset({"float16", "bfloat16"})


def add_in_order(arrays: Sequence[NDArray[Any]], out: NDArray[Any]) -> None:
    """Write the sum of vectors, added from the first on; floats of 16 bits are rounded once.

    Args:
        arrays: At least one.
        out: Where the sum goes; it may be one of the arrays.

    Example:
        >>> import numpy as np
        >>> total = np.empty(2, np.float32)
        >>> add_in_order([np.float32([1e8, 1]), np.float32([1, 2]), np.float32([-1e8, 3])], total)
        >>> total
        array([0., 6.], dtype=float32)
    """
    if len(arrays) == 1:
        np.copyto(out, arrays[0])
    elif name_of(out.dtype) in _NARROW:
        _add_narrow(arrays, out)
    elif len(arrays) == 2:
        np.add(arrays[0], arrays[1], out=out)
    else:
        step = max(1, _PIECE // out.itemsize)
        for at in range(0, out.size, step):
            _add_piece([array[at : at + step] for array in arrays], out[at : at + step])


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, which NumPy puts together each time that it is asked.

    Example:
        >>> import numpy as np
        >>> name_of(np.dtype("f4"))
        'float32'
    """
    return dtype.name


def _add_piece(arrays: Sequence[NDArray[Any]], out: NDArray[Any]) -> None:
    # Not right into `out`, which may be one of those that are still to be added.
    total = np.add(arrays[0], arrays[1])
    for array in arrays[2:-1]:
        np.add(total, array, out=total)
    np.add(total, arrays[-1], out=out)


def _add_narrow(arrays: Sequence[NDArray[Any]], out: NDArray[Any]) -> None:
    step = _PIECE // 4
    for at in range(0, out.size, step):
        total = arrays[0][at : at + step].astype(np.float32)
        for array in arrays[1:]:
            np.add(total, array[at : at + step].astype(np.float32), out=total)
        np.copyto(out[at : at + step], total, casting="unsafe")


def slices_of(size: int, parts: int) -> list[slice]:
    """Return where each of N parts of a vector is.

    Example:
        >>> slices_of(10, 3)
        [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    return [slice(size * part // parts, size * (part + 1) // parts) for part in range(parts)]
