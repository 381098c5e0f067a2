"""Windows, groups and datasets that functions make; TensorFlow 2.21 gives what is expected."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]
UNKNOWN = mr.data.UNKNOWN_CARDINALITY


def times(number: Any) -> mr.data.Dataset:
    """Return a number as often as it says."""
    return Dataset.from_tensors(number).repeat(int(number))


def interleaved(numbers: range, count: Callable[[int], int], *args: Any, **options: Any) -> Any:
    """Return numbers by turns, each as often as a function says."""
    return Dataset.from_tensor_slices(list(numbers)).interleave(
        lambda x: Dataset.from_tensors(x).repeat(count(int(x))), *args, **options
    )


def grouped(size: int | None = None, sizes: Any = None) -> mr.data.Dataset:
    """Return what remains of numbers divided by three, in groups."""
    return Dataset.range(11).group_by_window(
        lambda x: x % 3, lambda key, window: window.batch(9), size, sizes
    )


def pairs() -> mr.data.Dataset:
    return Dataset.from_tensor_slices(([1, 2, 3], [4.0, 5.0, 6.0]))


# What is done, the elements, and the number of elements that is known before.
METHODS: dict[str, tuple[Callable[[], mr.data.Dataset], list[Any], int]] = {
    "flat_map": (lambda: Dataset.range(4).flat_map(times), [1, 2, 2, 3, 3, 3], UNKNOWN),
    "flat_map of pairs": (
        lambda: pairs().flat_map(lambda x, y: Dataset.from_tensors({"a": x}).repeat(1)).take(2),
        [{"a": 1}, {"a": 2}],
        UNKNOWN,
    ),
    "flat_map to batches": (
        lambda: Dataset.range(2).flat_map(lambda x: Dataset.range(3).batch(2)),
        [[0, 1], [2], [0, 1], [2]],
        UNKNOWN,
    ),
    "flat_map to nothing": (
        lambda: Dataset.range(3).flat_map(lambda x: Dataset.range(0)),
        [],
        UNKNOWN,
    ),
    "flat_map without end": (
        lambda: Dataset.range(2).repeat().flat_map(lambda x: Dataset.range(2)).take(5),
        [0, 1, 0, 1, 0],
        UNKNOWN,
    ),
    "interleave": (
        lambda: interleaved(range(1, 5), lambda x: 6, cycle_length=2, block_length=4),
        [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4],
        UNKNOWN,
    ),
    "interleave of ever more": (
        lambda: interleaved(range(1, 5), lambda x: x, 3, 2),
        [1, 2, 2, 3, 3, 4, 4, 3, 4, 4],
        UNKNOWN,
    ),
    "interleave, one by one": (
        lambda: interleaved(range(5), lambda x: x, 3),
        [1, 2, 3, 2, 3, 4, 3, 4, 4, 4],
        UNKNOWN,
    ),
    "interleave with empty ones": (
        lambda: interleaved(range(1, 9), lambda x: x % 3, 4, num_parallel_calls=4),
        [1, 2, 4, 2, 5, 5, 7, 8, 8],
        UNKNOWN,
    ),
    "interleave of as many as is usual": (
        lambda: interleaved(range(10), lambda x: 2),
        [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 9],
        UNKNOWN,
    ),
    "interleave of more than there are": (
        lambda: interleaved(range(1, 5), lambda x: x, 10**12),
        [1, 2, 3, 4, 2, 3, 4, 3, 4, 4],
        UNKNOWN,
    ),
    "interleave without end": (
        lambda: Dataset.range(2).interleave(lambda x: times(2 * x + 1).repeat()).take(5),
        [1, 3, 1, 3, 1],
        UNKNOWN,
    ),
    "groups": (
        lambda: grouped(3),
        [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9], [10]],
        UNKNOWN,
    ),
    "groups of a size by key": (
        lambda: grouped(sizes=lambda key: key + 1),
        [[0], [3], [1, 4], [6], [2, 5, 8], [9], [7, 10]],
        UNKNOWN,
    ),
    "groups of many": (lambda: grouped(9), [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8]], UNKNOWN),
    "groups of pairs": (
        lambda: pairs().group_by_window(
            lambda x, y: mr.cast(x // 2, mr.int64), lambda key, window: window.batch(2), 2
        ),
        [([2, 3], [5.0, 6.0]), ([1], [4.0])],
        UNKNOWN,
    ),
}


@pytest.mark.behaviour("interleave-cycle")
@cases(("make", "expected", "size"), METHODS.values(), ids=METHODS)
def test_methods(
    make: Callable[[], mr.data.Dataset], expected: list[Any], size: int, check_passes: Any
) -> None:
    check_passes(make(), expected, size)


@cases(
    ("args", "expected"),
    [
        ((3,), [[0, 1, 2], [3, 4, 5], [6]]),
        ((3, None, 1, True), [[0, 1, 2], [3, 4, 5]]),
        ((3, 1, 2, True), [[0, 2, 4], [1, 3, 5], [2, 4, 6]]),
        ((3, 2, 2), [[0, 2, 4], [2, 4, 6], [4, 6], [6]]),
        ((2, 4, 1, True), [[0, 1], [4, 5]]),
        ((3, 4, 3), [[0, 3, 6], [4]]),
        ((9,), [[0, 1, 2, 3, 4, 5, 6]]),
        ((9, None, 1, True), []),
    ],
)
def test_windows(args: tuple[Any, ...], expected: list[Any], listed: Listed) -> None:
    windows = Dataset.range(7).window(*args)
    assert len(windows) == len(expected)
    assert [listed(window) for window in windows] == expected
    assert [len(window) for window in windows] == [len(each) for each in expected]
    assert listed(windows.flat_map(lambda window: window)) == [
        each for row in expected for each in row
    ]


def test_parts_of_elements_have_windows_of_their_own(listed: Listed) -> None:
    ((first, second),) = pairs().window(3)
    assert (listed(first), listed(second)) == ([1, 2, 3], [4.0, 5.0, 6.0])
    by_name = Dataset.from_tensor_slices({"a": [1, 2, 3]}).window(2)
    assert [listed(each["a"]) for each in by_name] == [[1, 2], [3]]
    again = Dataset.range(7).window(3).window(2)
    assert again.element_spec.element_spec.element_spec == mr.TensorSpec([], mr.int64)
    flat = again.flat_map(lambda windows: windows).flat_map(lambda window: window)
    assert listed(flat) == list(range(7))


def test_windows_are_elements_of_other_methods(listed: Listed) -> None:
    windows = Dataset.range(7).window(3)
    others = windows.skip(1).shuffle(1).enumerate().prefetch(1).cache().repeat(2)
    assert [(int(i), listed(window)) for i, window in others] == [(0, [3, 4, 5]), (1, [6])] * 2
    assert listed(windows.map(lambda window: window.cardinality())) == [3, 3, 1]
    assert listed(windows.filter(lambda window: window.cardinality() > 2).map(len)) == [3, 3]
    made = Dataset.range(3).map(Dataset.range).concatenate(windows)
    assert [listed(each) for each in made] == [[], [0], [0, 1], [0, 1, 2], [3, 4, 5], [6]]
    assert listed(next(iter(Dataset.from_tensors((1, windows))))[1].map(len)) == [3, 3, 1]
    kind = mr.data.DatasetSpec(mr.TensorSpec([], mr.int64))
    assert windows.element_spec == kind
    assert made.map(lambda each: (1, each)).element_spec[1] == kind


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "flat_map to a tensor": (
        lambda: list(Dataset.range(3).flat_map(lambda x: x)),
        TypeError,
        "The `map_func` argument must return a `Dataset` object",
    ),
    "flat_map to datasets of two kinds": (
        lambda: list(
            Dataset.range(2).flat_map(
                lambda x: Dataset.range(1) if x else Dataset.from_tensors(1.0)
            )
        ),
        mr.errors.InvalidArgumentError,
        "a dtype different",
    ),
    "flat_map of no function": (
        lambda: Dataset.range(3).flat_map(3),  # type: ignore[type-var]
        ValueError,
        "must be a callable",
    ),
    **{
        f"interleave of {options}": (
            lambda options=options: interleaved(range(3), int, **options),
            mr.errors.InvalidArgumentError,
            "must be greater than zero",
        )
        for options in (
            {"cycle_length": 0},
            {"cycle_length": -2},
            {"block_length": 0},
            {"num_parallel_calls": 0},
        )
    },
    "more calls than take turns": (
        lambda: interleaved(range(3), int, cycle_length=2, num_parallel_calls=3),
        mr.errors.InvalidArgumentError,
        "`num_parallel_calls` must not be greater",
    ),
    **{
        f"windows of {args}": (
            lambda args=args: Dataset.range(3).window(*args),
            mr.errors.InvalidArgumentError,
            "must be greater than zero",
        )
        for args in ((0,), (1, 0), (1, 1, -1))
    },
    "batches of windows": (
        lambda: list(Dataset.range(3).window(2).batch(2)),
        TypeError,
        "Datasets cannot be batched",
    ),
    "rows of windows": (
        lambda: list(Dataset.range(3).window(2).unbatch()),
        ValueError,
        "Slicing dataset elements is not supported",
    ),
    "rows of a dataset": (
        lambda: Dataset.from_tensor_slices(Dataset.range(3)),
        ValueError,
        "Slicing dataset elements is not supported",
    ),
    "arrays of windows": (
        lambda: list(Dataset.range(3).window(2).as_numpy_iterator()),
        TypeError,
        "not supported for datasets that produce values of type",
    ),
    "replicas' parts of windows": (
        lambda: list(
            mr.distribute.OneDeviceStrategy("CPU:0").experimental_distribute_dataset(
                Dataset.range(3).window(2)
            )
        ),
        ValueError,
        "Unable to get batched dataset",
    ),
    "two kinds of elements": (
        lambda: Dataset.range(3).window(2).concatenate(Dataset.range(3)),
        TypeError,
        "A dataset is not int64",
    ),
    "groups of no size": (lambda: grouped(), ValueError, "Either the `window_size` argument"),
    "groups of two sizes": (lambda: grouped(1, int), ValueError, "Either the `window_size`"),
    "groups of zero": (lambda: list(grouped(0)), mr.errors.InvalidArgumentError, "but got 0"),
    "a key that is none": (
        lambda: list(Dataset.range(3).group_by_window(lambda x: [x], lambda k, w: w, 2)),
        ValueError,
        "`key_func` must return a single `mr.int64` scalar",
    ),
    "a group that is none": (
        lambda: list(Dataset.range(3).group_by_window(lambda x: x, lambda k, w: k, 2)),
        TypeError,
        "The `reduce_func` argument must return a `Dataset`",
    ),
}


@cases(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error


METHODS_THAT_FLATTEN: dict[str, Callable[[mr.data.Dataset, Any], mr.data.Dataset]] = {
    "flat_map": lambda dataset, function: dataset.flat_map(function),
    "interleave": lambda dataset, function: dataset.interleave(function, 2),
    "group_by_window": lambda dataset, function: dataset.group_by_window(
        lambda x: x % 2, lambda key, window: function(key), 2
    ),
}


@cases("flatten", METHODS_THAT_FLATTEN.values(), ids=METHODS_THAT_FLATTEN)
def test_what_is_drawn_follows_from_the_iteration(
    flatten: Callable[[mr.data.Dataset, Any], mr.data.Dataset], listed: Listed
) -> None:
    """Of datasets that a function makes, and of one that it is given; a thread changes nothing."""

    def run(ahead: int) -> list[Any]:
        mr.random.set_seed(4)
        outer = Dataset.range(20).shuffle(20)

        def function(x: Any) -> mr.data.Dataset:
            noise = mr.random.uniform((), 0, 100, mr.int64)
            return (
                outer.take(3)
                .concatenate(Dataset.range(9).shuffle(9).take(2))
                .map(lambda y: y * 1000 + noise)
            )

        dataset = flatten(Dataset.range(4), function).prefetch(ahead)
        return [listed(dataset), listed(outer), listed(dataset)]

    first = run(0)
    assert first == run(0) == run(2)
    assert first[0] != first[2]
    assert len({*first[0]}) > 8


@cases("flatten", METHODS_THAT_FLATTEN.values(), ids=METHODS_THAT_FLATTEN)
def test_iterators_that_are_left_are_closed(
    flatten: Callable[[mr.data.Dataset, Any], mr.data.Dataset],
) -> None:
    closed = []

    def generator() -> Any:
        try:
            yield from range(9)
        finally:
            closed.append(True)

    def function(x: Any) -> mr.data.Dataset:
        return Dataset.from_generator(generator).map(lambda y: y).prefetch(1)

    iterator = iter(flatten(Dataset.range(4), function))
    for _ in range(2):
        next(iterator)
    iterator.close()
    assert closed


def test_windows_are_shared_among_replicas(simulate: Callable[..., Any]) -> None:
    """What `flat_map` makes is batched, and cut for replicas, as other elements are."""
    simulate(2)
    windows = Dataset.range(8).window(3, 1, drop_remainder=True).flat_map(lambda w: w.batch(3))
    strategy = mr.MirroredStrategy()
    batches = strategy.experimental_distribute_dataset(windows.batch(4))
    parts = [
        np.concatenate([part.numpy() for part in strategy.experimental_local_results(batch)])
        for batch in batches
    ]
    expected = np.lib.stride_tricks.sliding_window_view(np.arange(8), 3)
    assert np.array_equal(np.concatenate(parts), expected)
