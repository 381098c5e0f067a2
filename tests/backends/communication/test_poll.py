"""What is in flight is polled by one at a time, with the books open, also where nobody waits."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mirrored.backends.communication import watch
from mirrored.backends.communication.in_flight import Asker, InFlight, Request, Workers
from mirrored.backends.communication.watch import Poller, Trouble, Watchdog
from mirrored.errors import DeviceLostError

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Devices:
    """A connection of two devices."""

    def __init__(self, *names: str) -> None:
        self.names = names or ("GPU:0", "GPU:1")
        self.failure: Callable[[], str | None] = lambda: None

    def disconnect(self) -> Callable[[], object] | None:
        return None


class Bench:
    """Polls by a clock that a test sets; each collective is done once the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lock = threading.RLock()
        self.requests = InFlight(lambda: self.now)
        self.poller = Poller(self.requests, self.lock, lambda: self.now)
        self.done: set[str] = set()

    def ask(
        self,
        connection: Devices,
        what: str,
        timeout: float = 10.0,
        done: Callable[[], bool] | None = None,
    ) -> Request:
        request = Request(
            connection, what, None, timeout, done or (lambda: what in self.done), lambda: [True]
        )
        self.requests.add(request, Asker())
        return request

    def is_locked(self) -> bool:
        """Return whether this thread holds the lock."""
        free: list[bool] = []

        def ask() -> None:
            free.append(self.lock.acquire(timeout=0.0))
            if free[0]:
                self.lock.release()

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return not free[0]


def test_done_is_retired_in_order() -> None:
    b, devices = Bench(), Devices()
    asked = [b.ask(devices, what) for what in "abc"]
    b.done = {"b", "c"}
    assert b.poller.poll() is None
    assert [each in b.requests for each in asked] == [True, True, True]
    b.done = {"a", "b"}
    assert b.poller.poll() is None
    assert [each in b.requests for each in asked] == [False, False, True]
    b.done = {"c"}
    assert b.poller.poll() is None
    assert not b.requests


def test_late() -> None:
    b, devices = Bench(), Devices()
    request = b.ask(devices, "a")
    b.now = 9.9
    assert b.poller.poll() is None
    assert b.poller.last == 9.9
    b.now = 10
    assert b.poller.poll() == Trouble(request, (True,), late=True)
    b.done = {"a"}  # What is done is done.
    assert b.poller.poll() is None


def test_connections_do_not_wait_for_each_other() -> None:
    b, one, other = Bench(), Devices(), Devices("GPU:2")
    b.ask(one, "a", math.inf)
    request = b.ask(other, "b")
    b.now = 10
    assert b.poller.poll([one]) is None
    assert b.poller.poll() == Trouble(request, (True,), late=True)


def test_failure_goes_before_lateness() -> None:
    b, devices = Bench(), Devices()
    request = b.ask(devices, "a", 0)
    devices.failure = lambda: "the link is down"
    assert b.poller.poll() == Trouble(request, (True,), failure="the link is down")


def test_a_look_that_raises() -> None:
    b, devices = Bench(), Devices()
    error = DeviceLostError("GPU:1 failed")

    def lost() -> bool:
        raise error

    request = b.ask(devices, "a", done=lost)
    assert b.poller.poll() == Trouble(request, (True,), cause=error)
    assert b.poller.under_way is None


def test_an_interrupted_look_is_over() -> None:
    b, devices = Bench(), Devices()

    def interrupted() -> bool:
        raise KeyboardInterrupt

    b.ask(devices, "a", done=interrupted)
    with pytest.raises(KeyboardInterrupt):
        b.poller.poll()
    assert b.poller.under_way is None


@pytest.mark.parametrize("where", ["done", "failure", "ranks"])
def test_no_lock_is_held_while_a_device_is_asked(where: str) -> None:
    b, devices, locked = Bench(), Devices(), []

    def asked(here: str) -> None:
        if here == where:
            locked.append(b.is_locked())

    devices.failure = lambda: asked("failure")
    request = b.ask(devices, "a", 0, done=lambda: bool(asked("done")))
    request.ranks = lambda: [bool(asked("ranks"))]
    b.poller.poll()
    assert locked == [False]


