"""The emulated NCCL sums as the real one does, and hangs as that would."""

import random
import threading
from collections.abc import Callable
from ctypes import c_void_p
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")
from emulated_cuda import Emulator, EmulatorError, cards
from emulated_cuda.ranks import (
    AVG,
    BFLOAT16,
    CUDA_ERROR,
    DTYPES,
    MAX,
    MIN,
    PROD,
    SUM,
    Ranks,
    last_error,
    numbers,
)

# ---------------------------------------------------------------------- sums


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_sums(connect: Callable[..., Ranks], size: int, dtype: str, in_place: bool) -> None:
    ranks, host = connect(size), numbers(size, dtype)
    sends = ranks.arrays(host)
    receives = sends if in_place else ranks.like(sends)
    assert ranks.all_reduce(sends, receives) == 0
    assert ranks.reads(receives) == [sum(host).tolist()] * size
    if not in_place:
        assert ranks.reads(sends) == [each.tolist() for each in host]


@pytest.mark.parametrize(
    ("operation", "expected"), [(PROD, 42), (MAX, 7), (MIN, 2), (AVG, 4), (SUM, 12)]
)
def test_operations(connect: Callable[..., Ranks], operation: int, expected: float) -> None:
    ranks = connect(3)
    arrays = ranks.arrays([np.full(3, value, np.float64) for value in (3, 2, 7)])
    assert ranks.all_reduce(arrays, operation=operation) == 0
    assert ranks.reads(arrays) == [[expected] * 3] * 3


def test_sums_are_in_the_order_of_ranks(connect: Callable[..., Ranks]) -> None:
    ranks = connect(3)
    arrays = ranks.arrays([np.float32([value]) for value in (1e8, -1e8, 1)])
    assert ranks.all_reduce(arrays, order=(2, 1, 0)) == 0
    assert ranks.reads(arrays) == [[1]] * 3  # The other way round it is 0.


def test_narrow_floats_are_rounded_once(connect: Callable[..., Ranks]) -> None:
    ranks = connect(3)
    halves = ranks.arrays([np.float16([value]) for value in (2048, 1, 1)])
    assert ranks.all_reduce(halves) == 0
    assert ranks.reads(halves) == [[2050]] * 3  # With a rounding between it is 2048.
    # As bfloat16: 256, 1 and 1, the sum of which is 258.
    bits = ranks.arrays([np.uint16([value]) for value in (0x4380, 0x3F80, 0x3F80)])
    assert ranks.all_reduce(bits, datatype=BFLOAT16) == 0
    assert ranks.reads(bits) == [[0x4381]] * 3


def test_sums_that_overflow_are_infinite_or_wrap(pair: Ranks) -> None:
    for dtype, value, expected in (("float16", 60000, np.inf), ("int8", 100, -56)):
        arrays = pair.arrays([np.full(1, value, dtype)] * 2)
        assert pair.all_reduce(arrays) == 0
        assert pair.reads(arrays) == [[expected]] * 2


