"""Keras' utilities that return datasets of arrays: windows over a time series, and two parts.

A window is gathered when it is needed: together they may be many times as large as the series.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._arguments import explained, explained_only
from mirrored._numbers import check_count
from mirrored._types import TensorLike
from mirrored.data.dataset import Dataset
from mirrored.data.elements import Element, Elements, Failure, to_leaf
from mirrored.data.leaf_specs import LeafSpec
from mirrored.data.rng import Iteration
from mirrored.data.row_transforms import Batched
from mirrored.data.transform import Following, Transform


class Gathered(Following):
    """Rows of arrays at given places after each position, or after each of a batch of positions.

    Args:
        source: What gives the positions: integers, of one shape in all elements.
        parts: Arrays, each with the places after a position, as an array or 0 for the position.
    """

    def __init__(self, source: Transform, parts: tuple[tuple[NDArray[Any], Any], ...]) -> None:
        super().__init__(source)
        self._parts = parts
        shape = source.specs().shape
        specs = [
            LeafSpec((*shape, *np.shape(places), *array.shape[1:]), array.dtype)
            for array, places in parts
        ]
        self.declare(specs[0] if len(specs) == 1 else tuple(specs))

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of arrays, or of tuples of them."""
        for positions in elements:
            yield positions if type(positions) is Failure else self._rows(positions)

    def _rows(self, positions: NDArray[Any]) -> Element:
        rows = [array[np.add.outer(positions, places)] for array, places in self._parts]
        return rows[0] if len(rows) == 1 else tuple(rows)


