"""Variables with equal copies: how they are made, read and written by replicas and outside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_context import number

import mirrored as mr
from mirrored import ops
from mirrored.distribute import (
    Mirrored,
    MirroredStrategy,
    MirroredVariable,
    PerReplica,
)

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Aggregation = mr.VariableAggregation
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


def mirrored_variable(
    strategy: MirroredStrategy, value: Any, name: str = "v", **kwargs: Any
) -> MirroredVariable:
    """Return a variable made in the strategy's scope."""
    with strategy.scope():
        variable = mr.Variable(value, name=name, **kwargs)
    assert isinstance(variable, MirroredVariable)
    return variable


MODES = pytest.mark.parametrize("mode", ["ON_WRITE", "ON_READ"])


def of_mode(strategy: MirroredStrategy, mode: str, value: Any) -> Any:
    """Return a variable made in the strategy's scope, of a mode of synchronization."""
    with strategy.scope():
        return mr.Variable(
            value,
            name="v",
            synchronization=mr.VariableSynchronization[mode],
            aggregation=Aggregation.MEAN,
        )


def copies(variable: Any) -> list[Any]:
    """Return the values of the copies."""
    return [copy.numpy().tolist() for copy in variable.copies]


# Making one


@pytest.mark.behaviour("copies", "mirrored-variable-repr")
@pytest.mark.parametrize(
    ("kwargs", "trainable", "dtype"),
    [
        ({}, True, "float32"),
        ({"trainable": False}, False, "float32"),
        ({"dtype": "float64"}, True, "float64"),
    ],
)
def test_properties(
    strategy: MirroredStrategy, kwargs: dict[str, Any], trainable: bool, dtype: str
) -> None:
    v = mirrored_variable(strategy, [1.0, 2.0], aggregation=Aggregation.SUM, **kwargs)
    assert (v.shape, v.dtype.name, v.trainable) == ((2,), dtype, trainable)
    assert (v.name, v.aggregation, v.strategy) == ("v:0", Aggregation.SUM, strategy)
    assert [copy.name for copy in v.copies] == ["v:0", "v/replica_1:0"]
    assert [copy.device for copy in v.copies] == [f"{FULL}GPU:0", f"{FULL}GPU:1"]
    assert v.device == f"{FULL}GPU:0"


@pytest.mark.behaviour("mirrored-variable-repr")
def test_repr(strategy: MirroredStrategy) -> None:
    assert repr(mirrored_variable(strategy, 1.0)) == (
        "MirroredVariable:{\n"
        "  0: <mr.Variable 'v:0' shape=() dtype=float32, numpy=1.0>,\n"
        "  1: <mr.Variable 'v/replica_1:0' shape=() dtype=float32, numpy=1.0>\n"
        "}"
    )


@pytest.mark.behaviour("copies")
def test_the_initial_value_is_computed_once(strategy: MirroredStrategy) -> None:
    calls: list[int] = []

    def initial() -> ops.Tensor:
        calls.append(1)
        return ops.random_normal((4,))

    v = mirrored_variable(strategy, initial)
    assert calls == [1]
    first, second = copies(v)
    assert first == second


# Reading


def test_a_read_is_that_of_the_running_replica(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, 1.0)
    v.copies[1].assign(5.0)
    parts = strategy.run(lambda: PerReplica([(float(v), float(v + 1.0), v.device)]))
    assert [each.values[0] for each in strategy.experimental_local_results(parts)] == [
        (1.0, 2.0, f"{FULL}GPU:0"),
        (5.0, 6.0, f"{FULL}GPU:1"),
    ]
    assert float(v) == 1.0


def test_a_read_is_a_snapshot(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, [1.0])
    before = v.read_value()
    v.assign_add([1.0])
    assert (before.numpy().tolist(), v.numpy().tolist()) == ([1.0], [2.0])


