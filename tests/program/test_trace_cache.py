"""Traces by key: found while their variables are where they were, and no more than so many."""

import logging
from typing import Any

import pytest

from mirrored.program import TraceCache
from mirrored.program.dataflow import Graph
from mirrored.program.trace_cache import Trace


class Moved(Graph):
    """A graph whose variables are not where it expects them."""

    def is_current(self) -> bool:
        return False


def made(graph: Any = Graph) -> Trace:
    return Trace(graph(), 1)


def test_finding_and_keeping() -> None:
    cache, first, second = TraceCache("It"), made(), made()
    assert cache.find("a") is None
    assert cache.keep("a", first) is first
    assert cache.keep("b", second) is second
    assert [cache.find(key) for key in "abc"] == [first, second, None]
    assert cache.keep("a", second) is second
    assert list(cache) == [second, second]
    cache.keep("a", made(Moved))
    assert cache.find("a") is None
    assert len(cache) == 2  # It makes place for the one that is recorded next.
    cache.clear()
    assert len(cache) == 0
    assert cache.find("b") is None


def test_the_one_used_longest_ago_goes() -> None:
    cache, traces = TraceCache("It", most=3), [made() for _ in range(4)]
    for key in (0, 1, 2):
        cache.keep(key, traces[key])
    assert cache.find(0) is traces[0]
    cache.keep(3, traces[3])
    assert [cache.find(key) for key in range(4)] == [traces[0], None, traces[2], traces[3]]


def test_many_kinds_of_calls_are_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    cache = TraceCache("The step")
    with caplog.at_level(logging.WARNING, "mirrored"):
        for key in range(15):
            cache.keep(key, made())
            cache.keep(key, made())
        assert caplog.messages == []  # What is made again is no new kind.
        for key in range(15, 40):
            cache.keep(key, made())
    (message,) = caplog.messages
    assert message.startswith("The step has been recorded for 16 different kinds of calls")
