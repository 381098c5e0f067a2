"""Recorded functions that take from datasets: what they compute, and how often Python runs."""

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy, PerReplica
from mirrored.errors import OutOfRangeError

REPLICAS = 3
# Two whole batches and a shorter one, which not every replica has an example of.
BATCHES = [np.arange(6, dtype=np.float32), np.ones(6, np.float32), np.ones(2, np.float32)]
TOTAL = sum(float(batch.sum()) for batch in BATCHES)


@pytest.fixture
def strategy(simulate: Callable[..., Any]) -> MirroredStrategy:
    simulate(REPLICAS)
    return MirroredStrategy()


@pytest.fixture
def distributed(strategy: MirroredStrategy) -> Any:
    """Return the batches, in parts."""
    return strategy.experimental_distribute_dataset(BATCHES)


class Recorded:
    """A recorded function, with a count of the times that Python ran.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.runs = 0

        def counting(*args: Any) -> Any:
            self.runs += 1
            return function(*args)

        self.call = mr.function(counting)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


def parts(value: Any) -> list[Any]:
    """Return a per-replica value's parts as lists."""
    return [part.numpy().tolist() for part in value.values]


def summing(strategy: MirroredStrategy) -> Callable[[Any], Any]:
    """Return a function that adds up one batch over the replicas, which meet."""
    return lambda batch: strategy.reduce("sum", strategy.run(mr.reduce_sum, (batch,)), axis=None)


# ------------------------------------------------------------------------------ iterators


@pytest.mark.parametrize("closed_over", [False, True], ids=["argument", "closed over"])
def test_an_iterator(strategy: MirroredStrategy, distributed: Any, closed_over: bool) -> None:
    add = summing(strategy)
    batches = iter(distributed)
    step = Recorded((lambda: add(next(batches))) if closed_over else lambda it: add(next(it)))
    args = () if closed_over else (batches,)
    assert [float(step(*args)) for _ in BATCHES] == [15.0, 6.0, 2.0]
    assert step.runs == 2  # Once for whole batches, once for the last one.
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="End of sequence") as caught:
            step(*args)
        assert isinstance(caught.value, StopIteration)


def test_epochs_are_not_recorded_again(strategy: MirroredStrategy, distributed: Any) -> None:
    add = summing(strategy)
    seen: list[Any] = []

    def step(batches: Any) -> Any:
        batch = next(batches)  # At the end Python comes as far as here.
        seen.append(None)
        return add(batch)

    recorded = mr.function(step)
    for _ in range(5):
        batches, totals = iter(distributed), []
        while True:
            try:
                totals.append(float(recorded(batches)))
            except OutOfRangeError:
                break
        assert totals == [15.0, 6.0, 2.0]
    assert len(seen) == 2


def test_the_end_may_be_caught(strategy: MirroredStrategy, distributed: Any) -> None:
    def pair(batches: Any) -> Any:
        first = strategy.reduce("sum", next(batches), axis=0)
        second = next(batches, None)
        return first if second is None else first + strategy.reduce("sum", second, axis=0)

    step = Recorded(pair)
    for _ in range(3):
        batches = iter(distributed)
        assert [float(step(batches)) for _ in range(2)] == [21.0, 2.0]
    assert step.runs == 2


def test_iterators_of_one_kind_share_a_recording(
    strategy: MirroredStrategy, distributed: Any
) -> None:
    step = Recorded(lambda a, b: (strategy.gather(next(a), 0), strategy.gather(next(b), 0)))
    one, other = iter(distributed), iter(distributed)
    assert step(one, other)[1].numpy().tolist() == BATCHES[0].tolist()
    first, second = step(other, one)
    assert first.numpy().tolist() == second.numpy().tolist() == BATCHES[1].tolist()
    assert step.runs == 1
    again = iter(distributed)
    first, second = step(again, again)  # One after the other, from the same.
    assert [first.numpy().tolist(), second.numpy().tolist()] == [
        batch.tolist() for batch in BATCHES[:2]
    ]


def test_an_error_takes_nothing(strategy: MirroredStrategy, distributed: Any) -> None:
    def step(batches: Any, fails: bool) -> Any:
        batch = next(batches)
        if fails:
            raise KeyError("mine")
        return strategy.gather(batch, 0)

    recorded, batches = mr.function(step), iter(distributed)
    for expected in BATCHES:
        with pytest.raises(KeyError, match="mine"):
            recorded(batches, True)
        assert recorded(batches, False).numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("around", ["tape", "function"])
