"""Parts of data as two datasets: one to train on, and one that is held back."""

import random
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored._arguments import explained_only
from mirrored.data.dataset import Dataset
from mirrored.data.row_transforms import Batched


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
        >>> [int(each) for each in right]
        [8, 9]
    """
    if preferred_backend not in (None, "tensorflow"):
        raise ValueError(
            "Data is split into datasets of this library. Received: preferred_backend="
            f"{preferred_backend!r}. Leave it out."
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
            f"Unsupported dataset type: {type(dataset)}. Give a `Dataset`, an array, or a list or "
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
            f"Of {total} examples `left_size` would be {first} and `right_size` {last}, which "
            f"leaves a part empty. Received: left_size={left}, right_size={right}"
        )
    return first, last
