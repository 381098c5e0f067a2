"""Strategies: how they are made, on which devices, and how their scopes are entered."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases
from replica_context import number

import mirrored as mr
from mirrored.distribute import (
    CrossDeviceOps,
    MirroredStrategy,
    MirroredVariable,
    Strategy,
    get_strategy,
)
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


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


# Making one


@pytest.mark.behaviour("default-devices")
@cases(
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


@pytest.mark.behaviour("default-devices")
def test_logical_devices(simulate: Simulate) -> None:
    gpus = simulate(3)
    assert replica_devices(MirroredStrategy(gpus[1:])) == ["GPU:1", "GPU:2"]
    assert replica_devices(MirroredStrategy(gpus[2])) == ["GPU:2"]


@pytest.mark.behaviour("default-devices")
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


@pytest.mark.behaviour("duplicate-devices", "absent-devices")
@cases(
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
        (3, ValueError, "`devices` must be a list of names or logical devices. Received: 3"),
    ],
)
def test_devices_that_cannot_be(
    simulate: Simulate, given: Any, error: type[Exception], match: str
) -> None:
    simulate(2)
    with pytest.raises(error, match=match):
        MirroredStrategy(given)
    assert MirroredStrategy().num_replicas_in_sync == 2


@pytest.mark.behaviour("absent-devices")
def test_an_unknown_device_lists_those_there_are(simulate: Simulate) -> None:
    simulate(2)
    with pytest.raises(InvalidArgumentError) as error:
        MirroredStrategy(["GPU:0", "GPU:2"])
    assert f"[{FULL}CPU:0, {FULL}GPU:0, {FULL}GPU:1]" in str(error.value)
    assert "MirroredStrategy(devices=['GPU:0', 'GPU:2'])" in str(error.value)


@cases("given", ["nccl", 1, CrossDeviceOps])
def test_collectives_that_are_none(given: Any) -> None:
    with pytest.raises(ValueError, match="`cross_device_ops` must be a CrossDeviceOps"):
        MirroredStrategy(cross_device_ops=given)


# Scopes


@pytest.mark.behaviour("scope")
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


@pytest.mark.behaviour("scope")
@cases("depth", [1, 2, 3])
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
