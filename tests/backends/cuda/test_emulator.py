"""On the emulated CUDA mistakes show: in what order work runs, and with memory.

That it computes as a card does is held by the tests of what runs on it.
"""

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("cupy")
from emulated_cuda import Emulator, EmulatorError, cards
from emulated_cuda.bench import Bench, mistake, outcomes

Install = Callable[..., Emulator]


@pytest.fixture
def bench(emulated_cuda: Install) -> Bench:
    return Bench(emulated_cuda())


def test_work_runs_late(emulated_cuda: Install) -> None:
    seen = []
    for seed in range(20):
        bench = Bench(emulated_cuda(seed=seed))
        host, array = bench.pinned(4), bench.empty(4)
        host[:] = 1
        bench.upload(array, host)
        bench.download(array, host)
        host[:] = 2  # Too early: the copies may not have run.
        bench.stream.synchronize()
        seen.append(host[0])
    assert 2 in seen


def unordered(bench: Bench) -> float:
    with bench.device:
        other = bench.new_stream()
    array = bench.array(np.zeros(4, np.float32))
    bench.stream.synchronize()
    bench.set(array, 1)
    bench.set(array, 2, stream=other)
    bench.device.synchronize()
    return float(bench.read(array)[0])


def test_a_missing_wait_shows_with_some_seed() -> None:
    assert set(outcomes(unordered)) == {1, 2}


def test_elapsed_time_needs_timed_events(bench: Bench) -> None:
    with bench.device:
        events = [bench.stream.record(bench.cupy.cuda.Event()) for _ in range(2)]
        with pytest.raises(RuntimeError, match="NotReady"):
            bench.cupy.cuda.get_elapsed_time(*events)
        bench.stream.synchronize()
        assert bench.cupy.cuda.get_elapsed_time(*events) >= 0
        untimed = bench.event()
        with pytest.raises(RuntimeError, match="InvalidResourceHandle"):
            bench.cupy.cuda.get_elapsed_time(untimed, untimed)


def test_blocking_copies_do_not_wait_for_other_streams(bench: Bench) -> None:
    array, host = bench.empty(4), np.zeros(4, np.float32)
    bench.stream.synchronize()
    bench.event()  # Something to do, so that the stream is behind.
    bench.launch("set", array, np.float32(1), np.int32(4))
    with bench.device:
        bench.runtime.memcpy(host.ctypes.data, array.data.ptr, 16, 2)
    assert np.isnan(host).all() or host.tolist() == [1] * 4
    bench.stream.synchronize()
    assert bench.read(array).tolist() == [1] * 4


def test_a_stream_is_current_on_its_own_card_alone(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    bench = Bench(emulator, 1)
    with emulator.cupy.cuda.Device(0), pytest.raises(RuntimeError, match="does not match"):
        bench.stream.use()


def test_an_event_is_recorded_on_its_own_card_alone(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = Bench(emulator, 0), Bench(emulator, 1)
    with first.device:
        event = emulator.cupy.cuda.Event()
    with pytest.raises(RuntimeError, match="InvalidResourceHandle"):
        event.record(second.stream)


def test_new_memory_is_nan(bench: Bench) -> None:
    assert np.isnan(bench.read(bench.empty(10))).all()


def test_memory_that_was_used_is_nan_again(bench: Bench) -> None:
    where = {}
    for _ in range(2):
        array = bench.empty(10)
        where[array.data.ptr] = bench.read(array)
        bench.set(array, 3)
        del array
    ((_, last),) = where.items()
    assert np.isnan(last).all()


def test_memory_freed_before_other_streams_are_done_shows(emulated_cuda: Install) -> None:
    def work(bench: Bench) -> bool:
        with bench.device:
            other = bench.new_stream()
        source, target = bench.array(np.ones(4, np.float32)), bench.empty(4)
        other.wait_event(bench.event())
        args = target, source, source, np.int32(4)
        bench.launch("add", *args, stream=other)
        del source, args  # The other stream may not have read it.
        bench.empty(1)
        bench.device.synchronize()
        return bool(np.isnan(bench.read(target)).any())

    assert set(outcomes(work)) == {True, False}


def test_work_beside_an_array_is_found(bench: Bench) -> None:
    array = bench.empty(10)
    bench.launch("set", array, np.float32(1), np.int32(11))
    with mistake(bench.emulator, "'set' wrote behind"):
        bench.stream.synchronize()
    array = bench.empty(10)
    bench.launch("before", array, block=(1, 1, 1))
    with mistake(bench.emulator, "wrote before"):
        bench.stream.synchronize()


def test_what_nobody_waited_for_is_found_at_the_end() -> None:
    bench = Bench(Emulator(cards(1)))
    array = bench.empty(10)
    bench.launch("set", array, np.float32(1), np.int32(11))
    with pytest.raises(EmulatorError, match="wrote behind"):
        bench.emulator.finish()


def test_a_pool_has_a_hard_limit(bench: Bench) -> None:
    with bench.device, bench.stream:
        bench.pool.set_limit(size=2048)
        assert bench.pool.get_limit() == 2048
        kept = [bench.pool.malloc(1000), bench.pool.malloc(1)]
        assert (bench.pool.used_bytes(), bench.pool.total_bytes()) == (1536, 1536)
        with pytest.raises(MemoryError, match="limit set to: 2,048"):
            bench.pool.malloc(513)
        del kept
        assert bench.pool.used_bytes() == 0
        assert bench.pool.free_bytes() == 1536
        bench.pool.free_all_blocks()
        assert bench.pool.total_bytes() == bench.emulator.live_bytes() == 0
        assert bench.pool.malloc(2048)


def test_memory_goes_with_its_pool(bench: Bench) -> None:
    array = bench.empty(10)
    bench.set(array, 1)
    bench.stream.synchronize()
    with bench.device:
        bench.pool = bench.cupy.cuda.MemoryPool()
    bench.set(array, 2)
    with pytest.raises(RuntimeError, match="IllegalAddress"):
        bench.stream.synchronize()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"size": 44}, "in no array"),
        ({"kind": 2}, "kind 2 is not"),
        ({"kind": 3}, "kind 3 is not"),
        ({"dst": 64}, "is not between"),
    ],
)
def test_wrong_copies(bench: Bench, change: dict[str, int], text: str) -> None:
    host, array = np.zeros(20, np.float32), bench.empty(10)
    asked = {
        "dst": array.data.ptr,
        "src": host.ctypes.data,
        "size": 40,
        "kind": 1,
        "stream": bench.stream.ptr,
    }
    with pytest.raises(EmulatorError, match=text):
        bench.runtime.memcpyAsync(**asked | change)


def test_memset_and_copies_between_cards(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = Bench(emulator, 0), Bench(emulator, 1)
    source, target = first.empty(10, np.int32), second.empty(10, np.int32)
    first.runtime.memsetAsync(source.data.ptr, 1, 40, first.stream.ptr)
    second.stream.wait_event(first.event())
    asked = target.data.ptr, 1, source.data.ptr, 0, 40, second.stream.ptr
    second.runtime.memcpyPeerAsync(*asked)
    assert second.read(target).tolist() == [0x01010101] * 10
    with pytest.raises(EmulatorError, match="no memory of card 0"):
        second.runtime.memcpyPeerAsync(target.data.ptr, 0, *asked[2:])