def test_tapes_watch_the_variable_and_not_its_copies(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, 3.0)

    def replica(x: ops.Tensor) -> Any:
        with mr.GradientTape() as tape:
            y = v * x * v
        (watched,) = tape.watched_variables()
        assert watched is v
        return tape.gradient(y, watched)

    gradients = strategy.run(replica, (PerReplica([mr.constant(1.0), mr.constant(2.0)]),))
    assert [float(part) for part in gradients.values] == [6.0, 12.0]


def test_a_tape_around_the_replicas_sums_their_reads(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, 3.0)
    with mr.GradientTape() as tape:
        parts = strategy.run(lambda x: v * x, (PerReplica([2.0, 5.0]),))
        total = mr.add_n(list(parts.values))
    assert float(tape.gradient(total, v)) == 7.0


# Writing in the cross-replica context, and outside all scopes


@pytest.mark.behaviour("on-write-outside")
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("aggregation", list(Aggregation))
@pytest.mark.parametrize(
    ("method", "expected"), [("assign", 2.0), ("assign_add", 5.0), ("assign_sub", 1.0)]
)
def test_cross_replica_writes_reach_every_copy(
    strategy: MirroredStrategy,
    inside: bool,
    aggregation: Aggregation,
    method: str,
    expected: float,
) -> None:
    v = mirrored_variable(strategy, 3.0, aggregation=aggregation)
    if inside:
        with strategy.scope():
            assert getattr(v, method)(2.0) is v
    else:
        assert getattr(v, method)(2.0) is v
    assert copies(v) == [expected, expected]


def test_a_per_replica_value_is_aggregated(strategy: MirroredStrategy) -> None:
    """What `run` returned may differ between replicas, and the copies may not."""
    v = mirrored_variable(strategy, 0.0, aggregation=Aggregation.SUM)
    with strategy.scope():
        v.assign(PerReplica([1.0, 2.0]))
    assert copies(v) == [3.0, 3.0]
    v.assign_sub(PerReplica([1.0, 1.0]))
    assert copies(v) == [1.0, 1.0]


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_copies_of_one_value_are_that_value(
    strategy: MirroredStrategy, aggregation: Aggregation
) -> None:
    """What a collective left on the devices is no longer to be aggregated."""
    v = mirrored_variable(strategy, 0.0, aggregation=aggregation)
    v.assign(Mirrored([mr.constant(2.0), mr.constant(2.0)]))
    assert copies(v) == [2.0, 2.0]


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("parts", [1, 3])
def test_a_value_with_another_number_of_parts(
    strategy: MirroredStrategy, method: str, parts: int
) -> None:
    v = mirrored_variable(strategy, 0.0, aggregation=Aggregation.SUM)
    with pytest.raises(
        ValueError,
        match=f"one part per replica, here 2. Received: {parts} parts? .* variable 'v:0'",
    ):
        getattr(v, method)(PerReplica([mr.constant(1.0)] * parts))
    assert copies(v) == [0.0, 0.0]


def test_a_per_replica_value_without_aggregation(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, 0.0)
    with pytest.raises(ValueError, match="You must specify an aggregation method"):
        v.assign(PerReplica([1.0, 2.0]))
    assert copies(v) == [0.0, 0.0]


# Writing in replicas


