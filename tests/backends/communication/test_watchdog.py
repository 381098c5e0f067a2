"""A thread that looks now and then, is there while it is needed, and does not wait for looks."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mirrored.backends.communication.calls import Helpers
from mirrored.backends.communication.flights import Flights
from mirrored.backends.communication.looks import Looks
from mirrored.backends.communication.watchdog import Watchdog

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Bench:
    """A watchdog, and what it does."""

    def __init__(self, *, seconds: float = 0.002, patience: float = 0.01) -> None:
        self.busy = True
        self.looks = Looks(Flights(time.monotonic), threading.RLock(), time.monotonic)
        self.looked: list[str] = []
        self.ended = 0
        self.watchdog = Watchdog(
            self.looks,
            Helpers(time.monotonic, time.sleep),
            busy=lambda: self.busy,
            look=lambda: self.look(),
            end_unseen=self.end_unseen,
            seconds=seconds,
            patience=patience,
        )

    def look(self) -> None:
        self.looked.append(threading.current_thread().name)

    def end_unseen(self) -> None:
        self.ended += 1


def running() -> list[str]:
    names = [each.name for each in threading.enumerate()]
    return [name for name in names if name in ("mirrored-watchdog", "mirrored-look")]


def until(true: Callable[[], Any]) -> None:
    while not true():
        time.sleep(1e-4)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    until(lambda: running() == [])


def test_it_looks_in_threads_of_their_own() -> None:
    b = Bench()
    b.watchdog.start()
    until(lambda: len(b.looked) > 2)
    b.busy = False
    assert set(b.looked) == {"mirrored-look"}
    assert b.ended == 0


def test_there_is_one() -> None:
    b = Bench(seconds=30)
    for _ in range(3):
        b.watchdog.start()
        assert running() == ["mirrored-watchdog"]
    b.busy = False
    b.watchdog.rest()
    assert running() == []
    b.busy = True
    b.watchdog.start()
    assert running() == ["mirrored-watchdog"]
    b.busy = False
    b.watchdog.wake()


def test_waking_it_is_no_look() -> None:
    b = Bench(seconds=30)
    b.watchdog.start()
    for _ in range(5):
        b.watchdog.wake()
        until(lambda: not b.watchdog._woken.is_set())
    assert b.looked == []
    b.busy = False
    b.watchdog.rest()


def test_rest_where_there_is_something_to_look_after() -> None:
    b = Bench(seconds=30)
    b.watchdog.rest()
    b.watchdog.start()
    b.watchdog.rest()
    assert running() == ["mirrored-watchdog"]
    b.busy = False
    b.watchdog.rest()


def test_a_look_that_does_not_come_back() -> None:
    """What is late ends without one, and the next look is begun by whoever gave it up."""
    b, go_on = Bench(), threading.Event()

    def hangs() -> None:
        b.looks.under_way = object()
        go_on.wait(30)

    b.look = hangs  # type: ignore[method-assign]
    b.watchdog.start()
    until(lambda: b.ended > 2)
    b.busy = False
    go_on.set()
    b.watchdog.rest()
    assert b.looked == []


def test_looks_of_others_are_waited_for_too() -> None:
    b = Bench(patience=0.02)
    for number in range(40):  # One after the other: none of them takes long.
        b.looks.under_way = number
        b.watchdog.start()
        time.sleep(1e-3)
    few = b.ended
    until(lambda: b.ended > few)  # The last of them does.
    assert b.looked == []
    b.busy = False
    b.watchdog.rest()


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Bench()

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="for 'mirrored-watchdog'"):
            b.watchdog.start()
        b.watchdog.rest()
    assert b.looked == []
    b.watchdog.start()
    until(lambda: b.looked)
    with monkeypatch.context() as patch:  # What is late ends though nothing can be asked.
        patch.setattr(threading.Thread, "start", start)
        until(lambda: b.ended)
    b.busy = False
