"""Replicas that run in turn: their order, what they inherit, and what is left when one fails."""

import contextvars
import faulthandler
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import (
    MirroredStrategy,
    PerReplica,
    ReplicaContext,
    get_replica_context,
    replicas,
)
from mirrored.ops.random import current_position

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"
REPLICAS = 3


@pytest.fixture(autouse=True)
def no_deadlock() -> Iterator[None]:
    """End the whole run, with every thread's stack, where a test hangs."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
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


def context() -> ReplicaContext:
    """Return the context of the running replica, which there must be."""
    found = get_replica_context()
    assert found is not None
    return found


def number() -> int:
    """Return the number of the running replica."""
    return context().replica_id_in_sync_group


def in_use() -> list[int]:
    """Return the bytes in use on every device."""
    return [device.pool.current for device in devices.logical_devices()]


def raised_by(function: Callable[[], Any]) -> tuple[type, str, list[str]]:
    """Return class, text and notes of what `function` raises, and let go of it."""
    try:
        function()
    except BaseException as error:
        return type(error), str(error), list(getattr(error, "__notes__", []))
    raise AssertionError("nothing was raised")


def still_works(strategy: MirroredStrategy) -> bool:
    """Return whether a run with a merge call gives what it has to give."""
    total = strategy.run(lambda: context().all_reduce("sum", mr.constant(float(number() + 1))))
    parts = strategy.experimental_local_results(total)
    return [float(part) for part in parts] == [6.0] * REPLICAS


# In turn


def test_one_replica_runs_at_a_time_and_in_order(strategy: MirroredStrategy) -> None:
    events: list[Any] = []

    def replica() -> None:
        for stage in ("first", "second"):
            events.append((number(), stage))
            context().merge_call(lambda strategy, name: events.append(f"merge {name}"), (stage,))
        events.append((number(), "last"))

    strategy.run(replica)
    assert events == [
        *[(i, "first") for i in range(REPLICAS)],
        "merge first",
        *[(i, "second") for i in range(REPLICAS)],
        "merge second",
        *[(i, "last") for i in range(REPLICAS)],
    ]


@pytest.mark.parametrize("merges", [0, 1, 5])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_any_number_of_merge_calls(simulate: Simulate, count: int, merges: int) -> None:
    simulate(count)
    strategy = MirroredStrategy()

    def replica() -> list[Any]:
        return [
            context().merge_call(lambda strategy, value: value, (f"{number()}.{i}",))
            for i in range(merges)
        ]

    results = strategy.run(replica)
    assert [strategy.experimental_local_results(each) for each in results] == [
        tuple(f"{n}.{i}" for n in range(count)) for i in range(merges)
    ]


def test_runs_in_runs(strategy: MirroredStrategy) -> None:
    """A merge function is in the cross-replica context, so it may run the replicas itself."""

    def inner() -> int:
        return 10 * number() + context().merge_call(lambda strategy: 100)

    def replica() -> Any:
        return context().merge_call(lambda strategy: strategy.run(inner))

    results = strategy.run(replica)
    assert strategy.experimental_local_results(results) == (100, 110, 120)


def test_runs_from_several_threads(strategy: MirroredStrategy) -> None:
    results: list[Any] = []
    start = threading.Barrier(4)

    def work(i: int) -> None:
        start.wait(timeout=60)
        for _ in range(20):
            merged = strategy.run(
                lambda: context().merge_call(lambda strategy, parts: parts, ((i, number()),))
            )
            results.append((i, strategy.experimental_local_results(merged[1]), merged[0]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(results) == 80
    for i, numbers, first in results:
        assert numbers == (0, 1, 2)
        assert first == i


# What a replica inherits


def test_replicas_run_on_their_devices(strategy: MirroredStrategy) -> None:
    with mr.device("CPU:0"):
        placed = strategy.run(lambda: PerReplica([mr.constant(1.0).device]))
    names = [each.values[0] for each in strategy.experimental_local_results(placed)]
    assert names == [f"{FULL}GPU:{i}" for i in range(REPLICAS)]


def test_merge_functions_run_in_the_callers_device_scope(strategy: MirroredStrategy) -> None:
    with mr.device("GPU:2"):
        placed = strategy.run(
            lambda: context().merge_call(lambda strategy: mr.constant(1.0).device)
        )
    assert placed == f"{FULL}GPU:2"


def test_context_variables_go_in_and_do_not_come_out(strategy: MirroredStrategy) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    token = variable.set("outside")

    def replica() -> str:
        found = variable.get()
        variable.set(f"replica {number()}")
        context().merge_call(lambda strategy: None)
        assert variable.get() == f"replica {number()}"
        return found

    assert strategy.run(replica) == "outside"
    assert variable.get() == "outside"
    variable.reset(token)


def test_a_tape_of_a_replica_sees_that_replica_alone(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        w = mr.Variable(2.0)

    def replica(x: ops.Tensor) -> Any:
        with mr.GradientTape() as tape:
            y = w * x
            context().merge_call(lambda strategy: w * 100.0)  # Nobody's tape follows this.
        return tape.gradient(y, w)

    gradients = strategy.run(replica, (PerReplica([mr.constant(float(i)) for i in range(3)]),))
    parts = strategy.experimental_local_results(gradients)
    assert [float(part) for part in parts] == [0.0, 1.0, 2.0]


def test_positions_in_the_global_batch(strategy: MirroredStrategy) -> None:
    x = PerReplica([mr.zeros((size, 2)) for size in (3, 2, 2)], first_examples=(0, 3, 5))
    runs: list[Any] = []

    def replica(inputs: Any, *, flag: bool) -> None:
        assert flag
        runs.append(current_position())
        context().merge_call(lambda strategy: None)
        assert current_position() is runs[number()]

    strategy.run(replica, ({"x": x},), {"flag": True})
    assert [(each.replica, each.first_example) for each in runs] == [(0, 0), (1, 3), (2, 5)]
    assert runs[0].run is runs[1].run is runs[2].run
    strategy.run(lambda: runs.append(current_position()))
    assert runs[3].run is not runs[0].run
    assert [each.first_example for each in runs[3:]] == [0, 0, 0]
    assert current_position().run is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_draws_by_example_are_those_of_one_device(simulate: Simulate, count: int) -> None:
    simulate(count)
    strategy = MirroredStrategy()
    sizes, starts = {1: [7], 2: [4, 3], 3: [3, 2, 2]}, {1: [0], 2: [0, 4], 3: [0, 3, 5]}
    x = PerReplica([mr.zeros((n, 2)) for n in sizes[count]], starts[count])
    one, many = ops.SeedGenerator(5), ops.SeedGenerator(5)
    for _ in range(3):
        expected = one.uniform((7, 2), per_example=True).numpy()
        drawn = strategy.run(lambda part: many.uniform(part.shape, per_example=True), (x,))
        parts = [part.numpy() for part in strategy.experimental_local_results(drawn)]
        np.testing.assert_array_equal(np.concatenate(parts), expected)


# Different numbers of merge calls


@pytest.mark.parametrize(
    ("calls", "waiting"),
    [
        ((1, 1, 0), [0, 1]),
        ((0, 1, 1), [1, 2]),
        ((0, 0, 1), [2]),
        ((2, 1, 1), [0]),
        ((3, 3, 2), [0, 1]),
        ((0, 2, 0), [1]),
    ],
)
@pytest.mark.usefixtures("no_collector")
def test_different_numbers_of_merge_calls(
    strategy: MirroredStrategy, calls: tuple[int, ...], waiting: list[int]
) -> None:
    unwound: list[int] = []
    before = in_use()

    def replica() -> None:
        big = mr.zeros((1000,))
        try:
            for _ in range(calls[number()]):
                context().merge_call(lambda strategy, value: None, (big,))
        except BaseException:
            unwound.append(number())
            raise

    kind, text, _ = raised_by(lambda: strategy.run(replica))
    assert kind is RuntimeError
    assert text.startswith(
        "Some replicas made a different number of replica_context().merge_call() calls."
    )
    assert f"replicas {waiting} wait" in text
    assert unwound == waiting
    assert in_use() == before
    assert still_works(strategy)


# Failures


class CustomError(Exception):
    """An error of the user's own."""


