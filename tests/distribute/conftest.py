"""What the tests of replicas share: a strategy of three, and what finds threads and memory left."""

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy, get_replica_context

Simulate = Callable[..., list[mr.config.LogicalDevice]]
REPLICAS = 3


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """Find the threads that are still there at the end of a test."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off: what a cycle keeps stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(REPLICAS)
    return MirroredStrategy()


@pytest.fixture
def raised_by() -> Callable[[Callable[[], Any]], tuple[type, str, list[str]]]:
    """Return ``raised_by(function)``: class, text and notes of what it raises, and let go of it."""

    def catch(function: Callable[[], Any]) -> tuple[type, str, list[str]]:
        try:
            function()
        except BaseException as error:
            return type(error), str(error), list(getattr(error, "__notes__", []))
        raise AssertionError("nothing was raised")

    return catch


@pytest.fixture
def still_works() -> Callable[[MirroredStrategy], bool]:
    """Return ``still_works(strategy)``: whether a run with a merge call gives what it has to."""

    def replica() -> Any:
        context = get_replica_context()
        assert context is not None
        number = context.replica_id_in_sync_group
        return context.all_reduce("sum", mr.constant(float(number + 1)))

    def check(strategy: MirroredStrategy) -> bool:
        parts = strategy.experimental_local_results(strategy.run(replica))
        return [float(part) for part in parts] == [6.0] * REPLICAS

    return check
