"""NCCL without NVIDIA's GPUs: it can be named, and says why it is of no use."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy, NcclAllReduce
from mirrored.errors import InvalidArgumentError

NO_GPU = "There are non-GPU devices in `mr.distribute.Strategy`"
SIMULATED = "The GPUs in `mr.distribute.Strategy` are simulated in host memory"


@pytest.mark.parametrize("num_packs", [-1, 2.0, "1", None])
def test_num_packs(num_packs: Any) -> None:
    match = f"^NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified$"
    with pytest.raises(ValueError, match=match):
        NcclAllReduce(num_packs)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["CPU:0"], NO_GPU),
        (["GPU:0", "CPU:0"], NO_GPU),
        (["GPU:0", "GPU:1"], SIMULATED),
        (None, SIMULATED),
    ],
)
def test_a_strategy_refuses_it_with_the_reason(
    simulate: Callable[[int], Any], names: Any, reason: str
) -> None:
    simulate(2)
    with pytest.raises(InvalidArgumentError, match="cannot do yet") as caught:
        MirroredStrategy(names, cross_device_ops=NcclAllReduce(num_packs=2))
    assert reason in str(caught.value)
    assert "device:GPU:0" in str(caught.value) or names == ["CPU:0"]


@pytest.mark.parametrize(
    "call",
    [
        lambda nccl, t: nccl.reduce("sum", [t], "CPU:0"),
        lambda nccl, t: nccl.batch_reduce("sum", [([t], "CPU:0")]),
        lambda nccl, t: nccl.batch_all_reduce("sum", [[t]]),
    ],
)
def test_it_reduces_nothing(call: Callable[..., Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=NO_GPU):
        call(NcclAllReduce(), mr.constant(1.0))