def fails_at(point: str, culprit: int, error: type[BaseException]) -> Callable[[], Any]:
    """Return a replica's function in which one replica, or the merge, raises at one point."""

    def strike(here: str) -> None:
        if here == point and number() == culprit:
            raise error("why")

    def merge(strategy: Any, value: Any) -> Any:
        if point == "in the merge":
            raise error("why")
        return value

    def replica() -> Any:
        big = mr.zeros((1000,)) + 1.0
        strike("before")
        big = context().merge_call(merge, (big,))
        strike("between")
        big = context().all_reduce("sum", big)
        strike("after")
        return big

    return replica


POINTS = ["before", "in the merge", "between", "after"]


@pytest.mark.parametrize("error", [CustomError, KeyboardInterrupt, SystemExit, StopIteration])
@pytest.mark.parametrize("culprit", range(REPLICAS))
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.usefixtures("no_collector")
def test_a_failure_stops_all_and_leaves_nothing(
    strategy: MirroredStrategy, point: str, culprit: int, error: type[BaseException]
) -> None:
    before = in_use()
    kind, text, notes = raised_by(lambda: strategy.run(fails_at(point, culprit, error)))
    assert (kind, text) == (error, "why")
    if point != "in the merge":
        assert notes == [f"Raised in replica {culprit} on {FULL}GPU:{culprit}."]
    assert in_use() == before
    assert still_works(strategy)
    assert in_use() == before


