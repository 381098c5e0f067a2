"""Input of several workers where each of them makes its own: what TensorFlow calls sharding.

Where all workers have the same global batches, each takes its replicas' rows of them, and nothing
here is needed. Here are datasets that differ from worker to worker, which end when all have ended.
"""

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.arrays import Rows, count_of
from mirrored.data.batches import check_of
from mirrored.data.dataset_iterators import Position
from mirrored.data.dataset_options import AutoShardPolicy, merged_options
from mirrored.data.elements import DatasetBase
from mirrored.data.passes import PassesOfWorkers, cardinality_of
from mirrored.data.transform import INFINITE_CARDINALITY
from mirrored.distribute.input import DistributedDataset, host_elements
from mirrored.distribute.sharding import (
    Join,
    Sharing,
    examples_of,
    give_out,
    shard_bounds,
    split_sizes,
)
from mirrored.distribute.strategy import Strategy
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.distribute.worker_iterator import KeptBatches, WorkerIterator

_SHARED = (
    "`predict` returns the whole result on every worker, so all workers need the same dataset. "
    "Received: a dataset of this worker only, from `distribute_datasets_from_function` or with "
    "`AutoShardPolicy.OFF`. Pass the whole dataset, under `AutoShardPolicy.AUTO` or `DATA`; or "
    "write the loop yourself."
)
_OUTSIDE = (
    "A dataset that differs per worker needs a model that the workers share. Received: a dataset "
    "that a strategy of several workers distributed, for a model created outside its scope. "
    "Create the model within `strategy.scope()`, or pass the original dataset."
)


class SharedDataset(DistributedDataset):
    """A dataset that is the same on all workers, which look at the first batch of each iterator."""

    def _looked_at(self, elements: Iterator[Any]) -> Iterator[Any]:
        for i, element in enumerate(elements):
            if not i:
                self._look_at(_nest.flatten(element), slice(0, examples_of(element)))
            yield element

    def _look_at(self, columns: Sequence[Any], rows: Rows) -> None:
        text = f"{count_of(rows)} examples (check {check_of(columns, rows):08x})"
        self._strategy.check_alike({"batches": [text]}, "the first batch of a dataset")


