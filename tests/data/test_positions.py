"""Iterators in checkpoints: they go on where they were, also in another program."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import _nest

Dataset = mr.data.Dataset
Make = Callable[[], mr.data.Dataset]


def noisy(x: Any) -> Any:
    return mr.cast(x, mr.float32) + mr.random.uniform(())


def rows() -> mr.data.Dataset:
    return Dataset.from_tensor_slices(np.arange(20))


PIPELINES: dict[str, Make] = {
    "range": lambda: Dataset.range(20),
    "rows": lambda: rows().shuffle(20).repeat(2).batch(3),
    "batches that are repeated": lambda: (
        rows().shuffle(20).batch(3).repeat(9).with_options(mr.data.Options())
    ),
    "a small buffer": lambda: rows().shuffle(4).map(noisy).batch(2).prefetch(2),
    "the same order": lambda: rows().shuffle(20, reshuffle_each_iteration=False).repeat(),
    "passes": lambda: Dataset.range(5).map(lambda x: x).shuffle(5).repeat(),
    "a cache": lambda: rows().shuffle(20).cache().repeat(),
    "pairs": lambda: Dataset.zip(rows().shuffle(20), Dataset.random()).enumerate(),
    "nested": lambda: rows().shuffle(9).flat_map(lambda x: Dataset.range(4).shuffle(4).map(noisy)),
    "windows": lambda: rows().shuffle(9).window(3, 1).flat_map(lambda w: w.shuffle(2).batch(3)),
    "by turns": lambda: rows().interleave(lambda x: Dataset.random().take(4), 3),
    "mixed": lambda: Dataset.sample_from_datasets([rows().shuffle(20), Dataset.random()]),
    "a state": lambda: rows().shuffle(20).scan(0, lambda s, x: (s + 1, noisy(x))),
    "an end": lambda: Dataset.range(4),
}


def taken(iterator: Any, count: int) -> list[Any]:
    """Return the next elements as plain values, or as many as there are."""
    pairs = zip(range(count), iterator, strict=False)
    return [_nest.map_structure(lambda leaf: leaf.numpy().tolist(), each) for _, each in pairs]


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)
def test_an_iterator_goes_on(make: Make, tmp_path: Path) -> None:
    dataset = make()
    taken(dataset, 30)  # What was iterated over before counts.
    iterator = iter(dataset)
    checkpoint = mr.train.Checkpoint(iterator=iterator, step=mr.Variable(3))
    taken(iterator, 4)
    path = checkpoint.save(tmp_path / "ckpt")
    expected = taken(iterator, 5)
    checkpoint.restore(path).assert_consumed()
    assert taken(iterator, 5) == expected
    # In another program, with other seeds, which has read on already.
    mr.random.set_seed(99)
    again = iter(make())
    taken(again, 2)
    mr.train.Checkpoint(iterator=again, step=mr.Variable(0)).restore(path).assert_consumed()
    assert taken(again, 5) == expected
    iterator.close()
    again.close()


def test_iterations_after_it_are_those_that_came_after(tmp_path: Path) -> None:
    def make() -> mr.data.Dataset:
        return rows().shuffle(20, seed=7)

    dataset = make()
    taken(dataset, 20)
    iterator = iter(dataset)
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    taken(iterator, 4)
    path = checkpoint.save(tmp_path / "ckpt")
    expected = taken(dataset, 20)
    other = make()
    mr.train.Checkpoint(iterator=iter(other)).restore(path)
    assert taken(other, 20) == expected


def test_one_that_has_not_begun_begins_again(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(5))
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    path = checkpoint.save(tmp_path / "ckpt")
    assert taken(iterator, 3) == [0, 1, 2]
    checkpoint.restore(path)
    assert taken(iterator, 3) == [0, 1, 2]


def test_what_a_recorded_function_looked_at_was_not_taken(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(9))
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    following = mr.function(lambda each: next(each) * 10)
    assert int(following(iterator)) == 0
    iterator.peek(2)
    path = checkpoint.save(tmp_path / "ckpt")
    assert [int(following(iterator)) for _ in range(3)] == [10, 20, 30]
    checkpoint.restore(path)
    assert [int(following(iterator)) for _ in range(3)] == [10, 20, 30]


def from_python() -> mr.data.Dataset:
    return Dataset.from_generator(lambda: iter(range(9)))


@pytest.mark.parametrize(
    "make",
    [
        from_python,
        lambda: Dataset.zip(Dataset.range(9), from_python().batch(2)),
        lambda: Dataset.range(9).flat_map(lambda x: from_python()),
    ],
)
def test_the_state_of_a_generator_is_not_known(make: Make, tmp_path: Path) -> None:
    iterator = iter(make())
    next(iterator)
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    with pytest.raises(ValueError, match="with `from_generator` cannot be saved"):
        checkpoint.save(tmp_path / "ckpt")
    assert mr.train.latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(9).map(abs),
        lambda: Dataset.range(9).shuffle(9),
        lambda: Dataset.range(9).take(3).batch(2),
    ],
)
def test_another_pipeline_is_refused(make: Make, tmp_path: Path) -> None:
    """Before anything changes."""
    path = mr.train.Checkpoint(iterator=iter(Dataset.range(9)), step=mr.Variable(1)).save(
        tmp_path / "ckpt"
    )
    step = mr.Variable(5)
    with pytest.raises(mr.errors.WeightsFileError, match="iterator"):
        mr.train.Checkpoint(iterator=iter(make()), step=step).restore(path)
    assert int(step) == 5


@pytest.mark.parametrize("change", [(1, 2**63), (2, 2)])
def test_a_position_that_there_is_not_is_refused(change: tuple[int, int]) -> None:
    iterator = iter(Dataset.range(3))
    words = [*iterator.state]
    words[change[0]] = change[1]
    with pytest.raises(ValueError, match="No iterator has the position"):
        iterator.check(words)
    assert int(next(iterator)) == 0


def test_iterators_of_replicas_are_refused(simulate: Callable[..., Any]) -> None:
    """As in TensorFlow."""
    simulate(2)
    dataset = mr.MirroredStrategy().experimental_distribute_dataset(Dataset.range(8).batch(4))
    with pytest.raises(ValueError, match="expecting iterator to be a trackable object"):
        mr.train.Checkpoint(iterator=iter(dataset))