@pytest.mark.parametrize("point", POINTS)
def test_the_traceback_leads_to_the_failing_line(strategy: MirroredStrategy, point: str) -> None:
    with pytest.raises(CustomError) as caught:
        strategy.run(fails_at(point, 1, CustomError))
    functions = [entry.name for entry in caught.traceback]
    assert functions[-1] == ("merge" if point == "in the merge" else "strike")
    assert caught.value.__context__ is None


def test_replicas_after_the_first_to_fail_do_not_run(strategy: MirroredStrategy) -> None:
    ran: list[int] = []

    def replica() -> None:
        ran.append(number())
        raise CustomError(f"replica {number()}")

    kind, text, notes = raised_by(lambda: strategy.run(replica))
    assert (kind, text) == (CustomError, "replica 0")
    assert notes == [f"Raised in replica 0 on {FULL}GPU:0."]
    assert ran == [0]


@pytest.mark.usefixtures("no_collector")
def test_several_fail_and_the_first_is_told(strategy: MirroredStrategy) -> None:
    """Replica 1 fails after the merge; 0 and 2, unwound in its wake, raise errors of their own."""
    before = in_use()
    unwound: list[int] = []

    def replica() -> None:
        big = mr.zeros((1000,))
        try:
            context().merge_call(lambda strategy, value: None, (big,))
            if number() == 1:
                raise CustomError("the first")
            context().merge_call(lambda strategy, value: None, (big,))
        finally:
            unwound.append(number())
            if number() != 1:
                raise ValueError("while unwinding")

    kind, text, notes = raised_by(lambda: strategy.run(replica))
    assert (kind, text) == (CustomError, "the first")
    assert notes == [f"Raised in replica 1 on {FULL}GPU:1."]
    assert unwound == [1, 0, 2]
    assert in_use() == before
    assert still_works(strategy)


