"""Variables whose copies go their own ways, and become one value when they are read."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases
from replica_context import number

import mirrored as mr
from mirrored.distribute import (
    Mirrored,
    MirroredStrategy,
    OneDeviceStrategy,
    PerReplica,
    SyncOnReadVariable,
)
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Aggregation = mr.VariableAggregation
ON_READ = mr.VariableSynchronization.ON_READ
FULL = "/job:localhost/replica:0/task:0/device:"
METHODS = ["assign", "assign_add", "assign_sub"]


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


@pytest.fixture(params=["eager", "recorded"])
def how(request: pytest.FixtureRequest) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes a function run in one of the two ways."""
    return mr.function if request.param == "recorded" else lambda function: function


def on_read(
    strategy: Any, value: Any, aggregation: Aggregation = Aggregation.SUM, **kwargs: Any
) -> SyncOnReadVariable:
    """Return a variable made in the strategy's scope."""
    with strategy.scope():
        variable = mr.Variable(
            value, synchronization=ON_READ, aggregation=aggregation, name="v", **kwargs
        )
    assert isinstance(variable, SyncOnReadVariable)
    return variable


def copies(variable: SyncOnReadVariable) -> list[Any]:
    """Return the values of the copies."""
    return [copy.numpy().tolist() for copy in variable.copies]


# Making one


@pytest.mark.behaviour("synchronization")
def test_properties(strategy: MirroredStrategy) -> None:
    v = on_read(strategy, [1.0, 2.0])
    assert (v.shape, v.dtype, v.name, v.trainable) == ((2,), mr.float32, "v:0", False)
    assert (v.synchronization, v.aggregation) == (ON_READ, Aggregation.SUM)
    assert [copy.name for copy in v.copies] == ["v:0", "v/replica_1:0"]
    assert [copy.device for copy in v.copies] == [f"{FULL}GPU:0", f"{FULL}GPU:1"]
    assert strategy.experimental_local_results(v) == v.copies
    assert repr(on_read(strategy, 1.0)) == (
        "SyncOnReadVariable:{\n"
        "  0: <mr.Variable 'v:0' shape=() dtype=float32, numpy=1.0>,\n"
        "  1: <mr.Variable 'v/replica_1:0' shape=() dtype=float32, numpy=1.0>\n"
        "}"
    )


@pytest.mark.behaviour("synchronization")
@pytest.mark.parametrize(("asked", "trainable"), [(None, False), (False, False), (True, True)])
def test_it_is_trained_only_where_that_is_asked_for(
    strategy: MirroredStrategy, asked: bool | None, trainable: bool
) -> None:
    v = on_read(strategy, 1.0, trainable=asked)
    assert v.trainable is trainable
    plain = mr.Variable(1.0, trainable=asked, synchronization=ON_READ)
    assert plain.trainable is trainable
    for each in (v, plain):
        with mr.GradientTape() as tape:
            strategy.run(lambda read: read.read_value() * 2.0, (each,))
        assert (each in tape.watched_variables()) is trainable


def test_a_mean_of_integers_is_refused(strategy: MirroredStrategy) -> None:
    with pytest.raises(ValueError, match="aggregation=MEAN and a non-floating dtype is not"):
        on_read(strategy, 1, Aggregation.MEAN)


@pytest.mark.behaviour("copies")
def test_random_initial_values_are_equal(strategy: MirroredStrategy) -> None:
    v = on_read(strategy, lambda: mr.random.normal((4,)))
    first, second = copies(v)
    assert first == second


# Writes of replicas stay there; a read outside reduces

WRITES: list[tuple[Aggregation, str, list[float], float]] = [
    # The rows of TensorFlow's guide, with 4 and 5 (1 + id) for its numbers, then all others.
    (Aggregation.ONLY_FIRST_REPLICA, "assign_add", [9, 14], 9),
    (Aggregation.ONLY_FIRST_REPLICA, "assign_sub", [-1, -6], -1),
    (Aggregation.ONLY_FIRST_REPLICA, "assign", [5, 10], 5),
    (Aggregation.SUM, "assign", [5, 10], 15),
    (Aggregation.SUM, "assign_add", [9, 14], 23),
    (Aggregation.SUM, "assign_sub", [-1, -6], -7),
    (Aggregation.MEAN, "assign", [5, 10], 7.5),
    (Aggregation.MEAN, "assign_add", [9, 14], 11.5),
    (Aggregation.MEAN, "assign_sub", [-1, -6], -3.5),
]


