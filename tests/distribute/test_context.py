"""Which strategy and replica code runs in, and what a replica can ask of the others."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases
from replica_context import context

import mirrored as mr
from mirrored import ops
from mirrored.distribute import (
    MirroredStrategy,
    PerReplica,
    ReduceOp,
    ReplicaContext,
    Strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)

Simulate = Callable[..., list[mr.config.LogicalDevice]]


class Pair(NamedTuple):
    """Two values with names."""

    first: Any
    second: Any


def local(strategy: Strategy, value: Any) -> list[Any]:
    """Return the parts of a value as arrays and numbers."""
    return [
        part.numpy().tolist() if isinstance(part, ops.Tensor) else part
        for part in strategy.experimental_local_results(value)
    ]


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


# Which context


def where() -> tuple[Strategy, bool, bool, int | None, int | None]:
    """Return all that is to know of the running code's context."""
    here = get_replica_context()
    return (
        get_strategy(),
        has_strategy(),
        in_cross_replica_context(),
        None if here is None else here.replica_id_in_sync_group,
        None if here is None else here.num_replicas_in_sync,
    )


@pytest.mark.behaviour("contexts")
def test_outside_all_scopes_there_is_one_replica() -> None:
    default = get_strategy()
    assert where() == (default, False, False, 0, 1)
    assert context().strategy is default


@pytest.mark.behaviour("contexts")
def test_scope_is_the_cross_replica_context(strategy: MirroredStrategy) -> None:
    outside = where()
    with strategy.scope() as entered:
        assert entered is strategy
        assert where() == (strategy, True, True, None, None)
        with strategy.scope():
            assert where() == (strategy, True, True, None, None)
        assert where() == (strategy, True, True, None, None)
    assert where() == outside


@pytest.mark.behaviour("contexts", "replica-context")
def test_run_is_the_replicas_context(strategy: MirroredStrategy) -> None:
    outside = where()
    seen = strategy.experimental_local_results(strategy.run(lambda: PerReplica([where()])))
    assert [each.values[0] for each in seen] == [
        (strategy, True, False, 0, 2),
        (strategy, True, False, 1, 2),
    ]
    assert where() == outside


@pytest.mark.parametrize("count", [1, 2])
def test_merge_call_is_the_cross_replica_context(simulate: Simulate, count: int) -> None:
    simulate(count)
    strategy = MirroredStrategy()
    seen: list[Any] = []

    def replica() -> None:
        before = where()
        context().merge_call(lambda strategy: seen.append((strategy, where())))
        assert where() == before

    strategy.run(replica)
    assert seen == [(strategy, (strategy, True, True, None, None))]


def test_scope_ends_with_an_exception(strategy: MirroredStrategy) -> None:
    with pytest.raises(ZeroDivisionError), strategy.scope():
        raise ZeroDivisionError
    assert not has_strategy()


def test_another_thread_is_outside(strategy: MirroredStrategy) -> None:
    seen: list[bool] = []
    with strategy.scope():
        thread = threading.Thread(target=lambda: seen.append(has_strategy()))
        thread.start()
        thread.join(timeout=60)
    assert seen == [False]


# merge_call


@pytest.mark.behaviour("replica-context")
@cases("count", [1, 2, 4])
def test_merge_call_gathers_and_hands_back(simulate: Simulate, count: int) -> None:
    simulate(count)
    strategy = MirroredStrategy()
    shared = object()
    calls: list[Any] = []

    def merge(merging: Strategy, value: Any, *, same: object) -> Any:
        assert merging is strategy
        assert same is shared
        parts = strategy.experimental_local_results(value)
        calls.append(parts)
        if count == 1:
            return {"own": parts[0] + 10.5, "all": shared}
        return {"own": PerReplica([part + 10.5 for part in parts]), "all": shared}

    def replica() -> tuple[float, bool]:
        merged = context().merge_call(
            merge, args=(context().replica_id_in_sync_group + 0.25,), kwargs={"same": shared}
        )
        return merged["own"], merged["all"] is shared

    own, same = strategy.run(replica)
    assert calls == [tuple(i + 0.25 for i in range(count))]
    assert local(strategy, own) == [i + 10.75 for i in range(count)]
    assert same is True


