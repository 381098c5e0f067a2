"""Strategies and their variables are pickled with the names of their devices, and copied as one."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

reset = mr.config.experimental.reset_devices
Simulate = Callable[..., Any]
Options = mr.distribute.experimental.CommunicationOptions

STRATEGIES: dict[str, Callable[[], Any]] = {
    "all devices": mr.MirroredStrategy,
    "some devices": lambda: mr.MirroredStrategy(["GPU:1"]),
    "options": lambda: mr.MirroredStrategy(
        executor="serial", communication_options=Options(bytes_per_pack=64)
    ),
    "collectives": lambda: mr.MirroredStrategy(
        cross_device_ops=mr.distribute.HierarchicalCopyAllReduce(num_packs=2)
    ),
    "one device": lambda: mr.distribute.OneDeviceStrategy("GPU:1"),
}


@pytest.mark.behaviour("strategies-travel")
@cases("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_strategy_in_another_process(simulate: Simulate, make: Callable[[], Any]) -> None:
    simulate(2)
    strategy = make()
    names = [device.full_name for device in strategy.devices]
    pickled, arguments = pickle.dumps((strategy, strategy)), strategy.arguments()
    reset()  # As in another process: there is no such strategy.
    simulate(2)
    again, same = pickle.loads(pickled)
    assert again is same is not strategy
    assert type(again) is type(strategy)
    assert [device.full_name for device in again.devices] == names
    given, found = (each.pop("cross_device_ops", None) for each in (arguments, again.arguments()))
    assert again.arguments() | {"cross_device_ops": None} == arguments | {"cross_device_ops": None}
    assert type(given) is type(found)
    assert getattr(given, "_num_packs", None) == getattr(found, "_num_packs", None)
    assert float(mr.reduce_sum(again.gather(again.run(lambda: mr.ones((1,))), axis=0))) == len(
        names
    )
    assert pickle.loads(pickled)[0] is again  # What comes later is of the same one.


@pytest.mark.behaviour("strategies-travel")
def test_one_strategy_stays_one(simulate: Simulate) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    assert pickle.loads(pickle.dumps(strategy)) is strategy
    assert copy.deepcopy([strategy])[0] is copy.copy(strategy) is strategy
    default = mr.distribute.get_strategy()
    assert pickle.loads(pickle.dumps(default)) is copy.deepcopy(default) is default


@pytest.mark.behaviour("strategies-travel")
def test_the_strategy_in_force_is_taken_where_it_is_alike(simulate: Simulate) -> None:
    simulate(2)
    pickled = pickle.dumps(mr.MirroredStrategy()), pickle.dumps(mr.MirroredStrategy(["GPU:0"]))
    reset()
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        assert pickle.loads(pickled[0]) is strategy
        assert pickle.loads(pickled[1]) is not strategy


@pytest.mark.behaviour("strategies-travel")
@cases("make", STRATEGIES.values(), ids=STRATEGIES)
def test_devices_that_are_not_there(simulate: Simulate, make: Callable[[], Any]) -> None:
    simulate(2)
    pickled = pickle.dumps(make())
    reset()
    simulate(1)
    with pytest.raises(ValueError, match="was pickled, and this process does not have") as caught:
        pickle.loads(pickled)
    assert "device:GPU:1 unknown device" in str(caught.value)
    assert "set_simulated_gpus" in str(caught.value)


def test_a_strategy_of_ones_own_says_what_it_was_made_with(simulate: Simulate) -> None:
    class Own(mr.distribute.Strategy):
        pass

    with pytest.raises(TypeError, match="Define `arguments`"):
        pickle.dumps(Own(mr.distribute.ReductionToOneDevice()))


def test_devices_and_scopes_travel_as_names(simulate: Simulate) -> None:
    simulate(2)
    device, scope = mr.devices.get_device("GPU:1"), mr.device("GPU:1")
    with scope:
        mr.constant(1.0)  # It remembers what is placed where.
    assert copy.deepcopy(device) is pickle.loads(pickle.dumps(device)) is device
    for again in (copy.deepcopy(scope), pickle.loads(pickle.dumps(scope))):
        with again:
            assert mr.constant(1.0).device == device.full_name
    pickled = pickle.dumps(device)
    reset()
    with pytest.raises(ValueError, match="unknown device"):
        pickle.loads(pickled)


HOW: dict[str, Callable[[Any], Any]] = {
    "pickled": lambda x: pickle.loads(pickle.dumps(x)),
    "copied": copy.deepcopy,
}


@cases("how", HOW.values(), ids=HOW)
@cases("scope", [False, True])
def test_variables(simulate: Simulate, how: Callable[[Any], Any], scope: bool) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy() if scope else mr.distribute.get_strategy()
    with strategy.scope():
        v = mr.Variable([1.5, -0.0], name="v", trainable=False)
        counter = mr.Variable(
            0.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )
    strategy.run(lambda: counter.assign_add(2.0) and None)
    first, (second,), count = how((v, [v], counter))
    assert first is second is not v  # One variable stays one.
    assert (first.name, first.trainable, first.dtype) == ("v:0", False, v.dtype)
    assert type(first) is type(v)
    assert first.numpy().tobytes() == v.numpy().tobytes()
    assert strategy.owns(first) or not scope
    parts = strategy.experimental_local_results
    assert [each.device for each in parts(first)] == [each.device for each in parts(v)]
    assert [each.name for each in parts(first)] == [each.name for each in parts(v)]
    assert [float(each) for each in parts(count)] == [2.0] * len(parts(counter))
    first.assign([7.0, 7.0])
    assert v.numpy().tolist() == [1.5, 0.0]


def test_equal_copies_travel_once(simulate: Simulate) -> None:
    simulate(4)
    with mr.MirroredStrategy().scope():
        v = mr.Variable(np.zeros(10_000, np.float32))
    assert len(pickle.dumps(v)) < 50_000


def test_copies_that_differ_stay_different(simulate: Simulate) -> None:
    """Cards and the host round differently, so copies may differ in their last bits."""
    simulate(2)
    with mr.MirroredStrategy().scope():
        v = mr.Variable(1.0)
    v.copies[1].assign(1.5)
    again = pickle.loads(pickle.dumps(v))
    assert [float(each) for each in again.copies] == [1.0, 1.5]
