"""Turns what users have (lists, arrays, tensors) into arrays that training can rely on.

Everything is checked here, on the host and before anything changed; arrays are not copied.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._numbers import as_integer
from mirrored.ops.conversion import as_array

# Inputs, targets and weights; None for those that there are none of.
Columns = tuple[Any, Any, Any]
# Some rows of arrays, by their numbers; a slice has a start and an end, and no step.
Rows = slice | NDArray[np.int64]
_NO_ARRAYS = (list, tuple, Mapping, type(None))
_NUMERIC_KINDS = "biuf"  # bool, signed, unsigned and floating-point NumPy dtypes.


def count_of(rows: Rows) -> int:
    """Return how many rows they are."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def rows_from(rows: Rows, begin: int, count: int) -> Rows:
    """Return so many of some rows, or as many as there are, from the one at `begin` on."""
    if isinstance(rows, slice):
        return slice(rows.start + begin, min(rows.start + begin + count, rows.stop))
    return rows[begin : begin + count]


def take(array: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return some rows of an array: a view where they are a slice, else a copy."""
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def joined(parts: Sequence[Rows]) -> Rows:
    """Return rows and then others."""
    if len(parts) < 2:
        return parts[0] if parts else slice(0, 0)
    each = [np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows for rows in parts]
    return np.concatenate(each)


@dataclass(frozen=True, slots=True)
class Arrays:
    """Checked inputs, targets and weights of the same number of examples.

    Attributes:
        x: Inputs of shape (examples, ...), of a bool, integer or floating-point dtype.
        y: Targets of shape (examples, ...), or None.
        sample_weight: Weights of shape (examples, ...), of one axis where each is for an example,
            or None.
        size: The number of examples, at least 1.
    """

    x: np.ndarray
    y: np.ndarray | None
    sample_weight: np.ndarray | None
    size: int

    @property
    def columns(self) -> Columns:
        """Inputs, targets and weights, as they are."""
        return self.x, self.y, self.sample_weight

    def contiguous(self) -> "Arrays":
        """Return the examples one after the other in memory, as copies where they are not.

        Taking rows out of anything else makes NumPy copy all of it, each time.
        """
        return self._each(np.ascontiguousarray)

    def copied(self) -> "Arrays":
        """Return a copy, which nothing but its holder writes to."""
        return self._each(np.copy)

    def _each(self, function: Callable[[np.ndarray], np.ndarray]) -> "Arrays":
        x = function(self.x)
        y, weight = (
            None if array is None else function(array) for array in (self.y, self.sample_weight)
        )
        return Arrays(x, y, weight, len(x))

    def rows(self, which: Rows) -> "Arrays":
        """Return some of the examples: views where they are a slice, else copies."""
        return self._each(lambda array: take(array, which))


def adapt(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    for_what: str = "fit",
) -> Arrays:
    """Check what a user passed to `fit`, `evaluate` or `predict` and return it as arrays.

    Args:
        x: Inputs of shape (examples, ...): an array, a tensor or nested lists of numbers.
        y: Targets of shape (examples, ...); None where `for_what` is "predict".
        sample_weight: Finite weights of shape (examples, ...), or None. More axes than the first
            are for those of the losses, which are not known here.
        for_what: The method that asks, named in errors; targets are required but for "predict".

    Returns:
        The arrays, which share memory with what was passed wherever that was an array.

    Raises:
        ValueError: An argument is missing, empty, a scalar, several inputs, not numeric, or of
            another number of examples than the rest.

    Example:
        >>> from mirrored.data.arrays import adapt
        >>> arrays = adapt([[1.0, 2.0], [3.0, 4.0]], [0, 1])
        >>> arrays.x.shape, arrays.y.tolist(), arrays.size
        ((2, 2), [0, 1], 2)
    """
    if x is None:
        raise ValueError(f"`{for_what}` needs input data. Received: x=None. Pass an array as `x`.")
    inputs = _to_array(x, "x")
    if y is None and for_what != "predict":
        raise ValueError(
            f"`{for_what}` needs targets to compute the loss. Received: y=None. "
            "Pass an array as `y`."
        )
    targets = None if y is None else _to_array(y, "y")
    weights = None if sample_weight is None else _to_array(sample_weight, "sample_weight")
    _check_cardinality({"x": inputs, "y": targets, "sample_weight": weights})
    size = len(inputs)
    if size == 0:
        raise ValueError(
            f"`{for_what}` needs at least one example. "
            f"Received: empty data, x with shape {inputs.shape}."
        )
    if weights is not None:
        weights = _check_weights(weights, size)
    return Arrays(inputs, targets, weights, size)


def is_stream(data: Any) -> bool:
    """Return whether data give batches one after another, instead of being examples themselves."""
    if isinstance(data, Iterator):
        return True
    # Sequences and mappings of numbers, arrays of any library, tensors.
    is_whole = isinstance(data, Sequence | Mapping) or hasattr(data, "__array__")
    return isinstance(data, Iterable) and not is_whole and not hasattr(data, "numpy")


def adapt_batch(
    element: Any, for_what: str, class_weight: Mapping[int, float] | None = None
) -> Arrays:
    """Check what a stream gave as a batch, and return it as arrays.

    Args:
        element: (x, y) or (x, y, sample_weight), in a tuple or a list; for "predict" x alone will
            do.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.

    Raises:
        ValueError: It is no such batch.

    Example:
        >>> from mirrored.data.arrays import adapt_batch
        >>> adapt_batch(([[1.0], [2.0]], [0, 1]), "fit").size
        2
    """
    parts = element if isinstance(element, tuple) else (element,)
    if isinstance(element, list) and element and all(np.ndim(part) for part in element):
        is_arrays = all(hasattr(part, "ndim") for part in element)
        parts = tuple(element) if is_arrays else parts
    if for_what == "predict":
        parts = parts[:1]
    if not (for_what == "predict" or 2 <= len(parts) <= 3):
        raise ValueError(
            f"`{for_what}` needs batches of (x, y) or (x, y, sample_weight). Received: "
            f"{described(element)}{f' of {len(element)}' if isinstance(element, tuple) else ''}."
        )
    # Of lists `adapt` says what is wrong with them.
    shapes = [np.shape(each) for each in parts if not isinstance(each, _NO_ARRAYS)]
    if () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(unbatched(for_what, shapes))
    arrays = adapt(*parts, for_what=for_what)
    return arrays if class_weight is None else with_class_weights(arrays, class_weight)


def unbatched(for_what: str, shapes: Sequence[tuple[int, ...]]) -> str:
    """Return what an error says of elements that are no batches."""
    return (
        f"`{for_what}` needs batches, whose arrays all begin with an axis of the examples. "
        f"Received: arrays with the shapes {list(shapes)}. Batch single examples with the "
        "dataset's `.batch(batch_size)`, and give as many targets as inputs."
    )


def check_batch_size(batch_size: Any, name: str = "batch_size") -> int:
    """Return `batch_size` as an int; the error says what is wrong with the argument `name`."""
    size = as_integer(batch_size)
    if size is None or size <= 0:
        hint = ""
        if isinstance(batch_size, float | np.floating):
            hint = " A quotient stays an integer with `//`."
        raise ValueError(
            f"Received an invalid value for `{name}`, expected a positive integer. "
            f"Received: {name}={batch_size!r}.{hint}"
        )
    return size


def with_class_weights(arrays: Arrays, class_weight: Mapping[int, float]) -> Arrays:
    """Return the arrays with the weight of its label as each example's weight; 1 without one."""
    if arrays.sample_weight is not None:
        raise ValueError(
            "`class_weight` and `sample_weight` cannot be given at the same time. "
            "Multiply them yourself and pass the product as `sample_weight`."
        )
    return replace(arrays, sample_weight=_class_weights(arrays.y, class_weight))


def split_validation(arrays: Arrays, fraction: Any) -> tuple[Arrays, Arrays]:
    """Set the last examples aside for validation, before any shuffling."""
    is_number = isinstance(fraction, int | float | np.number) and not isinstance(fraction, bool)
    if not (is_number and 0 < fraction < 1):
        raise ValueError(
            "`validation_split` must be a number between 0 and 1. "
            f"Received: validation_split={fraction!r}."
        )
    split = math.floor(arrays.size * (1.0 - fraction))
    if split in (0, arrays.size):
        raise ValueError(
            f"Training data contains {arrays.size} samples, which is not sufficient to split it "
            "into a validation and training set as specified by "
            f"`validation_split={fraction}`. Either provide more data, or a different value for "
            "the `validation_split` argument."
        )
    return arrays.rows(slice(0, split)), arrays.rows(slice(split, arrays.size))


def described(data: Any) -> str:
    """Return what errors call a user's data: its type, with an article."""
    name = type(data).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _to_array(value: Any, name: str) -> np.ndarray:
    value = _single(value, name)
    if callable(getattr(value, "numpy", None)):  # Our tensors and variables, and others' too.
        value = value.numpy()
    try:
        array = as_array(value)
    except ValueError as error:
        raise ValueError(f"`{name}` is not an array. {error}") from error
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


def _single(value: Any, name: str) -> Any:
    """Refuse several inputs and streams of data; unwrap a list that holds one array."""
    if isinstance(value, Mapping):
        raise ValueError(
            f"`{name}` must be one array; models have one input and one output for now. "
            f"Received: a dict with keys {list(value)}. Pass one of its arrays."
        )
    if isinstance(value, list | tuple) and any(_is_array(item) for item in value):
        if len(value) == 1:
            return value[0]
        raise ValueError(
            f"`{name}` must be one array; models have one input and one output for now. "
            f"Received: a {type(value).__name__} of {len(value)} arrays. "
            "If they are the examples, join them with `numpy.stack`."
        )
    if isinstance(value, Iterator):
        raise ValueError(
            f"`{name}` must be an array. Received: {described(value)}. "
            "Collect its items with `numpy.stack(list(...))`; a stream of batches is passed as `x` "
            "alone."
        )
    return value


def _is_array(item: Any) -> bool:
    """Whether `item` is an array of rank 1 or more: NumPy's scalars are numbers, not inputs."""
    return getattr(item, "ndim", 0) > 0


def _dtype_advice(array: np.ndarray) -> str:
    if array.dtype.kind in "SU":
        return "Map the strings to integers first."
    if array.dtype.kind == "c":
        return "Pass the real and imaginary parts as separate features."
    return "Convert it with `numpy.asarray(..., dtype='float32')`."


def _check_cardinality(arrays: Mapping[str, np.ndarray | None]) -> None:
    sizes = {name: len(array) for name, array in arrays.items() if array is not None}
    if len(set(sizes.values())) > 1:
        received = ", ".join(f"'{name}' sizes: {size}" for name, size in sizes.items())
        raise ValueError(
            "Data cardinality is ambiguous. Make sure all arrays contain the same number of "
            f"samples. Received: {received}."
        )


def _check_weights(weights: np.ndarray, size: int) -> np.ndarray:
    if not np.isfinite(weights).all():
        raise ValueError(
            "`sample_weight` must be finite. Received: "
            f"{weights[~np.isfinite(weights)][0]} among the weights. "
            "Replace it, or drop the example."
        )
    return weights.reshape(size) if weights.shape == (size, 1) else weights


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
            "`class_weight` needs one label an example. "
            f"Received: y with shape {targets.shape}. Pass `sample_weight` instead."
        )
    if targets.ndim == 2 and targets.shape[1] != 1:
        labels = targets.argmax(axis=1)
    else:
        labels = targets.reshape(len(targets))
    weights = np.ones(len(labels), dtype=np.float64)
    for label, weight in class_weight.items():
        is_number = isinstance(weight, int | float | np.number)
        if not (isinstance(label, int | np.integer) and is_number and math.isfinite(weight)):
            raise ValueError(
                "`class_weight` must be a dict from integer label to a finite weight. "
                f"Received: class_weight with the item {label!r}: {weight!r}."
            )
        weights[labels == label] = weight
    return weights
