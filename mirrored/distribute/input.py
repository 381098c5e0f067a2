"""Input for replicas: batches of a dataset, cut into a part a replica or given out one by one.

A dataset is anything that can be iterated over again and gives batches of arrays.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.pipeline import Pipeline
from mirrored.data.spec import to_element
from mirrored.devices import Device
from mirrored.distribute.context import ReplicaStrategy
from mirrored.distribute.sharding import Join, Take, cut, give_out, unbatched
from mirrored.distribute.values import PerReplica
from mirrored.ops.host_tensor import HostTensor
from mirrored.program import PeekingIterator


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
        take: What gives each replica its part of a step: `cut` or `give_out`.
    """

    def __init__(
        self,
        strategy: ReplicaStrategy,
        dataset: Iterable[Any],
        take: Take,
    ) -> None:
        self._strategy = strategy
        self._dataset = dataset
        self._take = take

    def __iter__(self) -> "DistributedIterator":
        """Return an iterator over the batches from the first one on."""
        lists = _host_lists(self._dataset, self._take)
        return DistributedIterator(self._strategy, lists, self._take, origin=self)

    def __len__(self) -> int:
        """Return the number of batches, where the dataset knows it."""
        return len(self._dataset)  # type: ignore[arg-type]

    @property
    def whole(self) -> Any:
        """The dataset of global batches that is cut; None where each replica gets its own."""
        return self._dataset if self._take is cut else None

    def global_batches(self) -> Iterator[Any]:
        """Yield what all replicas together get in each step, as structures of arrays."""
        with closing(_host_lists(self._dataset, self._take)) as lists:
            try:
                while True:
                    yield from self._take(lists, self._strategy.num_replicas_in_sync, _concatenated)
            except StopIteration:
                return

    @property
    def element_spec(self) -> Any:
        """What the dataset says of its elements: those of all replicas together."""
        return getattr(self._dataset, "element_spec", None)


class DistributedIterator(PeekingIterator):
    """Goes over the batches of a `DistributedDataset`; it may be an argument of `mr.function`.

    Args:
        strategy: The strategy whose replicas get the parts.
        lists: The dataset's batches, as structures of arrays.
        take: See `DistributedDataset`.
        origin: The dataset.
    """

    def __init__(
        self,
        strategy: ReplicaStrategy,
        lists: Generator[Sequence[Any]],
        take: Take,
        origin: DistributedDataset,
    ) -> None:
        strategy.require_devices()
        super().__init__(origin)
        self._lists = lists
        self._made: deque[Any] = deque()
        self._take = take
        self._replicas = len(strategy.devices)
        self._join = _joining(strategy.devices)

    def close(self) -> None:
        """End the dataset's iterator, and with it what it runs in the background."""
        self._lists.close()
        self._made.clear()

    def produce(self) -> Any:
        """Return the next batch, on the replicas' devices."""
        if not self._made:
            self._made += self._take(self._lists, self._replicas, self._join)
        return self._made.popleft()


def _host_lists(dataset: Any, take: Take) -> Generator[Sequence[Any]]:
    """Return an iterator, to be closed, over lists of a dataset's elements as arrays."""
    if isinstance(dataset, Pipeline) and take is cut:
        return dataset._host_lists()
    return _one_by_one(dataset)


def _one_by_one(dataset: Any) -> Generator[Sequence[Any]]:
    if isinstance(dataset, Pipeline):
        with closing(dataset._host_elements()) as elements:
            for element in elements:
                yield [element]
    else:
        for value in dataset:
            yield [_element(value)]


def _element(value: Any) -> Any:
    """Return an element as copies: what it holds may be written to before the batch is used."""
    if isinstance(value, tuple | dict) and not _nest.flatten(value):
        raise unbatched([])
    return to_element(value, "An element of the dataset")


def _concatenated(arrays: Sequence[Any], starts: tuple[int, ...]) -> Any:
    return np.concatenate(arrays)


def _joining(devices: Sequence[Device]) -> Join:
    """Return what makes one value of the replicas' arrays; on the devices once it is used."""
    if len(devices) == 1:
        return lambda arrays, starts: HostTensor(arrays[0], devices[0])
    return lambda arrays, starts: PerReplica(map(HostTensor, arrays, devices), starts)


def distributed_dataset(strategy: ReplicaStrategy, dataset: Any) -> DistributedDataset:
    """Return a dataset whose batches are cut into a part for each replica.

    Args:
        strategy: The strategy.
        dataset: The dataset, of global batches.

    Raises:
        TypeError: It cannot be iterated over.
        ValueError: Its elements are known to have no batch axis.
    """
    _check_dataset(dataset)
    return DistributedDataset(strategy, dataset, cut)


def distributed_from_function(strategy: ReplicaStrategy, function: Any) -> DistributedDataset:
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
    return DistributedDataset(strategy, dataset, give_out)


def _check_dataset(dataset: Any) -> None:
    if not hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
        raise TypeError(
            f"A dataset is something to iterate over. Received: a {type(dataset).__name__}. Give "
            "a mr.data.Dataset, or a list of batches."
        )
    shapes = list(_shapes(dataset._known_spec())) if isinstance(dataset, Pipeline) else []
    if any(shape == () for shape in shapes):
        raise unbatched(shapes)


def _shapes(spec: Any) -> Iterator[Any]:
    """Yield the shapes of a structure of specs, which are tuples themselves."""
    if hasattr(spec, "shape"):
        yield spec.shape
    elif isinstance(spec, tuple | dict):
        for each in spec.values() if isinstance(spec, dict) else spec:
            yield from _shapes(each)
