"""Turns what users have (lists, arrays, tensors) into arrays that training can rely on.

Everything is checked here, on the host and before anything changed; arrays are not copied.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored.data.columns import (
    Columns,
    Layout,
    arrays_in,
    described,
    is_sparse,
    is_structure,
    leaves_in,
    taken_apart,
)

# Some rows of arrays, by their numbers; a slice has a start and an end, and no step.
Rows = slice | NDArray[np.int64]


def count_of(rows: Rows) -> int:
    """Return how many rows they are."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def rows_from(rows: Rows, begin: int, count: int) -> Rows:
    """Return `count` of some rows from `begin` on, or all if there are fewer."""
    if isinstance(rows, slice):
        return slice(rows.start + begin, min(rows.start + begin + count, rows.stop))
    return rows[begin : begin + count]


def reader_of(rows: Rows) -> Callable[[int], Rows]:
    """Return a function that returns the next of some rows, at most as many as its argument."""
    begin = 0

    def read(most: int) -> Rows:
        nonlocal begin
        part = rows_from(rows, begin, most)
        begin += count_of(part)
        return part

    return read


def take(array: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return some rows of an array: a view where they are a slice, else a copy."""
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def joined(parts: Sequence[Rows]) -> Rows:
    """Return rows and then others."""
    if len(parts) < 2:
        return parts[0] if parts else slice(0, 0)
    runs = [np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows for rows in parts]
    return np.concatenate(runs)


@dataclass(frozen=True, slots=True)
class Arrays:
    """Checked inputs, targets and weights of the same number of examples.

    Attributes:
        columns: All arrays, of shape (examples, ...) and a bool, integer or floating-point dtype.
        layout: Which of them are inputs, targets and weights.
        size: The number of examples, at least 1.
    """

    columns: Columns
    layout: Layout
    size: int

    @classmethod
    def of(cls, x: Any, y: Any, sample_weight: Any) -> "Arrays":
        """Return structures of arrays, which are not looked at."""
        columns, layout = taken_apart(x, y, sample_weight)
        return cls(columns, layout, len(columns[0]))

    @property
    def x(self) -> Any:
        """The inputs: an array, or a structure of arrays."""
        return self.layout.part(0, self.columns)

    @property
    def y(self) -> Any:
        """The targets, likewise, or None."""
        return self.layout.part(1, self.columns)

    @property
    def sample_weight(self) -> Any:
        """The weights, likewise, of one axis where each is for an example, or None."""
        return self.layout.part(2, self.columns)

    def contiguous(self) -> "Arrays":
        """Return the examples one after the other in memory, as copies where they are not.

        Taking rows out of anything else makes NumPy copy all of it, each time.
        """
        if all([column.flags.c_contiguous for column in self.columns]):
            return self
        return self._mapped(np.ascontiguousarray)

    def copied(self) -> "Arrays":
        """Return a copy, which nothing but its holder writes to."""
        return self._mapped(np.copy)

    def _mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> "Arrays":
        columns = tuple([function(column) for column in self.columns])
        return Arrays(columns, self.layout, len(columns[0]))

    def rows(self, which: Rows) -> "Arrays":
        """Return some of the examples: views where they are a slice, else copies."""
        return self._mapped(lambda array: take(array, which))


# From arrays as they were given to those that steps are to have; it may raise ValueError.
Check = Callable[[Arrays], Arrays]


def adapt(x: Any, y: Any = None, sample_weight: Any = None, *, for_what: str = "fit") -> Arrays:
    """Check what a user passed to `fit`, `evaluate` or `predict` and return it as arrays.

    Args:
        x: Inputs of shape (examples, ...): an array, a tensor or nested lists of numbers, or a
            list, tuple or dict of these.
        y: Targets of shape (examples, ...), likewise, or None.
        sample_weight: Finite weights of shape (examples, ...), or None. More axes than the first
            are for those of the losses, which are not known here. Where there are several targets:
            a structure like theirs, or one array with a weight an example for all of them.
        for_what: The method that asks, named in errors.

    Returns:
        The arrays, which share memory with what was passed wherever that was an array.

    Raises:
        ValueError: An argument is missing, empty, a scalar, not numeric, or of another number of
            examples than the rest.

    Example:
        >>> from mirrored.data.arrays import adapt
        >>> arrays = adapt([[1.0, 2.0], [3.0, 4.0]], [0, 1])
        >>> arrays.x.shape, arrays.y.tolist(), arrays.size
        ((2, 2), [0, 1], 2)
    """
    if x is None:
        raise ValueError(f"`{for_what}` needs input data. Received: x=None. Pass an array as `x`.")
    inputs = _filled(arrays_in(x, "x"), f"`{for_what}` needs input data", "x", x)
    targets = _filled(arrays_in(y, "y"), f"`{for_what}` needs targets", "y", y)
    weights = arrays_in(sample_weight, "sample_weight")
    check_cardinality({"x": inputs, "y": targets, "sample_weight": weights})
    arrays = Arrays.of(inputs, targets, None)
    if arrays.size == 0:
        raise ValueError(
            f"`{for_what}` needs at least one example. "
            f"Received: empty data, x with shape {arrays.columns[0].shape}."
        )
    if weights is None:
        return arrays
    weights = _nest.map_structure(_checked_weights, weights)
    return Arrays.of(inputs, targets, _weights_like(targets, weights))


def is_stream(data: Any) -> bool:
    """Return whether data give batches one after another, instead of being examples themselves."""
    if type(data) is np.ndarray:
        return False
    if isinstance(data, Iterator):
        return True
    # Sequences and mappings of numbers, arrays of any library, tensors.
    is_whole = isinstance(data, Sequence | Mapping) or hasattr(data, "__array__")
    is_whole = is_whole or hasattr(data, "numpy") or is_sparse(data)
    return isinstance(data, Iterable) and not is_whole


def adapt_batch(
    element: Any, for_what: str, class_weight: Mapping[int, float] | None = None
) -> Arrays:
    """Check what a stream gave as a batch, and return it as arrays.

    Args:
        element: x, (x,), (x, y) or (x, y, sample_weight), in a tuple or a list; for "predict" the
            first counts.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.

    Raises:
        ValueError: It is no such batch.

    Example:
        >>> from mirrored.data.arrays import adapt_batch
        >>> adapt_batch(([[1.0], [2.0]], [0, 1]), "fit").size
        2
    """
    is_parts = isinstance(element, list) and is_structure(element)
    parts = tuple(element) if is_parts or isinstance(element, tuple) else (element,)
    if for_what == "predict":
        parts = parts[:1]
    if not 1 <= len(parts) <= 3:
        raise ValueError(
            f"`{for_what}` needs batches of (x, y) or (x, y, sample_weight). Received: "
            f"{described(element)} of {len(element)}."
        )
    # Of lists `adapt` says what is wrong with them.
    shapes: list[tuple[int, ...]] = []
    for part in parts:
        leaves = [part] if type(part) is np.ndarray else leaves_in(part)
        shapes += [np.shape(leaf) for leaf in leaves if not isinstance(leaf, list | tuple)]
    if () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(unbatched(for_what, shapes))
    arrays = adapt(*parts, for_what=for_what)
    return arrays if class_weight is None else with_class_weights(arrays, class_weight)


def unbatched(for_what: str, shapes: Sequence[tuple[int, ...]]) -> str:
    """Return what an error says of elements that are no batches."""
    return (
        f"`{for_what}` needs batches: the first axis of every array must be the axis of examples. "
        f"Received: arrays with the shapes {list(shapes)}. Batch single examples with the "
        "dataset's `.batch(batch_size)`, and pass the same number of targets and inputs."
    )


def with_class_weights(arrays: Arrays, class_weight: Mapping[int, float]) -> Arrays:
    """Return the arrays with the weight of its label as each example's weight; 1 without one."""
    if arrays.sample_weight is not None:
        raise ValueError(
            "`class_weight` and `sample_weight` cannot be given at the same time. "
            "Multiply them yourself and pass the product as `sample_weight`."
        )
    targets = arrays.y
    if _is_nested(targets):
        raise ValueError(
            "`class_weight` is only supported for Models with a single output. Received: "
            f"{described(targets)} as y. Pass `sample_weight` instead."
        )
    return Arrays.of(arrays.x, targets, _class_weights(targets, class_weight))


def _is_nested(structure: Any) -> bool:
    return isinstance(structure, list | tuple | dict)


def _filled(arrays: Any, what: str, name: str, value: Any) -> Any:
    """Return a structure that was given, which has to have arrays where it is not None."""
    if arrays is None or type(arrays) is np.ndarray:
        return arrays
    if all(leaf is None for leaf in _nest.flatten(arrays)):
        raise ValueError(f"{what}. Received: {name}={value!r:.80}, which holds no array.")
    return arrays


def check_cardinality(parts: Mapping[str, Any]) -> None:
    """Raise ValueError unless all arrays of structures, by their names, have as many examples."""
    present = [part for part in parts.values() if part is not None]
    lengths = {len(part) if type(part) is np.ndarray else None for part in present}
    if len(lengths) == 1 and None not in lengths:
        return  # The usual case, of each batch.
    sizes = {
        name: [leaf.shape[0] for leaf in _nest.flatten(part) if leaf is not None]
        for name, part in parts.items()
    }
    if len({size for rows in sizes.values() for size in rows}) > 1:
        received = ", ".join(
            f"'{name}' sizes: {', '.join(map(str, rows))}" for name, rows in sizes.items() if rows
        )
        raise ValueError(
            "Data cardinality is ambiguous. Make sure all arrays contain the same number of "
            f"samples. Received: {received}."
        )


def _checked_weights(weights: np.ndarray | None) -> np.ndarray | None:
    if weights is None:
        return None
    if not np.isfinite(weights).all():
        raise ValueError(
            "`sample_weight` must be finite. Received: "
            f"{weights[~np.isfinite(weights)][0]} among the weights. "
            "Replace it, or drop the example."
        )
    return weights.reshape(len(weights)) if weights.shape[1:] == (1,) else weights


def _weights_like(targets: Any, weights: Any) -> Any:
    """Return the weights of several targets as a structure like theirs."""
    if not _is_nested(targets):
        return weights
    if _is_nested(weights):
        try:
            _nest.map_structure(lambda *_: None, targets, weights)
        except ValueError as error:
            raise ValueError(
                "You should provide one `sample_weight` array per output in `y`. The two "
                f"structures did not match. {error}"
            ) from None
        return weights
    if weights.ndim != 1:
        raise ValueError(
            "For a model with multiple outputs, when providing a single `sample_weight` array, it "
            "should only have one scalar score per sample (i.e. shape `(num_samples,)`). Received: "
            f"sample_weight with shape {weights.shape}. If you want to use non-scalar sample "
            "weights, pass a `sample_weight` argument with one array per model output."
        )
    return _nest.map_structure(lambda leaf: None if leaf is None else weights, targets)


def _class_weights(targets: np.ndarray | None, class_weight: Any) -> np.ndarray:
    """Look up the weight of each label: an integer, or the place of the largest target."""
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "`class_weight` must be a dict from integer label to weight. "
            f"Received: class_weight={class_weight!r}."
        )
    if targets is None:
        raise ValueError("`class_weight` needs targets. Received: y=None. Pass an array as `y`.")
    if targets.ndim > 2:
        raise ValueError(
            f"`class_weight` needs one label per example. Received: y with shape {targets.shape}. "
            "Pass `sample_weight` instead."
        )
    if targets.ndim == 2 and targets.shape[1] != 1:
        labels = targets.argmax(axis=1)
    else:
        labels = targets.reshape(len(targets))
    if labels.dtype.kind == "f":
        labels = np.round(labels)
    weights = np.ones(len(labels), dtype=np.float64)
    for label, weight in class_weight.items():
        is_number = isinstance(weight, int | float | np.number)
        if not (_is_label(label) and is_number and math.isfinite(weight)):
            raise ValueError(
                "`class_weight` must be a dict from integer label to a finite weight. "
                f"Received: class_weight with the item {label!r}: {weight!r}."
            )
        weights[labels == label] = weight
    return weights


