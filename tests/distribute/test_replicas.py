"""Replicas that run in turn: their order, what they inherit, and how often they merge."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from replica_context import context, in_use, number

import mirrored as mr
from mirrored import ops
from mirrored.distribute import MirroredStrategy, PerReplica
from mirrored.ops.rng_state import current_position

pytestmark = pytest.mark.usefixtures("no_deadlock", "no_thread_left")

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"
REPLICAS = 3


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


@cases("merges", [0, 1, 5])
@cases("count", [2, 3, 8])
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


@cases("count", [1, 2, 3])
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


@pytest.mark.behaviour("merge-calls", "no-hang")
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
    strategy: MirroredStrategy,
    calls: tuple[int, ...],
    waiting: list[int],
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
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
