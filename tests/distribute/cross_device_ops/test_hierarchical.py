"""The all-reduce in two groups: its order, its devices, and its line in the log."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.devices import Device
from mirrored.distribute import HierarchicalCopyAllReduce, ReduceOp
from mirrored.distribute.experimental import CommunicationOptions

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Spread = Callable[..., list[ops.Tensor]]
Lines = Callable[[str], list[str]]
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.parametrize("replicas", range(1, 10))
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


def test_the_line_in_the_log(simulate: Simulate, spread: Spread, lines: Lines) -> None:
    simulate(2)
    batch = [spread([1.0, 2.0]), spread([1, 2])]
    collective = HierarchicalCopyAllReduce(num_packs=3)
    collective.batch_all_reduce("sum", [])
    for _ in range(11):
        collective.batch_all_reduce("sum", batch)
    text = "batch_all_reduce: 2 all-reduces with algorithm = hierarchical_copy, num_packs = 3"
    assert lines("batch_all_reduce") == [text] * 10
    assert lines("Reduce to") == []
    collective.reduce("sum", batch[0], "GPU:1")
    assert lines("Reduce to") == [f"Reduce to {FULL}CPU:0 then broadcast to ('{FULL}GPU:1',)."]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("num_packs", [-1, 1.5, "2", True, None])
def test_refused(num_packs: Any) -> None:
    match = f"^HierarchicalCopy requires num_packs >= 0, but {num_packs} is specified$"
    with pytest.raises(ValueError, match=match):
        HierarchicalCopyAllReduce(num_packs)


def test_a_function_is_recorded_with_the_bits_of_the_eager_one(
    simulate: Simulate, bits: Callable[[Any], list[Any]]
) -> None:
    simulate(5)
    strategy = mr.MirroredStrategy(cross_device_ops=HierarchicalCopyAllReduce(num_packs=2))

    def replica(x: ops.Tensor) -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        scaled = x * float(context.replica_id_in_sync_group + 1)
        return context.all_reduce("mean", {"a": scaled, "b": [mr.reduce_sum(x), scaled[:0]]})

    x = mr.constant(np.random.default_rng(2).normal(size=(7, 3)))
    results = []
    for run in (strategy.run, mr.function(lambda fn, args: strategy.run(fn, args))):
        out = run(replica, (x,))
        values = [out["a"], *out["b"]]
        local = [strategy.experimental_local_results(each) for each in values]
        results.append(bits([part.numpy() for parts in local for part in parts]))
    assert results[0] == results[1]


@pytest.mark.parametrize("split", [[1, 1], [2, 1], [2, 2], [1, 2, 1]])
@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
def test_between_cards(cards: Callable[..., Any], split: list[int], recorded: bool) -> None:
    """Virtual GPUs of several cards sum to what the reference makes of them, in any buckets."""
    cards(*split, seed=len(split))
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=(sum(split), *shape)) for shape in ((5,), (2, 3), (), (0,))]
    results = []
    for collective in (HierarchicalCopyAllReduce(2), mr.distribute.ReductionToOneDevice()):
        strategy = mr.MirroredStrategy(cross_device_ops=collective)

        def replica() -> Any:
            context = mr.distribute.get_replica_context()
            assert context is not None
            number = context.replica_id_in_sync_group
            return context.all_reduce("mean", [mr.constant(array[number]) for array in arrays])

        run = mr.function(lambda: strategy.run(replica)) if recorded else strategy.run  # noqa: B023
        reduced = run() if recorded else run(replica)
        results.append([strategy.experimental_local_results(each) for each in reduced])
    for array, parts, references in zip(arrays, *results, strict=True):
        allowed = sum(split) * np.finfo(np.float64).eps * np.abs(array).sum(axis=0)
        for part, reference in zip(parts, references, strict=True):
            assert part.device == reference.device
            assert (np.abs(part.numpy() - reference.numpy()) <= allowed).all()
