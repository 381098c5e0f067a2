"""The thread behind `prefetch`: what it makes ahead, and that it ends with its consumer.

That no thread is left is checked after every test of this folder.
"""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mirrored as mr

Dataset = mr.data.Dataset


def workers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "mirrored-prefetch"]


@pytest.mark.parametrize("bound", [1, 3])
def test_elements_are_made_ahead_up_to_the_bound(bound: int, made: Any) -> None:
    numbers = Dataset.from_generator(lambda: map(made.note, range(1000)))
    iterator = iter(numbers.prefetch(bound))
    assert made.count == 0
    assert int(next(iterator)) == 0
    made.wait_for(1 + bound)  # One was taken, and so many wait.
    assert int(next(iterator)) == 1
    made.wait_for(2 + bound)
    assert made.count == 2 + bound
    assert len(workers()) == 1


ENDINGS: dict[str, Callable[[Iterator[Any]], Any]] = {
    "closed": lambda iterator: iterator.close(),  # type: ignore[attr-defined]
    "deleted": lambda iterator: None,
    "at the end": lambda iterator: list(iterator),
}


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_the_thread_ends_with_its_iterator(end: Callable[[Iterator[Any]], Any]) -> None:
    iterator = iter(Dataset.range(50).prefetch(2).batch(2).prefetch(1))
    next(iterator)
    assert len(workers()) == 2
    end(iterator)
    del iterator
    assert workers() == []


def test_the_thread_ends_with_a_loop_that_is_left() -> None:
    for each in Dataset.range(50).prefetch(2):
        if int(each) == 3:
            break
    assert workers() == []

    def fails() -> None:
        for _ in Dataset.range(50).prefetch(2):
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert workers() == []


def test_the_thread_ends_with_an_iterator_in_a_cycle() -> None:
    cycle: list[Any] = [iter(Dataset.range(50).prefetch(2))]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert workers() == []


def test_iterators_are_independent() -> None:
    dataset = Dataset.range(20).prefetch(2)
    first, second = iter(dataset), iter(dataset)
    assert [int(next(first)) for _ in range(3)] == [0, 1, 2]
    assert [int(next(second)) for _ in range(2)] == [0, 1]
    assert len(workers()) == 2
    assert [int(each) for each in first] == list(range(3, 20))
    assert int(next(second)) == 2


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_every_exception_reaches_the_consumer(error: type[BaseException]) -> None:
    def breaks() -> Iterator[int]:
        yield 1
        raise error

    iterator = iter(Dataset.from_generator(breaks).prefetch(3).prefetch(2))
    assert int(next(iterator)) == 1
    with pytest.raises(error) as caught:
        next(iterator)
    assert type(caught.value) is error
    assert workers() == []
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_a_fork() -> None:
    """A child says that the iterator is not its own, and can make another."""
    dataset = Dataset.range(20).prefetch(2)
    iterator = iter(dataset)
    assert int(next(iterator)) == 0
    child = os.fork()
    if child == 0:
        status = 1
        try:
            next(iterator)
        except RuntimeError as error:
            told = "made before the fork" in str(error)
            status = 0 if told and [int(each) for each in dataset] == list(range(20)) else 2
        finally:
            del iterator
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert [int(each) for each in iterator] == list(range(1, 20))


def test_exit_with_an_iterator_that_is_not_at_its_end() -> None:
    script = (
        "import mirrored as mr\n"
        "iterator = iter(mr.data.Dataset.range(10**6).prefetch(2))\n"
        "print(int(next(iterator)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
