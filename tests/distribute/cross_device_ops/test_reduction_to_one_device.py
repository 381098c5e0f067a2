"""The reference collective: sums in replica order on one device, and the line that says so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import HierarchicalCopyAllReduce, ReduceOp, ReductionToOneDevice
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Spread = Callable[..., list[ops.Tensor]]
Lines = Callable[..., list[str]]
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.behaviour("deterministic")
@cases(
    ("shape", "dtype"),
    [((), "int32"), ((3,), "float64"), ((2, 0), "float32"), ((2, 3), "float32"), ((2, 3), "int32")],
)
@cases(
    ("replicas", "reduce_op"),
    [(1, "mean"), (2, ReduceOp.SUM), (3, ReduceOp.MEAN), (8, ReduceOp.SUM), (8, "mean")],
)
def test_against_numpy(
    simulate: Simulate,
    spread: Spread,
    replicas: int,
    shape: tuple[int, ...],
    dtype: str,
    reduce_op: Any,
) -> None:
    simulate(replicas)
    rng = np.random.default_rng(replicas)
    arrays = [(rng.normal(size=shape) * 10).astype(dtype) for _ in range(replicas)]
    expected = arrays[0].copy()
    for array in arrays[1:]:
        expected = expected + array  # In replica order, so bit by bit the same.
    if reduce_op != ReduceOp.SUM and replicas > 1:
        expected = expected / np.asarray(replicas, dtype if dtype != "int32" else "float64")
    values = spread(arrays)
    collective = ReductionToOneDevice()

    reduced = collective.reduce(reduce_op, values, "GPU:0")
    assert reduced.device == f"{FULL}GPU:0"
    np.testing.assert_array_equal(reduced.numpy(), expected)

    (everywhere,) = collective.batch_all_reduce(reduce_op, [values])
    assert [part.device for part in everywhere] == [value.device for value in values]
    for part in everywhere:
        np.testing.assert_array_equal(part.numpy(), expected)


@pytest.mark.behaviour("collectives")
@pytest.mark.parametrize(
    ("reduce_to", "expected"), [(None, "CPU:0"), ("GPU:1", "GPU:1"), ("/gpu:0", "GPU:0")]
)
def test_where_it_reduces(
    simulate: Simulate, spread: Spread, lines: Lines, reduce_to: str | None, expected: str
) -> None:
    simulate(2)
    values = spread([1.0, 2.0])
    mr.debugging.set_log_device_placement(True)
    ReductionToOneDevice(reduce_to).batch_all_reduce("mean", [values])
    assert lines("Executing") == [
        f"Executing op AddN in device {FULL}{expected}",
        f"Executing op _EagerConst in device {FULL}{expected}",
        f"Executing op RealDiv in device {FULL}{expected}",
        f"Executing op Identity in device {FULL}GPU:0",
        f"Executing op Identity in device {FULL}GPU:1",
    ]


@pytest.mark.behaviour("collectives")
def test_accumulation_fn(simulate: Simulate, spread: Spread) -> None:
    simulate(3)
    seen: list[list[str]] = []

    def largest(values: list[ops.Tensor]) -> ops.Tensor:
        seen.append([value.device[-5:] for value in values])
        return ops.maximum(ops.maximum(values[0], values[1]), values[2])

    collective = ReductionToOneDevice("GPU:2", accumulation_fn=largest)
    assert float(collective.reduce("sum", spread([1.0, 9.0, 4.0]), "CPU:0")) == 9.0
    assert seen == [["GPU:0", "GPU:1", "GPU:2"]]


@pytest.mark.behaviour("reduce-log")
def test_the_line_in_the_log(simulate: Simulate, spread: Spread, lines: Lines) -> None:
    simulate(2)
    values = spread([1.0, 2.0])
    collective = ReductionToOneDevice()
    collective.reduce("sum", values, "CPU:0")
    collective.batch_all_reduce("sum", [values])
    assert lines("Reduce to") == [
        f"Reduce to {FULL}CPU:0 then broadcast to ('{FULL}CPU:0',).",
        f"Reduce to {FULL}CPU:0 then broadcast to ('{FULL}GPU:0', '{FULL}GPU:1').",
    ]


@pytest.mark.behaviour("reduce-log")
def test_the_line_is_logged_ten_times(simulate: Simulate, spread: Spread, lines: Lines) -> None:
    simulate(2)
    values = spread([1.0, 2.0])
    collective = ReductionToOneDevice()
    for _ in range(7):
        collective.batch_all_reduce("sum", [values, values])
    assert len(lines("Reduce to")) == 10
    assert len(lines("Reduce to", "INFO")) == 1
    ReductionToOneDevice().reduce("sum", values, "CPU:0")
    assert len(lines("Reduce to")) == 11


@cases(
    ("make", "error", "match"),
    [
        (lambda: ReductionToOneDevice("/foo:1"), ValueError, "Unknown attribute 'foo'"),
        (lambda: ReductionToOneDevice(accumulation_fn=3), ValueError, "Received: 3"),
        (
            lambda: ReductionToOneDevice("GPU:7").reduce("sum", [mr.constant(1.0)] * 2, "CPU:0"),
            InvalidArgumentError,
            "GPU:7 unknown device.*All available devices",
        ),
    ],
)
def test_refused(make: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("make", [ReductionToOneDevice, HierarchicalCopyAllReduce])
def test_a_recorded_batch_from_different_devices_goes_back_to_them(
    simulate: Simulate, spread: Spread, record: Callable[..., Any], make: Any
) -> None:
    """Values of one dtype make one vector, but only those that lie on the same devices."""
    simulate(3)
    collective, seen = make(), []

    def reduce(*inputs: ops.Tensor) -> list[ops.Tensor]:
        tensors = [each.copy_to(place._device) for each, place in zip(inputs, places, strict=True)]
        batch = [tensors[0:2], tensors[2:5], tensors[5:7]]
        results = collective.batch_all_reduce("sum", batch)
        seen.append([[part.device[-5:] for part in parts] for parts in results])
        return [part for parts in results for part in parts]

    first, second, third = spread([0.0] * 3)
    places = [first, second, third, second, first, first, second]
    program = record(reduce, [np.zeros(2, np.float32)] * 7)
    outputs = program(*[np.full(2, 10.0**i, np.float32) for i in range(7)])
    assert seen == [[["GPU:0", "GPU:1"], ["GPU:2", "GPU:1", "GPU:0"], ["GPU:0", "GPU:1"]]]
    assert [float(each[0]) for each in outputs] == [11.0] * 2 + [11100.0] * 3 + [1.1e6] * 2


def test_a_recorded_batch_is_one_sum_a_dtype(record: Callable[..., Any]) -> None:
    mr.config.set_logical_device_configuration(
        mr.config.list_physical_devices("CPU")[0], [mr.config.LogicalDeviceConfiguration()] * 2
    )
    where = [devices.get_device(name) for name in ("CPU:0", "CPU:1")]

    def reduce(*inputs: ops.Tensor) -> list[ops.Tensor]:
        batch = [[each.copy_to(place) for place in where] for each in inputs]
        parts = ReductionToOneDevice().batch_all_reduce("sum", batch)
        return [part for values in parts for part in values]

    arrays = [np.ones(size, dtype) for size, dtype in [(2, "f4"), (3, "i4"), (4, "f4"), (1, "f4")]]
    recorded = record(reduce, arrays)
    sums = [node.output.size for node in recorded.graph.nodes if node.op.name == "AddN"]
    assert sums == [7, 3]
    assert [float(each.sum()) for each in recorded(*arrays)] == [4, 4, 6, 6, 8, 8, 2, 2]
