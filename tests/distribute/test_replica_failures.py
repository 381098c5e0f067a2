"""Replicas of which one fails, however and wherever: what is raised, and what is left."""

import itertools
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from refused_allocations import Refusals
from replica_context import context, in_use, number

import mirrored as mr
from mirrored import ops
from mirrored.distribute import (
    MirroredStrategy,
    PerReplica,
    replicas,
)
from mirrored.distribute.distributed_variables import copies_of
from mirrored.errors import ResourceExhaustedError

pytestmark = pytest.mark.usefixtures("no_deadlock", "no_thread_left")

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"
REPLICAS = 3


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


@pytest.mark.behaviour("no-hang")
@pytest.mark.parametrize(
    ("culprit", "error"),
    [
        *((culprit, CustomError) for culprit in range(REPLICAS)),
        *((0, KeyboardInterrupt), (1, SystemExit), (2, StopIteration)),
    ],
)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.usefixtures("no_collector")
def test_a_failure_stops_all_and_leaves_nothing(
    strategy: MirroredStrategy,
    point: str,
    culprit: int,
    error: type[BaseException],
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
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


def test_replicas_after_the_first_to_fail_do_not_run(
    strategy: MirroredStrategy, raised_by: Callable[..., tuple[type, str, list[str]]]
) -> None:
    ran: list[int] = []

    def replica() -> None:
        ran.append(number())
        raise CustomError(f"replica {number()}")

    kind, text, notes = raised_by(lambda: strategy.run(replica))
    assert (kind, text) == (CustomError, "replica 0")
    assert notes == [f"Raised in replica 0 on {FULL}GPU:0."]
    assert ran == [0]


@pytest.mark.usefixtures("no_collector")
def test_several_fail_and_the_first_is_told(
    strategy: MirroredStrategy,
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
) -> None:
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
def test_a_merge_call_in_a_finally_block_does_not_hang(
    strategy: MirroredStrategy,
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
) -> None:
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


def test_a_replica_that_swallows_the_unwinding(
    strategy: MirroredStrategy,
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
) -> None:
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
@pytest.mark.usefixtures("no_collector", "python_interrupts")
def test_an_interrupt_of_the_caller(
    strategy: MirroredStrategy,
    merges: int,
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
) -> None:
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
    strategy: MirroredStrategy,
    monkeypatch: pytest.MonkeyPatch,
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
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


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.usefixtures("no_collector")
def test_an_interrupt_while_the_turn_is_passed(
    strategy: MirroredStrategy,
    turn: int,
    monkeypatch: pytest.MonkeyPatch,
    raised_by: Callable[..., tuple[type, str, list[str]]],
    still_works: Callable[[MirroredStrategy], bool],
) -> None:
    """In its two merge calls and at its end, nobody waits for the caller's replica afterwards."""
    passes, turns = replicas._Relay._pass_turn, itertools.count()

    def interrupted(relay: Any, replica: Any) -> Any:
        if replica.number == 0 and next(turns) == turn:
            raise KeyboardInterrupt
        return passes(relay, replica)

    def replica() -> None:
        for _ in range(2):
            context().merge_call(lambda strategy: None)

    monkeypatch.setattr(replicas._Relay, "_pass_turn", interrupted)
    before = in_use()
    assert raised_by(lambda: strategy.run(replica))[0] is KeyboardInterrupt
    assert in_use() == before
    assert still_works(strategy)


@pytest.mark.parametrize("culprit", range(2))
@pytest.mark.usefixtures("no_collector")
def test_out_of_memory_on_one_replica(
    simulate: Simulate, culprit: int, raised_by: Callable[..., tuple[type, str, list[str]]]
) -> None:
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


@pytest.mark.parametrize(
    ("count", "optimizer", "every"),
    [
        (2, "sgd", 5),
        pytest.param(1, "scaled", 5, marks=pytest.mark.slow),
        pytest.param(3, "adam", 17, marks=pytest.mark.slow),
        *(
            pytest.param(count, name, 1, marks=pytest.mark.long)
            for count in (1, 2, 3)
            for name in ("sgd", "adam", "scaled")
        ),
    ],
)
def test_any_allocation_of_a_step_op_by_op_may_fail(
    count: int, optimizer: str, every: int, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving statistics, weights, slots and counts are those before the step, on all replicas."""
    simulate(count)
    strategy = MirroredStrategy([f"GPU:{i}" for i in range(count)])
    with strategy.scope():
        model = mr.Sequential(
            [mr.layers.Input((2,)), mr.layers.BatchNormalization(), mr.layers.Dense(1)]
        )
        rule: Any = mr.optim.SGD(0.1, momentum=0.9) if optimizer == "sgd" else mr.optim.Adam(0.1)
        if optimizer == "scaled":
            rule = mr.optim.LossScaleOptimizer(rule)
    x = strategy.experimental_distribute_values_from_function(
        lambda of: mr.random.normal((4, 2)) + float(of.replica_id_in_sync_group)
    )

    def step(x: Any) -> None:
        with mr.GradientTape() as tape:
            loss = rule.scale_loss(mr.reduce_mean(model(x, training=True) ** 2))
        gradients = tape.gradient(loss, model.trainable_variables)
        rule.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    def values() -> list[bytes]:
        variables = [*model.weights, *rule.variables]
        return [copy.numpy().tobytes() for v in variables for copy in copies_of(v)]

    refusals = Refusals(monkeypatch)
    strategy.run(step, (x,))
    before = values()
    refusals.left = 0
    strategy.run(step, (x,))
    allocations = -refusals.left
    assert values() != before
    before = values()
    for call in range(1, allocations + 1, every):
        refusals.left = call
        with pytest.raises(ResourceExhaustedError):
            strategy.run(step, (x,))
        refusals.left = 0
        assert values() == before
