"""An iterator goes on after an element that could not be made; TensorFlow 2.21 gave the values."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.data.elements import Failure, Succeeding, attempt, succeeded

Dataset = mr.data.Dataset
SCALAR = mr.TensorSpec((), mr.int64)


class Broken(Exception):
    """What the functions of these tests raise."""


def bad(*numbers: int) -> Callable[..., Any]:
    """Return a function that raises for these numbers, and returns others."""

    def function(x: Any, *more: Any) -> Any:
        if int(x) in numbers:
            raise Broken(f"no {int(x)}")
        return (x, *more) if more else x

    return function


def source(count: int = 6, *numbers: int) -> Any:
    """Return the numbers below `count`, of which some raise; without any, 2 does."""
    return Dataset.range(count).map(bad(*(numbers or (2,))))


def tens(x: Any) -> Any:
    return Dataset.range(3).map(lambda y: y + x * 10).map(bad(11, 20))


class Counting:
    """An iterator that can go on after it raised."""

    def __init__(self) -> None:
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.count += 1
        if self.count == 2:
            raise Broken("at 2")
        if self.count > 4:
            raise StopIteration
        return self.count


def generator() -> Iterator[int]:
    yield 1
    raise Broken("of a generator")


def lists(*rows: list[int]) -> Any:
    return Dataset.from_generator(lambda: iter(rows), output_signature=mr.TensorSpec((None,)))


E = "error"
CASES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "map": (source, [0, 1, E, 3, 4, 5]),
    "two maps": (lambda: source().map(bad(4)), [0, 1, E, 3, E, 5]),
    "filter": (lambda: source().filter(lambda x: x > 0), [1, E, 3, 4, 5]),
    "its predicate": (lambda: Dataset.range(4).filter(lambda x: bad(1)(x) >= 0), [0, E, 2, 3]),
    "take_while": (lambda: source().take_while(lambda x: x < 5), [0, 1, E, 3, 4]),
    "map and batch": (lambda: source().batch(2), [[0, 1], E, [4, 5]]),
    "at its end": (lambda: source(5, 4).batch(2), [[0, 1], [2, 3], E]),
    "batch": (lambda: source().prefetch(1).batch(2), [[0, 1], E, [3, 4], [5]]),
    "padded_batch": (lambda: source().padded_batch(2), [[0, 1], E, [3, 4], [5]]),
    "batch of shapes": (lambda: lists([1], [2, 3], [4], [5]).batch(2), [E, [[4], [5]]]),
    "a buffer of 1": (lambda: source().shuffle(1), [0, 1, E, 3, 4, 5]),
    "a buffer of 1, the last": (lambda: source(3, 2).shuffle(1), [0, 1, E]),
    "repeat": (lambda: source(3, 1).repeat(2), [0, E, 2, 0, E, 2]),
    "take": (lambda: source().take(3), [0, 1, E, 3]),
    "skip": (lambda: source().skip(1), [1, E, 3, 4, 5]),
    "skip over it": (lambda: source(6, 1).skip(3), [E, 5]),
    "shard": (lambda: source().shard(2, 0), [0, E, 3, 5]),
    "another shard": (lambda: source().shard(2, 1), [1, E, 4]),
    "prefetch": (lambda: source().prefetch(2), [0, 1, E, 3, 4, 5]),
    "prefetch twice": (lambda: source().prefetch(1).prefetch(2), [0, 1, E, 3, 4, 5]),
    "cache": (lambda: source(3, 1).cache().repeat(2), [0, E, 2, 0, 2]),
    "zip": (lambda: Dataset.zip((source(5, 1), source(5, 2))), [(0, 0), E, E, (3, 3), (4, 4)]),
    "concatenate": (lambda: source(3, 1).concatenate(source(3, 0)), [0, E, 2, E, 1, 2]),
    "enumerate": (lambda: source(4, 1).enumerate(), [(0, 0), E, (2, 2), (3, 3)]),
    "scan": (lambda: source(4, 1).scan(np.int64(0), lambda s, x: (s + x, s + x)), [0, E, 2, 5]),
    "its function": (
        lambda: Dataset.range(4).scan(np.int64(0), lambda s, x: (s + x, bad(1)(x) + s)),
        [0, E, 2, 5],
    ),
    "flat_map": (lambda: Dataset.range(3).flat_map(tens), [0, 1, 2, 10, E, 12, E, 21, 22]),
    "flat_map of it": (lambda: source(3, 1).flat_map(Dataset.from_tensors), [0, E, 2]),
    "interleave": (
        lambda: Dataset.range(3).interleave(tens, cycle_length=2),
        [0, 10, 1, E, 12, 2, E, 21, 22],
    ),
    "interleave of blocks": (
        lambda: Dataset.range(3).interleave(tens, cycle_length=2, block_length=2),
        [0, 1, 10, E, 12, 2, E, 21, 22],
    ),
    "interleave of it": (
        lambda: source(4, 1).interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2),
        [0, E, 2, 0, 2, 3, 3],
    ),
    "window": (
        lambda: source(5).window(3, shift=1).flat_map(lambda window: window.batch(3)),
        [E, E, E, [3, 4], [4]],
    ),
    "unbatch": (lambda: source(3, 1).map(lambda x: mr.stack([x, x])).unbatch(), [0, 0, E, 2, 2]),
    "rebatch": (lambda: source(6, 1).batch(2).rebatch(3), [E, [2, 3, 4], [5]]),
    "group_by_window": (
        lambda: source(6, 1).group_by_window(lambda x: x % 2, lambda _, w: w.batch(2), 2),
        [E, [0, 2], [3, 5], [4]],
    ),
    "a generator": (
        lambda: Dataset.from_generator(generator, output_signature=SCALAR),
        [1, E],
    ),
    "an iterator": (
        lambda: Dataset.from_generator(Counting, output_signature=SCALAR),
        [1, E, 3, 4],
    ),
    "what does not fit": (
        lambda: Dataset.from_generator(lambda: iter([1, [2, 3], 4]), output_signature=SCALAR),
        [1, E, 4],
    ),
    "unique": (lambda: source(4, 1).unique(), [0, E, 2, 3]),
    "choose_from_datasets": (
        lambda: Dataset.choose_from_datasets(
            [source(3, 1), Dataset.range(10, 13)],
            Dataset.from_tensor_slices(np.array([0, 0, 0, 1, 5, 1], np.int64)),
        ),
        [0, E, 2, 10, E, 11],
    ),
    "its choices": (
        lambda: Dataset.choose_from_datasets(
            [Dataset.range(3), Dataset.range(10, 13)], source(3, 1)
        ),
        [0, E, E],
    ),
    "sample_from_datasets": (lambda: Dataset.sample_from_datasets([source(3, 1)]), [0, E, 2]),
    "rejection_resample": (
        lambda: source(4, 1).rejection_resample(lambda x: mr.cast(x * 0, mr.int32), [1.0]),
        [(0, 0), E, (0, 2), (0, 3)],
    ),
}


def taken(iterator: Any) -> list[Any]:
    """Return what an iterator gives up to its end, with "error" for each error."""
    found: list[Any] = []
    while True:
        try:
            element = next(iterator)
        except StopIteration:
            return found
        except Exception:
            found.append(E)
        else:
            found.append(mr.nest.map_structure(lambda each: np.asarray(each).tolist(), element))


@pytest.mark.behaviour("dataset-errors")
@cases(("make", "expected"), CASES.values(), ids=CASES)
def test_what_comes_after_an_error(make: Callable[[], Any], expected: list[Any]) -> None:
    with closing(iter(make())) as iterator:
        assert taken(iterator) == expected
        assert next(iterator, None) is None
    with closing(make().as_numpy_iterator()) as iterator:
        assert taken(iterator) == expected


def test_a_buffer_keeps_its_elements() -> None:
    first, *others = taken(iter(source().shuffle(3, seed=1)))
    assert (first, sorted(others)) == (E, [0, 1, 3, 4, 5])
    found = taken(iter(source(40, 20, 39).shuffle(5, seed=1)))
    assert found.count(E) == 2
    assert sorted({*found} - {E}) == [each for each in range(39) if each != 20]


def test_positions_count_what_could_not_be_made() -> None:
    dataset = source(6, 1, 3)
    iterator = iter(dataset)
    assert int(next(iterator)) == 0
    with pytest.raises(Broken):
        next(iterator)
    other = iter(dataset)
    other.restore(iterator.state)
    assert taken(other) == taken(iterator) == [2, E, 4, 5]


def test_replicas_go_on(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    batches = source(8, 2).filter(lambda x: True).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    found = [next(iterator)]
    with pytest.raises(Broken):
        next(iterator)
    found += [next(iterator), next(iterator)]
    values = [[int(np.ravel(each)[0]) for each in step.values] for step in found]
    assert values == [[0, 1], [3, 4], [5, 6]]


def test_optionals_and_recorded_functions_go_on() -> None:
    iterator = iter(source(4, 1))
    function = mr.function(lambda it: next(it) * 2)
    assert int(function(iterator)) == 0
    with pytest.raises(Broken):
        function(iterator)
    assert int(function(iterator)) == 4
    assert int(iterator.get_next_as_optional().get_value()) == 3


def test_fit_ends_with_the_error() -> None:
    model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = source(6, 4).map(lambda x: (mr.cast(x, mr.float32), mr.cast(x, mr.float32)))
    with pytest.raises(Broken) as caught:
        model.fit(data.batch(2), verbose=0)
    assert "In batch 2 of the data (counted from 0)." in caught.value.__notes__


def test_an_error_keeps_nothing() -> None:
    def raises() -> None:
        raise Broken

    failure = attempt(raises)
    assert type(failure) is Failure
    with pytest.raises(Broken):
        succeeded(failure)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        next(Succeeding(iter([Failure(StopIteration())])))
    gc.collect()
    gc.disable()
    try:
        dataset = source(3, 1).prefetch(1)
        iterator = iter(dataset)
        assert taken(iterator) == [0, E, 2]
        gone = weakref.ref(iterator._elements)
        del iterator
        assert gone() is None
    finally:
        gc.enable()
