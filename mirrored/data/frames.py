"""Frames and their columns, of pandas, polars and others: through narwhals, the extra `frames`.

It is imported where data are a frame, and nowhere else.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_PACKAGES = {"pandas", "polars", "pyarrow", "modin", "cudf", "narwhals"}
_KINDS = {"DataFrame", "Series", "LazyFrame", "Table", "ChunkedArray"}
_ROWS = 4096  # What is copied at once stays in a cache, which takes a tenth of the time.


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame or a column of one; nothing is imported for it."""
    return any(
        base.__name__ in _KINDS and base.__module__.partition(".")[0] in _PACKAGES
        for base in type(value).__mro__
    )


def array_of(value: Any, name: str) -> NDArray[Any]:
    """Return a frame's columns side by side, or one column.

    Rows are taken in order, whatever the index says. A column of pandas' has a second axis, of
    size 1, as in Keras.

    Args:
        value: A frame, of shape (rows, columns), or a column.
        name: What errors call it.

    Raises:
        ImportError: narwhals is not installed.
        ValueError: A column does not hold numbers, or lacks some, or the frame is not computed yet.
    """
    from mirrored._extras import package  # Most programs have no frames.

    nw = package(
        *("narwhals.stable.v2", "frames", "Frames are read by"),
        f" Received: {type(value).__name__} as `{name}`. An array needs none of it, as of "
        "`.to_numpy()`.",
    )
    try:
        frame: Any = nw.from_native(_by_position(value), eager_only=True, allow_series=True)
    except TypeError as error:
        raise ValueError(
            f"`{name}` is not computed yet. Received: a {type(value).__name__} of "
            f"{type(value).__module__.partition('.')[0]}. Pass what its `.collect()` returns."
        ) from error
    if hasattr(frame, "columns"):
        labels = value.columns if hasattr(value, "iloc") else frame.columns
        columns = zip(labels, frame.iter_columns(), strict=True)
        parts = [_numbers(column, f"column {label!r}", name) for label, column in columns]
        return _side_by_side(parts, len(frame))
    unnamed = frame.name is None or frame.name == ""
    array = _numbers(frame, "a column" if unnamed else f"the column {frame.name!r}", name)
    return array[:, np.newaxis] if nw.get_native_namespace(frame).__name__ == "pandas" else array


def _by_position(frame: Any) -> Any:
    """Return a pandas-like frame with column positions as labels; its data are not copied.

    Labels of pandas may be integers, tuples or equal, which narwhals does not take as names.
    """
    if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
        return frame
    view = frame.copy(deep=False)
    view.columns = [str(position) for position in range(len(frame.columns))]
    return view


def _numbers(column: Any, which: str, name: str) -> NDArray[Any]:
    """Return a column as an array of numbers; nothing in it is missing."""
    dtype = column.dtype
    if not (dtype.is_numeric() and not dtype.is_decimal()) and str(dtype) != "Boolean":
        raise ValueError(
            f"`{name}` must hold numbers (bool, integer or floating-point). Received: a frame with "
            f"{dtype} in {which}. Map {_advice(str(dtype))}, or leave the column out."
        )
    missing = int(column.null_count())
    if missing:
        first = column.is_null().arg_true().to_list()[0]
        raise ValueError(
            f"`{name}` must have no missing values. Received: a frame with {missing} of them in "
            f"{which}, the first in row {first} (counted from 0). Fill them, or drop their rows."
        )
    array: NDArray[Any] = np.asarray(column.to_numpy())
    return array.astype(bool) if array.dtype == object else array


def _advice(dtype: str) -> str:
    if dtype in ("String", "Categorical", "Object") or dtype.startswith("Enum"):
        return "its values to integers, or to columns of zeros and ones"
    return "it to numbers"


def _side_by_side(columns: list[NDArray[Any]], rows: int) -> NDArray[Any]:
    if not columns:
        return np.empty((rows, 0))
    joined = np.empty((rows, len(columns)), np.result_type(*columns))
    for begin in range(0, rows, _ROWS):
        for number, column in enumerate(columns):
            joined[begin : begin + _ROWS, number] = column[begin : begin + _ROWS]
    return joined
