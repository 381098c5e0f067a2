"""Columns: the arrays in lists, tuples, dicts and frames, as one flat tuple.

Structures are flattened once, where data are adapted; later code works on columns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored.ops.conversion import as_array

Columns = tuple[NDArray[Any], ...]
_NUMERIC_KINDS = "biuf"  # bool, signed, unsigned and floating-point NumPy dtypes.


class Layout:
    """Where columns stand in inputs, targets and weights; those of one form are equal.

    Args:
        parts: Inputs, targets and weights: each a structure with the number of a column for every
            array, and None for what there is none of.

    Attributes:
        is_plain: Whether each of the three is one array or none.

    Example:
        >>> from mirrored.data.columns import Layout
        >>> Layout(({"a": 0, "b": 1}, 2, None)).pack(["first", "second", "third"])
        ({'a': 'first', 'b': 'second'}, 'third', None)
    """

    __slots__ = ("_hash", "_key", "is_plain", "parts")

    def __init__(self, parts: tuple[Any, Any, Any]) -> None:
        self.parts = parts
        self._key = _key(parts)
        self._hash = hash(self._key)
        self.is_plain = not any(isinstance(part, list | tuple | dict) for part in parts)

    def __eq__(self, other: object) -> bool:
        """Whether the other one has the same columns in the same places."""
        return self is other or (isinstance(other, Layout) and self._key == other._key)

    def __hash__(self) -> int:
        """Return the same number for equal ones."""
        return self._hash

    def check_like(self, first: "Layout") -> None:
        """Raise ValueError unless inputs and targets have the structure of those of a first batch.

        Weights, and targets at all, may be there or not.
        """
        if self is first or self._key == first._key:
            return
        for part, name in enumerate(("x", "y")):
            here, there = self.parts[part], first.parts[part]
            if _key(here) == _key(there) or here is None or there is None:
                continue
            try:
                _nest.map_structure(lambda *_: None, there, here, label="structure")
            except ValueError as error:
                difference = str(error)
            else:
                difference = "One structure has None, the other an array."
            raise ValueError(
                f"Its {name} has a structure different from the first batch. {difference}"
            )

    def numbers(self, part: int) -> list[int]:
        """Return the numbers of the columns of one of the three structures."""
        structure = self.parts[part]
        if type(structure) is int:
            return [structure]
        return [number for number in _nest.flatten(structure) if number is not None]

    def part(self, number: int, values: Sequence[Any]) -> Any:
        """Return one of the three structures, with values in the places of the columns."""
        part = self.parts[number]
        if part is None:
            return None
        if type(part) is int:
            return values[part]
        return _nest.map_structure(lambda index: None if index is None else values[index], part)

    def pack(self, values: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Return the three structures, with values in the places of the columns."""
        return self.part(0, values), self.part(1, values), self.part(2, values)


def _key(structure: Any) -> Any:
    """Return what is the same of structures of one form, and can be hashed."""
    if isinstance(structure, dict):
        items = [(key, _key(structure[key])) for key in _nest.sorted_keys(structure)]
        return type(structure), tuple(items)
    if isinstance(structure, list | tuple):
        return type(structure), tuple([_key(item) for item in structure])
    return structure


# Of one array each, by whether there are targets and weights.
_PLAIN = {
    (False, False): Layout((0, None, None)),
    (True, False): Layout((0, 1, None)),
    (False, True): Layout((0, None, 1)),
    (True, True): Layout((0, 1, 2)),
}


def taken_apart(x: Any, y: Any, sample_weight: Any) -> tuple[Columns, Layout]:
    """Return the arrays of inputs, targets and weights as columns, and where they stand.

    An array that is the weights of several targets is one column.
    """
    arrays = [array for array in (x, y, sample_weight) if array is not None]
    if all([isinstance(array, np.ndarray) for array in arrays]):
        return tuple(arrays), _PLAIN[y is not None, sample_weight is not None]
    columns: list[NDArray[Any]] = []
    weights: dict[int, int] = {}

    def number(array: NDArray[Any] | None) -> int | None:
        if array is None:
            return None
        columns.append(array)
        return len(columns) - 1

    def number_of_weight(array: NDArray[Any] | None) -> int | None:
        if id(array) not in weights and array is not None:
            weights[id(array)] = len(columns)
            columns.append(array)
        return weights.get(id(array))

    parts = _nest.map_structure(number, x), _nest.map_structure(number, y)
    layout = Layout((*parts, _nest.map_structure(number_of_weight, sample_weight)))
    return tuple(columns), layout


# ---------------------------------------------------------------------------- from users


