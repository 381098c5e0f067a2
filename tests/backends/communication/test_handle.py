"""Calls of a communicator: one at a time, and none that waits for one that was given up."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_time import FakeTime, threads_of_calls
from scripted_communicator import Script, ScriptedBackend, ScriptedCommunicator

from mirrored.backends.communication.in_flight import Handle, Progress, Request
from mirrored.backends.communication.watch import Watch
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceLostError

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Bench:
    """Two devices and their link."""

    def __init__(self, **script: Any) -> None:
        self.script = Script(**script)
        self.streams: list[ScriptedBackend] = self.script.backends(2)
        self.link = Handle(ScriptedCommunicator(self.script, 2))

    def progress(self) -> Progress:
        return Progress([np.ones(2), np.ones(2)], [np.ones(2), np.ones(2)], self.streams)


def test_progress() -> None:
    b = Bench()
    progress = b.progress()
    assert (progress(), progress.ranks()) == (False, [False, False])
    for stream in b.streams:
        stream.hold()
    b.link.issue(progress)
    b.streams[0].go_on()
    assert (progress(), progress.ranks()) == (False, [False, False])
    b.streams[1].go_on()
    assert (progress(), progress.ranks()) == (True, [True, True])
    assert [each.tolist() for each in progress.receives] == [[2, 2], [2, 2]]


def test_progress_of_a_lost_device() -> None:
    b = Bench(collectives=["lost"])
    progress = b.progress()
    b.link.issue(progress)
    with pytest.raises(DeviceLostError):
        progress()


def test_an_interrupted_call_may_have_been_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Bench()
    progress = b.progress()

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ScriptedCommunicator, "all_reduce", interrupted)
    with pytest.raises(KeyboardInterrupt):
        b.link.issue(progress)
    assert progress()


def test_failure_waits_for_no_call() -> None:
    b = Bench(collectives=["async", "blocks"])
    assert b.link.failure() is None
    b.link.issue(b.progress())
    assert b.link.failure() == "The script lets the link between the devices fail."
    errors: list[CollectiveError] = []

    def work() -> None:
        try:
            b.link.issue(b.progress())
        except CollectiveError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while ("all_reduce", 1) not in b.script.calls:
        time.sleep(1e-4)
    assert b.link.failure() is None
    b.link.abort()
    thread.join(60)
    assert len(errors) == 1


def test_nothing_is_asked_of_what_is_gone() -> None:
    b = Bench(collectives=["async"])
    b.link.issue(b.progress())
    b.link.is_gone = True
    assert b.link.failure() is None
    for call in (lambda: b.link.issue(b.progress()), b.link.close):
        with pytest.raises(CollectiveError, match="not connected any more"):
            call()
    assert b.script.calls == [("all_reduce", 0)]


@pytest.mark.parametrize("call", ["issue", "close"])
def test_no_call_waits_for_one_that_was_given_up(call: str) -> None:
    """As where the library does not come back from saying what has failed."""
    b = Bench()
    b.link._calling.acquire()
    errors: list[CollectiveError] = []

    def work() -> None:
        try:
            b.link.issue(b.progress()) if call == "issue" else b.link.close()
        except CollectiveError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    b.link.is_gone = True
    thread.join(60)
    assert len(errors) == 1
    assert b.script.calls == []


def test_closed() -> None:
    b = Bench()
    b.link.close()
    assert b.link.is_gone
    assert b.link.failure() is None


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


def request(timeout: float) -> Request:
    return Request(Devices(), "a", 7, timeout, lambda: False)


def test_one_thread_at_a_time(watch: Watch) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            watch.call_lock.acquire(watch, ["GPU:2"])
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            watch.call_lock.release()

    threads = [threading.Thread(target=work, name=f"mirrored-test-{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 80


def test_what_is_in_flight_is_looked_after(watch: Watch) -> None:
    watch.call_lock.acquire(watch, ["GPU:2"])
    watch.add(request(0.5))
    with pytest.raises(CollectiveTimeoutError, match="a in run 7"):
        watch.call_lock.acquire(watch, ["GPU:2"])
    watch.call_lock.release()
    watch.call_lock.acquire(watch, ["GPU:2"])


def test_a_turn_that_does_not_come_in_time(watch: Watch) -> None:
    watch.call_lock.acquire(watch, ["GPU:2"])
    asked = request(math.inf)
    watch.add(asked)
    watch.call_lock.asking = asked  # It may take as long as it has.
    with pytest.raises(CollectiveTimeoutError, match="still uses connections") as caught:
        watch.call_lock.acquire(watch, ["GPU:3"], 2.0)
    assert (caught.value.devices, caught.value.what) == (("GPU:3",), "waiting for a turn")
    assert 2.0 <= watch.clock() < 2.1


def test_a_turn_of_a_thread_that_does_not_come_back(watch: Watch) -> None:
    watch.call_lock.acquire(watch, ["GPU:2"])
    watch.call_lock.asking = asked = request(0.5)
    watch.add(asked)
    with pytest.raises(CollectiveTimeoutError, match="deadline"):
        watch.finish(asked.connection)
    before = watch.clock()
    with pytest.raises(CollectiveTimeoutError, match="does not return from a call") as caught:
        watch.call_lock.acquire(watch, ["GPU:3"])
    assert (caught.value.devices, caught.value.what) == (("GPU:0", "GPU:1"), "a")
    assert 0.1 <= watch.clock() - before < 0.2
    watch.call_lock.release()
    assert watch.call_lock.asking is None
    watch.call_lock.acquire(watch, ["GPU:3"])


def test_an_interrupted_wait_takes_nothing(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(done: Callable[[], bool], *, may_break: bool) -> None:
        watch.call_lock.release()
        assert done()
        raise KeyboardInterrupt

    watch.call_lock.acquire(watch, ["GPU:2"])
    monkeypatch.setattr(watch, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch.call_lock.acquire(watch, ["GPU:2"])
    assert watch.call_lock.try_acquire()
