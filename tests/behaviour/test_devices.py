"""Rows of docs/reference/behaviour-rows.md on devices: what freezes, and memory.

They go through the public names alone, as a script does.
"""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr


@pytest.mark.behaviour("logical-devices")
@cases(
    "act",
    [
        lambda: mr.constant(1.0),
        lambda: mr.Variable(1.0),
        lambda: mr.random.uniform((2,)),
        lambda: mr.config.list_logical_devices("CPU"),
        lambda: mr.MirroredStrategy(),
    ],
    ids=["constant", "variable", "random numbers", "listing", "strategy"],
)
def test_what_freezes_the_configuration(act: Callable[[], Any]) -> None:
    mr.config.experimental.set_simulated_gpus(2)
    mr.config.set_visible_devices(mr.config.list_physical_devices("GPU")[:1], "GPU")
    act()
    with pytest.raises(RuntimeError, match="Visible devices cannot be modified after being init"):
        mr.config.set_visible_devices([], "GPU")
    assert len(mr.config.list_logical_devices("GPU")) == 1


@pytest.mark.behaviour("listing-takes-no-memory")
def test_listing_devices_takes_no_memory() -> None:
    mr.config.experimental.set_simulated_gpus(2, memory_limit=1)
    for device in mr.config.list_physical_devices():
        mr.config.experimental.get_device_details(device)
    names = [device.name for device in mr.config.list_logical_devices()]
    assert len(names) == 3
    for name in names:
        memory = mr.config.experimental.get_memory_info(name)
        assert memory == {"current": 0, "peak": 0}
