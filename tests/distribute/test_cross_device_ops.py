"""The reference collective: sums in replica order on one device, and the line that says so."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import (
    CrossDeviceOps,
    MirroredStrategy,
    ReduceOp,
    ReductionToOneDevice,
    get_replica_context,
)
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


def on_gpus(values: list[Any]) -> list[ops.Tensor]:
    """Return tensors of the values, each on the GPU of its number."""
    tensors = []
    for i, value in enumerate(values):
        with mr.device(f"GPU:{i}"):
            tensors.append(mr.constant(value))
    return tensors


def reduce_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log's lines about reductions."""
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if line.startswith("Reduce to")]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("reduce_op", [ReduceOp.SUM, ReduceOp.MEAN, "mean"])
def test_against_numpy(
    simulate: Simulate, replicas: int, shape: tuple[int, ...], dtype: str, reduce_op: Any
) -> None:
    simulate(replicas)
    rng = np.random.default_rng(replicas)
    arrays = [(rng.normal(size=shape) * 10).astype(dtype) for _ in range(replicas)]
    expected = arrays[0].copy()
    for array in arrays[1:]:
        expected = expected + array  # In replica order, so bit by bit the same.
    if reduce_op != ReduceOp.SUM and replicas > 1:
        expected = expected / np.asarray(replicas, dtype if dtype != "int32" else "float64")
    values = on_gpus(arrays)
    collective = ReductionToOneDevice()

    reduced = collective.reduce(reduce_op, values, "GPU:0")
    assert reduced.device == f"{FULL}GPU:0"
    np.testing.assert_array_equal(reduced.numpy(), expected)

    (everywhere,) = collective.batch_all_reduce(reduce_op, [values])
    assert [part.device for part in everywhere] == [value.device for value in values]
    for part in everywhere:
        np.testing.assert_array_equal(part.numpy(), expected)


def test_a_batch_keeps_its_order(simulate: Simulate) -> None:
    simulate(2)
    batch = [on_gpus([1.0, 2.0]), on_gpus([[1], [2]]), on_gpus([[[5.0]], [[6.0]]])]
    reduced = ReductionToOneDevice().batch_all_reduce("sum", batch)
    assert [[part.numpy().tolist() for part in parts] for parts in reduced] == [
        [3.0, 3.0],
        [[3], [3]],
        [[[11.0]], [[11.0]]],
    ]


def test_inputs_are_left_as_they_are(simulate: Simulate) -> None:
    simulate(2)
    values = on_gpus([[1.0, 2.0], [3.0, 4.0]])
    ReductionToOneDevice().batch_all_reduce("mean", [values])
    assert [value.numpy().tolist() for value in values] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("reduce_to", "expected"), [(None, "CPU:0"), ("GPU:1", "GPU:1"), ("/gpu:0", "GPU:0")]
)
def test_where_it_reduces(
    simulate: Simulate, caplog: pytest.LogCaptureFixture, reduce_to: str | None, expected: str
) -> None:
    simulate(2)
    values = on_gpus([1.0, 2.0])
    caplog.clear()
    mr.debugging.set_log_device_placement(True)
    ReductionToOneDevice(reduce_to).batch_all_reduce("mean", [values])
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Executing")]
    assert lines == [
        f"Executing op AddN in device {FULL}{expected}",
        f"Executing op _EagerConst in device {FULL}{expected}",
        f"Executing op RealDiv in device {FULL}{expected}",
        f"Executing op Identity in device {FULL}GPU:0",
        f"Executing op Identity in device {FULL}GPU:1",
    ]


def test_accumulation_fn(simulate: Simulate) -> None:
    simulate(3)
    seen: list[list[str]] = []

    def largest(values: list[ops.Tensor]) -> ops.Tensor:
        seen.append([value.device[-5:] for value in values])
        return ops.maximum(ops.maximum(values[0], values[1]), values[2])

    collective = ReductionToOneDevice("GPU:2", accumulation_fn=largest)
    assert float(collective.reduce("sum", on_gpus([1.0, 9.0, 4.0]), "CPU:0")) == 9.0
    assert seen == [["GPU:0", "GPU:1", "GPU:2"]]


