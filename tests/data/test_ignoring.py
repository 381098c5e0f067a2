"""Elements that cannot be made are left out, and those behind them come: TensorFlow 2.21's."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Dataset = mr.data.Dataset


def inverse(x: Any) -> Any:
    return mr.debugging.check_numerics(1.0 / x, "an inverse")


def values(dataset: Any) -> list[Any]:
    return [np.asarray(each).tolist() for each in dataset.as_numpy_iterator()]


def numbers(*given: float) -> Any:
    return Dataset.from_tensor_slices(np.array(given, np.float32))


CASES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "one in the middle": (lambda: numbers(1, 2, 0, 4).map(inverse).ignore_errors(), [1, 0.5, 0.25]),
    "the first": (lambda: numbers(0, 2).map(inverse).ignore_errors(), [0.5]),
    "all": (lambda: numbers(0, 0).map(inverse).ignore_errors(), []),
    "batches": (
        lambda: numbers(1, 2, 0, 4).map(inverse).ignore_errors().batch(2),
        [[1, 0.5], [0.25]],
    ),
    "two functions": (
        lambda: numbers(1, 0, 4).map(inverse).map(lambda x: x * 2.0).ignore_errors(),
        [2, 0.5],
    ),
    "twice": (lambda: numbers(1, 0).map(inverse).ignore_errors().repeat(2), [1, 1]),
    "behind other methods": (
        lambda: numbers(1, 2, 0, 4, 8).map(inverse).enumerate().batch(2).ignore_errors().unbatch(),
        [[0, 1], [1, 0.5], [3, 0.25], [4, 0.125]],
    ),
    "as a function": (
        lambda: numbers(1, 0).map(inverse).apply(mr.data.experimental.ignore_errors()),
        [1],
    ),
}


@cases(("make", "expected"), CASES.values(), ids=CASES)
def test_elements_that_are_left(make: Callable[[], Any], expected: list[Any]) -> None:
    assert values(make()) == expected


def raising(error: type[Exception]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if x == 2.0:
            raise error("of this element")
        return x

    return function


@cases("error", [ValueError, RuntimeError, KeyError, OSError, StopIteration])
def test_errors_of_python(error: type[Exception]) -> None:
    assert values(numbers(1, 2, 3).map(raising(error)).ignore_errors()) == [1, 3]


@cases("error", [TypeError, NameError, AttributeError])
def test_what_a_wrong_program_raises(error: type[Exception]) -> None:
    """TensorFlow would when the dataset is made."""
    with pytest.raises(error, match="of this element") as caught:
        values(numbers(1, 2, 3).map(raising(error)).ignore_errors())
    assert "In Dataset.map, at element 1 (counted from 0)." in caught.value.__notes__


def test_of_a_dataset_it_is_known_what_its_elements_are() -> None:
    dataset = numbers(0, 2).map(inverse).ignore_errors()
    assert dataset.element_spec == mr.TensorSpec((), mr.float32)
    assert int(dataset.cardinality()) == mr.data.UNKNOWN_CARDINALITY


def test_other_elements_draw_what_they_would() -> None:
    def drawn(x: Any) -> Any:
        return mr.random.uniform(()) + inverse(x) * 0.0

    mr.random.set_seed(3)
    wanted = values(numbers(1, 2, 3).map(drawn))
    mr.random.set_seed(3)
    assert values(numbers(1, 2, 3, 0).map(drawn).ignore_errors()) == wanted


def test_each_error_is_told(caplog: pytest.LogCaptureFixture) -> None:
    dataset = numbers(1, 0, 0).map(inverse)
    with caplog.at_level(logging.WARNING, "mirrored"):
        values(dataset.ignore_errors())
        assert not caplog.records
        values(dataset.ignore_errors(log_warning=True))
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 2


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="Expected bool for argument 'log_warning' not 3"):
        numbers(1).map(inverse).ignore_errors(3)