@pytest.mark.behaviour("on-read")
@pytest.mark.parametrize(
    ("dtype", "aggregation", "method", "parts", "total"),
    [
        (dtype, *row)
        for number, row in enumerate(WRITES)
        for dtype in (("float32", "int64"), ("float64", "int32"))[number % 2]
        if row[0] is not Aggregation.MEAN or dtype.startswith("float")
    ],
)
def test_replica_writes(
    strategy: MirroredStrategy,
    how: Any,
    dtype: str,
    aggregation: Aggregation,
    method: str,
    parts: list[float],
    total: float,
) -> None:
    v = on_read(strategy, 4, aggregation, dtype=dtype)

    def replica() -> Any:
        assert getattr(v, method)(5 * (1 + number())) is v.copies[number()]
        return v.read_value(), v * 2

    def step() -> Any:
        return strategy.run(replica), v.read_value(), v + v

    (own, doubled), read, twice = how(step)()
    assert copies(v) == parts
    assert [each.numpy() for each in own.values] == parts
    assert [each.numpy() for each in doubled.values] == [2 * each for each in parts]
    assert (read.numpy(), read.dtype, twice.numpy()) == (total, dtype, 2 * total)
    with strategy.scope():
        assert v.numpy() == float(v.value()) == total


@pytest.mark.behaviour("variable-numbers")
@pytest.mark.parametrize(
    ("start", "aggregation", "method", "delta", "parts", "read"),
    [
        (2.0, Aggregation.ONLY_FIRST_REPLICA, "assign_add", lambda i: 5 * (i + 1), [7, 12], 7),
        (1.0, Aggregation.SUM, "assign_add", lambda i: 2 + i, [3, 4], 7),
        (0.0, Aggregation.MEAN, "assign", lambda i: 6 * i, [0, 6], 3),
    ],
)
def test_numbers_of_the_guide(
    strategy: MirroredStrategy,
    start: float,
    aggregation: Aggregation,
    method: str,
    delta: Callable[[int], float],
    parts: list[float],
    read: float,
) -> None:
    v = on_read(strategy, start, aggregation)
    strategy.run(lambda: getattr(v, method)(delta(number())))
    assert (copies(v), float(v)) == (parts, read)


def test_without_aggregation_replicas_alone_read(strategy: MirroredStrategy, how: Any) -> None:
    v = on_read(strategy, 1.0, Aggregation.NONE)
    read = how(lambda: strategy.run(lambda: v.assign_add(1.0 + number()).read_value()))()
    assert [float(each) for each in read.values] == [2.0, 3.0]
    for reading in (v.read_value, v.numpy, lambda: v + 1.0, how(lambda: v * 1.0)):
        with pytest.raises(
            ValueError,
            match=r"Could not convert from `mr\.VariableAggregation` VariableAggregation\.NONE to "
            r"`mr\.distribute\.ReduceOp` type\. Received: a read of 'v:0' outside of replicas",
        ):
            reading()
    assert copies(v) == [2.0, 3.0]
    assert repr(v).startswith("SyncOnReadVariable:{")


def test_a_read_is_a_snapshot(strategy: MirroredStrategy) -> None:
    v = on_read(strategy, [1.0])
    whole, parts = v.read_value(), strategy.run(v.read_value)
    v.assign([10.0])
    strategy.run(lambda: v.assign_add([1.0]))
    assert whole.numpy() == [2.0]
    assert [each.numpy() for each in parts.values] == [[1.0], [1.0]]


# Writes outside of replicas


@pytest.mark.behaviour("on-read-assign")
@pytest.mark.parametrize("inside", [True, False], ids=["in scope", "outside"])
@pytest.mark.parametrize("aggregation", list(Aggregation))
@pytest.mark.parametrize(
    ("method", "expected"), [("assign", 7.0), ("assign_add", 11.0), ("assign_sub", -3.0)]
)
def test_writes_outside_of_replicas(
    strategy: MirroredStrategy,
    how: Any,
    inside: bool,
    aggregation: Aggregation,
    method: str,
    expected: float,
) -> None:
    v = on_read(strategy, 4.0, aggregation)

    def write() -> None:  # It does not return the variable: without aggregation it has no value.
        with strategy.scope() if inside else contextlib.nullcontext():
            getattr(v, method)(7.0)

    if aggregation is Aggregation.SUM and method != "assign":
        with pytest.raises(ValueError, match=f"SyncOnReadVariable does not support `{method}`"):
            how(write)()
        assert copies(v) == [4.0, 4.0]
        return
    how(write)()
    assert copies(v) == [3.5 if aggregation is Aggregation.SUM else expected] * 2


@pytest.mark.behaviour("on-read-assign")
@pytest.mark.parametrize("method", ["assign_add", "assign_sub"])
def test_a_sum_is_not_added_to_outside_of_replicas(strategy: MirroredStrategy, method: str) -> None:
    v = on_read(strategy, 4.0)
    for value in (1.0, PerReplica([1.0, 2.0])):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            getattr(v, method)(value)
        assert str(caught.value) == (
            f"SyncOnReadVariable does not support `{method}` in cross-replica context when "
            "aggregation is set to `mr.VariableAggregation.SUM`. Received: the variable 'v:0'. "
            "Call it in replica context, or use `assign`."
        )
    assert copies(v) == [4.0, 4.0]


