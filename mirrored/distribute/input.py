"""Input for replicas: batches of a dataset, cut into a part a replica or given out one by one.

A dataset is anything that can be iterated over again and gives batches of arrays.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored import _nest
from mirrored.distribute.sharding import shard_bounds
from mirrored.distribute.values import PerReplica
from mirrored.ops.dispatch import adopt, is_tensor, to_array
from mirrored.ops.pending import PendingTensor
from mirrored.program import Stream

if TYPE_CHECKING:
    from mirrored.distribute.strategy import Strategy


@dataclass(frozen=True, slots=True)
class InputContext:
    """What a function that makes a dataset for replicas is told.

    Attributes:
        num_input_pipelines: How many datasets there are: one, since there is one process.
        input_pipeline_id: The number of this one, counted from 0.
        num_replicas_in_sync: How many replicas it is for.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.InputContext(num_replicas_in_sync=4).get_per_replica_batch_size(64)
        16
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return how many of a global batch's examples a replica gets.

        Args:
            global_batch_size: The examples of a step, over all replicas together.

        Raises:
            ValueError: They cannot be divided evenly.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by "
                f"`num_replicas_in_sync` {self.num_replicas_in_sync!r} "
            )
        return global_batch_size // self.num_replicas_in_sync


@dataclass(frozen=True, slots=True)
class ValueContext:
    """What a function that makes a value for a replica is told.

    Attributes:
        replica_id_in_sync_group: The replica's number, counted from 0.
        num_replicas_in_sync: How many replicas there are.
    """

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class DistributedDataset:
    """A dataset whose batches have a part for each replica, on the replica's device.

    Strategies make it: `experimental_distribute_dataset`, `distribute_datasets_from_function`.

    Args:
        strategy: The strategy whose replicas get the parts.
        dataset: The dataset.
        take: From an iterator over the dataset's batches to the parts of the next step, as a
            structure of arrays for each replica.
    """

    def __init__(
        self,
        strategy: "Strategy",
        dataset: Iterable[Any],
        take: Callable[[Iterator[Any], int], list[Any]],
    ) -> None:
        self._strategy = strategy
        self._dataset = dataset
        self._take = take

    def __iter__(self) -> "DistributedIterator":
        """Return an iterator over the batches from the first one on."""
        batches = host_batches(self._dataset)
        return DistributedIterator(self._strategy, batches, self._take, origin=self)

    def __len__(self) -> int:
        """Return the number of batches, where the dataset knows it."""
        return len(self._dataset)  # type: ignore[arg-type]

    @property
    def element_spec(self) -> Any:
        """What the dataset says of its elements: those of all replicas together."""
        return getattr(self._dataset, "element_spec", None)


class DistributedIterator(Stream):
    """Goes over the batches of a `DistributedDataset`; it may be an argument of `mr.function`.

    Args:
        strategy: The strategy whose replicas get the parts.
        batches: The dataset's batches, as structures of arrays.
        take: See `DistributedDataset`.
        origin: The dataset.
    """

    def __init__(
        self,
        strategy: "Strategy",
        batches: Iterator[Any],
        take: Callable[[Iterator[Any], int], list[Any]],
        origin: DistributedDataset,
    ) -> None:
        super().__init__(origin)
        self._strategy = strategy
        self._batches = batches
        self._take = take

    def close(self) -> None:
        """End the dataset's iterator, and with it what it runs in the background."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def produce(self) -> Any:
        """Return the next batch, on the replicas' devices."""
        devices = self._strategy.devices
        parts = self._take(self._batches, len(devices))
        if len(parts) == 1:
            return _joined(parts, lambda leaves: PendingTensor(leaves[0], devices[0]))
        starts = _starts(parts)
        return _joined(
            parts, lambda leaves: PerReplica(map(PendingTensor, leaves, devices), starts)
        )


def distributed_dataset(strategy: "Strategy", dataset: Any) -> DistributedDataset:
    """Return a dataset whose batches are cut into a part for each replica.

    Args:
        strategy: The strategy.
        dataset: The dataset, of global batches.

    Raises:
        TypeError: It cannot be iterated over.
        ValueError: Its elements are known to have no batch axis.
    """
    _check_dataset(dataset)
    return DistributedDataset(strategy, dataset, _cut)


def distributed_from_function(strategy: "Strategy", function: Any) -> DistributedDataset:
    """Return a dataset of which each replica gets a batch of its own in every step.

    Args:
        strategy: The strategy.
        function: From an `InputContext` to a dataset of batches for one replica.

    Raises:
        TypeError: It is no function, or what it returns cannot be iterated over.
        ValueError: The dataset's elements are known to have no batch axis.
    """
    if not callable(function):
        raise TypeError(f"`dataset_fn` is a function of an InputContext. Received: {function!r}")
    dataset = function(InputContext(num_replicas_in_sync=strategy.num_replicas_in_sync))
    _check_dataset(dataset)
    return DistributedDataset(strategy, dataset, _give_out)


