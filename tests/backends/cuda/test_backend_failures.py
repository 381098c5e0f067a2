"""What happens when a card fails, or has no memory left for what is beside arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from logical_card import F32, Device, N

import mirrored as mr
from mirrored.errors import DeviceLostError, ResourceExhaustedError

ILLEGAL_ADDRESS, OUT_OF_MEMORY = 700, 2

Emulate = Callable[..., Any]


CALLS: dict[str, Callable[[Device, Any], object]] = {
    "a kernel": lambda device, x: device.add(x, x, x),
    "a copy to it": lambda device, x: device.backend.copy_between(np.ones(N, np.float32), x),
    "a copy from it": lambda device, x: device.read(x),
    "a wait": lambda device, x: device.backend.synchronize(),
    "an event": lambda device, x: device.backend.record(),
    "memory": lambda device, x: device.array(np.ones(N, np.float32)),
    "pinned memory": lambda device, x: device.backend.pinned((3,), F32),
}


@pytest.mark.parametrize("later", CALLS.values(), ids=CALLS)
def test_a_lost_device(later: Callable[[Device, Any], object], emulated_cuda: Emulate) -> None:
    """Work that was asked for failed: the first call that sees it says so, and every later one."""
    emulator = emulated_cuda()
    device, host = Device(), np.ones(N, np.float32)
    x = device.array(host)
    device.add(x, x, x)
    emulator.fail("launchKernel", ILLEGAL_ADDRESS)
    with pytest.raises(DeviceLostError, match=r"Emulated H200 at 0000:01:00\.0 failed") as first:
        device.add(x, x, x)
    assert "this process cannot use it any more" in str(first.value)
    for _ in range(2):
        with pytest.raises(DeviceLostError, match=r"Emulated H200 at 0000:01:00\.0 failed"):
            later(device, x)


def test_the_cpu_goes_on_without_a_lost_card(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    x = mr.ones((3,))
    with mr.device("CPU:0"):
        kept = mr.constant([1.0, 2.0])
    emulator.fail("memcpyAsync", ILLEGAL_ADDRESS)
    with pytest.raises(DeviceLostError):
        x.numpy()
    with pytest.raises(DeviceLostError):
        x + x
    with mr.device("CPU:0"):
        assert (kept * 2.0).numpy().tolist() == [2, 4]
    with pytest.raises(DeviceLostError):
        mr.ones((3,))


def test_another_card_goes_on_without_a_lost_one(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = Device(0), Device(1)
    x, y = first.busy(), second.busy()
    emulator.fail("eventRecord", ILLEGAL_ADDRESS)
    with pytest.raises(DeviceLostError):
        second.backend.copy_across(first.backend, x, y)
    with pytest.raises(DeviceLostError, match=r"0000:01:00\.0"):
        first.read(x)
    assert second.read(y).tolist() == [64] * N


def test_no_memory_for_a_stream(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    device = Device()
    emulator.fail("streamCreate", OUT_OF_MEMORY)
    with pytest.raises(ResourceExhaustedError, match=r"0000:01:00\.0 has too little memory left"):
        device.backend.synchronize()
    device.backend.synchronize()


@pytest.mark.parametrize("call", ["moduleLoad", "launchKernel", "hostAlloc"])
def test_no_memory_for_what_is_beside_arrays(call: str, emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    device = Device()
    x = device.array(np.ones(N, np.float32))
    emulator.fail(call, OUT_OF_MEMORY)
    if call == "launchKernel":  # Of which a full card is asked twice.
        emulator.fail(call, OUT_OF_MEMORY)
    work = device.backend.pinned if call == "hostAlloc" else device.add
    args: Any = ((4,), F32) if call == "hostAlloc" else (x, x, x)
    with pytest.raises(ResourceExhaustedError, match="has too little memory"):
        work(*args)
    device.add(x, x, x)
    assert device.read(x)[0] == 2


def test_no_memory_for_the_libraries(emulated_cuda: Emulate) -> None:
    """The workspace of cuBLAS is beside the pool, whose limit is for arrays."""
    emulator = emulated_cuda(memory=64 << 20)
    device = Device()
    a = device.array(np.eye(3, dtype=np.float32))
    out = device.empty(np.zeros((3, 3), np.float32)).array
    product = device.backend.xp.matmul
    emulator.limit_card(0, 1 << 20)
    with pytest.raises(ResourceExhaustedError, match="too little memory left"):
        device.backend.run(product, out, a, a, transpose_a=False, transpose_b=False)
    emulator.limit_card(0, 64 << 20)
    device.backend.run(product, out, a, a, transpose_a=False, transpose_b=False)
    np.testing.assert_array_equal(device.read(out), np.eye(3))
    assert device.pool.current == 1024


def test_other_errors_of_cuda(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    device = Device()
    x = device.busy()
    emulator.fail("memcpyAsync", 1)
    with pytest.raises(RuntimeError, match="refused an operation") as raised:
        device.read(x)
    assert not isinstance(raised.value, DeviceLostError)
    assert device.read(x).tolist() == [64] * N