def test_others_skip_a_look_and_see_what_is_overdue() -> None:
    b, devices, found = Bench(), Devices(), []

    def meanwhile() -> bool:
        b.now = 10.0
        found.extend([b.poller.poll(), b.poller.overdue()])
        return False

    assert b.poller.overdue() is None
    request = b.ask(devices, "a", done=meanwhile)
    trouble = b.poller.poll()
    assert found == [None, Trouble(request, (None, None), late=True)]
    assert trouble == Trouble(request, (True,), late=True)


def test_a_look_that_was_given_up_takes_nothing_from_the_next() -> None:
    b, devices, another = Bench(), Devices(), object()

    def hangs() -> bool:
        b.requests.take_all()  # Everything ends, by what another thread sees, which looks again.
        b.poller.give_up()
        b.poller.under_way = another
        return True

    request = b.ask(devices, "a", done=hangs)
    assert b.poller.poll() is None
    assert request.is_lost
    assert b.poller.under_way is another


class Guarded:
    """A watchdog, and what it does."""

    def __init__(self, *, seconds: float = 0.002, patience: float = 0.01) -> None:
        self.busy = True
        self.poller = Poller(InFlight(time.monotonic), threading.RLock(), time.monotonic)
        self.looked: list[str] = []
        self.ended = self.interrupted = 0
        self.watchdog = Watchdog(
            self.poller,
            Workers(time.monotonic, time.sleep),
            busy=lambda: self.busy,
            poll=lambda: self.poll(),
            abort_overdue=self.abort_overdue,
            abort_interrupted=self.abort_interrupted,
            seconds=seconds,
            patience=patience,
        )

    def poll(self) -> None:
        self.looked.append(threading.current_thread().name)

    def abort_overdue(self) -> None:
        self.ended += 1

    def abort_interrupted(self) -> None:
        self.interrupted += 1


def running() -> list[str]:
    names = [each.name for each in threading.enumerate()]
    return [name for name in names if name in ("mirrored-watchdog", "mirrored-poll")]


def until(true: Callable[[], Any]) -> None:
    while not true():
        time.sleep(1e-4)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    until(lambda: running() == [])


def test_it_looks_in_threads_of_their_own() -> None:
    b = Guarded()
    b.watchdog.start()
    until(lambda: len(b.looked) > 2)
    b.busy = False
    assert set(b.looked) == {"mirrored-poll"}
    assert b.ended == 0


def test_there_is_one() -> None:
    b = Guarded(seconds=30)
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
    b = Guarded(seconds=30)
    b.watchdog.start()
    for _ in range(5):
        b.watchdog.wake()
        until(lambda: not b.watchdog._woken.is_set())
    assert b.looked == []
    b.busy = False
    b.watchdog.rest()


def test_rest_where_there_is_something_to_look_after() -> None:
    b = Guarded(seconds=30)
    b.watchdog.rest()
    b.watchdog.start()
    b.watchdog.rest()
    assert running() == ["mirrored-watchdog"]
    b.busy = False
    b.watchdog.rest()


def test_a_look_that_does_not_come_back() -> None:
    """What is late ends without one, and the next look is begun by whoever gave it up."""
    b, go_on = Guarded(), threading.Event()

    def hangs() -> None:
        b.poller.under_way = object()
        go_on.wait(30)

    b.poll = hangs  # type: ignore[method-assign]
    b.watchdog.start()
    until(lambda: b.ended > 2)
    b.busy = False
    go_on.set()
    b.watchdog.rest()
    assert b.looked == []


def test_an_interrupt_that_the_main_thread_does_not_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    b, overdue = Guarded(), threading.Event()
    monkeypatch.setattr(watch.WAKEUP, "is_overdue", overdue.is_set)
    b.watchdog.start()
    until(lambda: len(b.looked) > 2)
    assert not b.interrupted
    overdue.set()
    until(lambda: b.interrupted > 0)
    b.busy = False
    b.watchdog.rest()


def test_looks_of_others_are_waited_for_too() -> None:
    b = Guarded(patience=0.02)
    for number in range(40):  # One after the other: none of them takes long.
        b.poller.under_way = number
        b.watchdog.start()
        time.sleep(1e-3)
    few = b.ended
    until(lambda: b.ended > few)  # The last of them does.
    assert b.looked == []
    b.busy = False
    b.watchdog.rest()


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Guarded()

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
