"""The all-reduce in two groups: its order, its devices, and its line in the log."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.devices import Device
from mirrored.distribute import HierarchicalCopyAllReduce, ReduceOp
from mirrored.distribute.experimental import CommunicationOptions

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Spread = Callable[..., list[ops.Tensor]]
Lines = Callable[..., list[str]]
FULL = "/job:localhost/replica:0/task:0/device:"


@cases("replicas", range(1, 10))
def test_the_order_of_the_sum(simulate: Simulate, spread: Spread, replicas: int) -> None:
    """The first half, the second half, then both: bit by bit."""
    simulate(replicas)
    rng = np.random.default_rng(replicas)
    arrays = [rng.normal(size=100).astype(np.float32) for _ in range(replicas)]
    half = (replicas + 1) // 2
    expected = np.add.reduce(arrays[:half])
    if replicas > 1:
        expected = expected + np.add.reduce(arrays[half:])
    values = spread(arrays)
    for number in range(replicas):  # Whichever devices add, as they do in turn.
        for part in HierarchicalCopyAllReduce().all_reduce_implementation(
            ReduceOp.SUM, values, CommunicationOptions(), number, "a bucket"
        ):
            assert part.numpy().tobytes() == expected.tobytes()


def test_which_devices_add(simulate: Simulate, spread: Spread, lines: Lines) -> None:
    simulate(5)
    values = spread([1.0] * 5)
    mr.debugging.set_log_device_placement(True)
    HierarchicalCopyAllReduce(num_packs=0).batch_all_reduce("sum", [values] * 6)
    adds = [line[-1] for line in lines("Executing op AddN")]
    # For each value: the first half (0, 1, 2), the second half (3, 4), both.
    assert adds == [*"030", *"141", *"232", *"044", *"133", *"242"]
    copies = [line[-1] for line in lines("Executing op Identity")]
    assert copies[:7] == [*"03", *"01234"]


def test_one_sum_crosses_between_the_groups_each_way(
    simulate: Simulate, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(5)
    values, copies, copy_to = spread([1.0] * 5), [], ops.Tensor.copy_to

    def noting(tensor: ops.Tensor, device: Device) -> ops.Tensor:
        if device is not tensor._device:
            copies.append((tensor._device.index, device.index))
        return copy_to(tensor, device)

    monkeypatch.setattr(ops.Tensor, "copy_to", noting)
    HierarchicalCopyAllReduce().batch_all_reduce("sum", [values])
    assert copies == [(1, 0), (2, 0), (4, 3), (3, 0), (0, 3), (0, 1), (0, 2), (3, 4)]


@pytest.mark.behaviour("packs-log")
def test_the_line_in_the_log(simulate: Simulate, spread: Spread, lines: Lines) -> None:
    simulate(2)
    batch = [spread([1.0, 2.0]), spread([1, 2])]
    collective = HierarchicalCopyAllReduce(num_packs=3)
    collective.batch_all_reduce("sum", [])
    for _ in range(11):
        collective.batch_all_reduce("sum", batch)
    text = "batch_all_reduce: 2 all-reduces with algorithm = hierarchical_copy, num_packs = 3"
    assert lines("batch_all_reduce") == [text] * 10
    assert lines("", "INFO") == [text]
    collective = HierarchicalCopyAllReduce()
    collective.reduce("sum", batch[0], "GPU:1")
    collective.batch_all_reduce("sum", batch)
    line = f"Reduce to {FULL}CPU:0 then broadcast to ('{FULL}GPU:1',)."
    assert lines("", "INFO") == [text, line]


@pytest.mark.behaviour("num-packs")
@cases(
    ("num_packs", "nbytes", "packs"),
    [
        (0, 0, [2, 3, 1, 4]),
        (1, 0, [6, 4]),
        (2, 0, [5, 1, 4]),
        (9, 0, [2, 3, 1, 4]),
        (1, 8, [2, 3, 1, 4]),
        (0, 16, [5, 1, 4]),
        (5, 24, [6, 4]),
    ],
)
def test_how_many_all_reduces(
    simulate: Simulate, spread: Spread, num_packs: int, nbytes: int, packs: list[int]
) -> None:
    """Packs are of one dtype, and cut between tensors."""
    sizes: list[int] = []

    class Counting(HierarchicalCopyAllReduce):
        def all_reduce_implementation(
            self, reduce_op: Any, values: Any, options: Any, number: int, what: str
        ) -> Any:
            assert what.startswith(f"bucket {number + 1} of {len(packs)} (")
            sizes.append(values[0].size)
            return super().all_reduce_implementation(reduce_op, values, options, number, what)

    simulate(2)
    batch = [
        spread([np.arange(size, dtype=dtype)] * 2)
        for size, dtype in [(2, "float32"), (3, "float32"), (1, "float32"), (4, "int32")]
    ]
    options = CommunicationOptions(bytes_per_pack=nbytes)
    reduced = Counting(num_packs).batch_all_reduce("sum", batch, options)
    assert sizes == packs
    for values, results in zip(batch, reduced, strict=True):
        for result in results:
            np.testing.assert_array_equal(result.numpy(), 2 * values[0].numpy())


@pytest.mark.behaviour("num-packs")
@cases("num_packs", [-1, 1.5, "2", True, None])
def test_refused(num_packs: Any) -> None:
    match = f"^HierarchicalCopy requires num_packs >= 0, but {num_packs} is specified$"
    with pytest.raises(ValueError, match=match):
        HierarchicalCopyAllReduce(num_packs)
