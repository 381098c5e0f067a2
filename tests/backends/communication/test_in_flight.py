"""The books of collectives in flight: what is retired, what is late, and what is remembered."""

import math
from collections.abc import Callable
from typing import Any

from case_table import cases

from mirrored.backends.communication.in_flight import Asker, InFlight, Request
from mirrored.errors import DeviceLostError


class Devices:
    """A connection of two devices; the books do not ask whether anything has failed."""

    def __init__(self, *names: str) -> None:
        self.names = names or ("GPU:0", "GPU:1")
        self.disconnected = 0

    def failure(self) -> str | None:
        raise AssertionError("The books ask nobody.")

    def disconnect(self) -> Callable[[], object]:
        self.disconnected += 1
        return lambda: None


class Books:
    """InFlight by a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.requests = InFlight(lambda: self.now)

    def ask(self, connection: Devices, what: str, timeout: float = 10.0, **options: Any) -> Request:
        request = Request(connection, what, None, timeout, connection.failure, **options)
        self.requests.add(request, Asker())
        return request


def test_the_first_alone_is_retired() -> None:
    books, devices, other = Books(), Devices(), Devices("GPU:2")
    first, second = books.ask(devices, "a"), books.ask(devices, "b")
    third = books.ask(other, "c")
    assert books.requests.connections() == (devices, other)
    assert books.requests.first() is books.requests.first(devices) is first
    books.requests.retire(second)
    assert second in books.requests
    books.requests.retire(first)
    books.requests.retire(first)  # Another thread saw it as well.
    assert first not in books.requests
    assert books.requests.first(devices) is second
    books.requests.retire(second)
    assert books.requests.first(devices) is None
    assert (books.requests.of(devices), books.requests.of(other)) == (0, 1)
    books.requests.retire(third)
    assert not books.requests
    assert books.requests.first() is None


@cases(
    ("timeout", "now", "late"),
    [(10, 9.9, False), (10, 10, True), (math.inf, 1e9, False), (0, 0, True)],
)
def test_late(timeout: float, now: float, late: bool) -> None:
    books, devices = Books(), Devices()
    request = books.ask(devices, "a", timeout)
    books.now = now
    assert books.requests.is_late(request) == late
    assert books.requests.overdue() is (request if late else None)
    found = books.requests.failed(request)
    assert (found.elapsed, found.timeout) == (now, timeout)


def test_the_first_of_each_connection_can_be_overdue() -> None:
    books, one, other = Books(), Devices(), Devices("GPU:2")
    books.ask(one, "a", 100)
    books.ask(one, "b", 1)  # It waits behind "a".
    late = books.ask(other, "c", 10)
    books.now = 9
    assert books.requests.overdue() is None
    books.now = 10
    assert books.requests.overdue() is late


def test_seconds_count_from_when_the_one_before_was_seen_done() -> None:
    books, devices = Books(), Devices()
    first, second = books.ask(devices, "a", 100), books.ask(devices, "b", 10)
    books.now = 60
    books.requests.retire(first)
    books.now = 69
    assert not books.requests.is_late(second)
    books.now = 70
    assert books.requests.is_late(second)
    found = books.requests.failed(second, late=True, done=(True, None))
    assert (found.what, found.elapsed, found.completed) == ("b", 10, ("a",))
    assert (found.late, found.done) == (True, (True, None))


def test_in_a_hurry() -> None:
    books, devices = Books(), Devices()
    request = books.ask(devices, "a", math.inf)
    books.requests.until = 5.0
    assert books.requests.overdue() is None
    books.now = 5.0
    assert books.requests.overdue() is request
    assert books.requests.failed(request).timeout == 5.0
    books.requests.until = math.inf
    assert books.requests.overdue() is None


def test_the_last_eight_are_remembered() -> None:
    books, devices = Books(), Devices()
    for number in range(10):
        books.requests.retire(books.ask(devices, str(number)))
    found = books.requests.failed(books.ask(devices, "x"))
    assert found.completed == tuple("23456789")


def lost() -> list[bool]:
    raise DeviceLostError("GPU:1 failed")


@cases(
    ("ranks", "known"),
    [(None, ()), (lambda: [True, False], (True, False)), (lost, (None, None))],
)
def test_which_ranks_are_done(ranks: Any, known: tuple[bool | None, ...]) -> None:
    request = Books().ask(Devices(), "a", ranks=ranks)
    assert request.ranks_done() == known
    assert request.ranks_unknown() == (None, None)


def test_removed() -> None:
    books, devices = Books(), Devices()
    first, second = books.ask(devices, "a"), books.ask(devices, "b")
    books.requests.remove(first)
    books.requests.remove(first)
    assert books.requests.first() is second
    books.requests.remove(second)
    assert not books.requests
    assert not first.is_lost


def test_all_taken() -> None:
    books, one, other, quiet = Books(), Devices(), Devices("GPU:2"), Devices("GPU:3")
    asked = [books.ask(one, "a"), books.ask(one, "b"), books.ask(other, "c")]
    done = books.ask(quiet, "d")
    books.requests.retire(done)
    taken = books.requests.take_all()
    assert taken.requests == asked
    assert [names for names, _ in taken.aborts] == ["GPU:0+GPU:1", "GPU:2"]
    assert taken.askers == {each.asker for each in asked}
    assert not books.requests
    assert [each.is_lost for each in (*asked, done)] == [True, True, True, False]
    assert [each.disconnected for each in (one, other, quiet)] == [1, 1, 0]
    assert books.requests.failed(books.ask(one, "x")).completed == ()
