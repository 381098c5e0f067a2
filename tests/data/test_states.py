"""States that functions take from element to element; TensorFlow 2.21 gives what is expected."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

Dataset = mr.data.Dataset
Listed = Callable[[mr.data.Dataset], list[Any]]
ZERO = np.int64(0)


def plain(value: Any) -> Any:
    """Return dtype and value of each tensor of a structure."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.dtype.name, value.numpy().tolist()


REDUCED: dict[str, tuple[Callable[[], Any], Any]] = {
    "a count": (lambda: Dataset.range(5).reduce(0, lambda n, x: n + 1), ("int32", 5)),
    "a sum": (lambda: Dataset.range(5).reduce(ZERO, lambda n, x: n + x), ("int64", 10)),
    "nothing": (lambda: Dataset.range(0).reduce(7, lambda n, x: n + 1), ("int32", 7)),
    "a tuple": (
        lambda: Dataset.range(5).reduce((ZERO, 1.0), lambda s, x: (s[0] + x, s[1] * 2.0)),
        (("int64", 10), ("float32", 32.0)),
    ),
    "a list that is returned": (
        lambda: Dataset.range(3).reduce((0, 1), lambda s, x: [s[1], s[0]]),
        (("int32", 1), ("int32", 0)),
    ),
    "a list that is given": (
        lambda: Dataset.range(3).reduce([0, 1], lambda s, x: s + 1),
        ("int32", [3, 4]),
    ),
    "a dict": (
        lambda: Dataset.range(3).reduce({"a": ZERO}, lambda s, x: {"a": s["a"] + x}),
        {"a": ("int64", 3)},
    ),
    "elements of tuples": (
        lambda: Dataset.from_tensor_slices(([1, 2], [3.0, 4.0])).reduce(0.0, lambda s, e: s + e[1]),
        ("float32", 7.0),
    ),
    "a shape that grows": (
        lambda: Dataset.range(3).reduce([0], lambda s, x: mr.concat([s, [1]], 0)),
        ("int32", [0, 1, 1, 1]),
    ),
}


@pytest.mark.parametrize(("reduce", "expected"), REDUCED.values(), ids=REDUCED)
def test_reduce(reduce: Callable[[], Any], expected: Any) -> None:
    assert plain(reduce()) == expected


def test_scan(listed: Listed) -> None:
    numbers = Dataset.range(1, 5)
    sums = numbers.scan(ZERO, lambda total, x: (total + x, (total + x, {"of": x})))
    assert len(sums) == 4
    assert sums.element_spec == (mr.TensorSpec([], mr.int64), {"of": mr.TensorSpec([], mr.int64)})
    for _ in range(2):
        assert listed(sums) == [(1, {"of": 1}), (3, {"of": 2}), (6, {"of": 3}), (10, {"of": 4})]
    assert listed(numbers.scan((0, 1), lambda s, x: [(s[1], s[0] + s[1]), (s[0], 1)])) == [
        (0, 1),
        (1, 1),
        (1, 1),
        (2, 1),
    ]


def test_scan_draws_from_its_own_stream(listed: Listed) -> None:
    def run(ahead: int) -> list[Any]:
        mr.random.set_seed(2)
        dataset = Dataset.range(3).scan(0, lambda s, x: (s, mr.random.uniform(()))).prefetch(ahead)
        return [listed(dataset), listed(dataset)]

    first, second = run(0)
    assert [first, second] == run(1)
    assert first != second


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: Dataset.range(3).reduce(0, 5), ValueError, "`reduce_func` must be a"),
    "another dtype": (
        lambda: Dataset.range(3).reduce(0, lambda s, x: x),
        TypeError,
        r"Expected \['int32'\] but got \['int64'\]",
    ),
    "more parts": (
        lambda: Dataset.range(3).reduce(0, lambda s, x: (s, s)),
        mr.errors.InvalidArgumentError,
        "The number of components of the initial state and the new state differ: 1 and 2",
    ),
    "no pair": (
        lambda: list(Dataset.range(3).scan(0, lambda s, x: s)),
        TypeError,
        "`scan_func` should return a pair",
    ),
    "another dtype of scan": (
        lambda: list(Dataset.range(3).scan(0, lambda s, x: (x, x))),
        TypeError,
        "must match the initial state",
    ),
    "recorded": (
        lambda: mr.function(lambda: Dataset.range(3).reduce(0, lambda s, x: s))(),
        mr.errors.OperatorNotAllowedInGraphError,
        "Call it outside",
    ),
    "not one element": (
        lambda: Dataset.range(3).get_single_element(),
        mr.errors.InvalidArgumentError,
        "Dataset had more than one element",
    ),
    "no element": (
        lambda: Dataset.range(0).get_single_element(),
        mr.errors.InvalidArgumentError,
        "Dataset was empty",
    ),
}


@pytest.mark.parametrize(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        act()
    assert type(caught.value) is error


def test_functions_of_states_are_unseen_by_tapes() -> None:
    with mr.GradientTape() as tape:
        start = mr.constant(1.0)
        tape.watch(start)
        total = Dataset.range(3).reduce(start, lambda s, x: s * 2.0)
    assert float(total) == 8.0
    assert tape.gradient(total, start) is None


def test_one_element() -> None:
    element = Dataset.from_tensors(([1], {"a": 2.0})).get_single_element()
    assert plain(element) == (("int32", [1]), {"a": ("float32", 2.0)})
    assert int(mr.function(lambda: Dataset.range(4, 5).get_single_element() * 2)()) == 8
