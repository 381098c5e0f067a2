"""The collectives of a strategy whose user names none, and the line that says why."""

from collections.abc import Callable
from typing import Any

import pytest

from mirrored import devices
from mirrored.distribute import MirroredStrategy, ReductionToOneDevice, choose_cross_device_ops

REST = ", not using nccl allreduce: values are reduced by ReductionToOneDevice."
NO_GPU = "There are non-GPU devices in `mr.distribute.Strategy`" + REST
SIMULATED = "The GPUs in `mr.distribute.Strategy` are simulated in host memory" + REST


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["CPU:0"], NO_GPU),
        (["GPU:0", "CPU:0"], NO_GPU),
        (["GPU:1", "GPU:0"], SIMULATED),
    ],
)
def test_which_and_why(
    simulate: Callable[[int], Any], lines: Callable[[str], list[str]], names: list[str], line: str
) -> None:
    simulate(2)
    chosen = choose_cross_device_ops([devices.get_device(name) for name in names])
    assert type(chosen) is ReductionToOneDevice
    assert lines("The") == [line]


def test_a_strategy_says_it_when_it_is_made(
    simulate: Callable[[int], Any], lines: Callable[[str], list[str]]
) -> None:
    simulate(2)
    MirroredStrategy(cross_device_ops=ReductionToOneDevice())
    assert lines("The GPUs") == []
    MirroredStrategy()
    assert lines("The GPUs") == [SIMULATED]
