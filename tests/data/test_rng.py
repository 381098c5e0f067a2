"""What datasets draw follows from the seed and the program alone, whatever threads did ahead.

The threads are waited for, so that each run has one that went as far ahead as it may.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given
from hypothesis import strategies as st

import mirrored as mr
from mirrored.data.rng import Iteration, Rng

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]
Make = Callable[[], mr.data.Dataset]


def drawn() -> float:
    return float(mr.random.uniform(()))


def draw(x: Any) -> Any:
    return mr.random.uniform(()) + mr.random.uniform((), seed=1)


def toss(x: Any) -> Any:
    return mr.random.uniform(()) < 0.5


def ten() -> mr.data.Dataset:
    return Dataset.range(10)


def twice() -> mr.data.Dataset:
    shuffled = ten().shuffle(10)
    return Dataset.zip(shuffled, shuffled.concatenate(shuffled))


def generated() -> mr.data.Dataset:
    return Dataset.from_generator(lambda: (drawn() for _ in range(10)))


def over_another() -> mr.data.Dataset:
    """What a generator takes from a dataset, which it iterates over in a thread."""
    inner = ten().shuffle(10).map(lambda x: mr.cast(x, mr.float32) + draw(x))
    return Dataset.from_generator(lambda: inner)


# Each has 10 elements, or about 5, and draws.
DRAWING: dict[str, Make] = {
    "shuffle": lambda: ten().shuffle(10),
    "shuffle with a small buffer": lambda: ten().shuffle(4),
    "shuffle of rows": lambda: Dataset.from_tensor_slices(np.arange(20)).shuffle(20).batch(2),
    "shuffle of a shuffle": lambda: ten().shuffle(3).shuffle(3),
    "map": lambda: ten().map(draw),
    "map of a recorded function": lambda: ten().map(mr.function(draw)),
    "filter": lambda: ten().filter(toss),
    "generator": generated,
    "one transform twice": lambda: twice().map(lambda x, y: x * 10 + y),
    "cache": lambda: ten().shuffle(10).map(draw).cache(),
    "another dataset in a generator": over_another,
    "prefetch below": lambda: ten().shuffle(10).prefetch(3).map(draw),
}
every = pytest.mark.parametrize("make", DRAWING.values(), ids=DRAWING)


@every
def test_what_a_thread_did_ahead_does_not_show(make: Make, made: Any) -> None:
    """Iterators that are left in the middle; how far ahead a thread got is all that differs."""

    def run(ahead: int) -> list[Any]:
        mr.random.set_seed(3)
        dataset, seen = make().repeat().map(made.note).prefetch(ahead), []
        for _ in range(3):
            made.count = 0
            iterator = iter(dataset)
            for number in range(1, 8):
                seen += [next(iterator).numpy().tolist(), drawn()]
                made.wait_for(number + ahead)
            iterator.close()
        return seen

    expected = run(0)
    assert run(1) == expected
    assert run(17) == expected


@pytest.mark.slow
@every
def test_passes_do_not_show_what_a_thread_did_ahead(make: Make, made: Any, listed: Listed) -> None:
    """The same for passes of `repeat` that leave those of another `repeat` in the middle."""

    def run(ahead: int) -> list[Any]:
        mr.random.set_seed(3)
        made.count, numbers = 0, itertools.count()

        def hold(x: Any) -> Any:
            before, taken = divmod(next(numbers), 7)
            made.wait_for(before * (7 + ahead) + taken + 1 + ahead)
            return x

        endless = make().repeat().map(made.note).prefetch(ahead)
        return listed(endless.take(7).map(hold).repeat(3))

    expected = run(0)
    assert run(1) == expected
    assert run(17) == expected


@every
def test_iterators_side_by_side_draw_what_they_would_by_themselves(make: Make) -> None:
    def run(order: list[int]) -> list[list[Any]]:
        mr.random.set_seed(3)
        dataset = make().repeat()
        iterators = [iter(dataset) for _ in range(2)]
        seen: list[list[Any]] = [[], []]
        for which in order:
            seen[which].append(next(iterators[which]).numpy().tolist())
        return seen

    assert run([0, 1] * 12) == run([0] * 12 + [1] * 12)


@every
def test_each_iterator_and_each_pass_draws_others(make: Make, listed: Listed) -> None:
    dataset = make()
    is_cached = dataset.cardinality() == 10 and "Cached" in repr(dataset)
    passes = [str(listed(dataset)) for _ in range(4)]
    assert len(set(passes)) == (1 if is_cached else 4)
    rounds = listed(dataset.batch(10**6).repeat(2).repeat(2))
    assert len({str(each) for each in rounds}) == (1 if is_cached else 4)


@every
def test_asking_for_the_structure_draws_nothing(make: Make, listed: Listed) -> None:
    def run(ask: bool) -> list[Any]:
        mr.random.set_seed(3)
        dataset = make()
        if ask:
            assert dataset.element_spec == dataset.element_spec
        return [listed(dataset), drawn(), listed(dataset)]

    assert run(True) == run(False)


@every
def test_a_run_that_is_restored_draws_the_same(make: Make, tmp_path: Path, listed: Listed) -> None:
    """With datasets that are made anew for each epoch, after another seed in another process."""
    checkpoint = mr.train.Checkpoint()
    mr.random.set_seed(3)
    before = listed(make())
    path = checkpoint.save(tmp_path / "ckpt")
    went_on = [listed(make()) for _ in range(2)]
    for seed in (3, 4):
        mr.random.set_seed(seed)
        checkpoint.restore(path)
        assert [listed(make()) for _ in range(2)] == went_on
    assert before not in went_on


@every
def test_the_seed_is_taken_when_a_dataset_is_made(make: Make, listed: Listed) -> None:
    mr.random.set_seed(3)
    expected = listed(make())
    mr.random.set_seed(3)
    dataset = make()
    mr.random.set_seed(4)
    assert listed(dataset) == expected
    assert listed(make()) != expected


def test_fit_again_and_again(made: Any) -> None:
    """Each call leaves an iterator in the middle."""

    def run(ahead: int) -> bytes:
        class Waiting(mr.callbacks.Callback):
            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                made.wait_for(3 + ahead)

        mr.random.set_seed(3)
        model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
        rows = Dataset.from_tensor_slices((np.ones((10, 1), np.float32), np.arange(10)))
        noisy = rows.shuffle(10).repeat().map(lambda x, y: (x + draw(x), y)).batch(2)
        batches = noisy.map(lambda *batch: made.note(batch)).prefetch(ahead)
        for _ in range(3):
            made.count = 0
            model.fit(batches, steps_per_epoch=3, verbose=0, callbacks=[Waiting()])
            assert made.count == 3 + ahead
        return model.get_weights()[0].tobytes()

    assert run(0) == run(1) == run(7)


def test_one_seed_is_one_order(listed: Listed) -> None:
    """Of two datasets in the places of one another, as inputs and targets are shuffled."""
    halves = [ten().shuffle(4, seed=1).repeat(3) for _ in range(2)]
    pairs = listed(Dataset.zip(*halves))
    assert all(x == y for x, y in pairs)
    assert any(x != y for x, y in listed(twice()))


def test_a_cache_that_was_left_begins_the_same_again(listed: Listed) -> None:
    cached = ten().shuffle(10).map(draw).cache()
    first = listed(cached.take(3))
    assert listed(cached.take(5))[:3] == first
    assert listed(cached) == listed(cached)
    assert listed(cached)[:3] == first


def test_a_transform_takes_one_seed() -> None:
    """So a checkpoint knows how many datasets there were."""
    mr.random.set_seed(3)
    drawn()
    expected = drawn()
    for make in (lambda: ten().shuffle(2), lambda: ten().map(draw), lambda: ten().filter(toss)):
        mr.random.set_seed(3)
        list(make())
        assert drawn() == expected
    mr.random.set_seed(3)
    list(ten().shuffle(2, seed=1).batch(2))
    assert drawn() != expected


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, 3)] * n))))
def test_passes_are_told_apart(passes: list[tuple[int, ...]]) -> None:
    def iteration(indices: tuple[int, ...]) -> Iteration:
        iteration = Iteration(5, (Iteration(7),))
        for index in indices:
            iteration = iteration.in_pass(index)
        return iteration

    assert len({iteration(each) for each in passes}) == len(set(passes))
    assert all(
        iteration(each).source() == Iteration(7, (), iteration(each).passes) for each in passes
    )


def test_a_turn_is_drawn_from_its_beginning() -> None:
    draws = Rng(5)
    iterations = [
        Iteration(number, (), passes) for number in range(3) for passes in ((), (1,), (1, 0))
    ]
    first = [draws.stream(iteration).generator().random() for iteration in iterations]
    assert [draws.stream(iteration).generator().random() for iteration in iterations] == first
    assert len(set(first)) == len(iterations)
    assert [draws.number() for _ in range(3)] == [0, 1, 2]


def seeded(*_: Any) -> Any:
    return mr.random.uniform([], seed=5)


def over(function: Callable[..., Any]) -> Any:
    return mr.data.Dataset.range(2).map(function)


SEEDED: dict[str, Callable[[], Any]] = {
    "map": lambda: mr.data.Dataset.range(4).map(seeded),
    "a recorded function": lambda: mr.data.Dataset.range(4).map(mr.function(seeded)),
    "behind repeat": lambda: mr.data.Dataset.range(2).repeat(2).map(seeded),
    "ahead": lambda: mr.data.Dataset.range(4).map(seeded).prefetch(1),
    "scan": lambda: mr.data.Dataset.range(4).scan(0, lambda state, _: (state, seeded())),
    "flat_map": lambda: mr.data.Dataset.range(4).flat_map(
        lambda _: mr.data.Dataset.from_tensors(seeded())
    ),
}
SEEDED_OTHERWISE: dict[str, Callable[[], Any]] = {
    "passes": lambda: over(seeded).repeat(2),
    "passes ahead": lambda: over(seeded).prefetch(1).repeat(2),
    "datasets that are made": lambda: over(lambda x: x).flat_map(lambda _: over(seeded)),
    "one dataset": lambda: (lambda inner: over(lambda x: x).flat_map(lambda _: inner))(
        over(seeded)
    ),
}


@pytest.mark.behaviour("dataset-seeds")
@cases("name", [*SEEDED, *SEEDED_OTHERWISE])
def test_draws_with_a_seed_begin_with_the_iterator(name: str, listed: Listed) -> None:
    """As in TensorFlow, where each op of the function has a state that is made with it."""
    mr.random.set_seed(3)
    dataset = {**SEEDED, **SEEDED_OTHERWISE}[name]()
    first = iter(dataset)
    next(first)
    found = listed(dataset)
    assert len(set(found)) == 4
    assert listed(dataset) == found
    assert [float(each) for each in first] == pytest.approx(found[1:])
    if name in SEEDED:
        mr.random.set_seed(3)
        assert listed(SEEDED["map"]()) == found


@pytest.mark.behaviour("dataset-seeds")
def test_draws_with_one_seed_are_alike_in_a_call(listed: Listed) -> None:
    """So that an image and its mask are flipped alike."""
    pairs = listed(over(lambda x: (seeded(), mr.random.uniform([2], seed=5)[0], seeded())))
    assert all(a == c for a, _, c in pairs)
    assert pairs[0] != pairs[1]
    both = mr.data.Dataset.zip((over(seeded), over(lambda x: x).map(seeded)))
    assert all(a == b for a, b in listed(both))


def test_draws_with_a_seed_go_on_where_an_iterator_was(tmp_path: Path) -> None:
    def iterator(seed: int) -> Any:
        mr.random.set_seed(seed)
        return iter(over(seeded).repeat())

    first = iterator(3)
    for _ in range(3):
        next(first)
    mr.train.Checkpoint(iterator=first).write(str(tmp_path / "state"))
    other = iterator(4)
    mr.train.Checkpoint(iterator=other).read(str(tmp_path / "state"))
    assert [float(next(other)) for _ in range(3)] == [float(next(first)) for _ in range(3)]
