"""Looks at what is in flight: one at a time, with the books open while a device is asked."""

import math
import threading
from collections.abc import Callable

import pytest

from mirrored.backends.communication.flights import Asker, Flight, Flights
from mirrored.backends.communication.looks import Looks, Trouble
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
    """Looks by a clock that a test sets; each collective is done once the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lock = threading.RLock()
        self.flights = Flights(lambda: self.now)
        self.looks = Looks(self.flights, self.lock, lambda: self.now)
        self.done: set[str] = set()

    def ask(
        self,
        connection: Devices,
        what: str,
        timeout: float = 10.0,
        done: Callable[[], bool] | None = None,
    ) -> Flight:
        flight = Flight(
            connection, what, None, timeout, done or (lambda: what in self.done), lambda: [True]
        )
        self.flights.add(flight, Asker())
        return flight

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
    assert b.looks.look() is None
    assert [each in b.flights for each in asked] == [True, True, True]
    b.done = {"a", "b"}
    assert b.looks.look() is None
    assert [each in b.flights for each in asked] == [False, False, True]
    b.done = {"c"}
    assert b.looks.look() is None
    assert not b.flights


def test_late() -> None:
    b, devices = Bench(), Devices()
    flight = b.ask(devices, "a")
    b.now = 9.9
    assert b.looks.look() is None
    assert b.looks.last == 9.9
    b.now = 10
    assert b.looks.look() == Trouble(flight, (True,), late=True)
    b.done = {"a"}  # What is done is done.
    assert b.looks.look() is None


def test_connections_do_not_wait_for_each_other() -> None:
    b, one, other = Bench(), Devices(), Devices("GPU:2")
    b.ask(one, "a", math.inf)
    flight = b.ask(other, "b")
    b.now = 10
    assert b.looks.look([one]) is None
    assert b.looks.look() == Trouble(flight, (True,), late=True)


def test_failure_goes_before_lateness() -> None:
    b, devices = Bench(), Devices()
    flight = b.ask(devices, "a", 0)
    devices.failure = lambda: "the link is down"
    assert b.looks.look() == Trouble(flight, (True,), failure="the link is down")


def test_a_look_that_raises() -> None:
    b, devices = Bench(), Devices()
    error = DeviceLostError("GPU:1 failed")

    def lost() -> bool:
        raise error

    flight = b.ask(devices, "a", done=lost)
    assert b.looks.look() == Trouble(flight, (True,), cause=error)
    assert b.looks.under_way is None


def test_an_interrupted_look_is_over() -> None:
    b, devices = Bench(), Devices()

    def interrupted() -> bool:
        raise KeyboardInterrupt

    b.ask(devices, "a", done=interrupted)
    with pytest.raises(KeyboardInterrupt):
        b.looks.look()
    assert b.looks.under_way is None


@pytest.mark.parametrize("where", ["done", "failure", "ranks"])
def test_no_lock_is_held_while_a_device_is_asked(where: str) -> None:
    b, devices, locked = Bench(), Devices(), []

    def asked(here: str) -> None:
        if here == where:
            locked.append(b.is_locked())

    devices.failure = lambda: asked("failure")
    flight = b.ask(devices, "a", 0, done=lambda: bool(asked("done")))
    flight.ranks = lambda: [bool(asked("ranks"))]
    b.looks.look()
    assert locked == [False]


def test_others_skip_a_look_and_see_what_is_overdue() -> None:
    b, devices, found = Bench(), Devices(), []

    def meanwhile() -> bool:
        b.now = 10.0
        found.extend([b.looks.look(), b.looks.overdue()])
        return False

    assert b.looks.overdue() is None
    flight = b.ask(devices, "a", done=meanwhile)
    trouble = b.looks.look()
    assert found == [None, Trouble(flight, (None, None), late=True)]
    assert trouble == Trouble(flight, (True,), late=True)


def test_a_look_that_was_given_up_takes_nothing_from_the_next() -> None:
    b, devices, another = Bench(), Devices(), object()

    def hangs() -> bool:
        b.flights.take_all()  # Everything ends, by what another thread sees, which looks again.
        b.looks.give_up()
        b.looks.under_way = another
        return True

    flight = b.ask(devices, "a", done=hangs)
    assert b.looks.look() is None
    assert flight.is_lost
    assert b.looks.under_way is another
