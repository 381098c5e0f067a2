"""What the tests of programs share: ops of a replica, patience that ends, the checker of plans."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from plan_checker import PlanChecker

from mirrored.ops.rng_state import ShardPosition, shard_position
from mirrored.program.dataflow import Graph


@pytest.fixture
def as_replica() -> Callable[[int], AbstractContextManager[None]]:
    """Return ``as_replica(number)``: a context whose ops belong to that replica."""
    run = object()
    return lambda number: shard_position(ShardPosition(run, number))


@pytest.fixture
def ends() -> Callable[..., Any]:
    """Return ``ends(function)``: call it, and fail where it waits for ever."""

    def call(function: Callable[[], Any], seconds: float = 20) -> Any:
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append((function(), None))
            except BaseException as error:
                outcome.append((None, error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds)
        assert not thread.is_alive(), "it waits for ever"
        result, error = outcome.pop()
        if error is not None:
            raise error
        return result

    return call


@pytest.fixture(autouse=True)
def no_stray_thread() -> Iterator[None]:
    """Fail where a test leaves a thread behind."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert not set(threading.enumerate()) - before


@pytest.fixture
def check_plan() -> Callable[..., Any]:
    """Return ``check_plan(graph)``: it plays the graph's memory plan through, and returns it."""

    def check(graph: Graph, *, streams: bool = False) -> Any:
        checker = PlanChecker(graph, streams=streams)
        checker.check()
        return checker.plan

    return check
