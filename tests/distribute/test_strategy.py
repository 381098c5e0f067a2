"""Strategies: how they are made and entered, what run and reduce do, and what they log."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import (
    CrossDeviceOps,
    MirroredStrategy,
    MirroredVariable,
    PerReplica,
    Strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
)
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


class Pair(NamedTuple):
    """Two values with names."""

    first: Any
    second: Any


def number() -> int:
    """Return the number of the running replica."""
    context = get_replica_context()
    assert context is not None
    return context.replica_id_in_sync_group


def replica_devices(strategy: Strategy) -> list[str]:
    """Return the short names of the devices on which a run's tensors are."""
    seen: list[str] = []
    strategy.run(lambda: seen.append(mr.constant(1.0).device.removeprefix(FULL)))
    return seen


def split_cpu(count: int) -> None:
    """Make `count` logical CPUs of the one there is."""
    mr.config.set_logical_device_configuration(
        mr.config.list_physical_devices("CPU")[0],
        [mr.config.LogicalDeviceConfiguration()] * count,
    )


def messages(caplog: pytest.LogCaptureFixture, start: str) -> list[str]:
    """Return the log's lines that begin with `start`."""
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if line.startswith(start)]


# Making one


@pytest.mark.parametrize(
    ("gpus", "given", "expected"),
    [
        (2, None, ["GPU:0", "GPU:1"]),
        (2, [], ["GPU:0", "GPU:1"]),
        (0, None, ["CPU:0"]),
        (0, [], ["CPU:0"]),
        (3, ["GPU:2", "GPU:0"], ["GPU:2", "GPU:0"]),
        (3, ("/gpu:1", f"{FULL}GPU:2"), ["GPU:1", "GPU:2"]),
        (2, ["GPU:1"], ["GPU:1"]),
        (2, "GPU:1", ["GPU:1"]),
        (2, ["GPU:0", "CPU:0"], ["GPU:0", "CPU:0"]),
    ],
)
def test_devices(simulate: Simulate, gpus: int, given: Any, expected: list[str]) -> None:
    simulate(gpus)
    strategy = MirroredStrategy(given)
    assert strategy.num_replicas_in_sync == len(expected)
    assert [device.full_name for device in strategy.devices] == [FULL + name for name in expected]
    assert replica_devices(strategy) == expected


def test_logical_devices(simulate: Simulate) -> None:
    gpus = simulate(3)
    assert replica_devices(MirroredStrategy(gpus[1:])) == ["GPU:1", "GPU:2"]
    assert replica_devices(MirroredStrategy(gpus[2])) == ["GPU:2"]


def test_listed_gpus_of_a_machine_without_any() -> None:
    strategy = MirroredStrategy(mr.config.list_logical_devices("GPU"))
    assert replica_devices(strategy) == ["CPU:0"]


def test_split_cpus() -> None:
    split_cpu(4)
    strategy = MirroredStrategy([f"CPU:{i}" for i in range(4)])
    assert replica_devices(strategy) == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
    with strategy.scope():
        v = mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM)
    strategy.run(lambda: v.assign(number() + 0.5))
    assert [float(copy) for copy in strategy.experimental_local_results(v)] == [8.0] * 4


def test_split_cpus_are_not_taken_by_default() -> None:
    split_cpu(4)
    assert replica_devices(MirroredStrategy()) == ["CPU:0"]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (["GPU:0", "GPU:7"], InvalidArgumentError, "GPU:7 unknown device"),
        (["TPU:0"], InvalidArgumentError, "TPU:0 unknown device"),
        (["GPU:0", "GPU:0"], ValueError, "No duplicates allowed in `devices` argument: "),
        (["GPU:0", "/gpu:0"], ValueError, "No duplicates allowed in `devices` argument: "),
        (["GPU", "GPU:0"], ValueError, "No duplicates allowed in `devices` argument: "),
        (["/foo:1"], ValueError, "Unknown attribute 'foo' is encountered while parsing the"),
        (["/GPU:x"], ValueError, "invalid literal for int"),
        (["/CPU:0/GPU:1"], ValueError, "Multiple device types are not allowed"),
        ([3], ValueError, r"Expecting a string device name\. Got <class 'int'>\(3\)"),
        (3, ValueError, "`devices` is a list of names or logical devices. Received: 3"),
    ],
)
def test_devices_that_cannot_be(
    simulate: Simulate, given: Any, error: type[Exception], match: str
) -> None:
    simulate(2)
    with pytest.raises(error, match=match):
        MirroredStrategy(given)
    assert MirroredStrategy().num_replicas_in_sync == 2


