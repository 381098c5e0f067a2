"""Input for replicas: batches of a dataset, split into one part per replica or distributed whole.

A dataset is anything that can be iterated over again and gives batches of arrays.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.arrays import Rows, rows_from
from mirrored.data.dataset_iterators import Position, PositionedIterator, elements_of
from mirrored.data.elements import (
    DatasetBase,
    Failure,
    GlobalBatches,
    attempt,
    succeeded,
    to_element,
)
from mirrored.data.leaf_specs import LeafSpec
from mirrored.data.row_transforms import open_batches
from mirrored.data.transform import Transform
from mirrored.devices import Device
from mirrored.distribute.per_replica import PerReplica
from mirrored.distribute.sharding import (
    Join,
    Parts,
    Sharing,
    Take,
    cut,
    cut_rows,
    give_out,
    unbatched,
)
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.ops.host_tensor import HostTensor


@dataclass(frozen=True, slots=True)
class InputContext:
    """The context that a function receives which creates a dataset for replicas.

    Attributes:
        num_input_pipelines: How many datasets there are: one a process.
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
        """Return a replica's number of examples of a global batch.

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
    """The context that a function receives which creates a replica's value.

    Attributes:
        replica_id_in_sync_group: The replica's number, counted from 0.
        num_replicas_in_sync: How many replicas there are.
    """

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class DistributedDataset(GlobalBatches):
    """A dataset whose batches have one part per replica, on the replica's device.

    Strategies make it: `experimental_distribute_dataset`, `distribute_datasets_from_function`.

    Args:
        strategy: The strategy whose replicas get the parts.
        dataset: The dataset.
        take: What gives each replica its part of a step: `cut` or `give_out`.

    Raises:
        TypeError: The dataset cannot be iterated over.
        ValueError: Its elements are known to have no batch axis.
    """

    def __init__(self, strategy: StrategyBase, dataset: Iterable[Any], take: Take) -> None:
        _check_dataset(dataset)
        self._strategy = strategy
        self._dataset = dataset
        self._take = take

    def __iter__(self) -> "DistributedIterator":
        """Return an iterator over the batches from the first one on."""
        return DistributedIterator(self, self._steps)

    @property
    def _known(self) -> Transform | None:
        """The transform whose elements the steps are made of; None: only Python knows them."""
        return self._dataset._transform if isinstance(self._dataset, DatasetBase) else None

    def __len__(self) -> int:
        """Return the number of batches, if the dataset knows it."""
        return len(self._dataset)  # type: ignore[arg-type]

    @property
    def source(self) -> Any:
        """The dataset that batches come from."""
        return self._dataset

    def global_dataset(self) -> DatasetBase:
        """Return the dataset of the batches before they are split."""
        from mirrored.data.dataset import Dataset  # What is not trained on needs none of it.

        if self._take is cut and isinstance(self._dataset, Dataset):
            return self._dataset
        return Dataset.from_generator(self.global_batches)

    def global_batches(self) -> Iterator[Any]:
        """Yield the global batch of every step, as structures of arrays."""
        count = self._strategy.num_replicas_in_sync

        def join(parts: Parts, *_: Any) -> list[Any]:
            return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]

        with closing(self._steps((count, 0, count), join, Position())) as steps:
            for batches in steps:
                yield from map(succeeded, batches)

    def _steps(self, sharing: Sharing, join: Join, position: Position) -> Generator[list[Any]]:
        """Yield lists of inputs for the steps after a position, of values that `join` returns."""
        transform = self._known
        slices = None if transform is None else transform.batched_slices
        if self._take is cut and transform is not None and slices is not None:
            form, size = slices.form, transform.batch_size or 1
            after, position.iteration = position.taken, position.iteration or transform.begin()
            batches = open_batches(transform, slices, position.iteration, after)
            for i, (leaves, rows) in enumerate(batches):
                if not i:
                    self._look_at(leaves, rows_from(rows, 0, size))
                yield form.pack_all(cut_rows(leaves, rows, size, sharing, join))
            return
        with closing(host_elements(self._dataset, position)) as elements:
            looked_at = self._looked_at(elements)
            while True:
                outcome = attempt(self._take, looked_at, sharing, join)
                if type(outcome) is Failure and type(outcome.error) is StopIteration:
                    return
                yield [outcome]

    def _looked_at(self, elements: Iterator[Any]) -> Iterator[Any]:
        """Return the elements, and inspect the first one."""
        return elements

    def _look_at(self, columns: Sequence[Any], rows: Rows) -> None:
        """Inspect the first batch: rows of arrays."""

    @property
    def element_spec(self) -> Any:
        """The specs of the dataset's elements, which are global batches."""
        return getattr(self._dataset, "element_spec", None)


