"""Recordings by key: made once, made again when they no longer fit, and no more than so many."""

import logging
from typing import Any

import pytest

from mirrored.program import Recordings


def always(_: Any) -> bool:
    return True


def test_a_recording_is_made_once() -> None:
    made: list[int] = []
    recordings: Recordings[int] = Recordings("It")

    def make() -> int:
        made.append(len(made))
        return made[-1]

    assert [recordings.get(key, make, is_current=always) for key in "abab"] == [0, 1, 0, 1]
    assert recordings.get("a", make, is_current=lambda each: each > 0) == 2
    assert recordings.get("a", make, is_current=always) == 2
    assert len(recordings) == 2
    recordings.clear()
    assert len(recordings) == 0
    assert recordings.get("a", make, is_current=always) == 3


def test_one_that_cannot_be_made_leaves_the_others() -> None:
    recordings: Recordings[int] = Recordings("It")
    recordings.get("a", lambda: 1, is_current=always)

    def fail() -> int:
        raise KeyError("mine")

    for key, current in (("b", True), ("a", False)):
        with pytest.raises(KeyError):
            recordings.get(key, fail, is_current=lambda _, current=current: current)
    assert recordings.get("a", fail, is_current=always) == 1


def test_the_one_used_longest_ago_goes() -> None:
    recordings: Recordings[int] = Recordings("It", most=3)
    for key in (1, 2, 3, 1, 4):
        recordings.get(key, lambda key=key: key, is_current=always)
    made: list[int] = []
    for key in (1, 3, 4, 2):
        recordings.get(key, lambda key=key: made.append(key) or key, is_current=always)
    assert made == [2]
    assert len(recordings) == 3


def test_many_kinds_of_calls_are_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    recordings: Recordings[int] = Recordings("The step")
    with caplog.at_level(logging.WARNING, "mirrored"):
        for key in range(15):
            recordings.get(key, lambda: 0, is_current=lambda _: False)
            recordings.get(key, lambda: 0, is_current=lambda _: False)
        assert caplog.messages == []  # What is made again is no new kind.
        for key in range(15, 40):
            recordings.get(key, lambda: 0, is_current=always)
    (message,) = caplog.messages
    assert message.startswith("The step has been recorded for 16 different kinds of calls")


def test_finding_and_keeping() -> None:
    """For those who make a recording before they know what it is kept for."""
    recordings: Recordings[int] = Recordings("It", most=2)
    assert recordings.find("a", is_current=always) is None
    assert recordings.keep("a", 1) == 1
    assert recordings.find("a", is_current=always) == 1
    assert recordings.find("a", is_current=lambda each: each > 1) is None
    assert recordings.keep("a", 2) == 2
    recordings.keep("b", 3)
    assert recordings.find("a", is_current=always) == 2  # Now it is "b" that was used longest ago.
    recordings.keep("c", 4)
    assert [recordings.find(key, is_current=always) for key in "abc"] == [2, None, 4]