def test_an_unknown_device_lists_those_there_are(simulate: Simulate) -> None:
    simulate(2)
    with pytest.raises(InvalidArgumentError) as error:
        MirroredStrategy(["GPU:0", "GPU:2"])
    assert f"[{FULL}CPU:0, {FULL}GPU:0, {FULL}GPU:1]" in str(error.value)
    assert "MirroredStrategy(devices=['GPU:0', 'GPU:2'])" in str(error.value)


@pytest.mark.parametrize("given", ["nccl", 1, CrossDeviceOps])
def test_collectives_that_are_none(given: Any) -> None:
    with pytest.raises(ValueError, match="`cross_device_ops` is a CrossDeviceOps"):
        MirroredStrategy(cross_device_ops=given)


def test_the_line_in_the_log(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    MirroredStrategy()
    MirroredStrategy(["CPU:0"])
    assert messages(caplog, "Using") == [
        f"Using MirroredStrategy with devices ('{FULL}GPU:0', '{FULL}GPU:1')",
        f"Using MirroredStrategy with devices ('{FULL}CPU:0',)",
    ]
    assert {record.levelno for record in caplog.records} == {logging.INFO}


# Scopes


def test_scopes_of_two_strategies_do_not_mix(simulate: Simulate) -> None:
    simulate(2)
    one, other, default = MirroredStrategy(), MirroredStrategy(["CPU:0"]), get_strategy()
    with one.scope():
        for enter in (other.scope, default.scope):
            with (
                pytest.raises(RuntimeError, match=r"Mixing different .* objects: .* is not"),
                enter(),
            ):
                pass
        with pytest.raises(RuntimeError, match="Mixing different"):
            other.run(lambda: None)
        assert get_strategy() is one
    with other.scope():
        assert get_strategy() is other


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_scope_entered_again_mirrors_once(simulate: Simulate, depth: int) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    made: list[Any] = []

    def nest(left: int) -> None:
        with strategy.scope():
            if left:
                nest(left - 1)
            else:
                made.append(mr.Variable(1.0, name="v"))

    nest(depth)
    (variable,) = made
    assert isinstance(variable, MirroredVariable)
    assert [type(copy).__name__ for copy in variable.copies] == ["DeviceVariable"] * 2
    assert [copy.name for copy in variable.copies] == ["v:0", "v/replica_1:0"]


def test_variables_outside_scopes_are_plain(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        inside = mr.Variable(1.0)
    outside = mr.Variable(1.0)
    assert isinstance(inside, MirroredVariable)
    assert not isinstance(outside, MirroredVariable)
    default = get_strategy()
    assert [strategy.owns(each) for each in (inside, outside)] == [True, False]
    assert [default.owns(each) for each in (inside, outside)] == [False, True]
    assert not MirroredStrategy().owns(inside)


def test_a_variable_made_in_a_replica(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with pytest.raises(RuntimeError, match="the variable 'late' inside a replica"):
        strategy.run(lambda: mr.Variable(1.0, name="late"))


# run


def test_id_plus_one(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    result = strategy.run(lambda: number() + 1)
    assert strategy.experimental_local_results(result) == (1, 2)
    assert repr(result) == "PerReplica:{\n  0: 1,\n  1: 2\n}"


def test_structures_are_regrouped(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()

    def replica(x: ops.Tensor) -> Any:
        return {"a": 2.0 * x, "b": [x * x, (None, Pair("same", -x))]}

    x = PerReplica([mr.constant(1.0), mr.constant(2.0)])
    result = strategy.run(replica, (x,))
    flat = [result["a"], result["b"][0], result["b"][1][1].second]
    assert [[float(part) for part in each.values] for each in flat] == [
        [2.0, 4.0],
        [1.0, 4.0],
        [-1.0, -2.0],
    ]
    assert result["b"][1][0] is None
    assert result["b"][1][1].first == "same"
    assert list(result) == ["a", "b"]


def test_one_replica_is_unwrapped() -> None:
    strategy = MirroredStrategy(["CPU:0"])
    result = strategy.run(lambda x, *, y: {"sum": [x + y]}, [PerReplica([1])], {"y": 2})
    assert result == {"sum": [3]}


@pytest.mark.parametrize("wrap", [tuple, list])
def test_arguments_are_taken_apart(simulate: Simulate, wrap: Callable[[Any], Any]) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    seen: list[Any] = []

    def replica(*args: Any, **kwargs: Any) -> None:
        seen.append((args, kwargs))

    parts = PerReplica(["p0", "p1"])
    args = wrap([parts, 1, [parts, 2], {"k": parts}, Pair(parts, 3)])
    strategy.run(replica, args, {"a": parts, "b": (parts, 4)})
    assert seen == [
        (
            (p, 1, [p, 2], {"k": p}, Pair(p, 3)),
            {"a": p, "b": (p, 4)},
        )
        for p in ("p0", "p1")
    ]
    assert type(seen[0][0][4]) is Pair


def test_mirrored_variables_are_passed_whole(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(3.0)
    seen: list[Any] = []
    assert strategy.run(lambda w: (seen.append(w), w)[1], (v,)) is v
    assert all(each is v for each in seen)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda s: s.run(print, 3),
            ValueError,
            "positional args must be a list or tuple, got <class 'int'>",
        ),
        (
            lambda s: s.run(print, mr.constant([1.0])),
            ValueError,
            "positional args must be a list or tuple, got .*Tensor",
        ),
        (lambda s: s.run(3), TypeError, "`fn` must be callable. Received: 3"),
        (
            lambda s: s.run(print, (PerReplica([1, 2, 3]),)),
            ValueError,
            "one part a replica, here [12]. Received: 3 parts",
        ),
        (
            lambda s: s.run(print, (), {"x": [PerReplica([])]}),
            ValueError,
            "one part a replica, here [12]. Received: 0 parts",
        ),
        (
            lambda s: s.run(lambda: s.run(number)),
            RuntimeError,
            "strategy.run is called in the cross-replica context",
        ),
        (
            lambda s: s.run(lambda: s.reduce("sum", 1.0)),
            RuntimeError,
            "reduce requires cross-replica context, use get_replica_context",
        ),
    ],
)
def test_refused_calls(
    simulate: Simulate,
    replicas: int,
    call: Callable[[Strategy], Any],
    error: type[Exception],
    match: str,
) -> None:
    simulate(replicas)
    strategy = MirroredStrategy()
    with pytest.raises(error, match=match):
        call(strategy)
    assert not has_strategy()
    assert strategy.run(lambda: 7) == 7


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (lambda i: [1] * (i + 1), "at the top: replica 0 has a list of 1, replica 1 has a list of"),
        (lambda i: {"a": {"b": [1, i][: i + 1]}}, r"at \['a'\]\['b'\]: replica 0 has a list of 1"),
        (lambda i: None if i else (1, 2), "replica 0 has a tuple of 2, replica 1 has a NoneType"),
    ],
)
def test_results_of_different_structures(
    simulate: Simulate, result: Callable[[int], Any], match: str
) -> None:
    simulate(2)
    with pytest.raises(ValueError, match=match):
        MirroredStrategy().run(lambda: result(number()))


def test_run_outside_all_scopes() -> None:
    default = get_strategy()
    assert default.run(lambda x, *, y: x + y, (1,), {"y": PerReplica([2])}) == 3
    assert default.num_replicas_in_sync == 1
    assert [device.name for device in default.devices] == ["/device:CPU:0"]


def test_run_outside_all_scopes_is_placed_as_any_code_is(simulate: Simulate) -> None:
    simulate(2)
    with mr.device("GPU:1"):
        assert get_strategy().run(lambda: mr.constant(1.0).device) == f"{FULL}GPU:1"


# experimental_local_results


def test_local_results(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(3.0)
    parts = PerReplica([1, 2])
    local = strategy.experimental_local_results
    assert local(parts) == (1, 2)
    assert local("plain") == ("plain",)
    assert local(None) == (None,)
    assert all(a is b for a, b in zip(local(v), v.copies, strict=True))
    assert local({"a": parts, "b": [parts, 5]}) == ({"a": 1, "b": [1, 5]}, {"a": 2, "b": [2, 5]})
    first, second = local((v, parts))
    assert (first[0] is v.copies[0], second[0] is v.copies[1]) == (True, True)
    assert (first[1], second[1]) == (1, 2)


# reduce


@pytest.mark.parametrize(
    ("op", "axis", "expected"),
    [
        ("SUM", None, [[6.0, 8.0], [10.0, 12.0]]),
        ("mean", None, [[3.0, 4.0], [5.0, 6.0]]),
        ("SUM", 0, [16.0, 20.0]),
        ("MEAN", 0, [4.0, 5.0]),
        ("SUM", 1, [14.0, 22.0]),
        ("Mean", -1, [3.5, 5.5]),
    ],
)
def test_reduce(simulate: Simulate, op: str, axis: int | None, expected: Any) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = strategy.run(lambda: mr.constant([[1.0, 2.0], [3.0, 4.0]]) + 4.0 * float(number()))
    reduced = strategy.reduce(op, value, axis=axis)
    assert reduced.numpy().tolist() == expected
    assert reduced.device == f"{FULL}CPU:0"


@pytest.mark.parametrize("sizes", [(3, 2), (1, 0), (0, 4), (5, 5)])
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_reduce_over_uneven_shards_is_exact(
    simulate: Simulate, sizes: tuple[int, int], op: str
) -> None:
    simulate(2)
    rows = np.arange(2.0 * sum(sizes), dtype=np.float64).reshape(-1, 2)
    shards = PerReplica([mr.constant(rows[: sizes[0]]), mr.constant(rows[sizes[0] :])])
    reduced = MirroredStrategy().reduce(op, shards, axis=0)
    expected = rows.sum(axis=0) if op == "sum" else rows.mean(axis=0)
    np.testing.assert_allclose(reduced.numpy(), expected, rtol=1e-15)


def test_reduce_of_other_values(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(3.0)
    assert float(strategy.reduce("sum", v)) == 6.0
    assert float(strategy.reduce("mean", v)) == 3.0
    assert float(strategy.reduce("mean", 5.0)) == 5.0
    structure = strategy.reduce("sum", {"a": [PerReplica([1.0, 2.0])], "b": PerReplica([3, 4])})
    assert (float(structure["a"][0]), int(structure["b"])) == (3.0, 7)
    with strategy.scope():
        assert float(strategy.reduce("sum", PerReplica([1.0, 2.0]))) == 3.0


@pytest.mark.parametrize("op", ["sum", "mean"])
def test_reduce_of_one_replica(op: str) -> None:
    strategy = MirroredStrategy(["CPU:0"])
    assert float(strategy.reduce(op, mr.constant(2.0))) == 2.0
    assert float(strategy.reduce(op, mr.constant([2.0, 4.0]), axis=0)) == {"sum": 6, "mean": 3}[op]
    assert float(get_strategy().reduce(op, 2.0)) == 2.0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda s, v: s.reduce("PROD", v), "'PROD' is not a valid ReduceOp"),
        (
            lambda s, v: s.reduce("sum", v, axis=2),
            "`axis` = 2 out of range for `value` with rank 2",
        ),
        (lambda s, v: s.reduce("sum", v, axis=-3), "`axis` = -3 out of range .* with rank 2"),
        (lambda s, v: s.reduce("sum", v, axis="x"), "`axis` = 'x' out of range"),
        (
            lambda s, v: s.reduce("sum", 5.0),
            r"A non-DistributedValues value 5\.0 cannot be reduced with the given reduce op "
            r"ReduceOp\.SUM\.",
        ),
        (lambda s, v: s.reduce("sum", PerReplica([1.0] * 3)), "here 2. Received: 3 parts"),
        (lambda s, v: s.reduce("sum", PerReplica([[1.0], [1.0, 2.0]])), "of one shape and dtype"),
    ],
)
def test_refused_reductions(
    simulate: Simulate, call: Callable[[Strategy, Any], Any], match: str
) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = PerReplica([mr.zeros((2, 3)), mr.zeros((2, 3))])
    with pytest.raises(ValueError, match=match):
        call(strategy, value)


