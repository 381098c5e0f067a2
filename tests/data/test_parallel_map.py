"""Threads that make values in order: all of them, once, and none stays."""

import threading
from typing import Any

import pytest

from mirrored.data.parallel_map import parallel_map


def alive() -> int:
    return sum(thread.name == "mirrored-worker" for thread in threading.enumerate())


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("most", [1, 2, 50])
def test_results_are_in_order_and_no_more_are_made_than_asked(workers: int, most: int) -> None:
    given: list[int] = []

    def values() -> Any:
        for number in range(20):
            given.append(number)
            yield number

    for count, made in enumerate(parallel_map(str, values(), workers, most), 1):
        assert made == str(count - 1)
        assert len(given) <= count + most
    assert count == 20
    assert alive() == 0


def test_threads_work_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=30)
    assert list(parallel_map(lambda _: meeting.wait() < 3, range(3), 3, 3)) == [True] * 3


def test_what_goes_wrong_comes_where_it_belongs_and_ends_the_threads() -> None:
    made = parallel_map(lambda each: 1 // each, [2, 1, 0, 3], 2, 4)
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(made)
    assert alive() == 0
    assert list(made) == []


def test_leaving_ends_the_threads() -> None:
    made = parallel_map(abs, range(100), 2, 3)
    assert next(made) == 0
    assert alive() == 2
    made.close()
    assert alive() == 0
