"""Connections: one for each set of ranks, made when it is first used, gone with its devices."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from mirrored import devices
from mirrored.backends.communication import selftest
from mirrored.distribute.cross_device_ops.connections import connection
from mirrored.errors import InvalidArgumentError


def test_one_for_each_set_of_ranks(cards: Callable[..., Any]) -> None:
    emulator = cards(1, 1, 1)
    a, b, c = devices.logical_devices("GPU")
    orders = [[a, b], [a, b, c], [b, a], [b, c]]
    made = [connection(order) for order in orders]
    assert len(set(made)) == len(orders)
    assert [connection(order) for order in orders] == made
    assert made[2].names == (b.full_name, a.full_name)
    assert made[2].ranks == (b.backend, a.backend)
    assert not any(each.is_open for each in made)
    assert not emulator.nccl.calls


def test_it_is_forgotten_with_the_devices(cards: Callable[..., Any]) -> None:
    cards(1, 1)
    first = connection(devices.logical_devices("GPU"))
    made = weakref.ref(first)
    devices.reset_devices()
    assert connection(devices.logical_devices("GPU")) is not first
    del first
    gc.collect()
    assert made() is None


@pytest.mark.parametrize("names", [["CPU:0"], ["GPU:0", "GPU:1"]])
def test_refused(simulate: Callable[[int], Any], names: list[str]) -> None:
    simulate(2)
    with pytest.raises(InvalidArgumentError, match=f"not simulated. Received: .*{names[0]}"):
        connection([devices.get_device(name) for name in names])


def test_the_self_test_has_the_names(
    cards: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1, 1)
    asked: list[Any] = []
    monkeypatch.setattr(selftest, "require", lambda *args: asked.append(args))
    between = connection(devices.logical_devices("GPU"))
    between.open()
    assert asked == [(between.ranks, between.names)]
