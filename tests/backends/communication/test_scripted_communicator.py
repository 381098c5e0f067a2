"""The scripted devices themselves: what they refuse, and what never ends.

What each word of a script does is held by the tests of connections, which fail as it says.
"""

import threading
from typing import Any

import numpy as np
import pytest
from fake_time import threads_of_calls
from scripted_communicator import Misuse, Script

from mirrored.errors import CollectiveError, DeviceLostError

ONES = [np.ones(3, np.float32), np.full(3, 2, np.float32)]


class Devices:
    """Two connected devices."""

    def __init__(self, *collectives: str, **script: Any) -> None:
        self.script = Script(collectives, **script)
        self.ranks = self.script.backends(2)
        self.communicator = self.ranks[0].connect(self.ranks)

    def ask(self, sends: list[np.ndarray] = ONES) -> tuple[list[np.ndarray], list[Any]]:
        receives = [np.zeros_like(each) for each in sends]
        self.communicator.all_reduce(sends, receives, self.ranks)
        return receives, [rank.record() for rank in self.ranks]

    def done(self, events: list[Any]) -> list[bool]:
        return [rank.is_done(event) for rank, event in zip(self.ranks, events, strict=True)]


@pytest.mark.parametrize("outcome", ["hang", "async", "lost"])
def test_never_done_until_aborted(outcome: str) -> None:
    devices = Devices(outcome)
    receives, events = devices.ask()
    for _ in range(20):
        if outcome == "lost":
            with pytest.raises(DeviceLostError):
                devices.done(events)
        else:
            assert devices.done(events) == [False, False]
    failure = devices.communicator.failure()
    assert (failure is not None) == (outcome == "async")
    if outcome != "lost":
        with pytest.raises(Misuse, match="for ever"):
            devices.ranks[0].wait_on_host(events[0])
    devices.communicator.abort()
    assert devices.done(events) == [True, True]
    assert np.isnan(receives).all()
    assert not devices.communicator.is_usable
    assert devices.script.misuses == []


@pytest.mark.parametrize("outcome", ["blocks", "never returns"])
def test_calls_that_do_not_return(outcome: str) -> None:
    devices = Devices(outcome)
    errors = []

    def work() -> None:
        try:
            devices.ask()
        except CollectiveError as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="mirrored-test")
    thread.start()
    assert threads_of_calls() == ["mirrored-test"]
    devices.communicator.abort()
    if outcome == "never returns":
        assert threads_of_calls() == ["mirrored-test"]
        devices.script.release()
    thread.join(10)
    assert len(errors) == 1


def test_streams_wait_for_each_other() -> None:
    one, other = Script().backends(2)
    source, middle, target = np.ones(2), np.zeros(2), np.zeros(2)
    one.hold()
    one.copy_between(source, middle)
    other.copy_across(one, middle, target)
    event = other.record()
    assert not other.is_done(event)
    one.go_on()
    assert other.to_host(target).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("sends", "receives"),
    [
        ([np.ones(2)], [np.ones(2)]),
        ([np.ones(2), np.ones(3)], [np.ones(2), np.ones(3)]),
        ([np.ones(2), np.ones(2, np.float32)], [np.ones(2), np.ones(2)]),
        ([np.ones((4, 2))[:, 0], np.ones(4)], [np.ones(4), np.ones(4)]),
        ([np.ones(2, bool), np.ones(2, bool)], [np.ones(2, bool), np.ones(2, bool)]),
    ],
    ids=["ranks", "sizes", "dtypes", "strides", "no numbers"],
)
def test_refused(sends: list[np.ndarray], receives: list[np.ndarray]) -> None:
    devices = Devices()
    with pytest.raises(ValueError, match=r"[.]$"):
        devices.communicator.all_reduce(sends, receives, devices.ranks)
    assert ("all_reduce", 0) not in devices.script.calls


def test_sums_may_not_overlap_what_is_sent() -> None:
    devices, memory = Devices(), np.ones(6)
    with pytest.raises(ValueError, match="apart"):
        devices.communicator.all_reduce(
            [memory[:3], np.ones(3)], [memory[1:4], np.ones(3)], devices.ranks
        )


def test_misuse() -> None:
    devices = Devices("hang")
    devices.ask()
    devices.communicator.close()
    devices.communicator.close()
    with pytest.raises(Misuse, match="all_reduce after"):
        devices.ask()
    devices.communicator.abort()
    assert devices.script.misuses == [
        "close with a collective in flight",
        "all_reduce after an abort or after closing",
        "abort of what was aborted or closed",
    ]


@pytest.mark.parametrize("options", [{"collectives": ["okay"]}, {"aborts": {3: "hang"}}])
def test_words_that_a_script_does_not_know(options: Any) -> None:
    with pytest.raises(ValueError, match="A script is made of"):
        Script(**options)
