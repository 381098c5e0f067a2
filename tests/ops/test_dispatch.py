"""Running ops: placing, copying, allocating, and the log of it."""

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.errors import InvalidArgumentError, ResourceExhaustedError


@pytest.mark.behaviour("default-placement")
def test_inputs_are_copied_to_where_the_op_runs(simulate: Any) -> None:
    simulate(2)
    with devices.device("CPU:0"):
        x = ops.constant([1.0, 2.0])
    with devices.device("GPU:1"):
        y = x + x
    assert (x.device[-5:], y.device[-5:]) == ("CPU:0", "GPU:1")
    assert (x + y).device.endswith("GPU:0")
    np.testing.assert_array_equal((x + y).numpy(), [3.0, 6.0])


def test_a_view_on_another_device_is_a_copy_that_counts_there(simulate: Any) -> None:
    simulate(2)
    pools = [device.pool for device in devices.logical_devices("GPU")]
    x = ops.zeros((100,))
    with devices.device("GPU:1"):
        y = ops.reshape(x, (10, 10))
    assert [pool.current for pool in pools] == [400, 400]
    del x
    assert [pool.current for pool in pools] == [0, 400]
    assert y.shape == (10, 10)


def test_an_op_without_that_device(simulate: Any) -> None:
    simulate(1)
    devices.set_soft_device_placement(False)
    with devices.device("GPU:2"), pytest.raises(InvalidArgumentError) as caught:
        ops.zeros((2,))
    assert "/job:localhost/replica:0/task:0/device:GPU:2 unknown device" in str(caught.value)


def test_log_is_in_execution_order(simulate: Any, caplog: pytest.LogCaptureFixture) -> None:
    simulate(1)
    devices.set_log_device_placement(True)
    with caplog.at_level(logging.INFO, "mirrored"):
        caplog.clear()
        float(ops.reduce_sum(ops.constant([[1.0, 2.0]]) * 2.0))
        ops.transfer(np.ones(2), devices.get_device("GPU:0"))
    assert [message.split()[2] for message in caplog.messages] == [
        "_EagerConst",
        "_EagerConst",
        "Mul",
        "Sum",
    ]


def test_views_count_nothing_and_keep_their_base(simulate: Any) -> None:
    simulate(1)
    pool = devices.get_device("GPU:0").pool
    x = ops.zeros((10, 10))
    view = ops.reshape(x, (100,))
    assert pool.current == 400
    del x
    assert pool.current == 400
    assert view.numpy().sum() == 0.0
    del view
    assert pool.current == 0


def test_workspace_counts_towards_the_limit(simulate: Any) -> None:
    """Argmax along the first axis needs a copy of its input, which does not fit twice."""
    simulate(1, 1)
    pool = devices.get_device("GPU:0").pool
    x = ops.zeros((300, 500))
    with pytest.raises(ResourceExhaustedError, match="device:GPU:0"):
        ops.argmax(x, axis=0)
    assert pool.current == 600_000
    np.testing.assert_array_equal(ops.argmax(x[:10], axis=0).numpy(), np.zeros(500))


def test_a_backend_may_override_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = devices.get_device("CPU:0").backend

    def kernel(xp: Any, out: Any, x: Any) -> None:
        out.fill(7)

    monkeypatch.setattr(
        type(backend),
        "kernels",
        {"Neg": SimpleNamespace(run=kernel, workspace=None, asks=False, verdicts=0)},
    )
    assert float(ops.negative(1.0)) == 7.0
    assert float(ops.exp(0.0)) == 1.0


@cases(
    "move",
    [
        lambda x: x[1:],
        lambda x: ops.concat([x, x], axis=0),
        lambda x: ops.stack([x, x]),
        lambda x: ops.transpose(ops.stack([x, x])),
        lambda x: ops.broadcast_to(x, (2, 3)),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_moves_values_raises_no_floating_point_exception(move: Any, dtype: str) -> None:
    x = ops.cast(ops.constant([np.nan, np.inf, 1e-45]), dtype)
    with np.errstate(all="raise"):
        assert move(x)._array.dtype == x.dtype
