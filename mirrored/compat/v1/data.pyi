# Written by tests/support/stubs.py from the table in data.py; do not edit it.
from typing import Any
from mirrored.compat.v1.datasets import Dataset
from mirrored.compat.v1.iterators import Iterator, Structure
from mirrored.compat.v1.listing import list_names
from mirrored.data import Dataset as _Eager
def _of_graph(dataset: Any) -> Dataset:
    """Return a dataset of the graph, for one of `mirrored.data` too."""
    if isinstance(dataset, _Eager):
        return Dataset(lambda: dataset)
    if not isinstance(dataset, Dataset):
        raise TypeError(f'`dataset` must be a tf.data.Dataset. Received: {dataset!r:.200}.')
    return dataset
def make_one_shot_iterator(dataset: Any) -> Iterator:
    """Return an iterator over a dataset that starts with the session.

    Args:
        dataset: A dataset of the graph or of `mirrored.data`.

    Raises:
        TypeError: It is no dataset.
        ValueError: The dataset depends on a placeholder or a variable.
    """
    return _of_graph(dataset).make_one_shot_iterator()
def make_initializable_iterator(dataset: Any, shared_name: str | None=None) -> Iterator:
    """Return an iterator over a dataset that starts when its `initializer` runs.

    Args:
        dataset: A dataset of the graph or of `mirrored.data`.
        shared_name: Accepted for compatibility.

    Raises:
        TypeError: It is no dataset.
    """
    return _of_graph(dataset).make_initializable_iterator(shared_name)
def get_output_types(dataset_or_iterator: Structure) -> Any:
    """Return the dtypes of an element, in its structure."""
    return dataset_or_iterator.output_types
def get_output_shapes(dataset_or_iterator: Structure) -> Any:
    """Return the shapes of an element, in its structure."""
    return dataset_or_iterator.output_shapes
def get_output_classes(dataset_or_iterator: Structure) -> Any:
    """Return `Tensor` for each part of an element, in its structure."""
    return dataset_or_iterator.output_classes
from mirrored.data import AUTOTUNE as AUTOTUNE
from mirrored.compat.v1.datasets import Dataset as Dataset
from mirrored.data import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from mirrored.compat.v1.iterators import Iterator as Iterator
from mirrored.data import Options as Options
from mirrored.data import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from mirrored.data import experimental as experimental