@explained
def timeseries_dataset_from_array(
    data: TensorLike,
    targets: TensorLike | None,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> Dataset[Any]:
    """Return a dataset of windows over a time series, with their targets.

    Args:
        data: An array whose first axis is time.
        targets: An array with the target of the window that begins at each time; None: the
            dataset has windows alone.
        sequence_length: The number of steps in a window.
        sequence_stride: The number of steps from the beginning of a window to that of the next.
        sampling_rate: The number of steps of time from one step of a window to the next.
        batch_size: The number of windows in a batch; None: elements are single windows.
        shuffle: Whether windows come in random order, another one in each iteration.
        seed: The seed of that order; None takes one from NumPy's global random numbers.
        start_index: The first step of `data` to use.
        end_index: The step before which to end.
        format: "tf": a `Dataset`. Keras' "grain" is not provided.

    Raises:
        ValueError: A number is out of range, or targets do not reach as far as windows.

    Example:
        >>> import numpy as np
        >>> import mirrored as mr
        >>> series = np.arange(6)
        >>> dataset = mr.keras.utils.timeseries_dataset_from_array(series, series[3:], 3)
        >>> [[each.tolist() for each in batch] for batch in dataset.as_numpy_iterator()]
        [[[[0, 1, 2], [1, 2, 3], [2, 3, 4]], [3, 4, 5]]]
    """
    series = to_leaf(data)
    _check_range(len(series), start_index, end_index)
    for name, value in (("sampling_rate", sampling_rate), ("sequence_stride", sequence_stride)):
        if value <= 0:
            raise ValueError(f"`{name}` must be higher than 0. Received: {name}={value!r}")
        if value >= len(series):
            raise ValueError(
                f"`{name}` must be lower than the length of the data. Received: {name}={value!r}, "
                f"for data of length {len(series)}"
            )
    check_count("sequence_length", sequence_length, least=1)
    if format != "tf":
        raise ValueError(
            '`format` must be "tf", for a `Dataset`; Grain is not supported here. Received: '
            f"format={format!r}"
        )
    used = slice(start_index or 0, len(series) if end_index is None else end_index)
    parts: list[tuple[NDArray[Any], Any]] = [
        (series[used], np.arange(sequence_length) * sampling_rate)
    ]
    count = len(parts[0][0]) - (sequence_length - 1) * sampling_rate
    if targets is not None:
        values = to_leaf(targets)
        count = min(count, len(values))
        parts.append((values[used], np.int64(0)))
        if count > len(values[used]):
            raise ValueError(
                f"There are fewer `targets` than windows. Received: {len(values)} targets, "
                f"{len(values[used])} of them from `start_index` on, for {count} windows. Pass "
                "one target per window, or slice both before the call."
            )
    starts = np.arange(0, max(count, 0), sequence_stride)
    if shuffle:
        seed = int(np.random.randint(10**6)) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    positions = Dataset.from_tensor_slices(starts)
    if shuffle:
        positions = positions.shuffle(1024 if batch_size is None else batch_size * 8, seed)
    if batch_size is not None:
        positions = positions.batch(batch_size)
    return Dataset(Gathered(positions._transform, tuple(parts)))


def _check_range(length: int, start: int | None, end: int | None) -> None:
    """Raise ValueError where a part of a series is none, as Keras does."""
    if start is not None and not 0 <= start < length:
        raise ValueError(
            "`start_index` must be 0 or greater, and lower than the length of the data. Received: "
            f"start_index={start}, for data of length {length}"
        )
    if end is None or end == 0:
        return
    if end < 0:
        raise ValueError(f"`end_index` must be higher than 0. Received: end_index={end}")
    if start and end <= start:
        raise ValueError(
            "`end_index` must be higher than `start_index`. Received: "
            f"start_index={start}, and end_index={end}"
        )
    if end >= length:
        raise ValueError(
            "`end_index` must be lower than the length of the data. Received: "
            f"end_index={end}, for data of length {length}"
        )


# -------------------------------------------------------------------------------------------- parts


@explained_only
def split_dataset(
    dataset: Any,
    left_size: float | None = None,
    right_size: float | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return the first examples of data and the last ones, as two datasets.

    Args:
        dataset: A `Dataset`, an array, or a list or tuple of arrays of one length. It has to fit
            into memory. A dataset that ends with `batch` is split by examples, and batched again.
        left_size: The size of the first part: a fraction of the examples, or their number; None:
            all that are not in the second.
        right_size: The size of the second, likewise.
        shuffle: Whether the examples are shuffled before.
        seed: The seed of that, for Python's `random`.
        preferred_backend: "tensorflow" or None.

    Raises:
        TypeError: The data is something else, or a size is no number.
        ValueError: Both sizes are None, a part would have no examples, the parts more than there
            are, or arrays are of different lengths.

    Example:
        >>> import numpy as np
        >>> left, right = split_dataset(np.arange(10), left_size=0.8)
        >>> [int(element) for element in right]
        [8, 9]
    """
    if preferred_backend not in (None, "tensorflow"):
        raise ValueError(
            "Data can be split only into datasets of this library. Received: "
            f"preferred_backend={preferred_backend!r}. Leave it out."
        )
    if left_size is None and right_size is None:
        raise ValueError(
            "At least one of the `left_size` or `right_size` must be specified. Received: "
            "left_size=None and right_size=None"
        )
    batch_size = None
    if isinstance(dataset, Dataset):
        if isinstance(dataset._transform, Batched):
            batch_size = dataset._transform.size
            dataset = dataset.unbatch()
        columns = _columns_of(dataset)
    else:
        columns = _checked_arrays(dataset)
    total = len(_nest.flatten(columns)[0])
    left, right = _sizes(left_size, right_size, total)
    order = list(range(total))
    if shuffle:
        random.Random(seed).shuffle(order)
    parts = []
    for places in (order[:left], order[total - right :]):
        rows = _nest.map_structure(lambda column, places=places: column[places], columns)
        part = Dataset.from_tensor_slices(rows)
        parts.append(part if batch_size is None else part.batch(batch_size))
    return parts[0], parts[1]


def _columns_of(dataset: Dataset[Any]) -> Any:
    """Return the elements of a dataset in its structure, each part as one array of all."""
    elements = list(dataset.as_numpy_iterator())
    if not elements:
        raise ValueError(_EMPTY)
    leaves = zip(*map(_nest.flatten, elements), strict=True)
    return _nest.pack_like(elements[0], [np.stack(column) for column in leaves])


_EMPTY = (
    "Received an empty dataset. Argument `dataset` must be a non-empty list/tuple of "
    "`numpy.ndarray` objects or a `Dataset`."
)


def _checked_arrays(dataset: Any) -> Any:
    """Return an array, or several in a tuple, of one length."""
    if not isinstance(dataset, np.ndarray | list | tuple):
        raise TypeError(
            f"Unsupported dataset type: {type(dataset)}. Pass a `Dataset`, an array, or a list or "
            "tuple of arrays."
        )
    arrays = [dataset] if isinstance(dataset, np.ndarray) else list(dataset)
    for index, array in enumerate(arrays):
        if not isinstance(array, np.ndarray):
            raise ValueError(
                f"Expected a {type(dataset).__name__} of `numpy.ndarray` objects. Received: "
                f"{type(array)} at index {index}."
            )
        if array.shape[:1] != arrays[0].shape[:1]:
            raise ValueError(
                f"Received a {type(dataset).__name__} of NumPy arrays with different lengths. "
                f"Mismatch found at index {index}, Expected shape={arrays[0].shape} Received "
                f"shape={array.shape}."
            )
    if not arrays or not arrays[0].shape or not len(arrays[0]):
        raise ValueError(_EMPTY)
    return dataset if isinstance(dataset, np.ndarray) else tuple(arrays)


def _sizes(left: Any, right: Any, total: int) -> tuple[int, int]:
    """Return the numbers of examples in both parts."""
    counts = []
    for name, size in (("left_size", left), ("right_size", right)):
        if size is not None and type(size) not in (int, float):
            raise TypeError(
                f"Invalid `{name}` Type. Expected: int or float or None, Received: "
                f"type({name})={type(size)}."
            )
        if size is not None and not 0 < size < (1 if isinstance(size, float) else total):
            raise ValueError(
                f"`{name}` should be either a positive integer smaller than {total}, or a float "
                f"within the range `[0, 1]`. Received: {name}={size}"
            )
        counts.append(round(size * total) if isinstance(size, float) else size or 0)
    if isinstance(left, float) and isinstance(right, float) and left + right > 1:
        raise ValueError(
            "The sum of `left_size` and `right_size` is greater than 1. It must be less than or "
            f"equal to 1. Received: left_size={left}, right_size={right}"
        )
    first = total - counts[1] if left is None else counts[0]
    last = total - first if right is None else counts[1]
    if first + last > total:
        raise ValueError(
            f"The sum of `left_size` and `right_size` should be at most {total}, the number of "
            f"examples. Received: left_size={left}, right_size={right}"
        )
    if not (first and last):
        raise ValueError(
            f"Of {total} examples, `left_size` would be {first} and `right_size` {last}, so one "
            f"part would be empty. Received: left_size={left}, right_size={right}"
        )
    return first, last
