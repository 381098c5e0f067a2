"""Calls of a communicator: one at a time, and none that waits for one that was given up."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from scripted_communicator import Script, ScriptedBackend, ScriptedCommunicator

from mirrored.backends.communication.links import Link, Progress
from mirrored.errors import CollectiveError, DeviceLostError

pytestmark = pytest.mark.usefixtures("no_deadlock")


class Bench:
    """Two devices and their link."""

    def __init__(self, **script: Any) -> None:
        self.script = Script(**script)
        self.streams: list[ScriptedBackend] = self.script.backends(2)
        self.link = Link(ScriptedCommunicator(self.script, 2))

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