def test_merge_call_outside_all_scopes() -> None:
    def merge(strategy: Strategy, value: int) -> tuple[Any, ...]:
        return strategy, value, in_cross_replica_context()

    assert context().merge_call(merge, (3,)) == (get_strategy(), 3, True)
    assert not in_cross_replica_context()


@cases("count", [1, 2])
@cases("call", ["merge_call", "all_reduce"])
def test_a_context_that_is_not_running_refuses(simulate: Simulate, count: int, call: str) -> None:
    """Without this the call would wait for ever."""
    simulate(count)
    strategy = MirroredStrategy()
    kept: list[ReplicaContext] = []

    def ask(of: ReplicaContext) -> Any:
        if call == "merge_call":
            return of.merge_call(lambda strategy: None)
        return of.all_reduce("sum", 1.0)

    strategy.run(lambda: kept.append(context()))
    with pytest.raises(RuntimeError, match="The context of replica 0 is not the one"):
        ask(kept[0])
    with pytest.raises(RuntimeError, match="The context of replica 0 is not the one"):
        strategy.run(lambda: ask(kept[0]))

    def inside_merge() -> None:
        mine = context()
        mine.merge_call(lambda strategy: ask(mine))

    with pytest.raises(RuntimeError, match="The context of replica 0 is not the one"):
        strategy.run(inside_merge)


# all_reduce


@pytest.mark.behaviour("all-reduce-numbers")
@pytest.mark.parametrize(
    ("reduce_op", "scalar", "vector"),
    [
        ("SUM", 4.0, [42.0, 43.0]),
        ("sum", 4.0, [42.0, 43.0]),
        (ReduceOp.SUM, 4.0, [42.0, 43.0]),
        ("MEAN", 2.0, [21.0, 21.5]),
        (ReduceOp.MEAN, 2.0, [21.0, 21.5]),
    ],
)
def test_all_reduce(
    strategy: MirroredStrategy, reduce_op: Any, scalar: float, vector: list[float]
) -> None:
    def replica(x: ops.Tensor, y: ops.Tensor) -> Any:
        return context().all_reduce(reduce_op, x), context().all_reduce(reduce_op, y)

    x = PerReplica([mr.constant(1.0), mr.constant(3.0)])
    y = PerReplica([mr.constant([39.0, 2.0]), mr.constant([3.0, 41.0])])
    reduced = strategy.run(replica, (x, y))
    assert local(strategy, reduced[0]) == [scalar, scalar]
    assert local(strategy, reduced[1]) == [vector, vector]
    devices = [part.device[-5:] for part in strategy.experimental_local_results(reduced[1])]
    assert devices == ["GPU:0", "GPU:1"]


@pytest.mark.behaviour("replica-context")
@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda a, b: [a, b], lambda s: (s[0], s[1])),
        (lambda a, b: (a, [b]), lambda s: (s[0], s[1][0])),
        (lambda a, b: {"z": a, "a": b}, lambda s: (s["z"], s["a"])),
        (Pair, lambda s: (s.first, s.second)),
    ],
    ids=["list", "tuple", "dict", "named tuple"],
)
def test_all_reduce_of_structures(
    strategy: MirroredStrategy,
    wrap: Callable[[Any, Any], Any],
    unwrap: Callable[[Any], tuple[Any, Any]],
) -> None:
    def replica() -> Any:
        number = context().replica_id_in_sync_group
        value = wrap(mr.constant(number + 1.0), mr.constant([number + 10.0]))
        reduced = context().all_reduce("sum", value)
        assert type(reduced) is type(value)
        return unwrap(reduced)

    first, second = strategy.run(replica)
    assert local(strategy, first) == [3.0, 3.0]
    assert local(strategy, second) == [[21.0], [21.0]]


def test_all_reduce_counts_a_shared_tensor_once_a_replica(strategy: MirroredStrategy) -> None:
    shared = mr.constant([1.0, 2.0])
    reduced = strategy.run(lambda: context().all_reduce("sum", shared))
    assert local(strategy, reduced) == [[2.0, 4.0]] * 2