# The placement log


@pytest.mark.parametrize(
    "initial",
    [3.0, lambda: mr.constant(3.0), np.float32(3.0)],
    ids=["number", "function", "NumPy"],
)
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_placement_log_of_a_mirrored_variable(
    simulate: Simulate, caplog: pytest.LogCaptureFixture, initial: Any, dtype: str | None
) -> None:
    simulate(4)
    strategy = MirroredStrategy()
    mr.debugging.set_log_device_placement(True)
    with strategy.scope():
        mr.Variable(initial, dtype=dtype)
    expected = [("_EagerConst", 0), ("VarHandleOp", 0), ("AssignVariableOp", 0)]
    for i in (1, 2, 3):
        expected += [
            ("ReadVariableOp", 0),
            ("Identity", i),
            ("VarHandleOp", i),
            ("AssignVariableOp", i),
        ]
    assert messages(caplog, "Executing") == [
        f"Executing op {name} in device {FULL}GPU:{i}" for name, i in expected
    ]


def test_by_hand_on_four_gpus(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    gpus = simulate(4)
    mr.debugging.set_log_device_placement(True)
    products = []
    for gpu in gpus:
        with mr.device(gpu.name):
            a = mr.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            b = mr.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            products.append(mr.matmul(a, b))
    with mr.device("/CPU:0"):
        total = mr.add_n(products)
    assert total.numpy().tolist() == [[88.0, 112.0], [196.0, 256.0]]
    assert total.device == f"{FULL}CPU:0"
    assert messages(caplog, "Executing") == [
        *[
            f"Executing op {name} in device {FULL}GPU:{i}"
            for i in range(4)
            for name in ("_EagerConst", "_EagerConst", "MatMul")
        ],
        f"Executing op AddN in device {FULL}CPU:0",
    ]


def test_the_log_of_a_run_is_the_same_every_time(
    simulate: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(2.0, aggregation=mr.VariableAggregation.SUM)
    mr.debugging.set_log_device_placement(True)

    def replica() -> None:
        v.assign_add(v * 3.0)

    logs = []
    for _ in range(3):
        caplog.clear()
        strategy.run(replica)
        logs.append(messages(caplog, "Executing"))
    assert logs[0] == [
        *[
            f"Executing op {name} in device {FULL}GPU:{i}"
            for i in range(2)
            for name in ("ReadVariableOp", "_EagerConst", "Mul")
        ],
        f"Executing op AddN in device {FULL}CPU:0",
        f"Executing op Identity in device {FULL}CPU:0",
        *[f"Executing op AssignAddVariableOp in device {FULL}GPU:{i}" for i in range(2)],
    ]
    assert logs[1] == logs[0]
    assert logs[2] == logs[0]
    assert v.numpy() == 2.0 * 7**3  # v + 2 (3 v), three times.
    assert devices.get_log_device_placement()
