"""`fit` on datasets that workers have of their own, and on the batches that these make together."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from worker_loops import CLASSES, FEATURES, Left, Own, compiled, run, weights

import mirrored as mr

Batch = tuple[np.ndarray[Any, Any], ...]


class OwnCase(NamedTuple):
    """How workers are given datasets of their own.

    Attributes:
        sizes: For each worker how large its batches are.
        cut: Whether each is cut for all replicas, as under `AutoShardPolicy.OFF`; else a replica
            gets one as it is, as from a function.
        own_step: Whether the model has a step of its own.
        steps: How many steps an epoch has, of a dataset that never ends; None: a pass.
        eagerly: Whether steps are recorded.
    """

    sizes: tuple[tuple[int, ...], ...]
    cut: bool = True
    own_step: bool = False
    steps: int | None = None
    eagerly: bool = False


EQUAL, DIFFERENT = ((6, 6), (6, 6), (6, 6)), ((2, 1), (5, 1, 3), (3,))
CASES = {
    "equal": OwnCase(EQUAL),
    "different eagerly": OwnCase(DIFFERENT, eagerly=True),
    "from a function": OwnCase(DIFFERENT, cut=False),
    "by steps": OwnCase(DIFFERENT, steps=4),
    "own step": OwnCase(DIFFERENT, own_step=True),
}
SOME = ("by steps",)
OTHERS = ("equal", "different eagerly", "from a function", "own step")


def batches_of(case: OwnCase, rank: int) -> Iterator[Batch]:
    """Yield the batches of a worker, without end where an epoch is so many steps."""
    rng = np.random.default_rng(rank)
    sizes = case.sizes[rank]
    made = [(rng.normal(size=(n, FEATURES)), rng.integers(0, CLASSES, size=n)) for n in sizes]
    yield from made if case.steps is None else itertools.cycle(made)


def together(case: OwnCase, layout: Sequence[int]) -> Iterator[Batch]:
    """Yield the global batches that workers make together, of so many replicas each."""
    of_workers = [steps_of(case, rank, layout) for rank in range(len(layout))]
    for parts in itertools.zip_longest(*of_workers):
        yield joined([part for part in parts if part is not None])


def steps_of(case: OwnCase, rank: int, layout: Sequence[int]) -> Iterator[Batch]:
    """Yield what a worker has in its steps, up to its last one."""
    parts: Iterator[Batch] = batches_of(case, rank)
    if case.cut:
        parts = (
            part
            for batch in batches_of(case, rank)
            for part in zip(*(np.array_split(each, sum(layout)) for each in batch), strict=True)
        )
    while taken := list(itertools.islice(parts, layout[rank])):
        step = joined(taken)
        if len(step[0]):
            yield step


def joined(parts: Sequence[Batch]) -> Batch:
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def fit_on(strategy: mr.distribute.Strategy, case: OwnCase, data: Any) -> Left:
    """Return what `fit` and `evaluate` leave."""
    mr.random.set_seed(6)
    kind = Own if case.own_step else mr.Model
    model = compiled(strategy, kind, run_eagerly=case.eagerly)
    how = {"validation_data": data, "validation_steps": case.steps, "verbose": 0}
    history = model.fit(data, epochs=2, steps_per_epoch=case.steps, **how)
    found = model.evaluate(data, steps=case.steps, verbose=0)
    return {**weights(model), **history.history, "evaluated": found}


def dataset_of(batches: Any) -> Any:
    columns = (mr.TensorSpec((None, FEATURES), "float64"), mr.TensorSpec((None,), "int64"))
    return mr.data.Dataset.from_generator(batches, output_signature=columns)


def policy(name: str) -> mr.data.Options:
    """Return options that say how workers share a dataset."""
    options = mr.data.Options()
    chosen = mr.data.experimental.AutoShardPolicy[name]
    options.experimental_distribute.auto_shard_policy = chosen
    return options


def fit_on_own(strategy: mr.distribute.Strategy, case: OwnCase, rank: int) -> Left:
    """Return what `fit` leaves on a worker that has its own batches."""
    own = dataset_of(lambda: batches_of(case, rank))
    if not case.cut:
        return fit_on(strategy, case, strategy.distribute_datasets_from_function(lambda _: own))
    return fit_on(strategy, case, own.with_options(policy("OFF")))


def fit_on_one(case: OwnCase, layout: Sequence[int]) -> Left:
    """Return what `fit` leaves on one device of what workers have together."""
    data = dataset_of(lambda: together(case, layout))
    return run(lambda strategy: fit_on(strategy, case, data), 1, mr.MirroredStrategy)
