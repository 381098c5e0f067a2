"""What layers that learn from data before training share: the batches that `adapt` goes over.

They are looked at on the host, once, by NumPy.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.data import Dataset
from mirrored.data.py_dataset import PyDataset
from mirrored.ops.conversion import is_tensor

_WITHOUT_BATCHES = 128  # What Keras gathers of a dataset of vectors that has no batches.


def batches_to_adapt_to(data: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays of data: itself, or those of its batches, without their targets.

    Args:
        data: An array or a tensor; or a dataset, a `PyDataset` or another iterable of such, or of
            tuples that begin with one.

    Raises:
        TypeError: It is none of these.
        ValueError: There are no batches.
    """
    if isinstance(data, np.ndarray) or is_tensor(data):
        yield np.asarray(data)
        return
    if not isinstance(data, Dataset | PyDataset | Iterable):
        raise TypeError(
            f"Unsupported data type: {type(data)}. `adapt` supports `np.ndarray`, backend tensors, "
            "`tf.data.Dataset`, `keras.utils.PyDataset`, and iterables of batches (e.g. list, "
            "generator)."
        )
    batches = map(_inputs_of, data)
    first = next(batches, None)
    if first is None:
        raise ValueError(
            "adapt() received an empty iterable (no batches). Expected at least one batch. Pass a "
            "non-empty iterable of arrays or tensors, e.g. layer.adapt([x]) or "
            "layer.adapt(list_of_batches)."
        )
    if first.ndim == 1 and isinstance(data, Dataset):
        batches, first = map(_inputs_of, data.batch(_WITHOUT_BATCHES)), None
    yield from batches if first is None else chain([first], batches)


def _inputs_of(batch: Any) -> NDArray[Any]:
    inputs = batch[0] if isinstance(batch, tuple) else batch
    if not hasattr(inputs, "shape"):
        raise TypeError(
            "adapt() expects an iterable that yields arrays or tensors with a `.shape` attribute "
            "(e.g. numpy arrays or backend tensors). Got an element of type "
            f"{type(inputs).__name__}. Ensure each yielded element is array-like with a `.shape` "
            "attribute."
        )
    return np.asarray(inputs)
