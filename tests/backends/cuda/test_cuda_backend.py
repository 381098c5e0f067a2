"""One logical device of a card: copies of every kind, streams, and captures.

Each seed of the emulated card is another order in which its streams' work runs.
"""

import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from logical_card import F32, Device, N

import mirrored as mr
from mirrored.backends import HostBackend
from mirrored.backends.cuda import graphs
from mirrored.backends.stream_backend import is_offloaded
from mirrored.errors import DeviceLostError, ResourceExhaustedError

SEEDS = range(12)

Emulate = Callable[..., Any]


# ------------------------------------------------------------------------------ copies

SOURCES = {
    "contiguous": np.arange(12, dtype=np.float32).reshape(3, 4),
    "transposed": np.arange(12, dtype=np.float32).reshape(4, 3).T,
    "every other": np.arange(24, dtype=np.int64).reshape(3, 8)[:, ::2],
    "reversed": np.arange(12, dtype=np.int32).reshape(3, 4)[::-1],
    "of another byte order": np.arange(12, dtype=">f8").reshape(3, 4),
    "read-only": np.broadcast_to(np.float32(7), (3, 4)),
    "booleans": np.arange(12).reshape(3, 4) % 3 == 0,
    "a scalar": np.array(3.5),
    "nothing": np.zeros((3, 0), np.float32),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_from_the_host_and_back(source: Any, emulated_cuda: Emulate) -> None:
    emulated_cuda()
    device = Device()
    native = source.dtype.newbyteorder("=")
    storage = device.empty(np.zeros(source.shape, native))
    device.backend.copy_from_host(storage, source)
    found = device.read(storage.array)
    assert found.dtype == native
    np.testing.assert_array_equal(found, source)
    found[...] = 0  # A copy, never a view.
    np.testing.assert_array_equal(device.read(storage.array), source)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_host_may_change_what_was_copied(seed: int, emulated_cuda: Emulate) -> None:
    emulated_cuda(seed=seed)
    device, host = Device(), np.ones(N, np.float32)
    storage = device.empty(host)
    device.backend.copy_from_host(storage, host)
    host[:] = 2
    assert device.read(storage.array).tolist() == [1] * N


def test_copies_are_of_one_shape_and_dtype(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    device, other = Device(), Device()
    target = device.array(np.zeros((2, 3), np.float32))
    sources = (np.zeros((3, 2), np.float32), np.zeros((2, 3)))
    for source in sources:
        with pytest.raises(ValueError, match="the same shape and dtype"):
            device.backend.copy_between(source, target)
        with pytest.raises(ValueError, match="the same shape and dtype"):
            device.backend.copy_across(other.backend, other.array(source), target)


@pytest.mark.parametrize("seed", SEEDS)
def test_within_a_device(seed: int, emulated_cuda: Emulate) -> None:
    emulated_cuda(seed=seed)
    device = Device()
    target = device.array(np.zeros(N, np.float32))
    device.backend.copy_between(device.busy(), target)
    assert device.read(target).tolist() == [64] * N


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("where", ["one card", "two cards", "two cards that are no peers"])
def test_across_devices(where: str, seed: int, emulated_cuda: Emulate) -> None:
    """The source may go, and its memory be used again, before the copy is made."""
    cupy_cards = pytest.importorskip("emulated_cuda")
    peers = where != "two cards that are no peers"
    cards = [cupy_cards.Card(pci_bus=bus, peers=peers) for bus in (1, 2)]
    emulated_cuda(cards=cards, seed=seed)
    first, second = Device(0), Device(int(where != "one card"))
    assert (first.backend.memory == second.backend.memory) == (where == "one card")
    source = first.busy()
    target = second.array(np.zeros(N, np.float32))
    second.backend.copy_across(first.backend, source, target)
    del source
    again = first.array(np.full(N, 5, np.float32))
    first.add(again, again, again)
    assert second.read(target).tolist() == [64] * N
    assert first.read(again).tolist() == [10] * N


@pytest.mark.parametrize("seed", SEEDS)
def test_to_and_from_the_cpu(seed: int, emulated_cuda: Emulate) -> None:
    emulated_cuda(seed=seed)
    device, host = Device(), HostBackend()
    array = device.busy()
    found = np.empty(N, np.float32)
    host.copy_across(device.backend, array, found)
    assert found.tolist() == [64] * N
    found[:] = 3
    device.backend.copy_across(host, found, array)
    found[:] = 0
    assert device.read(array).tolist() == [3] * N


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_fed_comes_beside_the_work(seed: int, emulated_cuda: Emulate) -> None:
    """What is to read it waits; what had the memory before is waited for."""
    emulated_cuda(seed=seed)
    device = Device()
    backend = device.backend
    source = backend.pinned((N,), F32)
    result = backend.pinned((N,), F32)
    target = device.busy()
    out = device.array(np.zeros(N, np.float32))
    device.add(out, target, target)
    source[:] = 5
    fed = device.array(np.zeros(N, np.float32))
    uploaded, consumed = backend.feed(source, target, fed, backend.record())
    device.add(out, out, fed)
    done = backend.fetch([(out, result)])
    backend.wait_on_host(uploaded)
    source[:] = 7
    backend.wait_on_host(done)
    assert backend.is_done(consumed)
    assert result.tolist() == [64 + 64 + 5] * N


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint64"])
def test_pinned_memory(dtype: str, emulated_cuda: Emulate) -> None:
    emulated_cuda()
    device = Device()
    for shape in ((3, 2), (), (0, 4)):
        array = device.backend.pinned(shape, np.dtype(dtype))
        assert (array.shape, array.dtype, array.flags.writeable) == (shape, dtype, True)


# ------------------------------------------------------------------------------ streams


@pytest.mark.parametrize("priority", [None, -3])
def test_the_priority_of_the_work(
    priority: int | None, emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator, made = emulated_cuda(), []
    stream = emulator.cupy.cuda.Stream

    def noting(**options: Any) -> Any:
        made.append(options)
        return stream(**options)

    monkeypatch.setattr(emulator.cupy.cuda, "Stream", noting)
    Device(priority=priority).busy()
    assert made == [{"non_blocking": True, "priority": priority}]


def test_priorities_are_those_of_the_logical_devices(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    (card,) = mr.config.list_physical_devices("GPU")
    parts = [
        mr.config.LogicalDeviceConfiguration(memory_limit=1, experimental_priority=priority)
        for priority in (-1, 0)
    ]
    mr.config.set_logical_device_configuration(card, parts)
    found = [mr.devices.get_device(f"GPU:{i}").backend._priority for i in range(2)]
    assert found == [-1, 0]


def test_a_backend_is_offloaded(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    assert is_offloaded(Device().backend)
    assert not is_offloaded(HostBackend())


@pytest.mark.parametrize("seed", SEEDS)
def test_two_threads_on_one_device(seed: int, emulated_cuda: Emulate) -> None:
    emulated_cuda(seed=seed)
    device, results = Device(), {}

    def work(number: int) -> None:
        x = device.array(np.full(N, number, np.float32))
        for _ in range(10):
            out = device.empty(np.zeros(N, np.float32)).array
            device.add(out, x, x)
            x = out
        results[number] = device.read(x)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {number: set(found.tolist()) for number, found in results.items()} == {
        1: {1024.0},
        3: {3072.0},
    }


@pytest.mark.parametrize("seed", range(8))
def test_memory_that_is_used_again(seed: int, emulated_cuda: Emulate) -> None:
    """An array goes while work on it is queued, and its memory is the next array's."""
    emulated_cuda(seed=seed)
    device, addresses = Device(), set()
    total = device.array(np.zeros(N, np.float32))
    for number in range(1, 6):
        x = device.array(np.full(N, number, np.float32))
        addresses.add(device.backend.address(x))
        device.add(total, total, x)
        del x
    assert device.read(total).tolist() == [15] * N
    assert len(addresses) == 1


# ------------------------------------------------------------------------------ captures


@pytest.mark.parametrize("seed", SEEDS)
def test_a_capture_does_nothing_until_it_is_launched(seed: int, emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(seed=seed)
    device = Device()
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)
    graph = device.backend.capture(lambda: device.add(x, x, x))
    assert graph is not None
    assert device.read(x).tolist() == [2] * N
    before = emulator.counts["kernels"]
    for _ in range(3):
        graph.launch()
    assert device.read(x).tolist() == [16] * N
    assert (emulator.counts["graphs"], emulator.counts["kernels"]) == (3, before)


@pytest.mark.parametrize("seed", SEEDS)
def test_another_device_of_the_card_works_within_a_capture(
    seed: int, emulated_cuda: Emulate
) -> None:
    emulated_cuda(seed=seed)
    first, second = Device(), Device()
    x, y = first.array(np.ones(N, np.float32)), second.array(np.full(N, 3, np.float32))
    for device, array in ((first, x), (second, y)):
        device.add(array, array, array)  # Kernels are compiled beforehand.
        device.backend.synchronize()

    def work() -> None:
        second.backend.wait(first.backend.record())
        second.add(y, x, y)
        first.backend.wait(second.backend.record())
        first.add(x, x, y)

    graph = first.backend.capture(work)
    assert graph is not None
    for _ in range(2):
        graph.launch()
    # y: 6, 8, 18; x: 2, 10, 28.
    assert (first.read(x)[0], second.read(y)[0]) == (28, 18)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_graph_that_runs_is_kept_until_it_has_ended(seed: int, emulated_cuda: Emulate) -> None:
    """Nobody waits for it: it is let go of when another one is captured, or goes."""
    emulated_cuda(seed=seed)
    device = Device()
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)

    def capture() -> Any:
        graph = device.backend.capture(lambda: device.add(x, x, x))
        assert graph is not None
        return graph

    first = capture()
    captured = weakref.ref(first._graph)
    device.backend.synchronize()
    for _ in range(200):
        first.launch()
    del first
    assert captured() is not None
    device.backend.synchronize()
    capture()
    assert captured() is None


@pytest.mark.parametrize(
    "call", ["streamBeginCapture", "streamEndCapture", "launchKernel", "a wait on the host"]
)
def test_a_capture_that_fails(
    call: str, emulated_cuda: Emulate, caplog: pytest.LogCaptureFixture
) -> None:
    emulator = emulated_cuda()
    device = Device()
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)
    if not call.startswith("a "):
        emulator.fail(call, 900)

    def work() -> None:
        device.add(x, x, x)
        if call.startswith("a "):
            device.backend.synchronize()

    with caplog.at_level(logging.DEBUG, "mirrored"):
        assert device.backend.capture(work) is None
    assert "could not be captured as a CUDA graph" in caplog.text
    assert "kernel by kernel" in caplog.text
    # An error would hold all that its traceback does, for whoever keeps the log.
    assert not any(isinstance(each, Exception) for log in caplog.records for each in log.args or ())
    if call == "streamEndCapture":
        return  # The stream of the emulated card is still in its capture.
    device.add(x, x, x)
    assert device.read(x).tolist() == [4] * N


@pytest.mark.parametrize(
    ("call", "status", "error"),
    [
        ("launchKernel", 700, DeviceLostError),
        ("streamBeginCapture", 719, DeviceLostError),
        ("streamEndCapture", 2, ResourceExhaustedError),
        ("launchKernel", 2, ResourceExhaustedError),
    ],
)
def test_a_capture_on_a_card_that_cannot_go_on(
    call: str, status: int, error: type[Exception], emulated_cuda: Emulate
) -> None:
    """It is told, and not only that the program is replayed kernel by kernel."""
    emulator = emulated_cuda()
    device = Device()
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)
    device.backend.synchronize()
    emulator.fail(call, status)
    with pytest.raises(error):
        device.backend.capture(lambda: device.add(x, x, x))


def test_the_first_error_of_a_capture_is_told(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda()
    device = Device()
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)
    emulator.fail("launchKernel", 2)
    emulator.fail("streamEndCapture", 901)
    with pytest.raises(ResourceExhaustedError):
        device.backend.capture(lambda: device.add(x, x, x))


def test_a_capture_by_a_thread_that_never_launched(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    device = Device()
    x = device.array(np.ones(N, np.float32))
    device.add(x, x, x)
    found: list[Any] = []
    capture = partial(device.backend.capture, lambda: device.add(x, x, x))
    thread = threading.Thread(target=lambda: found.append(capture()))
    thread.start()
    thread.join()
    found.pop().launch()
    assert device.read(x).tolist() == [4] * N


def test_captures_can_be_switched_off(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    emulated_cuda()
    graphs._say_that_graphs_are_off.cache_clear()  # It says so once.
    monkeypatch.setenv("MIRRORED_CUDA_GRAPHS", "0")
    with caplog.at_level(logging.DEBUG, "mirrored"):
        assert Device().backend.capture(lambda: pytest.fail("It was run.")) is None
    assert "MIRRORED_CUDA_GRAPHS=0" in caplog.text


def test_what_a_captured_function_raises(emulated_cuda: Emulate) -> None:
    emulated_cuda()
    device = Device()

    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        device.backend.capture(work)
    assert device.read(device.busy()).tolist() == [64] * N  # The capture has ended.
