"""A strategy that is put in force without a `with` block: for how long, for whom, and where."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import (
    MirroredStrategy,
    MirroredVariable,
    OneDeviceStrategy,
    Strategy,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from mirrored.variables import DeviceVariable


@pytest.fixture
def strategy(simulate: Callable[..., Any]) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


def where() -> tuple[Strategy, bool, bool, bool]:
    """Return all that is to know of the running code's context."""
    return get_strategy(), has_strategy(), in_cross_replica_context(), get_replica_context() is None


def apart(function: Callable[[], Any]) -> Any:
    """Call a function in a context of its own: what it leaves in force ends with it."""
    return contextvars.copy_context().run(function)


@pytest.mark.behaviour("set-strategy")
def test_a_strategy_that_is_set_stays_in_force(strategy: MirroredStrategy) -> None:
    def script() -> None:
        experimental_set_strategy(strategy)
        assert where() == (strategy, True, True, True)
        v = mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM)
        assert isinstance(v, MirroredVariable)
        with strategy.scope():  # Entered again, it does not mirror twice.
            assert [type(c) for c in mr.Variable(1.0).copies] == [DeviceVariable] * 2
        assert where() == (strategy, True, True, True)
        strategy.run(lambda: v.assign_add(mr.constant(1.0) * 2.0))
        assert float(v) == 5.0
        other = OneDeviceStrategy("GPU:1")
        with pytest.raises(RuntimeError, match="Mixing different"), other.scope():
            pytest.fail("the scope was entered")
        experimental_set_strategy(other)
        assert where() == (other, True, True, True)
        assert mr.Variable(1.0).device.endswith("GPU:1")
        for nothing in (None, get_strategy(), None):
            experimental_set_strategy(nothing)
        assert where() == (default, False, False, False)
        assert type(mr.Variable(1.0)) is DeviceVariable

    default = get_strategy()
    apart(script)
    assert where() == (default, False, False, False)


def test_setting_the_default_strategy_ends_what_was_set(strategy: MirroredStrategy) -> None:
    default = get_strategy()

    def script() -> Strategy:
        experimental_set_strategy(strategy)
        experimental_set_strategy(default)
        return get_strategy()

    assert apart(script) is default


def test_a_strategy_is_set_for_one_thread(strategy: MirroredStrategy) -> None:
    seen: list[bool] = []

    def script() -> None:
        thread = threading.Thread(target=lambda: seen.append(has_strategy()))
        experimental_set_strategy(strategy)
        thread.start()
        thread.join(timeout=60)

    apart(script)
    assert seen == [False]


@cases("value", [3, "GPU:0", MirroredStrategy])
def test_what_is_no_strategy_is_not_set(value: Any) -> None:
    with pytest.raises(TypeError, match=r"The argument must be a strategy or None\. Received: "):
        apart(lambda: experimental_set_strategy(value))
    assert not has_strategy()


def test_a_strategy_is_not_set_inside_another_ones(strategy: MirroredStrategy) -> None:
    message = r"Must not be called inside a `mr\.distribute\.Strategy` scope\. Received: a call"
    with strategy.scope(), pytest.raises(RuntimeError, match=message):
        experimental_set_strategy(None)
    with pytest.raises(RuntimeError, match=message):
        strategy.run(lambda: experimental_set_strategy(strategy))
    assert not has_strategy()
