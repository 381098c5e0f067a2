"""Tensors whose copy to their device waits until they are used: they compute as any others."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.devices import Device
from mirrored.errors import ResourceExhaustedError
from mirrored.ops.host_tensor import HostTensor

FULL = "/job:localhost/replica:0/task:0/device:"
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def gpu(simulate: Callable[..., Any]) -> Device:
    """Return the second of two simulated GPUs with a limit of 1 MB each."""
    simulate(2, memory_limit=1)
    return devices.get_device("GPU:1")


def waiting(device: Device, values: Any = VALUES) -> HostTensor:
    """Return a tensor of values that nobody else has."""
    return HostTensor(np.array(values), device)


USES: dict[str, Callable[[Any], Any]] = {
    "an operator": lambda x: x * 2.0 + x,
    "on the right": lambda x: 2.0 - x,
    "a function": lambda x: mr.reduce_sum(x, axis=1),
    "a product": lambda x: mr.matmul(x, x, transpose_b=True),
    "an index": lambda x: x[1],
    "a slice": lambda x: x[:, 1:],
    "a view": lambda x: mr.reshape(x, (3, 2)),
    "identity": mr.identity,
    "conversion": mr.convert_to_tensor,
    "a constant of it": mr.constant,
    "with others": lambda x: mr.concat([x, mr.ones((1, 3)), x], 0),
    "a cast": lambda x: mr.cast(x, "int64"),
    "comparison": lambda x: x > 2.0,
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
    "a variable": lambda x: mr.Variable(x).read_value(),
    "an assign": lambda x: mr.Variable(mr.zeros((2, 3))).assign(x).read_value(),
    "an assign_add": lambda x: mr.Variable(mr.ones((2, 3))).assign_add(x).read_value(),
    "recorded": lambda x: mr.function(lambda y: y * 2.0)(x),
    "recorded and returned": lambda x: mr.function(lambda y: y)(x),
    "closed over": lambda x: mr.function(lambda: x * 2.0)(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("place", ["GPU:1", "CPU:0", None])
def test_it_computes_as_any_tensor(gpu: Device, use: Callable[[Any], Any], place: Any) -> None:
    tensor, plain = waiting(gpu), mr.constant(VALUES).copy_to(gpu)
    with mr.device(place):
        found, expected = use(tensor), use(plain)
    assert (found.device, found.dtype) == (expected.device, expected.dtype)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_array_equal(tensor.numpy(), VALUES)


def test_what_is_known_of_it_needs_no_copy(gpu: Device) -> None:
    x = waiting(gpu)
    assert isinstance(x, mr.Tensor)
    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((2, 3), mr.float32, 2, 6, 2)
    assert x.device == f"{FULL}GPU:1"
    plain = mr.constant(VALUES)
    assert (repr(x), str(x)) == (repr(plain), str(plain))
    assert np.asarray(x).tolist() == x.numpy().tolist() == VALUES.tolist()
    scalar = waiting(gpu, np.int32(3))
    assert (int(scalar), float(scalar), f"{scalar:d}") == (3, 3.0, "3")
    assert type(scalar.numpy()) is np.int32
    assert not waiting(gpu, np.array(False))
    assert gpu.pool.current == 0


def test_on_its_device_it_is_copied_once_and_gives_the_memory_back(gpu: Device) -> None:
    x = waiting(gpu)
    with mr.device("GPU:1"):
        for _ in range(3):
            assert float(mr.reduce_sum(x)) == 15.0
    assert gpu.pool.current == x.numpy().nbytes
    del x
    assert gpu.pool.current == 0


def test_copies_elsewhere_wait_too(gpu: Device) -> None:
    x = waiting(gpu)
    assert x.copy_to(gpu) is x
    other = x.copy_to(devices.get_device("GPU:0"))
    assert (other.device, other.numpy().tolist()) == (f"{FULL}GPU:0", VALUES.tolist())
    assert [device.pool.current for device in (gpu, devices.get_device("GPU:0"))] == [0, 0]


def test_what_is_too_large_is_an_error_where_it_is_used(gpu: Device) -> None:
    x = waiting(gpu, np.ones(1 << 19, np.float32))
    assert float(x.numpy().sum()) == 1 << 19
    with mr.device("GPU:1"), pytest.raises(ResourceExhaustedError, match="GPU:1"):
        mr.reduce_sum(x)
    assert gpu.pool.current == 0
    with mr.device("CPU:0"):
        assert float(mr.reduce_sum(x)) == 1 << 19


def test_the_hosts_array_stays_as_it_is(gpu: Device) -> None:
    for device in (gpu, devices.get_device("CPU:0")):
        host = VALUES.copy()
        x = HostTensor(host, device)
        x.numpy()[:] = 7
        mr.identity(x).numpy()[:] = 7
        v = mr.Variable(x)
        v.assign_add(x)
        assert x._feed is host
        assert not np.shares_memory(x._array, host)
        np.testing.assert_array_equal(host, VALUES)


def test_arrays_of_any_layout(gpu: Device) -> None:
    for host in (VALUES.T, VALUES[:, ::2], VALUES[::-1]):
        x = HostTensor(host, gpu)
        np.testing.assert_array_equal((x + 0.0).numpy(), host)
        np.testing.assert_array_equal(mr.function(lambda y: y + 0.0)(x).numpy(), host)


def test_a_function_is_fed_from_the_host(gpu: Device) -> None:
    x = waiting(gpu)
    double = mr.function(lambda y: y * 2.0)
    with mr.device("GPU:1"):
        double(x)
        held = gpu.pool.current
        assert double(waiting(gpu)).numpy().tolist() == (VALUES * 2).tolist()
    assert gpu.pool.current == held


def test_constants_of_a_function_stay_on_the_host_while_it_is_recorded(gpu: Device) -> None:
    seen = []

    def function(x: Any) -> Any:
        before = gpu.pool.current
        values = np.arange(100.0, dtype=np.float32)
        result = x * mr.constant(values) + [2.0] * 100
        values[:] = 0.0  # The constant is a copy.
        seen.append(gpu.pool.current - before)
        return result

    with mr.device("GPU:1"):
        found = mr.function(function)(mr.constant(3.0))
    np.testing.assert_array_equal(found.numpy(), np.arange(100.0) * 3.0 + 2.0)
    assert seen == [0]


def test_tapes_watch_it(gpu: Device) -> None:
    x = waiting(gpu)
    with mr.GradientTape() as tape:
        tape.watch(x)
        y = mr.reduce_sum(mr.reshape(x, (6,)) ** 2.0) + mr.reduce_sum(mr.identity(x))
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 2 * VALUES + 1)
    with mr.GradientTape() as tape:
        y = mr.reduce_sum(x * x)
    assert tape.gradient(y, x) is None


def test_two_are_two(gpu: Device) -> None:
    x, y = waiting(gpu), waiting(gpu)
    with mr.GradientTape() as tape:
        tape.watch(x)
        z = mr.reduce_sum(x * y)
    by_x, by_y = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(by_x.numpy(), VALUES)
    assert by_y is None


def test_it_is_pickled_as_any_tensor(gpu: Device) -> None:
    again = pickle.loads(pickle.dumps(waiting(gpu)))
    assert again.device == gpu.full_name
    np.testing.assert_array_equal(again.numpy(), VALUES)


def test_its_copy_is_no_op_in_the_log(gpu: Device, caplog: pytest.LogCaptureFixture) -> None:
    x = waiting(gpu)
    mr.debugging.set_log_device_placement(True)
    with mr.device("GPU:1"):
        ops.exp(x)
    assert [line for line in caplog.messages if line.startswith("Executing")] == [
        f"Executing op Exp in device {FULL}GPU:1"
    ]