class DistributedIterator(PositionedIterator):
    """Iterates over the batches of a `DistributedDataset`; it may be an argument of `mr.function`.

    Args:
        dataset: The dataset.
        steps: From the sharing of a batch, what joins the parts of a value, and a position, to
            lists of what the steps after it are given.
    """

    def __init__(
        self,
        dataset: DistributedDataset,
        steps: Callable[[Sharing, Join, Position], Generator[list[Any]]],
    ) -> None:
        self._strategy, self._steps = dataset._strategy, steps
        self._strategy.require_devices()
        per_step = 1 if dataset._take is cut else self._strategy.num_replicas_in_sync
        super().__init__(dataset, dataset._known, per_step)
        self._open(self._position)

    def close(self) -> None:
        """Close the dataset's iterator and its background threads."""
        self._lists.close()
        self._ahead.clear()

    def peek(self, place: int) -> Any:
        """Return an element that is still to come; see `PeekingIterator`."""
        self._share_again()
        return super().peek(place)

    def __next__(self) -> Any:
        """Return the next batch; see `PeekingIterator`."""
        self._share_again()
        return super().__next__()

    def _share_again(self) -> None:
        """Take the parts of the replicas that this worker has now, where workers have changed."""
        if self._generation != self._strategy.generation:
            self.mark()()

    def produce(self) -> list[Any]:
        """Return the next batches, on the replicas' devices."""
        steps = next(self._lists)
        self._position.taken += len(steps) * self._per_step
        return list(map(succeeded, steps))

    def _open(self, position: Position) -> None:
        strategy = self._strategy
        self._generation = strategy.generation
        join = _joining(strategy.devices, strategy.num_replicas_in_sync)
        self._lists = self._steps(strategy.sharing, join, position)


def host_elements(dataset: Any, position: Position | None = None) -> Any:
    """Return an iterator over a dataset's elements as arrays; the caller closes it.

    Args:
        dataset: The dataset.
        position: The position to begin at, of a dataset of ours; None: its beginning.
    """
    if isinstance(dataset, DatasetBase):
        return elements_of(dataset._transform, position)
    return (_element(value) for value in dataset)


def _element(value: Any) -> Any:
    """Return an element as copies: what it holds may be written to before the batch is used."""
    if isinstance(value, tuple | dict) and not _nest.flatten(value):
        raise unbatched([])
    return to_element(value, "An element of the dataset")


def _joining(devices: Sequence[Device], replicas: int) -> Join:
    """Return what makes one value of the replicas' arrays; on the devices once it is used."""

    def join(parts: Parts, starts: Sequence[tuple[int, ...]], examples: Sequence[int]) -> list[Any]:
        tensors = list(map(HostTensor.of_each, parts, devices))
        if replicas == 1:
            return tensors[0]
        return list(map(PerReplica, zip(*tensors, strict=True), starts, examples))

    return join


def distributed_from_function(
    strategy: StrategyBase, function: Any, context: InputContext
) -> DistributedDataset:
    """Return a dataset from which every replica gets a separate batch in every step.

    Args:
        strategy: The strategy.
        function: From an `InputContext` to a dataset of batches for one replica.
        context: What it is told.

    Raises:
        TypeError: It is no function, or what it returns cannot be iterated over.
        ValueError: The dataset's elements are known to have no batch axis.
    """
    if not callable(function):
        raise TypeError(
            f"`dataset_fn` must be a function of an InputContext. Received: {function!r}"
        )
    return DistributedDataset(strategy, function(context), give_out)


def _check_dataset(dataset: Any) -> None:
    if not hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
        raise TypeError(
            f"A dataset must be iterable. Received: a {type(dataset).__name__}. Pass a "
            "mr.data.Dataset, or a list of batches."
        )
    if isinstance(dataset, DatasetBase) and dataset._transform.known:
        specs = _nest.flatten(dataset._transform.specs())
        shapes = [spec.public().shape for spec in specs if isinstance(spec, LeafSpec)]
        if any(shape == () for shape in shapes):
            raise unbatched(shapes)
