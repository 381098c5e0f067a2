"""One thread at a time calls what connects devices, and nobody waits for ever for the turn."""

import math
import threading
from collections.abc import Callable, Iterator

import pytest
from fake_time import FakeTime, threads_of_calls

from mirrored.backends.communication.flights import Flight
from mirrored.backends.communication.watch import Watch
from mirrored.errors import CollectiveTimeoutError

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Devices:
    """A connection whose collectives are never done."""

    names = ("GPU:0", "GPU:1")

    def failure(self) -> str | None:
        return None

    def disconnect(self) -> Callable[[], object] | None:
        return None


@pytest.fixture
def watch() -> Iterator[Watch]:
    yield FakeTime().watch(abort_seconds=0.1)
    assert threads_of_calls() == []


def flight(timeout: float) -> Flight:
    return Flight(Devices(), "a", 7, timeout, lambda: False)


def test_one_thread_at_a_time(watch: Watch) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            watch.turn.take(watch, ["GPU:2"])
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            watch.turn.give_back()

    threads = [threading.Thread(target=work, name=f"mirrored-test-{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 80


def test_what_is_in_flight_is_looked_after(watch: Watch) -> None:
    watch.turn.take(watch, ["GPU:2"])
    watch.add(flight(0.5))
    with pytest.raises(CollectiveTimeoutError, match="a in run 7"):
        watch.turn.take(watch, ["GPU:2"])
    watch.turn.give_back()
    watch.turn.take(watch, ["GPU:2"])


def test_a_turn_that_does_not_come_in_time(watch: Watch) -> None:
    watch.turn.take(watch, ["GPU:2"])
    asked = flight(math.inf)
    watch.add(asked)
    watch.turn.asking = asked  # It may take as long as it has.
    with pytest.raises(CollectiveTimeoutError, match="still uses connections") as caught:
        watch.turn.take(watch, ["GPU:3"], 2.0)
    assert (caught.value.devices, caught.value.what) == (("GPU:3",), "waiting for a turn")
    assert 2.0 <= watch.clock() < 2.1


def test_a_turn_of_a_thread_that_does_not_come_back(watch: Watch) -> None:
    watch.turn.take(watch, ["GPU:2"])
    watch.turn.asking = asked = flight(0.5)
    watch.add(asked)
    with pytest.raises(CollectiveTimeoutError, match="deadline"):
        watch.finish(asked.connection)
    before = watch.clock()
    with pytest.raises(CollectiveTimeoutError, match="does not come back from asking") as caught:
        watch.turn.take(watch, ["GPU:3"])
    assert (caught.value.devices, caught.value.what) == (("GPU:0", "GPU:1"), "a")
    assert 0.1 <= watch.clock() - before < 0.2
    watch.turn.give_back()
    assert watch.turn.asking is None
    watch.turn.take(watch, ["GPU:3"])


def test_an_interrupted_wait_takes_nothing(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(done: Callable[[], bool], *, may_break: bool) -> None:
        watch.turn.give_back()
        assert done()
        raise KeyboardInterrupt

    watch.turn.take(watch, ["GPU:2"])
    monkeypatch.setattr(watch, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch.turn.take(watch, ["GPU:2"])
    assert watch.turn.try_to_take()