def host_batches(dataset: Any) -> Iterator[Any]:
    """Return an iterator over a dataset's elements as structures of arrays.

    Args:
        dataset: A dataset, or anything that can be iterated over.
    """
    elements = getattr(dataset, "_host_elements", None)
    if elements is not None:
        batches: Iterator[Any] = elements()
        return batches
    return (_arrays(element) for element in dataset)


def _arrays(element: Any) -> Any:
    """Return an element with arrays of its own for leaves; a list of numbers is one."""
    if isinstance(element, tuple):
        return _nest.rebuild(element, [_arrays(each) for each in element])
    if isinstance(element, dict):
        return {key: _arrays(each) for key, each in element.items()}
    # A copy: what it holds may be written to before the batch is used.
    values = adopt(element, None).numpy() if is_tensor(element) else to_array(element)
    return np.array(values)


def _joined(parts: Sequence[Any], join: Callable[[Sequence[Any]], Any]) -> Any:
    """Return one structure, whose leaves `join` makes of the corresponding ones of all parts."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return join(parts)
    if isinstance(first, tuple):
        return _nest.rebuild(first, [_joined(each, join) for each in zip(*parts, strict=True)])
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts], join) for key in first}
    return join(parts)


def _rows(element: Any, start: int, stop: int) -> Any:
    """Return the examples of a batch from `start` to before `stop`."""
    if isinstance(element, tuple):
        return _nest.rebuild(element, [_rows(each, start, stop) for each in element])
    if isinstance(element, dict):
        return {key: _rows(each, start, stop) for key, each in element.items()}
    return element[start:stop]


def _cut(batches: Iterator[Any], replicas: int) -> list[Any]:
    """Return the next batch in a part for each replica."""
    batch = next(batches)
    size = _size(batch)
    if replicas == 1:
        return [batch]
    return [_rows(batch, *each) for each in shard_bounds(size, replicas)]


def _give_out(batches: Iterator[Any], replicas: int) -> list[Any]:
    """Return the next batch of each replica; empty ones where the dataset has ended."""
    parts = [next(batches)]
    _size(parts[0])
    for part in batches if len(parts) < replicas else ():
        _size(part)
        parts.append(part)
        if len(parts) == replicas:
            break
    parts += [_rows(parts[0], 0, 0)] * (replicas - len(parts))
    _nest.map_structure(lambda *_: None, *parts, each="replica")  # Raises where they differ.
    return parts


def _starts(parts: Sequence[Any]) -> list[int]:
    """Return how many examples come before each part."""
    starts, before = [], 0
    for part in parts:
        starts.append(before)
        before += _size(part)
    return starts


def _size(batch: Any) -> int:
    """Return the number of examples in a batch.

    Raises:
        ValueError: It has none, or not the same in all of its parts.
    """
    plain = type(batch) is tuple and all([type(each) is np.ndarray for each in batch])
    shapes = [leaf.shape for leaf in (batch if plain else _nest.flatten(batch))]
    if not shapes or () in shapes:
        raise _unbatched(shapes)
    size: int = shapes[0][0]
    if any([shape[0] != size for shape in shapes]):
        raise ValueError(
            "A batch has as many examples in each of its parts. Received: parts of shapes "
            f"{shapes}. If they are one example, call `dataset.batch(global_batch_size)` first."
        )
    return size


def _unbatched(shapes: Sequence[Any]) -> ValueError:
    return ValueError(
        "Unable to get batched dataset from the input dataset. `batch` needs to be called on the "
        f"input dataset. Received: elements of shapes {shapes}. Call "
        "`dataset.batch(global_batch_size)` first."
    )


def _check_dataset(dataset: Any) -> None:
    if not hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
        raise TypeError(
            f"A dataset is something to iterate over. Received: a {type(dataset).__name__}. Give "
            "a mr.data.Dataset, or a list of batches."
        )
    shapes = list(_shapes(getattr(dataset, "element_spec", None)))
    if any(shape == () for shape in shapes):
        raise _unbatched(shapes)


def _shapes(spec: Any) -> Iterator[Any]:
    """Yield the shapes of a structure of specs, which are tuples themselves."""
    if hasattr(spec, "shape"):
        yield spec.shape
    elif isinstance(spec, tuple | dict):
        for each in spec.values() if isinstance(spec, dict) else spec:
            yield from _shapes(each)