def _is_label(value: Any) -> bool:
    if isinstance(value, float | np.floating):  # As of a dict that was made of float labels.
        return float(value).is_integer()
    return isinstance(value, int | np.integer)


# ----------------------------------------------------------------------------------- finite numbers

_BYTES_AT_ONCE = 1 << 20  # Of the data that are checked together.


def check_finite(arrays: Arrays) -> Arrays:
    """Return the arrays, in which every number is finite.

    Raises:
        ValueError: One is not; the text says which, and how many there are.

    Example:
        >>> import numpy as np
        >>> from mirrored.data.arrays import adapt
        >>> from mirrored.data.arrays import check_finite
        >>> check_finite(adapt([[1.0, np.nan]], [0]))
        Traceback (most recent call last):
        ...
        ValueError: `x` holds nan in row 0, column 1 (counted from 0)...
    """
    for name, structure in zip(("x", "y", "sample_weight"), arrays.layout.parts, strict=True):
        for path, number in _nest.paths(structure):
            if number is not None:
                keys = "".join(f"[{key!r}]" for key in path)
                _check_column(arrays.columns[number], f"{name}{keys}")
    return arrays


def _check_column(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind != "f" or not array.size:
        return
    rows = max(1, _BYTES_AT_ONCE * len(array) // array.nbytes)
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