@pytest.mark.parametrize("reduce_op", ["sum", "mean"])
def test_all_reduce_of_one_replica(reduce_op: str) -> None:
    outside = context().all_reduce(reduce_op, [1.0, mr.constant([2.0])])
    assert [each.numpy().tolist() for each in outside] == [1.0, [2.0]]
    strategy = MirroredStrategy(["CPU:0"])
    inside = strategy.run(lambda: context().all_reduce(reduce_op, mr.constant([2.0])))
    assert inside.numpy().tolist() == [2.0]


def test_all_reduce_of_empty_shards(strategy: MirroredStrategy) -> None:
    x = PerReplica([mr.zeros((0, 3)), mr.zeros((0, 3))])
    reduced = strategy.run(lambda x: context().all_reduce("sum", x), (x,))
    assert [part.shape for part in strategy.experimental_local_results(reduced)] == [(0, 3)] * 2


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (lambda i: mr.zeros((i + 1,)), ValueError, r"\(1,\) float32 from replica 0 and \(2,\)"),
        (lambda i: mr.zeros((), ["float32", "int32"][i]), ValueError, "int32 from replica 1"),
        (lambda i: [1.0] * (i + 1), ValueError, "replica 0 has a list of 1, replica 1 has a list"),
        (lambda i: "text", TypeError, "Cannot make a tensor"),
    ],
)
def test_all_reduce_of_what_differs(
    strategy: MirroredStrategy, value: Callable[[int], Any], error: type[Exception], match: str
) -> None:
    def replica() -> Any:
        return context().all_reduce("sum", value(context().replica_id_in_sync_group))

    with pytest.raises(error, match=match):
        strategy.run(replica)


def test_all_reduce_by_an_unknown_op(strategy: MirroredStrategy) -> None:
    with pytest.raises(ValueError, match="'PROD' is not a valid ReduceOp"):
        strategy.run(lambda: context().all_reduce("PROD", 1.0))


@pytest.mark.behaviour("gradient-of-all-reduce", "all-reduce-gradients")
@pytest.mark.parametrize(("reduce_op", "expected"), [("sum", [4.0, 4.0]), ("mean", [2.0, 2.0])])
def test_gradient_through_all_reduce(
    strategy: MirroredStrategy, reduce_op: str, expected: list[float]
) -> None:
    def replica(c: ops.Tensor) -> Any:
        x = mr.constant(5.0)
        with mr.GradientTape() as tape:
            tape.watch(x)
            y = context().all_reduce(reduce_op, x) * c
        return tape.gradient(y, x)

    gradients = strategy.run(replica, (PerReplica([mr.constant(1.0), mr.constant(3.0)]),))
    assert local(strategy, gradients) == expected


@pytest.mark.behaviour("gradient-of-all-reduce")
def test_second_gradient_through_all_reduce(strategy: MirroredStrategy) -> None:
    """With s = x0 + x1, the derivative of s^3 by x is 3 s^2 a replica, summed over both."""

    def replica(x: ops.Tensor) -> Any:
        with mr.GradientTape() as outer:
            outer.watch(x)
            with mr.GradientTape() as inner:
                inner.watch(x)
                y = context().all_reduce("sum", x) ** 3.0
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    first, second = strategy.run(replica, (PerReplica([mr.constant(1.0), mr.constant(2.0)]),))
    assert local(strategy, first) == [54.0, 54.0]  # 2 replicas x 3 s^2
    assert local(strategy, second) == [72.0, 72.0]  # 2 x (2 x 6 s)


def test_a_tape_around_run_follows_the_replicas(strategy: MirroredStrategy) -> None:
    x = mr.constant(3.0)
    with mr.GradientTape() as tape:
        tape.watch(x)
        parts = strategy.run(lambda c: x * c, (PerReplica([2.0, 5.0]),))
        total = mr.add_n(list(strategy.experimental_local_results(parts)))
    gradient = tape.gradient(total, x)
    np.testing.assert_allclose(gradient.numpy(), 7.0)


def test_a_gradient_through_all_reduce_cannot_leave_the_replicas(
    strategy: MirroredStrategy,
) -> None:
    x = mr.constant(3.0)
    with mr.GradientTape() as tape:
        tape.watch(x)
        reduced = strategy.run(lambda: context().all_reduce("sum", x))
        y = strategy.experimental_local_results(reduced)[0]
    with pytest.raises(RuntimeError, match=r"only inside the function that strategy\.run calls"):
        tape.gradient(y, x)
