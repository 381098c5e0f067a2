"""What the tests of datasets share: elements as plain Python values, and threads that are left."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import _nest


class Made:
    """Tells how many elements were made, by whichever thread."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def note(self, element: Any) -> Any:
        """Count an element, and return it."""
        with self._changed:
            self.count += 1
            self._changed.notify()
        return element

    def wait_for(self, count: int) -> None:
        """Wait until so many were made."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, timeout=30)


@pytest.fixture
def made() -> Made:
    """Return what counts elements; see `Made`."""
    return Made()


def _listed(dataset: mr.data.Dataset) -> list[Any]:
    def plain(value: Any) -> Any:
        return value.tolist()

    return [_nest.map_structure(plain, element) for element in dataset.as_numpy_iterator()]


@pytest.fixture
def listed() -> Callable[[mr.data.Dataset], list[Any]]:
    """Return ``listed(dataset)``: its elements, made of Python's numbers and lists."""
    return _listed


@pytest.fixture
def check_passes() -> Callable[[mr.data.Dataset, list[Any], int], None]:
    """Return a function that holds two passes over a dataset to its elements and cardinality."""

    def check(dataset: mr.data.Dataset, expected: list[Any], size: int) -> None:
        assert int(dataset.cardinality()) == size
        assert _listed(dataset) == _listed(dataset) == expected

    return check


@pytest.fixture
def ragged() -> mr.data.Dataset:
    """Return a dataset whose third element has another shape than the first two."""
    return mr.data.Dataset.from_generator(lambda: iter([[1, 2], [3, 4], [5], [6, 7]]))


@pytest.fixture
def one_by_one() -> Callable[[mr.data.Dataset], mr.data.Dataset]:
    """Return a function from a dataset to an equal one, which is read element by element."""
    return lambda dataset: dataset.filter(lambda *parts: np.True_)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Check after each test that the threads are those that were there before it."""
    before = threading.enumerate()
    yield
    assert threading.enumerate() == before
