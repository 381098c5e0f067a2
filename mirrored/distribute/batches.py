"""The batches of a dataset on the host, and each replica's part of them.

A batch is a structure of arrays, all with as many rows as it has examples.
"""

import functools
import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.distribute.sharding import shard_bounds
from mirrored.ops.dispatch import adopt, is_tensor, to_array

# From the replicas' arrays, and how many examples come before each, to what a step is given.
Join = Callable[[Sequence[Any], tuple[int, ...]], Any]
# From an iterator over batches and the number of replicas to what the next step is given.
Take = Callable[[Iterator[Any], int, Join], Any]


def host_batches(dataset: Any) -> Generator[Any]:
    """Return an iterator, to be closed, over a dataset's elements as structures of arrays.

    Args:
        dataset: A dataset, or anything that can be iterated over.
    """
    elements = getattr(dataset, "_host_elements", None)
    if elements is not None:
        batches: Generator[Any] = elements()
        return batches
    return (_arrays(element) for element in dataset)


def _arrays(element: Any) -> Any:
    """Return an element with arrays of its own for leaves; a list of numbers is one."""
    if isinstance(element, tuple | dict):
        return _mapped(element, _arrays)
    # A copy: what it holds may be written to before the batch is used.
    values = adopt(element, None).numpy() if is_tensor(element) else to_array(element)
    return np.array(values)


def _mapped(batch: Any, function: Callable[[Any], Any]) -> Any:
    """Return a batch with what `function` makes of each leaf."""
    if isinstance(batch, tuple):
        return _nest.rebuild(batch, [_mapped(each, function) for each in batch])
    if isinstance(batch, dict):
        mapped = {key: _mapped(each, function) for key, each in batch.items()}
        return _nest.rebuild_dict(batch, mapped)
    return function(batch)


def cut(batches: Iterator[Any], replicas: int, join: Join) -> Any:
    """Return the next batch, cut into a part for each replica.

    Args:
        batches: The global batches.
        replicas: How many replicas there are.
        join: Makes one value of the parts of each array.

    Raises:
        ValueError: It is no batch.
    """
    batch = next(batches)
    parts, starts = _parts(size_of(batch), replicas)
    return _mapped(batch, lambda leaf: join([leaf[part] for part in parts], starts))


@functools.lru_cache
def _parts(size: int, replicas: int) -> tuple[list[slice], tuple[int, ...]]:
    bounds = shard_bounds(size, replicas)
    return [slice(*each) for each in bounds], tuple(start for start, _ in bounds)


def give_out(batches: Iterator[Any], replicas: int, join: Join) -> Any:
    """Return a batch of its own for each replica; empty ones where the dataset has ended.

    Args:
        batches: Batches for one replica.
        replicas: How many replicas there are.
        join: Makes one value of the replicas' arrays.

    Raises:
        ValueError: One is no batch, or they differ in structure.
    """
    parts = [next(batches)]
    sizes = [size_of(parts[0])]
    while len(parts) < replicas:
        part = next(batches, None)
        parts.append(_mapped(parts[0], lambda leaf: leaf[:0]) if part is None else part)
        sizes.append(size_of(parts[-1]))
    starts = (0, *itertools.accumulate(sizes[:-1]))
    return _nest.map_structure(lambda *leaves: join(leaves, starts), *parts, each="replica")


def size_of(batch: Any) -> int:
    """Return the number of examples in a batch.

    Args:
        batch: A structure of arrays.

    Raises:
        ValueError: It has no batch axis, or not as many rows in all of its arrays.
    """
    plain = type(batch) is tuple and all([type(each) is np.ndarray for each in batch])
    shapes = [leaf.shape for leaf in (batch if plain else _nest.flatten(batch))]
    if not shapes or () in shapes:
        raise unbatched(shapes)
    size: int = shapes[0][0]
    if any([shape[0] != size for shape in shapes]):
        raise ValueError(
            "A batch has as many examples in each of its parts. Received: parts of shapes "
            f"{shapes}. If they are one example, call `dataset.batch(global_batch_size)` first."
        )
    return size


def unbatched(shapes: Sequence[Any]) -> ValueError:
    """Return the error for a dataset whose elements have no batch axis.

    Args:
        shapes: The shapes of an element's arrays.
    """
    return ValueError(
        "Unable to get batched dataset from the input dataset. `batch` needs to be called on the "
        f"input dataset. Received: elements of shapes {list(shapes)}. Call "
        "`dataset.batch(global_batch_size)` first."
    )
