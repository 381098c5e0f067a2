"""Strategies of one replica: where they compute, what their variables are, and what they skip."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import (
    MirroredStrategy,
    OneDeviceStrategy,
    Strategy,
    get_replica_context,
    get_strategy,
    in_cross_replica_context,
)
from mirrored.errors import InvalidArgumentError
from mirrored.variables import DeviceVariable

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "default": get_strategy,
    "one device": lambda: OneDeviceStrategy("GPU:1"),
    "mirrored": lambda: MirroredStrategy(["GPU:1"]),
}
all_strategies = pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)


def place(value: Any) -> str:
    """Return the short name of a value's device."""
    return value.device.removeprefix(FULL)


@cases("name", ["GPU:1", "/gpu:1", f"{FULL}GPU:1"])
def test_one_device(simulate: Simulate, name: str) -> None:
    gpus = simulate(3)
    for given in (name, gpus[1]):
        strategy = OneDeviceStrategy(given)
        assert strategy.num_replicas_in_sync == 1
        assert [device.full_name for device in strategy.devices] == [f"{FULL}GPU:1"]
        assert strategy.extended.worker_devices == (f"{FULL}GPU:1",)
        assert strategy.extended.parameter_devices == (f"{FULL}GPU:1",)
        assert place(strategy.run(lambda: mr.constant(1.0))) == "GPU:1"


@cases(
    ("given", "error", "match"),
    [
        ("GPU:7", InvalidArgumentError, r"GPU:7 unknown device.*GPU:1\].*\(device='GPU:7'\)"),
        ("/foo:1", ValueError, "Unknown attribute 'foo'"),
        (None, ValueError, "Expecting a string device name. Got <class 'NoneType'>"),
        (["GPU:0"], ValueError, "Expecting a string device name. Got <class 'list'>"),
    ],
)
def test_a_device_that_there_is_not(
    simulate: Simulate, given: Any, error: type[Exception], match: str
) -> None:
    simulate(2)
    with pytest.raises(error, match=match):
        OneDeviceStrategy(given)


@all_strategies
def test_a_script_for_many_replicas_runs_on_one(
    simulate: Simulate, make: Callable[[], Strategy]
) -> None:
    simulate(2)
    strategy = make()
    mean, first = mr.VariableAggregation.MEAN, mr.VariableAggregation.ONLY_FIRST_REPLICA
    made: list[mr.Variable] = []

    def replica(x: Any, *, y: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        assert not in_cross_replica_context()
        assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (0, 1)
        w, v = made
        w.assign_add(x)
        v.assign_add(x)
        with mr.GradientTape() as tape:
            loss = w * context.all_reduce("sum", w * y)
        merged = context.merge_call(
            lambda strategy, z: (in_cross_replica_context(), strategy.reduce("sum", z, axis=None)),
            args=(x,),
        )
        return {
            "gradient": tape.gradient(loss, w),
            "gathered": context.all_gather(mr.reshape(x, (1,)), 0),
            "merged": merged,
        }

    made.append(mr.Variable(1.0, aggregation=mean))
    made.append(mr.Variable(2.0, aggregation=first))
    if strategy is not get_strategy():
        with strategy.scope():
            made[:] = [
                mr.Variable(1.0, aggregation=mean),
                mr.Variable(
                    2.0, synchronization=mr.VariableSynchronization.ON_READ, aggregation=first
                ),
            ]
    found = strategy.run(replica, (mr.constant(2.0),), {"y": 5.0})
    assert [float(each) for each in made] == [3.0, 4.0]
    assert (float(found["gradient"]), found["gathered"].numpy().tolist()) == (30.0, [2.0])
    assert (found["merged"][0], float(found["merged"][1])) == (True, 2.0)
    assert strategy.experimental_local_results(found["gradient"]) == (found["gradient"],)
    assert float(strategy.reduce("sum", mr.constant([1.0, 2.0]), axis=0)) == 3.0
    assert strategy.gather(mr.constant([1.0, 2.0]), axis=0).numpy().tolist() == [1.0, 2.0]
    value = strategy.experimental_distribute_values_from_function(
        lambda context: (context.replica_id_in_sync_group, context.num_replicas_in_sync)
    )
    assert value == (0, 1)


@all_strategies
@cases("op", ["PROD", None, 3])
def test_they_check_as_others_do(simulate: Simulate, make: Callable[[], Strategy], op: Any) -> None:
    """Or a script would fail on the first machine with two GPUs."""
    simulate(2)
    strategy = make()
    with pytest.raises(ValueError, match="is not a valid ReduceOp"):
        strategy.reduce(op, mr.constant(1.0))
    with pytest.raises(ValueError, match="is not a valid ReduceOp"):
        strategy.run(lambda: get_replica_context().all_reduce(op, mr.constant(1.0)))
    with pytest.raises(ValueError, match="`axis` = 1 out of range for `value` with rank 1"):
        strategy.reduce("sum", mr.constant([1.0]), axis=1)
    with pytest.raises(ValueError, match="positional args must be a list or tuple"):
        strategy.run(print, 3)


def test_variables_of_one_device(simulate: Simulate) -> None:
    simulate(3)
    one = OneDeviceStrategy("GPU:1")
    with one.scope():
        v = mr.Variable(lambda: mr.random.normal((2,)))
        assert get_strategy() is one
        assert in_cross_replica_context()
    assert (type(v), place(v)) == (DeviceVariable, "GPU:1")
    assert one.owns(v)
    assert one.extended.variable_created_in_scope(v)
    with MirroredStrategy(["GPU:0", "GPU:1"]).scope():
        other = mr.Variable(1.0)
    assert not one.owns(other)


# Strategies and `device()`


def test_a_replicas_device_replaces_an_outer_one_and_an_inner_one_replaces_it(
    simulate: Simulate,
) -> None:
    simulate(3)

    def replica() -> Any:
        outer = mr.constant(1.0)
        with mr.device("GPU:2"):
            return place(outer), place(mr.constant(1.0)), place(outer * 2.0)

    with mr.device("CPU:0"):
        assert OneDeviceStrategy("GPU:1").run(replica) == ("GPU:1", "GPU:2", "GPU:2")
        assert get_strategy().run(replica) == ("CPU:0", "GPU:2", "GPU:2")
        found = MirroredStrategy(["GPU:1", "GPU:0"]).run(replica)
        assert [each.values for each in found] == [("GPU:1", "GPU:0"), *[("GPU:2", "GPU:2")] * 2]
        assert place(mr.constant(1.0)) == "CPU:0"


@pytest.mark.parametrize("outer", [True, False], ids=["around the scope", "inside it"])
def test_variables_go_to_the_replicas_whatever_the_device(simulate: Simulate, outer: bool) -> None:
    simulate(3)
    for strategy, expected in [
        (OneDeviceStrategy("GPU:1"), ["GPU:1"]),
        (MirroredStrategy(["GPU:0", "GPU:1"]), ["GPU:0", "GPU:1"]),
    ]:
        scopes = [strategy.scope, lambda: mr.device("GPU:2")]
        first, second = scopes[::-1] if outer else scopes
        with first(), second():
            v, constant = mr.Variable(1.0), mr.constant(1.0)
        copies = strategy.experimental_local_results(v)
        assert [place(copy) for copy in copies] == expected
        assert place(constant) == "GPU:2"  # Other things of the cross-replica context obey it.