def arrays_in(value: Any, name: str, leaf_of: Callable[[Any, str], Any] | None = None) -> Any:
    """Return a structure of users' arrays, tensors and lists of numbers as one of NumPy's arrays.

    A list or tuple of arrays is a structure, and so is a dict; a list of numbers is one array.
    None stays within a structure.

    Args:
        value: What a user gave.
        name: What errors call it.
        leaf_of: From a leaf and its name to what takes its place; None: `to_array`.

    Raises:
        ValueError: A leaf is no array of numbers with an axis for the examples.

    Example:
        >>> from mirrored.data.columns import arrays_in
        >>> arrays_in({"a": [[1.0, 2.0]], "b": None}, "x")
        {'a': array([[1., 2.]]), 'b': None}
    """
    if value is None:
        return None
    if type(value) is np.ndarray or not is_structure(value):
        return (leaf_of or to_array)(value, name)
    if isinstance(value, Mapping):
        mapped = {key: arrays_in(item, f"{name}[{key!r}]", leaf_of) for key, item in value.items()}
        return _nest.rebuild_dict(value, mapped) if isinstance(value, dict) else mapped
    items = [arrays_in(item, f"{name}[{i}]", leaf_of) for i, item in enumerate(value)]
    return _nest.rebuild(value, items)


def is_structure(value: Any) -> bool:
    """Return whether a value is several arrays, or one of a structure, and not one of numbers."""
    if isinstance(value, Mapping):
        return not is_sparse(value)  # Some of SciPy's are dicts.
    if not (isinstance(value, list | tuple) and value):
        return False
    if any(isinstance(item, Mapping) or _is_array(item) for item in value):
        return True
    # What the first row is, the others are: looking at each number of a long list takes long.
    return is_structure(value[0]) or all(item is None for item in value)


def leaves_in(value: Any) -> Iterator[Any]:
    """Yield the leaves of a user's structure, None left out."""
    if not is_structure(value):
        yield from () if value is None else (value,)
        return
    for item in list(value.values()) if isinstance(value, Mapping) else value:
        yield from leaves_in(item)


def _converted(value: Any, name: str) -> NDArray[Any]:
    """Return an array of what is none of NumPy's own, of any dtype and rank."""
    if isinstance(value, Iterator):
        raise ValueError(
            f"`{name}` must be an array. Received: {described(value)}. Collect its items with "
            "`numpy.stack(list(...))`; pass a stream of batches only as `x`."
        )
    if is_frame(value):
        return array_of(value, name)
    if is_sparse(value):
        value = value.toarray()
    if callable(getattr(value, "detach", None)):  # PyTorch's, wherever they are.
        value = value.detach().cpu()
    _check_mask(value, name)
    try:
        if callable(getattr(value, "numpy", None)):  # Our tensors and variables, and others' too.
            value = value.numpy()
        return as_array(value)
    except (ValueError, AttributeError) as error:  # A placeholder has no values.
        raise ValueError(f"`{name}` is not an array. {error}") from error


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse matrix, with the names that SciPy's have."""
    return hasattr(value, "tocsr") and hasattr(value, "toarray")


def _is_array(item: Any) -> bool:
    """Whether `item` is an array of rank 1 or more: NumPy's scalars are numbers, not inputs."""
    rank = getattr(item, "ndim", None)
    if rank is None:
        rank = len(getattr(item, "shape", ())) or hasattr(item, "__array__")
    return bool(rank)


def to_array(value: Any, name: str) -> NDArray[Any]:
    """Return what a user gave as one array; see `arrays_in`."""
    array = value if type(value) is np.ndarray else _converted(value, name)
    if array.dtype.kind not in _NUMERIC_KINDS:
        raise ValueError(
            f"`{name}` must hold numbers (bool, integer or floating-point). "
            f"Received: {name} with dtype {array.dtype}. {_dtype_advice(array)}"
        )
    if array.ndim == 0:
        raise ValueError(
            f"`{name}` must have at least one dimension, the examples. "
            f"Received: the scalar {name}={array.item()!r}. Wrap a single example in a list."
        )
    return array


def _check_mask(value: Any, name: str) -> None:
    """Raise where a masked array lacks values: what is below the mask would count."""
    mask = getattr(value, "mask", None) if hasattr(value, "filled") else None
    missing = 0 if mask is None else int(np.count_nonzero(mask))
    if missing:
        raise ValueError(
            f"`{name}` must have no missing values. Received: a {type(value).__name__} with "
            f"{missing} masked values. Fill them, for example with `.filled(0)`, or drop their "
            "rows."
        )


def _dtype_advice(array: NDArray[Any]) -> str:
    strings = array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat)
    if array.dtype.kind in "SU" or strings:
        return "Map the strings to numbers first."
    if array.dtype.kind == "c":
        return "Pass the real and imaginary parts as separate features."
    try:
        array.astype(np.float32)
    except (TypeError, ValueError):
        return "Make each example an array of numbers, all of one shape."
    return "Convert it with `numpy.asarray(..., dtype='float32')`."


def described(data: Any) -> str:
    """Return what errors call a user's data: its type, with an article."""
    name = type(data).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


# ------------------------------------------------------------------------------------------- frames

# Of pandas, polars and others: through narwhals (the extra `frames`), imported for them alone.

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
        f" Received: {type(value).__name__} as `{name}`. An array, for example from "
        "`.to_numpy()`, does not need it.",
    )
    try:
        frame: Any = nw.from_native(_by_position(value), eager_only=True, allow_series=True)
    except TypeError as error:
        raise ValueError(
            f"`{name}` is not computed yet. Received: a {type(value).__name__} of "
            f"{type(value).__module__.partition('.')[0]}. Pass the result of its `.collect()`."
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