def test_nothing_is_summed_without_elements(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    assert pair.all_reduce(arrays, count=0) == 0
    assert pair.library.log == []


@pytest.mark.parametrize("seed", range(12))
def test_many_sums_in_any_order(connect: Callable[..., Ranks], seed: int) -> None:
    rng, size = random.Random(seed), 3
    ranks = connect(size, seed=seed)
    with_others = []
    for bench in ranks.benches:
        with bench.device:
            with_others.append((bench.stream, bench.new_stream()))
    arrays = ranks.arrays(numbers(size))
    expected = np.stack(numbers(size))
    for _ in range(8):
        rank = rng.randrange(size)
        streams = [rng.choice(pair) for pair in with_others]
        ranks.benches[rank].set(arrays[rank], rank)
        expected[rank] = rank
        # What is summed is there before, and what comes next is after it.
        for bench, stream in zip(ranks.benches, streams, strict=True):
            stream.wait_event(bench.event())
        ranks.library.ncclGroupStart()
        for each in rng.sample(range(size), size):
            assert ranks.ask(each, arrays[each], arrays[each], stream=streams[each].ptr) == 0
        assert ranks.library.ncclGroupEnd() == 0
        for bench, stream in zip(ranks.benches, streams, strict=True):
            bench.stream.wait_event(bench.event(stream))
        expected[:] = expected.sum(0)
    assert ranks.reads(arrays) == expected.tolist()


def late_outcomes(work: Callable[[Ranks], Any], seeds: int = 24) -> set[Any]:
    """Return what work on two ranks gives with each of some seeds."""
    given = set()
    for seed in range(seeds):
        ranks = Ranks(Emulator(cards(2), seed))
        given.add(work(ranks))
        ranks.end()
        ranks.emulator.finish()
    return given


@pytest.mark.parametrize("wait", [False, True])
def test_a_missing_wait_before_a_sum_shows_with_some_seed(wait: bool) -> None:
    def work(ranks: Ranks) -> float:
        arrays = ranks.arrays([np.zeros(1, np.float32)] * 2)
        bench = ranks.benches[1]
        bench.stream.synchronize()
        with bench.device:
            other = bench.new_stream()
        bench.set(arrays[1], 5, stream=other)
        if wait:
            bench.stream.wait_event(bench.event(other))
        ranks.all_reduce(arrays)
        for each in ranks.benches:
            each.device.synchronize()
        return float(ranks.reads(arrays)[0][0])

    assert late_outcomes(work) == ({5} if wait else {0, 5})


def test_memory_that_is_freed_too_early_shows() -> None:
    def work(ranks: Ranks) -> bool:
        bench = ranks.benches[0]
        sends = ranks.arrays([np.ones(4, np.float32)] * 2)
        receives = ranks.like(sends)
        with bench.device:
            other = bench.new_stream()
        other.wait_event(bench.event())
        ranks.library.ncclGroupStart()
        for rank, stream in enumerate((other, ranks.streams[1])):
            assert ranks.ask(rank, sends[rank], receives[rank], stream=stream.ptr) == 0
        assert ranks.library.ncclGroupEnd() == 0
        del sends[0]  # The other stream may not have read it.
        bench.empty(1)
        bench.device.synchronize()
        return bool(np.isnan(ranks.reads(receives)[1]).any())

    assert late_outcomes(work) == {False, True}


# ---------------------------------------------------------------------- collectives that hang


def different(ranks: Ranks, arrays: Any, **change: Any) -> None:
    ranks.library.ncclGroupStart()
    ranks.ask(0, arrays[0], arrays[0])
    ranks.ask(1, arrays[1], arrays[1], **change)
    ranks.library.ncclGroupEnd()


def told(ranks: Ranks, arrays: Any) -> None:
    ranks.library.hang()
    ranks.all_reduce(arrays)


def crossed(ranks: Ranks, arrays: Any) -> None:
    """Let one rank come only after what the other one's stream does next."""
    ranks.all_reduce(arrays, order=[0])
    ranks.streams[1].wait_event(ranks.benches[0].event())
    ranks.all_reduce(arrays, order=[1])


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (told, "it was told to hang"),
        (lambda ranks, arrays: ranks.all_reduce(arrays, order=[0]), r"ranks \[1\] were not asked"),
        (lambda ranks, arrays: different(ranks, arrays, count=6), "for different ones"),
        (lambda ranks, arrays: different(ranks, arrays, datatype=2), "for different ones"),
        (lambda ranks, arrays: different(ranks, arrays, operation=MAX), "for different ones"),
        (crossed, r"the streams of ranks \[1\] have not come"),
    ],
)
def test_what_hangs_until_it_is_aborted(pair: Ranks, work: Callable[..., Any], why: str) -> None:
    arrays = pair.arrays(numbers(2))
    work(pair, arrays)
    event = pair.benches[0].event()
    assert pair.polls([event]) == {600}
    with pytest.raises(EmulatorError, match=f"for ever.*{why}"):
        event.synchronize()
    assert pair.polls([event]) == {600}
    assert not any(pair.end("ncclCommAbort"))
    pair.benches[0].set(arrays[0], 3)
    assert pair.reads(arrays)[0] == [3] * 7  # The stream goes on.
    event.synchronize()


def test_later_sums_wait_for_one_that_hangs(pair: Ranks) -> None:
    pair.library.hang(after=2)
    arrays = [pair.arrays(numbers(2)) for _ in range(3)]
    events = []
    for each in arrays:
        assert pair.all_reduce(each) == 0
        events.append(pair.benches[0].event())
    assert [pair.polls([event]) for event in events] == [{0}, {600}, {600}]
    pair.end("ncclCommAbort")
    assert np.isnan(pair.reads(arrays[1])).all()
    assert np.isnan(pair.reads(arrays[2])).all()
    assert pair.reads(arrays[0]) == [sum(numbers(2)).tolist()] * 2


def test_a_rank_that_is_aborted_alone_leaves_the_others_waiting(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.library.hang()
    pair.all_reduce(arrays)
    events = [bench.event() for bench in pair.benches]
    assert pair.library.ncclCommAbort(c_void_p(pair.comms.pop(0))) == 0
    assert [pair.polls([event]) for event in events] == [{0}, {600}]
    assert pair.end("ncclCommAbort") == [0, 0]
    assert pair.polls(events) == {0}


@pytest.mark.usefixtures("no_deadlock")
def test_streams_are_aborted_by_another_thread(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.library.hang()
    pair.all_reduce(arrays)
    events = [bench.event() for bench in pair.benches]
    thread = threading.Thread(target=pair.end, args=("ncclCommAbort",))
    thread.start()
    while pair.polls(events) != {0}:
        pass
    thread.join()


def test_what_hangs_is_found_at_the_end() -> None:
    ranks = Ranks(Emulator(cards(2)))
    told(ranks, ranks.arrays(numbers(2)))
    with pytest.raises(EmulatorError, match="told to hang"):
        ranks.emulator.finish()


def test_ranks_of_a_lost_card_leave_the_others_waiting(pair: Ranks) -> None:
    pair.emulator.fail("launchKernel", 700)
    arrays = pair.arrays(numbers(2))
    with pytest.raises(RuntimeError, match="IllegalAddress"):
        pair.benches[0].set(arrays[0], 1)
    assert pair.all_reduce(arrays, order=(1, 0)) == CUDA_ERROR
    assert "IllegalAddress" in last_error(pair)
    event = pair.benches[1].event()
    assert pair.polls([event]) == {600}
    assert sorted(pair.end("ncclCommAbort"))[-1] == CUDA_ERROR
    assert pair.polls([event]) == {0}
