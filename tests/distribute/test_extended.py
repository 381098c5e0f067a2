"""What strategies offer to training loops and optimizers of one's own."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr
from mirrored.distribute import (
    Mirrored,
    MirroredStrategy,
    PerReplica,
    get_replica_context,
    get_strategy,
    in_cross_replica_context,
)
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(3)
    return MirroredStrategy(["GPU:0", "GPU:2"])


def variable(strategy: Any, value: Any = 1.0, **kwargs: Any) -> Any:
    """Return a variable made in the strategy's scope."""
    with strategy.scope():
        return mr.Variable(value, name="v", **kwargs)


def values(parts: Any) -> list[float]:
    """Return the parts of a value, or the copies of a variable, as numbers."""
    return [float(part) for part in getattr(parts, "values", parts)]


@pytest.mark.behaviour("extended")
def test_devices(strategy: MirroredStrategy) -> None:
    expected = (f"{FULL}GPU:0", f"{FULL}GPU:2")
    assert strategy.extended.worker_devices == expected
    assert strategy.extended.parameter_devices == expected
    assert get_strategy().extended.worker_devices == (f"{FULL}GPU:0",)


def test_whose_a_variable_is(strategy: MirroredStrategy) -> None:
    inside, outside = variable(strategy), mr.Variable(1.0)
    mine, default = strategy.extended, get_strategy().extended
    found = [
        each.variable_created_in_scope(v) for each in (mine, default) for v in (inside, outside)
    ]
    assert found == [True, False, False, True]


# update


@pytest.mark.behaviour("extended")
@pytest.mark.parametrize("synchronization", ["AUTO", "ON_READ"])
def test_update_calls_a_function_on_each_copy(
    strategy: MirroredStrategy, synchronization: str
) -> None:
    mode = mr.VariableSynchronization[synchronization]
    v = variable(strategy, synchronization=mode, aggregation=mr.VariableAggregation.SUM)
    seen: list[Any] = []

    def change(copy: Any, x: Any, *, y: Any) -> Any:
        assert in_cross_replica_context()
        assert get_strategy() is strategy
        seen.append((copy.device, mr.constant(1.0).device, x, y))
        return copy.assign_add(x * y)

    result = strategy.extended.update(v, change, args=(PerReplica([1.0, 2.0]),), kwargs={"y": 3.0})
    assert seen == [(f"{FULL}GPU:{i}", f"{FULL}GPU:{i}", i / 2 + 1, 3.0) for i in (0, 2)]
    assert type(result) is Mirrored
    assert values(v.copies) == [4.0, 7.0]
    alone = strategy.extended.update(v, lambda copy: copy * 2.0, group=False)
    assert type(alone) is tuple
    assert values(alone) == [8.0, 14.0]


def test_update_in_a_merge_call(strategy: MirroredStrategy) -> None:
    """The way that an optimizer goes: each replica waits, and every copy gets the sum."""
    v = variable(strategy)

    def apply(strategy: Any, gradient: Any) -> Any:
        total = strategy.extended.reduce_to("sum", gradient, destinations=v)
        return strategy.extended.update(v, lambda copy, g: copy.assign_sub(g), args=(total,))

    def replica(x: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        return float(context.merge_call(apply, args=(x,)))

    x = PerReplica([mr.constant(1.0), mr.constant(2.0)])
    assert strategy.run(replica, (x,)).values == (-2.0, -2.0)
    assert values(v.copies) == [-2.0, -2.0]


def test_other_variables_are_those_of_the_replica(strategy: MirroredStrategy) -> None:
    """As in TensorFlow, in what is read and what is written."""
    v, w = variable(strategy), variable(strategy)

    def update(copy: Any) -> Any:
        w.assign_add(copy)
        return copy.assign(w + 1.0)

    with strategy.scope():
        strategy.extended.update(v, update)
    assert (values(w.copies), values(v.copies)) == ([2.0, 2.0], [3.0, 3.0])


def test_update_outside_all_scopes() -> None:
    v = mr.Variable(1.0)
    result = get_strategy().extended.update(v, lambda copy, x: copy.assign_add(x), args=(2.0,))
    assert (float(v), values(result)) == (3.0, [3.0])


def test_update_that_is_recorded(strategy: MirroredStrategy) -> None:
    v = variable(strategy)

    @mr.function
    def double(x: Any) -> Any:
        return strategy.extended.update(v, lambda copy, y: copy.assign(copy * y), args=(x,)) * 1.0

    assert [float(double(mr.constant(2.0))) for _ in range(3)] == [2.0, 4.0, 8.0]
    assert values(v.copies) == [8.0, 8.0]


REFUSED: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda s, v: s.extended.update(mr.Variable(1.0), print), ValueError, "created in its scope"),
    (
        lambda s, v: s.extended.update(3, print),
        ValueError,
        r"created in its scope\. Received: 3 for",
    ),
    (
        lambda s, v: s.extended.update(v, print, args=(PerReplica([1.0]),)),
        ValueError,
        "one part per replica, here 2. Received: 1 part",
    ),
    (
        lambda s, v: s.extended.update(v, print, kwargs={"x": PerReplica([1.0] * 3)}),
        ValueError,
        "one part per replica, here 2. Received: 3 parts",
    ),
    (
        lambda s, v: s.run(lambda: s.extended.update(v, print)),
        RuntimeError,
        r"requires being in cross-replica context, use get_replica_context\(\)\.merge_call\(\)",
    ),
    (lambda s, v: s.extended.update(v, lambda copy: 1 // 0), ZeroDivisionError, "by zero"),
    (
        lambda s, v: s.extended.reduce_to("sum", PerReplica([1.0, 2.0]), "GPU:9"),
        InvalidArgumentError,
        "GPU:9 unknown device",
    ),
    (
        lambda s, v: s.extended.reduce_to("PROD", PerReplica([1.0, 2.0])),
        ValueError,
        "'PROD' is not a valid ReduceOp",
    ),
    (
        lambda s, v: s.run(lambda: s.extended.reduce_to("sum", 1.0)),
        RuntimeError,
        "requires cross-replica context",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_refused(
    strategy: MirroredStrategy,
    call: Callable[[Any, Any], Any],
    error: type[Exception],
    match: str,
) -> None:
    v = variable(strategy)
    with pytest.raises(error, match=match):
        call(strategy, v)
    assert values(v.copies) == [1.0, 1.0]
    assert not in_cross_replica_context()


# reduce_to


def test_where_reductions_go(strategy: MirroredStrategy) -> None:
    x = PerReplica([mr.constant(1.0), mr.constant(4.0)])
    reduce_to = strategy.extended.reduce_to
    assert (float(reduce_to("mean", x)), reduce_to("mean", x).device) == (2.5, f"{FULL}CPU:0")
    v, plain = variable(strategy), mr.Variable(1.0)
    for where, place in [("GPU:1", "GPU:1"), (plain, "GPU:0")]:
        total = reduce_to("sum", x, where)
        assert (float(total), total.device) == (5.0, FULL + place)
    total = reduce_to("SUM", {"a": x, "b": [x]}, v)
    for each in (total["a"], total["b"][0]):
        assert type(each) is Mirrored
        assert [(float(part), part.device) for part in each.values] == [
            (5.0, f"{FULL}GPU:0"),
            (5.0, f"{FULL}GPU:2"),
        ]
    first, second = strategy.extended.batch_reduce_to("mean", [(x, v), ({"a": x}, "GPU:1")])
    assert values(first) == [2.5, 2.5]
    assert (float(second["a"]), second["a"].device) == (2.5, f"{FULL}GPU:1")
