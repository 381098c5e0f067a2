"""What stops writes is called first and in order; what hangs or fails keeps nothing else back."""

import threading
from collections.abc import Callable, Iterator

import pytest
from fake_time import FakeTime, stuck, threads_of_calls

from mirrored.backends.communication.in_flight import Workers
from mirrored.backends.communication.watch import abort_all, stop_writes

pytestmark = pytest.mark.usefixtures("no_deadlock")

SECONDS = 0.3


class Log:
    """What was called, each in which thread."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.go_on = threading.Event()

    def call(self, name: str, outcome: str = "ok") -> Callable[[], None]:
        """Return a function that is noted, and then returns, raises or does not return."""

        def called() -> None:
            self.calls.append((name, threading.current_thread().name))
            if outcome == "fails":
                raise RuntimeError(f"{name} went wrong.")
            if outcome == "hangs":
                with stuck(lambda: not self.go_on.is_set()):
                    self.go_on.wait(30)

        return called

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    yield log
    log.go_on.set()
    assert threads_of_calls() == []


@pytest.fixture
def workers() -> Workers:
    time = FakeTime()
    return Workers(time.clock, time.sleep)


def test_stops_are_called_in_one_thread(log: Log, workers: Workers) -> None:
    assert stop_writes(workers, [log.call(name) for name in "abc"], SECONDS) == []
    assert log.calls == [(name, "mirrored-stop-function") for name in "abc"]
    assert stop_writes(workers, [], SECONDS) == []


def test_stops_that_do_not_work(log: Log, workers: Workers) -> None:
    outcomes = {"a": "ok", "b": "fails", "c": "hangs", "d": "ok", "e": "fails", "f": "hangs"}
    stops = [log.call(*each) for each in outcomes.items()]
    problems = stop_writes(workers, stops, SECONDS)
    assert sorted(log.names) == [*"abcdef"]
    assert log.names[:3] == [*"abc"]
    hung = "The thread 'mirrored-stop-function' did not return within 0.3 seconds."
    assert problems == [
        hung,
        "The thread 'mirrored-stop-function' failed: e went wrong.",
        hung,
        "Stopping the writes of a function failed: b went wrong.",
    ]


def test_stops_where_no_thread_can_be_started(
    log: Log, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    problems = stop_writes(workers, [log.call("a", "fails"), log.call("b")], SECONDS)
    assert problems == ["Stopping the writes of a function failed: a went wrong."]
    assert log.calls == [(name, threading.current_thread().name) for name in "ab"]


def test_aborts(log: Log, workers: Workers) -> None:
    outcomes = {"GPU:0": "hangs", "GPU:1": "ok", "GPU:2": "fails"}
    aborts = [(name, log.call(name, outcome)) for name, outcome in outcomes.items()]
    assert abort_all(workers, aborts, SECONDS) == [
        "The thread 'mirrored-abort-GPU:0' did not return within 0.3 seconds.",
        "The thread 'mirrored-abort-GPU:2' failed: GPU:2 went wrong.",
    ]
    assert sorted(log.calls) == [(name, f"mirrored-abort-{name}") for name in sorted(outcomes)]
