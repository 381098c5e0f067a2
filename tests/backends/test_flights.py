"""The books of collectives in flight: what is retired, what is late, and what is remembered."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from mirrored.backends.flights import Asker, Flight, Flights
from mirrored.errors import DeviceLostError


class Devices:
    """A connection of two devices."""

    def __init__(self, *names: str) -> None:
        self.names = names or ("GPU:0", "GPU:1")
        self.wrong: str | None = None
        self.disconnected = 0

    def failure(self) -> str | None:
        return self.wrong

    def disconnect(self) -> Callable[[], object]:
        self.disconnected += 1
        return lambda: None


class Books:
    """Flights by a clock that a test sets; each is done once the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.flights = Flights(lambda: self.now)
        self.done: set[str] = set()

    def ask(self, connection: Devices, what: str, timeout: float = 10.0, **options: Any) -> Flight:
        flight = Flight(connection, what, None, timeout, lambda: what in self.done, **options)
        self.flights.add(flight, Asker())
        return flight


def test_done_is_retired_in_order() -> None:
    books, devices = Books(), Devices()
    asked = [books.ask(devices, what) for what in "abc"]
    books.done = {"b", "c"}
    assert books.flights.trouble() is None
    assert [each in books.flights for each in asked] == [True, True, True]
    books.done = {"a", "b"}
    assert books.flights.trouble() is None
    assert [each in books.flights for each in asked] == [False, False, True]
    assert books.flights.first() is asked[2]
    books.done = {"c"}
    assert books.flights.trouble() is None
    assert not books.flights
    assert books.flights.of(devices) == 0


@pytest.mark.parametrize(
    ("timeout", "now", "late"),
    [(10, 9.9, False), (10, 10, True), (math.inf, 1e9, False), (0, 0, True)],
)
def test_late(timeout: float, now: float, late: bool) -> None:
    books, devices = Books(), Devices()
    books.ask(devices, "a", timeout)
    books.now = now
    incident = books.flights.trouble()
    assert (incident is not None) == late
    if incident is not None:
        assert (incident.late, incident.elapsed, incident.timeout) == (True, now, timeout)


def test_seconds_count_from_when_the_one_before_was_seen_done() -> None:
    books, devices = Books(), Devices()
    books.ask(devices, "a", 100)
    books.ask(devices, "b", 10)
    books.now = 60
    assert books.flights.trouble() is None  # "b" waits behind "a".
    books.done = {"a"}
    assert books.flights.trouble() is None
    books.now = 69
    assert books.flights.trouble() is None
    books.now = 70
    incident = books.flights.trouble()
    assert incident is not None
    assert (incident.what, incident.elapsed, incident.completed) == ("b", 10, ("a",))


def test_connections_do_not_wait_for_each_other() -> None:
    books, one, other = Books(), Devices(), Devices("GPU:2")
    books.ask(one, "a", 100)
    books.ask(other, "b", 10)
    books.now = 10
    assert books.flights.trouble([one]) is None
    incident = books.flights.trouble()
    assert incident is not None
    assert (incident.what, incident.names) == ("b", ("GPU:2",))


def test_the_last_eight_are_remembered() -> None:
    books, devices = Books(), Devices()
    for number in range(10):
        books.ask(devices, str(number))
        books.done.add(str(number))
        assert books.flights.trouble() is None
    found = books.flights.incident(books.ask(devices, "x"))
    assert found.completed == tuple("23456789")


def test_failure_goes_before_lateness() -> None:
    books, devices = Books(), Devices()
    books.ask(devices, "a", 0)
    devices.wrong = "the link is down"
    incident = books.flights.trouble()
    assert incident is not None
    assert (incident.failure, incident.late) == ("the link is down", False)
    books.done = {"a"}  # What is done is done.
    assert books.flights.trouble() is None


def test_a_look_that_raises() -> None:
    books, devices = Books(), Devices()

    def lost() -> bool:
        raise DeviceLostError("GPU:1 failed")

    books.flights.add(Flight(devices, "a", 3, 1.0, lost, ranks=lambda: [lost()]), Asker())
    incident = books.flights.trouble()
    assert incident is not None
    assert isinstance(incident.cause, DeviceLostError)
    assert (incident.done, incident.step) == ((None, None), 3)


def test_removed() -> None:
    books, devices = Books(), Devices()
    first, second = books.ask(devices, "a"), books.ask(devices, "b")
    books.flights.remove(first)
    books.flights.remove(first)
    assert books.flights.first() is second
    books.flights.remove(second)
    assert not books.flights


def test_all_taken() -> None:
    books, one, other, quiet = Books(), Devices(), Devices("GPU:2"), Devices("GPU:3")
    asked = [books.ask(one, "a"), books.ask(one, "b"), books.ask(other, "c")]
    quick = books.ask(quiet, "d")
    books.done = {"d"}
    assert books.flights.trouble() is None
    assert quick not in books.flights
    aborts, askers = books.flights.take_all()
    assert [names for names, _ in aborts] == ["GPU:0+GPU:1", "GPU:2"]
    assert askers == {each.asker for each in asked}
    assert not books.flights
    assert [each.disconnected for each in (one, other, quiet)] == [1, 1, 0]
    assert books.flights.incident(books.ask(one, "x")).completed == ()