@pytest.mark.usefixtures("no_collector")
def test_a_merge_call_in_a_finally_block_does_not_hang(strategy: MirroredStrategy) -> None:
    before = in_use()

    def replica() -> None:
        big = mr.zeros((1000,))
        try:
            if number() == 2:
                raise CustomError
            context().merge_call(lambda strategy, value: None, (big,))
        finally:
            if number() != 2:
                context().merge_call(lambda strategy, value: None, (big,))

    kind, _, notes = raised_by(lambda: strategy.run(replica))
    assert kind is CustomError
    assert notes == [f"Raised in replica 2 on {FULL}GPU:2."]
    assert in_use() == before
    assert still_works(strategy)


def test_a_replica_that_swallows_the_unwinding(strategy: MirroredStrategy) -> None:
    def replica() -> str:
        if number() == 1:
            raise CustomError
        try:
            context().merge_call(lambda strategy: None)
        except BaseException:
            return "swallowed"
        return "merged"

    assert raised_by(lambda: strategy.run(replica))[0] is CustomError
    assert still_works(strategy)


@pytest.mark.usefixtures("no_collector")
def test_a_failure_that_a_replica_handles_is_none(strategy: MirroredStrategy) -> None:
    def replica() -> int:
        try:
            raise CustomError
        except CustomError:
            return context().merge_call(lambda strategy: 7)

    assert strategy.run(replica) == 7


@pytest.mark.parametrize("merges", [0, 2])
@pytest.mark.usefixtures("no_collector")
def test_an_interrupt_of_the_caller(strategy: MirroredStrategy, merges: int) -> None:
    """Ctrl-C reaches the main thread, which waits while replicas run."""
    main = threading.main_thread().ident
    assert main is not None
    before = in_use()

    def replica() -> None:
        big = mr.zeros((1000,))
        if number() == 1:
            signal.pthread_kill(main, signal.SIGINT)
        for _ in range(merges):
            context().merge_call(lambda strategy, value: None, (big,))

    assert raised_by(lambda: strategy.run(replica))[0] is KeyboardInterrupt
    assert in_use() == before
    assert still_works(strategy)


@pytest.mark.usefixtures("no_collector")
def test_an_interrupt_of_the_unwinding(
    strategy: MirroredStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    stop = replicas._Relay.stop

    def interrupted(relay: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        stop(relay)

    monkeypatch.setattr(replicas._Relay, "stop", interrupted)
    before = in_use()
    kind, _, _ = raised_by(lambda: strategy.run(fails_at("before", 1, CustomError)))
    assert kind is KeyboardInterrupt
    assert len(calls) == 2
    assert in_use() == before
    assert still_works(strategy)


@pytest.mark.parametrize("culprit", range(2))
@pytest.mark.usefixtures("no_collector")
def test_out_of_memory_on_one_replica(simulate: Simulate, culprit: int) -> None:
    simulate(2, memory_limit=1)
    strategy = MirroredStrategy()
    before = in_use()

    def replica() -> Any:
        context().merge_call(lambda strategy: None)
        small = mr.zeros((1000,))
        if number() == culprit:
            return mr.zeros((1 << 20,)) + small[0]
        return context().all_reduce("sum", small)

    kind, text, notes = raised_by(lambda: strategy.run(replica))
    assert kind is mr.errors.ResourceExhaustedError
    assert f"{FULL}GPU:{culprit}" in text
    assert "1048576 bytes" in text  # The limit.
    assert "4194304 bytes" in text  # What was asked for.
    assert notes == [f"Raised in replica {culprit} on {FULL}GPU:{culprit}."]
    assert in_use() == before


@pytest.mark.usefixtures("no_collector")
def test_a_run_keeps_nothing(strategy: MirroredStrategy) -> None:
    before = in_use()

    def replica(x: ops.Tensor) -> Any:
        with mr.GradientTape() as tape:
            tape.watch(x)
            y = context().all_reduce("sum", x * x)
        context().merge_call(lambda strategy, value: value, (y,))
        return {"gradient": tape.gradient(y, x), "value": [y]}

    result = strategy.run(replica, (PerReplica([mr.ones((500,))] * REPLICAS),))
    assert in_use() != before
    del result
    assert in_use() == before