@pytest.mark.behaviour("on-read-assign")
@cases("value", [7, 8, -7, 1, 2**31 - 1, -(2**31)])
@cases("replicas", [2, 3, 4])
def test_a_sum_of_integers_keeps_the_whole(simulate: Simulate, replicas: int, value: int) -> None:
    """TensorFlow loses what the replicas cannot share evenly: it reads 6 where 7 was assigned."""
    simulate(replicas)
    v = on_read(MirroredStrategy(), 0, dtype="int32")
    v.assign(value)
    assert int(v) == value
    assert max(copies(v)) - min(copies(v)) < replicas


def test_a_sum_of_large_integers_keeps_the_whole(strategy: MirroredStrategy) -> None:
    v = on_read(strategy, 0, dtype="int64")
    v.assign(2**60 + 1)
    assert int(v) == 2**60 + 1


@pytest.mark.parametrize("aggregation", list(Aggregation))
@pytest.mark.parametrize("kind", [PerReplica, Mirrored])
def test_values_by_replica_go_to_their_copies(
    strategy: MirroredStrategy, aggregation: Aggregation, kind: type
) -> None:
    v = on_read(strategy, 0.0, aggregation)
    v.assign(kind([mr.constant(1.0), mr.constant(1.0)]))
    assert copies(v) == [1.0, 1.0]
    v.assign(PerReplica([1.0, mr.constant(2.0)]))
    assert copies(v) == [1.0, 2.0]
    if aggregation is not Aggregation.SUM:
        v.assign_add(PerReplica([1.0, 5.0]))
        assert copies(v) == [2.0, 7.0]


# What is refused, and changes nothing

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (PerReplica([[1.0, 2.0], [1.0]]), ValueError, "' v/replica_1:0': Shape mismatch"),
    (mr.VariableAggregation, TypeError, "Received: <enum"),
    (
        PerReplica([[1.0, 2.0]]),
        ValueError,
        "one part per replica, here 2. Received: 1 part for the",
    ),
]


@pytest.mark.parametrize(("value", "error", "match"), REFUSED)
@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_a_refused_write_changes_no_copy(
    strategy: MirroredStrategy,
    aggregation: Aggregation,
    value: Any,
    error: type[Exception],
    match: str,
) -> None:
    v = on_read(strategy, [1.0, 2.0], aggregation)
    with pytest.raises(error, match=match):
        v.assign(value)
    with pytest.raises(InvalidArgumentError, match="a float tensor but is a double tensor"):
        v.assign(mr.constant([1.0, 2.0], "float64"))
    assert copies(v) == [[1.0, 2.0]] * 2


@pytest.mark.parametrize("method", METHODS)
def test_a_per_replica_value_in_a_replica(strategy: MirroredStrategy, method: str) -> None:
    v = on_read(strategy, 1.0)
    value = PerReplica([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="2 parts, one per replica, cannot be used"):
        strategy.run(lambda: getattr(v, method)(value))
    assert copies(v) == [1.0, 1.0]


# One replica, and other strategies


@cases("make", [MirroredStrategy, lambda names: OneDeviceStrategy(names[0])])
@cases("aggregation", [Aggregation.SUM, Aggregation.MEAN])
def test_one_replica(make: Any, aggregation: Aggregation) -> None:
    strategy = make(["CPU:0"])
    with strategy.scope():
        v = mr.Variable(3.0, synchronization=ON_READ, aggregation=aggregation)
    assert (float(v), v.trainable, v.synchronization) == (3.0, False, ON_READ)
    strategy.run(lambda: v.assign_add(4.0))
    assert float(v) == 7.0
    v.assign(1.0)
    assert float(v.read_value()) == 1.0


def test_another_strategys_scope_is_outside_of_its_replicas(strategy: MirroredStrategy) -> None:
    v = on_read(strategy, 1.0)
    strategy.run(lambda: v.assign(1.0 + number()))
    with OneDeviceStrategy("CPU:0").scope():
        assert float(v) == 3.0


# The placement log


@pytest.mark.behaviour("log-of-an-on-read-variable")
def test_the_log_of_a_read(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    simulate(3)
    v = on_read(MirroredStrategy(), 1.0)
    mr.debugging.set_log_device_placement(True)
    caplog.clear()
    assert float(v.read_value()) == 3.0
    assert [line for line in caplog.messages if line.startswith("Executing")] == [
        *[f"Executing op ReadVariableOp in device {FULL}GPU:{i}" for i in range(3)],
        f"Executing op AddN in device {FULL}CPU:0",
        f"Executing op Identity in device {FULL}CPU:0",
    ]


@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_a_tape_follows_a_read_outside_replicas(
    strategy: MirroredStrategy, aggregation: str
) -> None:
    with strategy.scope():
        v = mr.Variable(
            2.0,
            trainable=True,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation[aggregation],
        )
    with mr.GradientTape() as tape:
        y = v * v
    assert float(tape.gradient(y, v)) == 2.0 * float(v)