class WorkerDataset(DistributedDataset):
    """A dataset of this worker's own: each of its replicas gets a batch in every step.

    Steps go on until no worker has anything left; who has nothing gets empty batches.

    Args:
        strategy: The strategy whose replicas get the batches.
        make: Returns the dataset for the workers that there are.
        parts: Into how many each batch is cut before replicas get them.
    """

    _known = None  # Each worker has another one.

    def __init__(self, strategy: StrategyBase, make: Callable[[], Any], parts: int = 1) -> None:
        super().__init__(strategy, make(), give_out)
        self._make = make
        self._parts = parts
        self._is_outdated = False

    def __iter__(self) -> WorkerIterator:
        """Return an iterator over the batches from the first one on."""
        batches = KeptBatches(self._batches())
        return WorkerIterator(self, partial(self._shared_out, batches), batches)

    def lose(self) -> None:
        """Note that workers are gone for which the dataset was made: the next pass is another."""
        self._is_outdated = True

    def global_batches(self) -> Iterator[Any]:
        """Refuse: nobody has the batches of all workers."""
        raise ValueError(_OUTSIDE)

    def batches_here(self) -> Any:
        """Return a dataset of what this worker's replicas get in each step, until its own ends."""
        from mirrored.data.dataset import Dataset  # What is shared needs none of it.

        dataset = Dataset.from_generator(self._joined)
        if cardinality_of(self._dataset) == INFINITE_CARDINALITY:
            from mirrored.data.applied import assert_cardinality

            return dataset.apply(assert_cardinality(INFINITE_CARDINALITY))
        return dataset

    def _joined(self) -> Iterator[Any]:
        """Yield them, but for those without examples."""
        with closing(self._batches()) as batches:
            while some := list(itertools.islice(batches, self._strategy.sharing[2])):
                batch = some[0]
                if len(some) > 1:
                    batch = _nest.map_structure(
                        lambda *leaves: np.concatenate(leaves), *some, label="batch"
                    )
                if examples_of(batch):
                    yield batch

    def _batches(self) -> Generator[Any]:
        """Yield the batches for a replica each, of the dataset as it is for the present workers.

        A batch that is cut may have parts without examples.
        """
        if self._is_outdated:
            self._dataset, self._is_outdated = self._make(), False
        with closing(host_elements(self._dataset)) as elements:
            if self._parts == 1:
                yield from elements
                return
            for batch in elements:
                for begin, end in shard_bounds(examples_of(batch), self._parts):
                    yield _nest.map_structure(
                        lambda leaf, rows=slice(begin, end): leaf[rows], batch
                    )

    def _shared_out(
        self, batches: KeptBatches, sharing: Sharing, join: Join, position: Position
    ) -> Generator[list[Any]]:
        """Yield what the replicas get in each step, until no worker has a batch."""
        here, what = sharing[2], "whether there is more input"
        while any(self._strategy.of_each_worker(bool(some := batches.take(here)), what)):
            like = self._like_spec() if batches.latest is None else batches.latest
            nothing = _nest.map_structure(lambda leaf: leaf[:0], like)
            yield [give_out(iter([*some, *[nothing] * (here - len(some))]), sharing, join)]

    def _like_spec(self) -> Any:
        """Return an empty batch, for a worker that has never had another."""
        spec = self.element_spec
        shapes = [getattr(leaf, "shape", None) for leaf in _nest.flatten(spec)]
        if spec is None or any(shape is None or None in tuple(shape)[1:] for shape in shapes):
            raise ValueError(
                "A worker whose dataset is empty joins the steps of the others with empty "
                "batches, and takes their shapes from the dataset. Received: elements of "
                f"{spec!r} without a known shape. Provide at least one element on every worker."
            )
        return _nest.map_structure(
            lambda leaf: np.empty((0, *tuple(leaf.shape)[1:]), leaf.dtype), spec
        )


def is_own(dataset: Any) -> bool:
    """Return whether a worker takes a dataset for its own, of which others have other parts.

    Args:
        dataset: A dataset, or something else to iterate over, which is shared by rows.

    Raises:
        ValueError: Workers are to share it by files or by a hint.
    """
    if not isinstance(dataset, DatasetBase):
        return False
    options = merged_options(dataset._transform)
    policy: AutoShardPolicy = options.experimental_distribute.auto_shard_policy
    if policy in (AutoShardPolicy.FILE, AutoShardPolicy.HINT):
        raise ValueError(
            "Workers share datasets by rows, or have separate datasets. Received: "
            f"`AutoShardPolicy.{policy.name}`. Use AUTO, DATA or OFF; or share the files in the "
            "function of `distribute_datasets_from_function`, whose `InputContext` has the "
            "worker's number."
        )
    return policy is AutoShardPolicy.OFF


def among_workers(
    strategy: Strategy, data: Any, batches: Any, use: str
) -> tuple[Any, Callable[[Any], PassesOfWorkers] | None]:
    """Return the batches that this worker takes, and what makes of its passes those of all workers.

    Where all workers share them there is nothing to be made: None.

    Args:
        strategy: The strategy of the workers.
        data: What `fit` or its like was given.
        batches: The batches in it.
        use: "fit", "validation", "evaluate" or "predict".

    Raises:
        ValueError: They are its own, and for `predict`; or as `is_own` raises it.
    """
    own = data
    if not isinstance(data, DistributedDataset) and is_own(data):
        own = strategy.experimental_distribute_dataset(data)
    if not isinstance(own, WorkerDataset):
        return batches, None
    if use == "predict":
        raise ValueError(_SHARED)

    def share(examples: int) -> list[int]:  # The replicas here may become more.
        return split_sizes(examples, strategy.sharing[2])

    return own.batches_here(), partial(PassesOfWorkers, share=share, gather=strategy.of_each_worker)
