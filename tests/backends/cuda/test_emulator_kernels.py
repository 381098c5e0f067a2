"""The emulated CUDA refuses kernels and graphs with which a GPU would go wrong."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")
from emulated_cuda import Emulator, EmulatorError
from emulated_cuda.bench import BARRIERS, CODE, OPTIONS, Bench, mistake, outcomes

Install = Callable[..., Emulator]


@pytest.fixture
def bench(emulated_cuda: Install) -> Bench:
    return Bench(emulated_cuda())


@pytest.mark.parametrize(
    ("number", "value", "text"),
    [
        (1, 1.0, "f of 4 bytes. Received: float"),
        (1, np.float64(1), "f of 4 bytes. Received: float64"),
        (1, np.int32(1), "f of 4 bytes. Received: int32"),
        (2, 4, "i of 4 bytes. Received: int"),
        (2, np.int64(4), "i of 4 bytes"),
        (0, np.int64(4), "an array of the device"),
        (0, np.zeros(4, np.float32), "an array of the device"),
        (2, None, "i of 4 bytes"),
    ],
)
def test_arguments_are_held_to_their_types(
    bench: Bench, number: int, value: Any, text: str
) -> None:
    args = [bench.empty(4), np.float32(1), np.int32(4)]
    args[number] = value
    with pytest.raises(EmulatorError, match=text):
        bench.launch("set", *args)


def test_arrays_are_held_to_their_elements(bench: Bench) -> None:
    with pytest.raises(EmulatorError, match=r"points to f4\. Received: float64"):
        bench.launch("set", bench.empty(4, np.float64), np.float32(1), np.int32(4))
    crooked = bench.empty(17, np.uint8)[1:].view(np.float32)
    with pytest.raises(EmulatorError, match="is not aligned to 4 bytes"):
        bench.launch("set", crooked, np.float32(1), np.int32(4))
    with pytest.raises(EmulatorError, match=r"takes 3 arguments\. Received: 1"):
        bench.launch("set", bench.empty(4))


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((2**31, 1, 1), (1, 1, 1), 0),
        ((1, 65536, 1), (1, 1, 1), 0),
        ((1, 1, 65536), (1, 1, 1), 0),
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (32, 33, 1), 0),
        ((1, 1, 1), (1, 1, 65), 0),
        ((1, 1, 1), (1, 1, 1), 48 * 1024 + 1),
    ],
)
def test_too_large_launches(bench: Bench, grid: Any, block: Any, shared: int) -> None:
    with pytest.raises(RuntimeError, match="InvalidValue"):
        bench.launch("before", bench.empty(4), grid=grid, block=block, shared=shared)


def test_an_empty_grid_is_a_mistake(bench: Bench) -> None:
    with pytest.raises(EmulatorError, match="below 1"):
        bench.launch("before", bench.empty(4), grid=(0, 1, 1))


def test_arrays_of_other_cards_need_peer_access(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = Bench(emulator, 0), Bench(emulator, 1)
    array = first.array(np.zeros(4, np.float32))
    first.stream.synchronize()
    with pytest.raises(EmulatorError, match="on card 0, the kernel on 1"):
        second.set(array, 1)
    assert second.runtime.deviceCanAccessPeer(1, 0) == 1
    with second.device:
        second.runtime.deviceEnablePeerAccess(0)
        with pytest.raises(RuntimeError, match="AlreadyEnabled"):
            second.runtime.deviceEnablePeerAccess(0)
    second.set(array, 1)
    second.stream.synchronize()
    assert first.read(array).tolist() == [1] * 4


def test_a_missing_barrier_shows(bench: Bench) -> None:
    out = bench.empty(64, np.int32)
    bench.launch("without_barrier", out, code=BARRIERS)
    assert -1 in bench.read(out).tolist()


@pytest.mark.parametrize(
    ("name", "threads", "text"),
    [
        ("some_leave", 64, "barrier that others do not come to"),
        ("block_sum", 48, "barrier that others do not come to"),
        ("part_of_a_warp", 32, "mask has to be"),
    ],
)
def test_barriers_that_a_gpu_would_hang_at(
    bench: Bench, name: str, threads: int, text: str
) -> None:
    out = bench.empty(64, np.float64 if name == "block_sum" else np.int32)
    args = (out, out, np.int32(64)) if name == "block_sum" else (out,)
    bench.launch(name, *args, code=BARRIERS, block=(threads, 1, 1))
    with mistake(bench.emulator, text):
        bench.stream.synchronize()
    # The next kernel is not disturbed by threads that were left at a barrier.
    total, ones = bench.empty(1, np.float64), bench.array(np.ones(64))
    bench.launch("block_sum", total, ones, np.int32(64), code=BARRIERS)
    assert bench.read(total) == [64]


def test_what_does_not_compile(bench: Bench) -> None:
    compile_error = bench.cupy.cuda.compiler.CompileException
    bench.launch("f", code='extern "C" __global__ void f() { nonsense(); }')
    with pytest.raises(compile_error, match="nonsense"):
        bench.stream.synchronize()
    with pytest.raises(EmulatorError, match="no kernel 'absent'"):
        bench.launch("absent")
    with pytest.raises(EmulatorError, match="no headers"):
        bench.launch("f", code="#include <cmath>\n" + CODE)


def branches(bench: Bench) -> float:
    with bench.device:
        other = bench.new_stream()
    array = bench.array(np.zeros(4, np.float32))

    def work() -> None:
        fork = bench.event()
        other.wait_event(fork)
        bench.set(array, 1)
        bench.set(array, 2, stream=other)
        bench.stream.wait_event(bench.event(other))

    bench.capture(work).launch(bench.stream)
    return float(bench.read(array)[0])


def test_branches_of_a_graph_run_in_any_order() -> None:
    assert set(outcomes(branches)) == {1, 2}


def grow(bench: Bench) -> None:
    bench.empty(1 << 18)


def copy_pageable(bench: Bench) -> None:
    bench.upload(bench.empty(4), np.zeros(4, np.float32))


def leave_a_stream(bench: Bench) -> None:
    other = bench.new_stream()
    other.wait_event(bench.event())
    bench.set(bench.empty(4), 1, stream=other)


def wait_for_outside(bench: Bench) -> None:
    bench.stream.wait_event(bench.event(bench.new_stream()))


def use_the_null_stream(bench: Bench) -> None:
    array = bench.empty(4)
    bench.runtime.memsetAsync(array.data.ptr, 0, 16, 0)


@pytest.mark.parametrize(
    ("work", "status"),
    [
        (lambda bench: bench.stream.synchronize(), 900),
        (lambda bench: bench.device.synchronize(), 900),
        (lambda bench: bench.cupy.cuda.alloc_pinned_memory(8), 900),
        (lambda bench: bench.launch("before", bench.empty(4), code=CODE + "// Another text."), 900),
        (lambda bench: bench.event().synchronize(), 907),
        (grow, 900),
        (copy_pageable, 900),
        (leave_a_stream, 904),
        (wait_for_outside, 905),
        (use_the_null_stream, 906),
    ],
)
def test_what_a_capture_refuses(bench: Bench, work: Callable[[Bench], None], status: int) -> None:
    array = bench.empty(4)
    bench.set(array, 1)
    bench.empty(4)  # The pool has memory for a small array.
    bench.stream.synchronize()
    with bench.device, bench.stream:
        bench.stream.begin_capture()
        if status != 904:
            with pytest.raises(RuntimeError) as refused:
                work(bench)
            assert refused.value.status == status
            with pytest.raises(RuntimeError, match="Invalidated"):
                bench.set(array, 2)
        else:
            work(bench)
        with pytest.raises(RuntimeError) as refused:
            bench.stream.end_capture()
        assert refused.value.status == (904 if status == 904 else 901)
    bench.set(array, 3)  # The stream works as before.
    assert bench.read(array).tolist() == [3] * 4


def test_other_threads_disturb_a_global_capture_alone(bench: Bench) -> None:
    def from_a_thread() -> None:
        thread = threading.Thread(target=lambda: answers.append(bench.runtime.streamQuery(handle)))
        thread.start()
        thread.join()

    answers: list[int] = []
    with bench.device, bench.stream:
        other = bench.new_stream()
        handle = other.ptr
        for mode in ("ThreadLocal", "Global"):
            bench.stream.begin_capture(getattr(bench.runtime, f"streamCaptureMode{mode}"))
            from_a_thread()
            if mode == "Global":
                with pytest.raises(RuntimeError, match="Invalidated"):
                    bench.stream.end_capture()
            else:
                bench.stream.end_capture()
    assert answers == [0, 900]


def test_a_graph_keeps_no_memory(bench: Bench) -> None:
    kept = [bench.empty(4)]
    graph = bench.capture(lambda: bench.set(kept[0], 7))
    kept.clear()
    again = bench.array(np.zeros(4, np.float32))
    graph.launch(bench.stream)
    assert bench.read(again).tolist() == [7] * 4


def test_a_raw_module_flushes_what_is_below_the_normal_numbers(bench: Bench) -> None:
    """CuPy adds an option to it behind those that are given, and to nothing else."""
    tiny, zero, out = (bench.array(np.full(4, x, np.float32)) for x in (1e-40, 0, 1))
    bench.launch("add", out, tiny, zero, np.int32(4))
    assert bench.read(out).tolist() == [0] * 4
    with bench.device, bench.stream:
        made, _ = bench.cupy.cuda.compiler.compile_using_nvrtc(CODE, OPTIONS, cache_in_memory=True)
        module = bench.cupy.cuda.function.Module()
        module.load(made)
        module.get_function("add")((1, 1, 1), (4, 1, 1), (out, tiny, zero, np.int32(4)))
    assert bench.read(out).tolist() == [np.float32(1e-40)] * 4


def test_a_module_is_of_one_card(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = Bench(emulator, 0), Bench(emulator, 1)
    made, _ = emulator.cupy.cuda.compiler.compile_using_nvrtc(CODE, OPTIONS, cache_in_memory=True)
    with first.device:
        module = emulator.cupy.cuda.function.Module()
        module.load(made)
    args = (second.empty(4), np.float32(1), np.int32(4))
    with (
        second.device,
        second.stream,
        pytest.raises(RuntimeError, match="cudaErrorInvalidResourceHandle"),
    ):
        module.get_function("set")((1, 1, 1), (4, 1, 1), args)