@pytest.mark.behaviour("on-write-in-replicas", "variable-numbers")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("aggregation", "method", "value", "expected"),
    [
        # The rows of TensorFlow's guide: an ON_WRITE 3, assign_add(7 (id + 1)) -> 10 and 10.
        (Aggregation.ONLY_FIRST_REPLICA, "assign_add", lambda i: 7 * (i + 1), 10),
        (Aggregation.ONLY_FIRST_REPLICA, "assign", lambda i: 5 + i, 5),
        (Aggregation.SUM, "assign", lambda i: 5 + i, 11),
        (Aggregation.SUM, "assign_add", lambda i: 5 + i, 14),
        (Aggregation.SUM, "assign_sub", lambda i: 5 + i, -8),
        (Aggregation.MEAN, "assign", lambda i: 6 * i, 3),
        (Aggregation.MEAN, "assign_add", lambda i: 6 * i, 6),
        (Aggregation.MEAN, "assign_sub", lambda i: 6 * i, 0),
    ],
)
def test_replica_writes_are_aggregated(
    strategy: MirroredStrategy,
    dtype: str,
    aggregation: Aggregation,
    method: str,
    value: Callable[[int], int],
    expected: int,
) -> None:
    v = mirrored_variable(strategy, 3, aggregation=aggregation, dtype=dtype)
    strategy.run(lambda: getattr(v, method)(value(number())))
    assert copies(v) == [expected, expected]


@pytest.mark.parametrize(
    "make",
    [
        lambda i: [1.0, float(i)],
        lambda i: (1.0, float(i)),
        lambda i: np.array([1.0, i], np.float64),
        lambda i: mr.constant([1.0, float(i)]),
    ],
    ids=["list", "tuple", "array", "tensor"],
)
@pytest.mark.parametrize(
    ("aggregation", "expected"), [(Aggregation.SUM, [2.0, 1.0]), (Aggregation.MEAN, [1.0, 0.5])]
)
def test_replica_writes_of_any_kind_of_value(
    strategy: MirroredStrategy,
    make: Callable[[int], Any],
    aggregation: Aggregation,
    expected: list[float],
) -> None:
    v = mirrored_variable(strategy, [0.0, 0.0], aggregation=aggregation)
    strategy.run(lambda: v.assign(make(number())))
    assert copies(v) == [expected, expected]


def test_replica_writes_of_integers(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, 3, aggregation=Aggregation.SUM)
    assert v.dtype == mr.int32
    strategy.run(lambda: v.assign_add(5 + number()))
    assert copies(v) == [14, 14]


@pytest.mark.behaviour("on-write-in-replicas")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_replica_writes_without_aggregation(
    strategy: MirroredStrategy, method: str, recorded: bool
) -> None:
    """What all replicas assign alike is taken; at the step that differs nothing changes."""
    v = mirrored_variable(strategy, 3.0)
    x = mr.Variable([1.0, 1.0])

    def step() -> Any:
        return strategy.run(lambda: getattr(v, method)(x[number()]))

    run = mr.function(step) if recorded else step
    run()
    expected = {"assign": 1.0, "assign_add": 4.0, "assign_sub": 2.0}[method]
    assert copies(v) == [expected] * 2
    x.assign([np.nan, np.nan])
    run()
    assert np.isnan(copies(v)).all()
    v.assign(expected)
    x.assign([1.0, 2.0])
    with pytest.raises(
        ValueError,
        match="You must specify an aggregation method to update a MirroredVariable in Replica "
        r"Context\.",
    ) as error:
        run()
    assert f"Received: {method} of 1.0 in the first replica and 2.0 in replica 1" in str(
        error.value
    )
    assert "on the variable 'v:0'" in str(error.value)
    assert copies(v) == [expected] * 2


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: mr.shape(x)[0], "a value that depends on the size of a shard"),
        (lambda x: mr.cast(mr.size(x) + 1, "int32"), "the size of a shard"),
        (lambda x: mr.reduce_sum(mr.ones_like(x)), "the size of a shard"),
        (lambda x: mr.zeros((1 + number(),), "int32"), "a value of "),
    ],
)
def test_values_that_are_one_devices_on_no_replica(
    strategy: MirroredStrategy, make: Any, text: str, recorded: bool
) -> None:
    """Shards of one size have it alike, and one device has all of them."""
    v = mirrored_variable(strategy, 3)

    def step(x: Any) -> Any:
        return strategy.run(lambda part: v.assign(make(part)), args=(x,))

    parts = PerReplica([mr.constant([1, 2]), mr.constant([3, 4])])
    with pytest.raises(ValueError, match="You must specify an aggregation method") as error:
        (mr.function(step) if recorded else step)(parts)
    assert text in str(error.value)
    assert copies(v) == [3, 3]


