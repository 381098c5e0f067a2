"""Elements of several datasets by choice and by chance; TensorFlow 2.21 gives what is expected.

But for what is drawn, which is ours.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]
INFINITE, UNKNOWN = mr.data.INFINITE_CARDINALITY, mr.data.UNKNOWN_CARDINALITY


def chosen(numbers: list[int], *sizes: int, stop: bool = True) -> mr.data.Dataset:
    """Return elements of ranges, each with a first digit of its own."""
    ranges = [Dataset.range(10 * i, 10 * i + size) for i, size in enumerate(sizes)]
    choices = Dataset.from_tensor_slices(np.int64(numbers))
    return Dataset.choose_from_datasets(ranges, choices, stop)


def sampled(weights: Any = None, **options: Any) -> mr.data.Dataset:
    both = [Dataset.from_tensors(each).repeat() for each in (1, 2)]
    return Dataset.sample_from_datasets(both, weights, **options)


METHODS: dict[str, tuple[Callable[[], mr.data.Dataset], list[Any], int]] = {
    "choices": (lambda: chosen([1, 0, 2, 1], 2, 2, 2), [10, 0, 20, 11], UNKNOWN),
    "one that ends": (lambda: chosen([0, 1, 0, 0, 1], 2, 2), [0, 10, 1], UNKNOWN),
    "one that is passed over": (
        lambda: chosen([0, 1, 0, 0, 1], 2, 2, stop=False),
        [0, 10, 1, 11],
        UNKNOWN,
    ),
    "all that end": (lambda: chosen([0, 1] * 9, 1, 2, stop=False), [0, 10, 11], UNKNOWN),
    "no choice": (lambda: chosen([], 3), [], UNKNOWN),
    "choices of endless ones": (
        lambda: Dataset.choose_from_datasets(
            [Dataset.range(2).repeat(), Dataset.range(5, 7).repeat()], Dataset.range(2).repeat(2)
        ),
        [0, 5, 1, 6],
        INFINITE,
    ),
    "a weight of zero": (lambda: sampled([0.0, 1.0]).take(3), [2, 2, 2], 3),
    "weights of zero": (lambda: sampled([0.0, 0.0]), [], 0),
    "weights that change": (
        lambda: sampled(Dataset.from_tensor_slices([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])),
        [1, 2, 2],
        INFINITE,
    ),
    "resampled to what it was": (
        lambda: Dataset.range(4).rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.5, 0.5]),
        [(0, 0), (1, 1), (0, 2), (1, 3)],
        4,
    ),
    "resampled to one class": (
        lambda: (
            Dataset.zip(Dataset.range(6), Dataset.range(6))
            .rejection_resample(lambda x, y: x % 3, [0.0, 1.0, 0.0], [0.4, 0.3, 0.3])
            .map(lambda label, pair: pair)
        ),
        [(1, 1), (4, 4)],
        UNKNOWN,
    ),
    "counter": (lambda: Dataset.counter(10, -4).take(3), [10, 6, 2], 3),
    "counter of floats": (
        lambda: Dataset.counter(1.5, 0.5, mr.float32).take(3),
        [1.5, 2.0, 2.5],
        3,
    ),
    "counter that wraps around": (
        lambda: Dataset.counter(2**31 - 1, dtype=mr.int32).take(2),
        [2**31 - 1, -(2**31)],
        2,
    ),
    "take_while": (lambda: Dataset.range(9).repeat().take_while(lambda x: x < 2), [0, 1], UNKNOWN),
    "take_while of nothing": (lambda: Dataset.range(9).take_while(lambda x: x > 2), [], UNKNOWN),
    "unique": (
        lambda: Dataset.from_tensor_slices([[1, 2], [2, 1], [1, 2]]).repeat(2).unique(),
        [[1, 2], [2, 1]],
        UNKNOWN,
    ),
    "unique in a dict": (
        lambda: Dataset.from_tensor_slices({"a": [3, 3]}).unique(),
        [{"a": 3}],
        UNKNOWN,
    ),
    "apply": (lambda: Dataset.range(3).apply(lambda dataset: dataset.batch(2)), [[0, 1], [2]], 2),
}


@cases(("make", "expected", "size"), METHODS.values(), ids=METHODS)
def test_methods(
    make: Callable[[], mr.data.Dataset], expected: list[Any], size: int, check_passes: Any
) -> None:
    check_passes(make(), expected, size)


def test_what_is_drawn_follows_the_weights(listed: Listed) -> None:
    drawn = np.array(listed(sampled([1.0, 3.0], seed=1).take(800)))
    # Six standard deviations of a binomial distribution.
    assert abs((drawn == 2).sum() - 600) < 6 * (800 * 0.25 * 0.75) ** 0.5
    every = Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(5)], seed=1)
    assert sorted(listed(every)) == [0, 0, 1, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("initial", [None, [0.75, 0.25]])
def test_classes_come_in_the_wanted_proportions(initial: Any, listed: Listed) -> None:
    numbers = Dataset.range(600).rejection_resample(
        lambda x: int(int(x) % 4 == 3), [0.5, 0.5], initial, seed=1
    )
    labels, elements = np.array(listed(numbers)).T
    assert np.array_equal(labels, elements % 4 == 3)
    # All of the rarer class stay, and of the other one in three; six standard deviations.
    assert labels.sum() == 150
    assert abs(len(labels) - 300) < 6 * (450 / 3 * 2 / 3) ** 0.5


DRAWN: dict[str, Callable[..., mr.data.Dataset]] = {
    "random": lambda **options: Dataset.random(**options).take(20),
    "sample_from_datasets": lambda **options: sampled(**options).take(20),
}


@pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN)
def test_numbers_are_those_of_the_seed(make: Callable[..., Any], listed: Listed) -> None:
    dataset = make(seed=4)
    first = listed(dataset)
    assert first == listed(dataset) == listed(make(seed=4).prefetch(1))
    assert first != listed(make(seed=5))
    anew = make(seed=4, rerandomize_each_iteration=True)
    orders = [listed(anew), listed(anew)]
    assert orders[0] == first != orders[1]
    assert orders == [listed(again := make(seed=4, rerandomize_each_iteration=True)), listed(again)]
    mr.random.set_seed(1)
    unseeded = [listed(make()), listed(make())]
    mr.random.set_seed(1)
    assert [listed(make()), listed(make())] == unseeded
    assert unseeded[0] != unseeded[1]


def test_random_numbers_are_spread() -> None:
    numbers = np.array([*Dataset.random(seed=1).take(1000).as_numpy_iterator()])
    assert numbers.dtype == np.int64
    assert 0 <= numbers.min() < 2**28
    assert 2**32 - 2**28 < numbers.max() < 2**32


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    **{
        f"choice {number}": (
            lambda number=number: list(chosen([number], 1)),
            mr.errors.InvalidArgumentError,
            f"Selector index out of range: {number} >= 1",
        )
        for number in (1, -1)
    },
    **{
        f"parts of {parts}": (
            lambda parts=parts: Dataset.range(3).rejection_resample(len, *parts),
            mr.errors.InvalidArgumentError,
            "_dist` ",
        )
        for parts in (([],), (0.5,), ([0.0, 0.0],), ([1.0, -1.0],), ([1.0], [0.5, 0.5]))
    },
    "a class that there is not": (
        lambda: list(Dataset.range(3).rejection_resample(lambda x: x, [0.5, 0.5])),
        mr.errors.InvalidArgumentError,
        "`class_func` returned 2",
    ),
    "a class that is none": (
        lambda: list(Dataset.range(3).rejection_resample(lambda x: 0.5, [0.5, 0.5])),
        TypeError,
        "`class_func` must return an integer",
    ),
    "no dataset": (lambda: chosen([0]), ValueError, "`datasets` should not be empty"),
    "no datasets": (
        lambda: Dataset.sample_from_datasets([3]),  # type: ignore[list-item]
        TypeError,
        "Invalid `datasets`",
    ),
    "choices of another dtype": (
        lambda: Dataset.choose_from_datasets([Dataset.range(1)], Dataset.from_tensors(0)),
        TypeError,
        "must be scalar `mr.int64` tensors",
    ),
    "choices in a list": (
        lambda: Dataset.choose_from_datasets([Dataset.range(1)], [0]),  # type: ignore[arg-type]
        TypeError,
        "`choice_dataset` should be a `mr.data.Dataset`",
    ),
    "elements of two kinds": (
        lambda: Dataset.sample_from_datasets([Dataset.range(1), Dataset.from_tensors(0)]),
        TypeError,
        "must have compatible element specs",
    ),
    "a weight too few": (lambda: sampled([1.0]), ValueError, "the same length as `datasets`"),
    "integers as weights": (lambda: sampled([1, 2]), TypeError, "type must be either"),
    "a counter of another dtype": (lambda: Dataset.counter(1.5), TypeError, "int64"),
    "a start of another dtype": (
        lambda: Dataset.counter(mr.constant(1)),
        ValueError,
        "requested dtype int64",
    ),
    "no path": (lambda: Dataset.range(1).cache(3), TypeError, "needs a path. Received: 3"),
    "two of one": (
        lambda: Dataset.zip(Dataset.range(1), datasets=Dataset.range(1)),
        TypeError,
        "cannot be set",
    ),
    "at once and in parallel": (
        lambda: Dataset.range(1).map(len, 2, synchronous=True),
        ValueError,
        "`synchronous` is not supported",
    ),
    "unique floats": (
        lambda: list(Dataset.range(2).map(lambda x: mr.cast(x, mr.float32)).unique()),
        TypeError,
        "does not support type float32",
    ),
    "unique pairs": (
        lambda: Dataset.zip(Dataset.range(1), Dataset.range(1)).unique(),
        mr.errors.InvalidArgumentError,
        "a single component",
    ),
    "apply to a number": (lambda: Dataset.range(1).apply(len), TypeError, "must return a"),
}


@cases(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error
