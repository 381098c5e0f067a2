"""The functions of `tf.data.experimental` do what the methods of datasets do."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset
experimental = mr.data.experimental
Listed = Callable[[mr.data.Dataset], list[Any]]


def some() -> mr.data.Dataset:
    return Dataset.from_tensor_slices([3, 1, 3, 2])


def key(x: Any) -> Any:
    return mr.cast(x % 2, mr.int64)


def batched(key: Any, group: mr.data.Dataset) -> mr.data.Dataset:
    return group.batch(2)


# What is applied, and what a dataset's own method makes.
SAME: dict[str, tuple[Callable[[], Any], Callable[[mr.data.Dataset], mr.data.Dataset]]] = {
    "enumerate_dataset": (lambda: experimental.enumerate_dataset(5), lambda d: d.enumerate(5)),
    "group_by_window": (
        lambda: experimental.group_by_window(key, batched, 2),
        lambda d: d.group_by_window(key, batched, 2),
    ),
    "map_and_batch": (
        lambda: experimental.map_and_batch(lambda x: x + 1, 3, drop_remainder=True),
        lambda d: d.map(lambda x: x + 1).batch(3, True),
    ),
    "scan": (
        lambda: experimental.scan(0, lambda s, x: (s + x, s)),
        lambda d: d.scan(0, lambda s, x: (s + x, s)),
    ),
    "shuffle_and_repeat": (
        lambda: experimental.shuffle_and_repeat(4, 2, 7),
        lambda d: d.shuffle(4, 7).repeat(2),
    ),
    "take_while": (
        lambda: experimental.take_while(lambda x: x > 1),
        lambda d: d.take_while(lambda x: x > 1),
    ),
    "unique": (experimental.unique, lambda d: d.unique()),
    "assert_cardinality": (lambda: experimental.assert_cardinality(4), lambda d: d),
}


@cases(("make", "method"), SAME.values(), ids=SAME)
def test_applied(make: Callable[[], Any], method: Any, listed: Listed) -> None:
    found, expected = some().apply(make()), method(some())
    assert listed(found) == listed(expected)
    assert int(found.cardinality()) == int(expected.cardinality())
    assert found.element_spec == expected.element_spec


@cases(("number", "given"), [(3, 3), (5, 4), (-1, 4)])
def test_a_wrong_number_of_elements(number: int, given: int) -> None:
    asserted = some().filter(lambda x: x > 0).apply(experimental.assert_cardinality(number))
    assert int(experimental.cardinality(asserted)) == number
    elements = iter(asserted)
    for _ in range(given):
        next(elements)
    with pytest.raises(mr.errors.InvalidArgumentError, match="Input dataset was expected"):
        next(elements)


def test_functions_of_datasets(listed: Listed) -> None:
    assert listed(experimental.Counter(2, 3, mr.int32).take(2)) == [2, 5]
    assert listed(some().batch(2).apply(experimental.unbatch())) == [3, 1, 3, 2]
    assert int(experimental.get_single_element(some().take(1))) == 3
    assert experimental.get_structure(iter(some())) == mr.TensorSpec([], mr.int32)
    choices = Dataset.range(1).repeat(9)
    mixed = experimental.choose_from_datasets([some(), some()], choices)
    assert listed(mixed) == [3, 1, 3, 2]
    mixed = experimental.sample_from_datasets([some(), Dataset.from_tensors(7)], [0.0, 1.0])
    assert listed(mixed) == [7]
    assert listed(experimental.from_list([(1, [2.0]), (3, [4.0])])) == [(1, [2]), (3, [4])]


@cases(
    ("act", "error"),
    [
        (lambda: experimental.from_list([]), ValueError),
        (lambda: experimental.from_list(3), ValueError),
        (lambda: experimental.from_list([1, 2.0]), mr.errors.InvalidArgumentError),
        (lambda: experimental.assert_cardinality("a"), TypeError),
        (lambda: experimental.get_structure(3), TypeError),
    ],
)
def test_refused(act: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        act()
    assert type(caught.value) is error
