"""Finds NaN and infinity in data, and says where: for `fit(validate_data=True)`.

It looks at some rows at a time, so that it takes no memory of the data's size.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.data.arrays import Arrays

_BYTES = 1 << 20  # Of the data that are looked at together.


def check_finite(arrays: Arrays) -> Arrays:
    """Return the arrays, in which every number is finite.

    Raises:
        ValueError: One is not; the text says which, and how many there are.

    Example:
        >>> import numpy as np
        >>> from mirrored.data.arrays import adapt
        >>> from mirrored.data.finite import check_finite
        >>> check_finite(adapt([[1.0, np.nan]], [0]))
        Traceback (most recent call last):
        ...
        ValueError: `x` holds nan in row 0, column 1 (counted from 0)...
    """
    for name, structure in zip(("x", "y", "sample_weight"), arrays.layout.parts, strict=True):
        for path, number in _named(structure, name):
            _check(arrays.columns[number], path)
    return arrays


def _named(structure: Any, name: str) -> Iterator[tuple[str, int]]:
    """Yield the numbers of columns with what errors call them."""
    if isinstance(structure, dict):
        for key, item in structure.items():
            yield from _named(item, f"{name}[{key!r}]")
    elif isinstance(structure, list | tuple):
        for index, item in enumerate(structure):
            yield from _named(item, f"{name}[{index}]")
    elif structure is not None:
        yield name, structure


def _check(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind != "f" or not array.size:
        return
    rows = max(1, _BYTES * len(array) // array.nbytes)
    first: tuple[int, ...] | None = None
    count = 0
    for begin in range(0, len(array), rows):
        finite = np.isfinite(array[begin : begin + rows])
        if finite.all():
            continue
        count += finite.size - int(np.count_nonzero(finite))
        if first is None:
            place = np.argwhere(~finite)[0].tolist()
            first = (begin + place[0], *place[1:])
    if first is not None:
        more = f", and {count - 1} more that are not finite" if count > 1 else ""
        raise ValueError(
            f"`{name}` holds {array[first]} in {_place(first)} (counted from 0){more}. Replace "
            "them, or drop their rows."
        )


def _place(index: tuple[int, ...]) -> str:
    row, *rest = index
    if not rest:
        return f"row {row}"
    if len(rest) == 1:
        return f"row {row}, column {rest[0]}"
    return f"row {row}, at {tuple(rest)} of it"