def test_the_line_in_the_log(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    values = on_gpus([1.0, 2.0])
    collective = ReductionToOneDevice()
    collective.reduce("sum", values, "CPU:0")
    collective.batch_all_reduce("sum", [values])
    assert reduce_lines(caplog) == [
        f"Reduce to {FULL}CPU:0 then broadcast to ('{FULL}CPU:0',).",
        f"Reduce to {FULL}CPU:0 then broadcast to ('{FULL}GPU:0', '{FULL}GPU:1').",
    ]
    assert {r.levelno for r in caplog.records if "Reduce to" in r.getMessage()} == {logging.INFO}


def test_the_line_is_logged_ten_times(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    values = on_gpus([1.0, 2.0])
    collective = ReductionToOneDevice()
    for _ in range(7):
        collective.batch_all_reduce("sum", [values, values])
    assert len(reduce_lines(caplog)) == 10
    ReductionToOneDevice().reduce("sum", values, "CPU:0")
    assert len(reduce_lines(caplog)) == 11


def test_tapes_do_not_follow_the_copies(simulate: Simulate) -> None:
    simulate(2)
    values = on_gpus([1.0, 2.0])
    with mr.GradientTape() as tape:
        tape.watch(values)
        total = ReductionToOneDevice().reduce("sum", values, "CPU:0")
    assert tape.gradient(total, values) == [None, None]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([], "nothing to reduce"),
        ([[1.0], [1.0, 2.0]], r"\(1,\) float32 from replica 0 and \(2,\) float32 from replica 1"),
        ([1.0, 1], r"\(\) float32 from replica 0 and \(\) int32 from replica 1"),
    ],
)
def test_values_that_do_not_go_together(simulate: Simulate, values: list[Any], match: str) -> None:
    simulate(2)
    tensors = on_gpus(values)
    with pytest.raises(InvalidArgumentError, match=match):
        ReductionToOneDevice().reduce("sum", tensors, "CPU:0")
    with pytest.raises(InvalidArgumentError, match=match):
        ReductionToOneDevice().batch_all_reduce("sum", [tensors])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: ReductionToOneDevice("/foo:1"), ValueError, "Unknown attribute 'foo'"),
        (lambda: ReductionToOneDevice(accumulation_fn=3), ValueError, "Received: 3"),
        (
            lambda: ReductionToOneDevice().reduce("PROD", [mr.constant(1.0)], "CPU:0"),
            ValueError,
            "'PROD' is not a valid ReduceOp",
        ),
        (
            lambda: ReductionToOneDevice().reduce("sum", [mr.constant(1.0)], "GPU:7"),
            InvalidArgumentError,
            "GPU:7 unknown device.*All available devices",
        ),
        (
            lambda: ReductionToOneDevice("GPU:7").reduce("sum", [mr.constant(1.0)] * 2, "CPU:0"),
            InvalidArgumentError,
            "GPU:7 unknown device.*All available devices",
        ),
        (
            lambda: CrossDeviceOps().reduce("sum", [mr.constant(1.0)], "CPU:0"),
            NotImplementedError,
            "CrossDeviceOps has no `reduce_implementation`",
        ),
        (
            lambda: CrossDeviceOps().batch_all_reduce("sum", []),
            NotImplementedError,
            "CrossDeviceOps has no `batch_all_reduce_implementation`",
        ),
    ],
)
def test_refused(make: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_a_strategy_uses_the_collectives_it_is_given(simulate: Simulate) -> None:
    simulate(2)
    calls: list[Any] = []

    class Recording(ReductionToOneDevice):
        def reduce_implementation(
            self, reduce_op: ReduceOp, values: Any, destination: devices.Device
        ) -> ops.Tensor:
            calls.append(("reduce", reduce_op, len(values), destination.name))
            return super().reduce_implementation(reduce_op, values, destination)

        def batch_all_reduce_implementation(
            self, reduce_op: ReduceOp, batch: Any
        ) -> list[list[ops.Tensor]]:
            calls.append(("batch", reduce_op, [len(values) for values in batch]))
            return super().batch_all_reduce_implementation(reduce_op, batch)

    strategy = MirroredStrategy(cross_device_ops=Recording())

    def replica() -> Any:
        context = get_replica_context()
        assert context is not None
        return context.all_reduce("sum", [mr.constant(1.0), mr.constant([2.0])])

    total = strategy.run(replica)
    strategy.reduce("mean", total[0])
    assert calls == [
        ("batch", ReduceOp.SUM, [2, 2]),
        ("reduce", ReduceOp.MEAN, 2, "/device:CPU:0"),
    ]
