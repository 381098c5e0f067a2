"""What the methods of a dataset make of its elements, and what they refuse.

TensorFlow 2.21 gives what is expected for the same arguments, but for random orders.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]
INFINITE, UNKNOWN = mr.data.INFINITE_CARDINALITY, mr.data.UNKNOWN_CARDINALITY


def five() -> mr.data.Dataset:
    return Dataset.range(5)


def pairs() -> mr.data.Dataset:
    return Dataset.from_tensor_slices(([1, 2, 3], [4.0, 5.0, 6.0]))


def large(*parts: Any) -> Any:
    return parts[0] > 1


# What is done, the elements, and the number of elements that is known before.
METHODS: dict[str, tuple[Callable[[], mr.data.Dataset], list[Any], int]] = {
    "map": (lambda: five().map(lambda x: x * 2), [0, 2, 4, 6, 8], 5),
    "map of a tuple": (lambda: pairs().map(lambda x, y: (y, x + 1)), [(4, 2), (5, 3), (6, 4)], 3),
    "map to a list": (lambda: pairs().map(lambda x, y: [x, y]).take(1), [(1, 4.0)], 1),
    "map to arrays": (lambda: five().map(lambda x: np.arange(2)).take(1), [[0, 1]], 1),
    "map to numbers": (lambda: five().map(lambda x: {"a": 1.5}).take(1), [{"a": 1.5}], 1),
    "map of a dict": (
        lambda: Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda each: each["a"] + 1),
        [2, 3],
        2,
    ),
    "map in parallel": (
        lambda: five().map(lambda x: x, num_parallel_calls=mr.data.AUTOTUNE, deterministic=False),
        [0, 1, 2, 3, 4],
        5,
    ),
    "filter": (lambda: five().filter(large), [2, 3, 4], UNKNOWN),
    "filter of a tuple": (lambda: pairs().filter(large), [(2, 5), (3, 6)], UNKNOWN),
    "filter of nothing": (lambda: five().take(0).filter(large), [], 0),
    "batch": (lambda: five().batch(2), [[0, 1], [2, 3], [4]], 3),
    "whole batches": (lambda: five().batch(2, drop_remainder=True), [[0, 1], [2, 3]], 2),
    "a batch of more": (lambda: five().batch(9), [[0, 1, 2, 3, 4]], 1),
    "no whole batch": (lambda: five().batch(9, True), [], 0),
    "batches of batches": (lambda: Dataset.range(4).batch(2).batch(2), [[[0, 1], [2, 3]]], 1),
    "batches of rows": (lambda: pairs().batch(2), [([1, 2], [4, 5]), ([3], [6])], 2),
    "batches of what was filtered": (lambda: five().filter(large).batch(2), [[2, 3], [4]], UNKNOWN),
    "unbatch": (lambda: five().batch(2).unbatch(), [0, 1, 2, 3, 4], UNKNOWN),
    "unbatch of rows": (
        lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch(),
        [1, 2, 3, 4],
        4,
    ),
    "unbatch of tuples": (lambda: pairs().batch(2).unbatch().take(1), [(1, 4)], UNKNOWN),
    "repeat": (lambda: Dataset.range(2).repeat(2), [0, 1, 0, 1], 4),
    "repeat for ever": (lambda: Dataset.range(2).repeat().take(5), [0, 1, 0, 1, 0], 5),
    "repeat -1 times": (lambda: Dataset.range(2).repeat(-1).take(3), [0, 1, 0], 3),
    "repeat 0 times": (lambda: five().repeat(0), [], 0),
    "repeat nothing for ever": (lambda: Dataset.range(0).repeat(), [], 0),
    "repeat what is filtered away": (
        lambda: five().filter(lambda x: x > 9).repeat(),
        [],
        INFINITE,
    ),
    "repeat rows over batches": (
        lambda: Dataset.from_tensor_slices([1, 2, 3]).repeat(2).batch(2),
        [[1, 2], [3, 1], [2, 3]],
        3,
    ),
    "repeat no rows for ever": (
        lambda: Dataset.from_tensor_slices(np.zeros(0)).shuffle(2).repeat().batch(2),
        [],
        0,
    ),
    "take": (lambda: five().take(2), [0, 1], 2),
    "take more": (lambda: five().take(9), [0, 1, 2, 3, 4], 5),
    "take all": (lambda: five().take(-1), [0, 1, 2, 3, 4], 5),
    "take nothing": (lambda: five().repeat().filter(large).take(0), [], 0),
    "take of rows": (lambda: pairs().take(2).skip(1), [(2, 5)], 1),
    "skip": (lambda: five().skip(3), [3, 4], 2),
    "skip more": (lambda: pairs().skip(9), [], 0),
    "skip all": (lambda: five().skip(-1), [], 0),
    "skip of endless ones": (lambda: Dataset.range(2).repeat().skip(1).take(2), [1, 0], 2),
    "shard": (lambda: five().shard(2, 1), [1, 3], 2),
    "enumerate": (lambda: pairs().enumerate(5).take(1), [(5, (1, 4))], 1),
    "concatenate": (lambda: Dataset.range(2).concatenate(five().skip(4)), [0, 1, 4], 3),
    "concatenate endless ones": (
        lambda: Dataset.range(1).repeat().concatenate(five()).take(2),
        [0, 0],
        2,
    ),
    "cache": (lambda: five().cache(), [0, 1, 2, 3, 4], 5),
    "prefetch": (lambda: five().prefetch(2), [0, 1, 2, 3, 4], 5),
    "prefetch nothing ahead": (lambda: five().prefetch(0), [0, 1, 2, 3, 4], 5),
    "prefetch as many as None says": (
        lambda: five().prefetch(None),
        [0, 1, 2, 3, 4],
        5,
    ),
    "prefetch as many as is sensible": (
        lambda: five().prefetch(mr.data.AUTOTUNE),
        [0, 1, 2, 3, 4],
        5,
    ),
}


@cases(("make", "expected", "size"), METHODS.values(), ids=METHODS)
def test_methods(
    make: Callable[[], mr.data.Dataset], expected: list[Any], size: int, listed: Listed
) -> None:
    dataset = make()
    assert int(dataset.cardinality()) == size
    assert listed(dataset) == expected
    assert listed(dataset) == expected  # Again, from the first element on.


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    **{
        f"{method} of {value!r}": (
            lambda method=method, value=value: getattr(five(), method)(value),
            mr.errors.InvalidArgumentError,
            f"Received: {name}={value}",
        )
        for method, name, values in (
            ("batch", "batch_size", (0, -1)),
            ("shuffle", "buffer_size", (0, -1)),
            ("prefetch", "buffer_size", (-2,)),
            ("take", "count", (-2,)),
            ("skip", "count", (-2,)),
            ("repeat", "count", (-2,)),
        )
        for value in values
    },
    **{
        f"{method} of {value!r}": (
            lambda method=method, value=value: getattr(five(), method)(value),
            TypeError,
            f"must be an integer. Received: .*={value!r}",
        )
        for method in ("batch", "shuffle", "prefetch", "take", "skip", "repeat", "enumerate")
        for value in (1.5, "2", True)
    },
    "map of no function": (
        lambda: five().map(3),
        ValueError,
        "Argument `map_func` must be a callable. Received map_func=3",
    ),
    "filter of no function": (
        lambda: five().filter(None),
        ValueError,
        "Argument `predicate` must be a callable. Received predicate=None",
    ),
    "no parallel calls": (
        lambda: five().map(large, num_parallel_calls=0),
        mr.errors.InvalidArgumentError,
        "Received: num_parallel_calls=0",
    ),
    "a shard that is not there": (
        lambda: five().shard(2, 2),
        mr.errors.InvalidArgumentError,
        r"Index must be between 0 and 1 \(currently index = 2\)",
    ),
    "no shards": (
        lambda: five().shard(0, 0),
        mr.errors.InvalidArgumentError,
        "Received: num_shards=0",
    ),
    "a buffer for all of what has no end": (
        lambda: five().repeat().shuffle(UNKNOWN),
        mr.errors.InvalidArgumentError,
        "Received: buffer_size=-2",
    ),
    "numbers that are bools": (
        lambda: Dataset.range(3, output_type=mr.bool),
        mr.errors.InvalidArgumentError,
        "Unsupported data type: bool",
    ),
    "a seed that is none": (
        lambda: five().shuffle(2, seed="a"),
        TypeError,
        "seed must be an integer",
    ),
    "concatenate a list": (
        lambda: five().concatenate([1]),
        TypeError,
        "`dataset` must be a Dataset. Received: a list",
    ),
    "concatenate other dtypes": (
        lambda: five().concatenate(Dataset.from_tensor_slices(np.uint8([1]))),
        TypeError,
        r"Incompatible dataset elements: TensorSpec.* vs\. .*uint8.* is not uint8",
    ),
    "concatenate other structures": (
        lambda: Dataset.range(2).concatenate(Dataset.range(2).enumerate()),
        TypeError,
        r"Incompatible dataset elements: .* The structures differ at the top: dataset 0",
    ),
}


def test_the_elements_of_concatenated_datasets() -> None:
    pairs, triple = np.zeros((1, 2), np.uint8), np.zeros((1, 3), np.uint8)
    both = Dataset.from_tensors(pairs).concatenate(Dataset.from_tensors(triple))
    assert both.element_spec == mr.TensorSpec([1, None], mr.uint8)


@cases(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error


def test_a_function_that_is_refused_takes_no_seed() -> None:
    mr.random.set_seed(3)
    expected = mr.random.uniform((2,)).numpy().tolist()
    mr.random.set_seed(3)
    with pytest.raises(ValueError, match="buffer_size"):
        five().shuffle(0)
    assert mr.random.uniform((2,)).numpy().tolist() == expected


@pytest.mark.parametrize("one_at_a_time", [False, True])
@pytest.mark.parametrize("buffer_size", [1, 2, 7, 19, 20, 99, UNKNOWN])
def test_shuffle(
    buffer_size: int,
    one_at_a_time: bool,
    listed: Listed,
    one_by_one: Callable[[mr.data.Dataset], mr.data.Dataset],
) -> None:
    """An element comes at most as many places early as the buffer has but one."""
    dataset = Dataset.from_tensor_slices(np.arange(20))
    dataset = (one_by_one(dataset) if one_at_a_time else dataset).shuffle(buffer_size)
    orders = [listed(dataset) for _ in range(2)]
    for order in orders:
        assert sorted(order) == list(range(20))
        if buffer_size != UNKNOWN:  # That is all of them.
            assert all(number - place < buffer_size for place, number in enumerate(order))
    assert (orders[0] == orders[1]) == (buffer_size == 1)
    assert (orders[0] == list(range(20))) == (buffer_size == 1)


def test_a_small_buffer_goes_through_an_endless_dataset(listed: Listed) -> None:
    seen = listed(Dataset.range(2000).repeat().shuffle(50, seed=1).take(3000))
    assert all(number - place < 50 for place, number in enumerate(seen[:1900]))
    assert set(seen[:1900]) > set(range(1500))


def orders(dataset: mr.data.Dataset, listed: Listed) -> list[list[Any]]:
    return [listed(dataset) for _ in range(3)]


@pytest.mark.parametrize("buffer_size", [4, 12])
def test_orders_are_those_of_the_seed(buffer_size: int, listed: Listed) -> None:
    rows = Dataset.from_tensor_slices(np.arange(12))

    def shuffled(**options: Any) -> list[list[Any]]:
        return orders(rows.shuffle(buffer_size, **options), listed)

    assert shuffled(seed=5) == shuffled(seed=5) != shuffled(seed=6)
    mr.random.set_seed(1)
    first, second = shuffled(), shuffled()
    assert first != second
    mr.random.set_seed(1)
    assert [shuffled(), shuffled()] == [first, second]
    one, two, three = shuffled(reshuffle_each_iteration=False)
    assert one == two == three != list(range(12))
    # Between the passes of `repeat` too.
    again = listed(rows.shuffle(buffer_size, seed=5).repeat(3))
    passes = [again[:12], again[12:24], again[24:]]
    assert listed(rows.shuffle(buffer_size, seed=5).repeat(3).batch(12)) == passes
    assert passes[0] == shuffled(seed=5)[0]
    assert len({tuple(each) for each in passes + shuffled(seed=5)}) == 5


def test_cached_elements_are_made_once(listed: Listed) -> None:
    made: list[int] = []

    def make(x: Any) -> Any:
        made.append(int(x))
        return x * 2

    dataset = five().map(make).cache()
    assert [int(each) for each, _ in zip(dataset, range(2), strict=False)] == [0, 2]
    assert listed(dataset) == listed(dataset) == [0, 2, 4, 6, 8]
    # The iteration that did not come to the end has kept nothing.
    assert made == [0, 1, 2, 0, 1, 2, 3, 4]


# Pipelines over rows of arrays are read in chunks where they can be; element by element they are
# the same. Each step takes a number that is drawn.
STEPS: dict[str, Callable[[mr.data.Dataset, int], mr.data.Dataset]] = {
    "repeat": lambda dataset, n: dataset.repeat(n % 4),
    "take": lambda dataset, n: dataset.take(n),
    "skip": lambda dataset, n: dataset.skip(n % 5),
    "shuffle": lambda dataset, n: dataset.shuffle(n + 1, seed=n),
    "shuffle alike": lambda dataset, n: dataset.shuffle(n + 1, n, reshuffle_each_iteration=False),
    "batch": lambda dataset, n: dataset.batch(n + 1),
    "whole batches": lambda dataset, n: dataset.batch(n + 1, drop_remainder=True),
    "prefetch": lambda dataset, n: dataset.prefetch(n % 3),
    "with_options": lambda dataset, n: dataset.with_options(mr.data.Options()),
    "cache": lambda dataset, n: dataset.cache(),
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 12)), max_size=5),
    st.integers(0, 12),
    st.integers(1, 6),
)
@settings(max_examples=30)
def test_chunks_hold_what_elements_would(
    steps: list[tuple[str, int]], size: int, batch: int
) -> None:
    rows = (np.arange(size), {"a": np.arange(2.0 * size).reshape(size, 2)})

    def run(separate: bool) -> list[Any]:
        dataset = Dataset.from_tensor_slices(rows)
        for name, number in [*steps, ("batch", batch - 1)]:
            if separate:
                dataset = dataset.filter(lambda *parts: np.True_)
            dataset = STEPS[name](dataset, number)
        return [
            (x.tolist(), y["a"].tolist()) for _ in range(2) for x, y in dataset.as_numpy_iterator()
        ]

    assert _outcome(run, False) == _outcome(run, True)


def _outcome(run: Callable[[bool], list[Any]], separate: bool) -> Any:
    """Return the elements, or what is wrong with them: batches of several sizes have no batch."""
    try:
        return run(separate)
    except mr.errors.InvalidArgumentError as error:
        return str(error)


def test_the_class_is_whole() -> None:
    """Every public method is defined in the class itself, and help shows it in one place."""
    public = {name for name in dir(Dataset) if not name.startswith("_")}
    assert "batch" in public
    assert public <= vars(Dataset).keys()
    assert Dataset.batch.__qualname__ == "Dataset.batch"