def test_rows_that_replicas_set_alike(strategy: MirroredStrategy) -> None:
    v = mirrored_variable(strategy, [1.0, 2.0])
    strategy.run(lambda: v.scatter_add(mr.IndexedSlices([5.0], [1])))
    assert copies(v) == [[1.0, 7.0]] * 2


@pytest.mark.parametrize("value", [5.0, 5, np.float64(5), np.full((), 5), np.uint8(5)])
def test_a_plain_value_is_its_own_mean(strategy: MirroredStrategy, value: Any) -> None:
    v = mirrored_variable(strategy, 3.0, aggregation=Aggregation.MEAN)
    strategy.run(lambda: v.assign_add(value))
    assert copies(v) == [8.0, 8.0]


@pytest.mark.parametrize("aggregation", [Aggregation.SUM, Aggregation.MEAN])
def test_a_plain_value_in_one_replica(simulate: Simulate, aggregation: Aggregation) -> None:
    simulate(1)
    v = mirrored_variable(MirroredStrategy(), 3.0, aggregation=aggregation)
    v.strategy.run(lambda: v.assign_add(5))
    assert copies(v) == [8.0]


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        ([1.0, 2.0, 3.0], ValueError, r"Cannot assign value to variable ' v:0': Shape mismatch\."),
        (np.array(["a", "b"]), TypeError, "Cannot make a tensor"),
    ],
)
@MODES
def test_a_refused_write_changes_no_copy(
    strategy: MirroredStrategy, mode: Any, value: Any, error: type[Exception], match: str
) -> None:
    v = of_mode(strategy, mode, [1.0, 2.0])
    with pytest.raises(error, match=match):
        v.assign(value)
    assert copies(v) == [[1.0, 2.0]] * 2


@MODES
def test_a_write_without_memory_on_one_replica_changes_no_copy(
    simulate: Simulate, mode: Any
) -> None:
    simulate(2, memory_limit=1)
    v = of_mode(MirroredStrategy(), mode, mr.zeros((1000,)))
    with mr.device("GPU:1"):
        ballast = mr.zeros(((1 << 18) - 1500,))
    with pytest.raises(mr.errors.ResourceExhaustedError, match="GPU:1"):
        v.assign_add(np.ones(1000))
    assert copies(v) == [[0.0] * 1000] * 2
    del ballast
    v.assign_add(np.ones(1000))
    assert copies(v) == [[1.0] * 1000] * 2


# Which variables can be made


@pytest.mark.behaviour("synchronization", "aggregation")
@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        (
            {"synchronization": mr.VariableSynchronization.NONE},
            "`NONE` variable synchronization mode is not supported with mr.distribute strategy. "
            "Please change the `synchronization` for variable: X",
        ),
        (
            {"aggregation": Aggregation.MEAN, "dtype": "int32"},
            "creating distributed mr.Variable with aggregation=MEAN and a non-floating dtype is "
            "not supported, please use a different aggregation or dtype. Received: the variable X",
        ),
        ({"aggregation": "sum"}, "Invalid variable aggregation mode: sum for variable: X"),
    ],
)
def test_refused_modes(strategy: MirroredStrategy, kwargs: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        mirrored_variable(strategy, 1, name="X", **kwargs)


@pytest.mark.behaviour("synchronization")
@pytest.mark.parametrize(
    "mode", [mr.VariableSynchronization.AUTO, mr.VariableSynchronization.ON_WRITE]
)
def test_modes_that_write_every_copy(
    strategy: MirroredStrategy, mode: mr.VariableSynchronization
) -> None:
    v = mirrored_variable(strategy, 1.0, synchronization=mode)
    v.assign(2.0)
    assert copies(v) == [2.0, 2.0]