def test_where_python_runs_elements_are_taken_all_the_same(
    strategy: MirroredStrategy, distributed: Any, around: str
) -> None:
    step = mr.function(lambda batches: strategy.run(lambda x: x * 2.0, (next(batches),)))
    batches = iter(distributed)
    expected = [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
    if around == "tape":
        with mr.GradientTape():
            assert parts(step(batches)) == expected
    else:
        assert parts(mr.function(lambda it: step(it))(batches)) == expected
    assert parts(next(batches)) == [[1.0, 1.0]] * 3


def test_what_a_function_returns_is_its_own(strategy: MirroredStrategy, distributed: Any) -> None:
    take, batches = mr.function(lambda it: next(it)), iter(distributed)
    first, second = take(batches), take(batches)
    assert type(first) is PerReplica
    assert (first.first_examples, second.first_examples) == ((0, 2, 4), (0, 2, 4))
    assert parts(first) == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert parts(second) == [[1.0, 1.0]] * 3


# ------------------------------------------------------------------------------ datasets


@pytest.mark.parametrize("closed_over", [False, True], ids=["argument", "closed over"])
def test_a_dataset_is_gone_over_anew(
    strategy: MirroredStrategy, distributed: Any, closed_over: bool
) -> None:
    add = summing(strategy)

    def epoch(dataset: Any = distributed) -> Any:
        total = mr.constant(0.0)
        for batch in dataset:
            total = total + add(batch)
        return total

    recorded = Recorded(epoch)
    args = () if closed_over else (distributed,)
    assert [float(recorded(*args)) for _ in range(4)] == [TOTAL] * 4
    assert recorded.runs == 1


def test_the_rest_of_an_iterator(strategy: MirroredStrategy, distributed: Any) -> None:
    def rest(batches: Any) -> Any:
        total = mr.constant(0.0)
        for batch in batches:
            total = total + strategy.reduce("sum", batch, axis=0)
        return total

    recorded, batches = Recorded(rest), iter(distributed)
    next(batches)
    assert [float(recorded(batches)) for _ in range(3)] == [8.0, 0.0, 0.0]
    assert float(recorded(iter(distributed))) == TOTAL
    assert recorded.runs == 3


@pytest.mark.parametrize("distribute", [True, False], ids=["distributed", "plain"])
def test_each_call_shuffles_anew(strategy: MirroredStrategy, distribute: bool) -> None:
    dataset: Any = mr.data.Dataset.range(30).shuffle(30, seed=2).batch(30)
    expected = [[each.tolist() for each in dataset.as_numpy_iterator()] for _ in range(3)]
    dataset = mr.data.Dataset.range(30).shuffle(30, seed=2).batch(30)
    if distribute:
        dataset = strategy.experimental_distribute_dataset(dataset)

    def epoch(dataset: Any) -> Any:
        return [strategy.gather(batch, 0) if distribute else batch for batch in dataset]

    recorded = Recorded(epoch)
    found = [[each.numpy().tolist() for each in recorded(dataset)] for _ in range(3)]
    assert found == expected
    assert len({str(each) for each in found}) == 3
    assert recorded.runs == 1


def test_another_kind_of_call_shuffles_as_eager_code_does(strategy: MirroredStrategy) -> None:
    """Looking whether a recording fits must not use up an order."""

    def orders(make: Callable[[Any], Any]) -> list[Any]:
        dataset = strategy.experimental_distribute_dataset(
            mr.data.Dataset.from_tensor_slices(np.arange(20)).shuffle(20, seed=2).batch(20)
        )

        def step(batches: Any) -> Any:
            (batch,) = dataset
            rest = next(batches, None)
            return strategy.gather(batch, 0) * (1 if rest is None else 2)

        call, batches = make(step), iter(strategy.experimental_distribute_dataset(BATCHES))
        return [call(batches).numpy().tolist() for _ in range(6)]

    assert orders(mr.function) == orders(lambda step: step)


def test_a_plain_datasets_iterator() -> None:
    take = Recorded(next)
    batches = iter(mr.data.Dataset.range(5).batch(2))
    assert [take(batches).numpy().tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(OutOfRangeError):
        take(batches)


def test_datasets_of_the_moment(strategy: MirroredStrategy) -> None:
    """Those that are made for one call must not be taken for each other once they are gone."""

    def epoch(dataset: Any) -> Any:
        return [strategy.reduce("sum", batch, axis=0) for batch in dataset]

    recorded = mr.function(epoch)
    for i in range(6):
        dataset = strategy.experimental_distribute_dataset([np.full(3, float(i))] * (1 + i % 2))
        assert [float(each) for each in recorded(dataset)] == [3.0 * i] * (1 + i % 2)


def test_parts_of_any_sizes(strategy: MirroredStrategy) -> None:
    dataset = strategy.distribute_datasets_from_function(
        lambda context: [np.ones(i + 1, np.float32) for i in range(4)]
    )
    add, seen = summing(strategy), []
    step, batches = mr.function(lambda it: add(next(it))), iter(dataset)
    seen += [float(step(batches)) for _ in range(2)]
    assert seen == [6.0, 4.0]
    with pytest.raises(OutOfRangeError):
        step(batches)


# ------------------------------------------------------------------------------ what may go wrong


@pytest.mark.parametrize("bad", [1.0, (np.ones(3), np.ones(2))], ids=["unbatched", "sizes"])
def test_a_dataset_that_fails_later(strategy: MirroredStrategy, bad: Any) -> None:
    dataset = strategy.experimental_distribute_dataset([BATCHES[1], bad])
    step, batches = mr.function(lambda it: strategy.gather(next(it), 0)), iter(dataset)
    assert step(batches).shape == (6,)
    with pytest.raises(ValueError, match="batch"):
        step(batches)


def test_an_error_in_a_datasets_function(strategy: MirroredStrategy) -> None:
    before = set(threading.enumerate())

    def fail(x: Any) -> Any:
        if int(x) == 4:
            raise KeyError("mine")
        return x

    dataset = mr.data.Dataset.range(9).map(fail).batch(3).prefetch(1)
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    step = mr.function(lambda it: strategy.gather(next(it), 0))
    assert step(batches).numpy().tolist() == [0, 1, 2]
    with pytest.raises(KeyError, match="mine") as caught:
        step(batches)
    assert any("element 4" in note for note in caught.value.__notes__)
    batches.close()
    assert set(threading.enumerate()) == before


def test_a_loop_that_ends_early_leaves_no_thread(strategy: MirroredStrategy) -> None:
    before = set(threading.enumerate())
    dataset = strategy.experimental_distribute_dataset(
        mr.data.Dataset.range(90).batch(3).prefetch(2)
    )

    def first(dataset: Any) -> Any:
        for batch in dataset:
            return strategy.gather(batch, 0)

    recorded = mr.function(first)
    for _ in range(3):
        assert recorded(dataset).numpy().tolist() == [0, 1, 2]
        assert set(threading.enumerate()) == before


def test_a_recording_keeps_no_iterator(strategy: MirroredStrategy) -> None:
    """Nor its thread, nor the elements that it was recorded with."""
    before = set(threading.enumerate())
    dataset = mr.data.Dataset.range(90).batch(3).prefetch(2)
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    take = mr.function(lambda it: strategy.gather(next(it), 0))
    assert take(batches).numpy().tolist() == [0, 1, 2]
    iterator = weakref.ref(batches)
    del batches
    gc.collect()
    assert iterator() is None
    assert set(threading.enumerate()) == before


def test_memory_does_not_grow(strategy: MirroredStrategy) -> None:
    """Neither elements that were taken nor iterators that have ended are kept."""
    rows = np.ones((3, 5000), np.float32)
    distributed = strategy.experimental_distribute_dataset([rows] * 3)
    step = mr.function(lambda it: strategy.run(mr.reduce_sum, (next(it),)))
    epoch = mr.function(
        lambda dataset: [strategy.run(mr.reduce_sum, (batch,)) for batch in dataset]
    )

    def run() -> int:
        batches = iter(distributed)
        for _ in range(3):
            step(batches)
        epoch(distributed)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    run()
    tracemalloc.start()
    try:
        run()
        before = run()
        grown = [run() - before for _ in range(4)]
    finally:
        tracemalloc.stop()
    assert max(grown) < rows.nbytes / 2


@pytest.mark.parametrize("recorded", [False, True])
def test_what_comes_before_the_end_of_a_dataset_is_done(recorded: bool) -> None:
    total = mr.Variable(0.0)

    def add_three(iterator: Any) -> None:
        for _ in range(3):
            total.assign_add(mr.cast(next(iterator), mr.float32))

    step = mr.function(add_three) if recorded else add_three
    iterator = iter(mr.data.Dataset.range(5))
    step(iterator)
    for _ in range(2):  # The second one finds nothing at all.
        with pytest.raises(mr.errors.OutOfRangeError, match="End of sequence"):
            step(iterator)
        assert float(total) == 10.0
    assert next(iterator, None) is None
