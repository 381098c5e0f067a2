"""What the emulated NCCL is for: mistakes show on it that the real one would hang or crash with.

That it sums, fails and ends as the real one does is held by the tests of what calls it.
"""

import ctypes
import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_void_p
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")
from emulated_cuda import Emulator, EmulatorError, cards
from emulated_cuda.bench import mistake
from emulated_cuda.ranks import (
    AVG,
    CUDA_ERROR,
    ENDS,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    INVALID_USAGE,
    MAX,
    Ranks,
    init,
    last_error,
    numbers,
    text,
)

from mirrored.backends.cuda import nccl
from mirrored.errors import DeviceUnavailableError

# ---------------------------------------------------------------------- what is too early


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


def test_a_rank_that_is_aborted_alone_leaves_the_others_waiting(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.library.hang()
    pair.all_reduce(arrays)
    events = [bench.event() for bench in pair.benches]
    assert pair.library.ncclCommAbort(c_void_p(pair.comms.pop(0))) == 0
    assert [pair.polls([event]) for event in events] == [{0}, {600}]
    assert pair.end("ncclCommAbort") == [0, 0]
    assert pair.polls(events) == {0}


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


def shared(connect: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch) -> Ranks:
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    return connect(1, [0, 0])


def test_ranks_on_one_stream_wait_for_ever(
    connect: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = shared(connect, monkeypatch)
    arrays = ranks.arrays(numbers(2))
    ranks.streams[1].synchronize()
    assert ranks.all_reduce(arrays, stream=ranks.streams[0].ptr) == 0
    assert ranks.polls([ranks.benches[0].event()]) == {600}
    ranks.end("ncclCommAbort")


# ---------------------------------------------------------------------- sums that are wrong


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"datatype": 10}, "invalid type 10"),
        ({"datatype": -1}, "invalid type -1"),
        ({"operation": 5}, "invalid reduction operation 5"),
        ({"comm": None}, "comm argument is NULL"),
    ],
)
def test_arguments_that_nccl_refuses(pair: Ranks, change: dict[str, Any], found: str) -> None:
    arrays = pair.arrays(numbers(2))
    assert pair.all_reduce(arrays, **change) == INVALID_ARGUMENT
    assert found in last_error(pair)
    assert pair.library.log == []


MISUSE: dict[str, tuple[Callable[[Ranks, Any, Any], dict[str, Any]], str]] = {
    "short": (lambda ranks, a, b: {"count": 8}, "32 bytes .* in no array"),
    "null": (lambda ranks, a, b: {"send": None}, "in no array"),
    "host": (lambda ranks, a, b: {"receive": np.zeros(7).ctypes.data}, "in no array"),
    "card": (lambda ranks, a, b: {"send": b.data.ptr}, "an array is on card 1, the rank on 0"),
    "aligned": (lambda ranks, a, b: {"count": 1, "send": a.data.ptr + 2}, "aligned to 4"),
    "overlap": (lambda ranks, a, b: {"count": 6, "receive": a.data.ptr + 4}, "overlap in part"),
    "null stream": (lambda ranks, a, b: {"stream": None}, "a stream of its own card"),
    "stream": (lambda ranks, a, b: {"stream": ranks.streams[1].ptr}, "a stream of its own card"),
    "int": (lambda ranks, a, b: {"comm": 5}, "no communicator"),
    "integers": (lambda ranks, a, b: {"operation": AVG, "datatype": 2}, "averages of integers"),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_that_the_real_library_says_nothing_of(pair: Ranks, case: str) -> None:
    change, found = MISUSE[case]
    a, b = pair.arrays(numbers(2))
    assert pair.all_reduce([a, b], order=[0], **change(pair, a, b)) == INTERNAL_ERROR
    with mistake(pair.emulator, found):
        pair.emulator.finish()
    assert pair.library.log == []


def test_a_stream_that_is_gone(pair: Ranks) -> None:
    a, _ = arrays = pair.arrays(numbers(2))
    with pair.benches[0].device:
        gone = pair.benches[0].new_stream().ptr
    assert pair.ask(0, a, a, stream=gone) == CUDA_ERROR
    assert "InvalidResourceHandle" in last_error(pair)
    assert pair.all_reduce(arrays) == 0


def test_memory_whose_pool_is_gone(pair: Ranks) -> None:
    a, _ = pair.arrays(numbers(2))
    pair.streams[0].synchronize()
    with pair.benches[0].device:
        pair.benches[0].pool = pair.benches[0].cupy.cuda.MemoryPool()
    assert pair.ask(0, a, a) == INTERNAL_ERROR
    assert "the pool of this memory is gone" in str(pair.emulator.failures.pop())


def test_collectives_are_not_captured(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    statuses = []
    pair.benches[0].capture(lambda: statuses.append(pair.all_reduce(arrays)))
    assert statuses == [INTERNAL_ERROR]
    assert "not to be captured" in str(pair.emulator.failures.pop())
    # Nor may another stream be captured by the thread: the first sum takes memory.
    with pair.benches[0].device:
        other = pair.benches[0].new_stream()
    other.begin_capture()
    assert pair.all_reduce(arrays) == CUDA_ERROR
    with pytest.raises(RuntimeError, match="CaptureInvalidated"):
        other.end_capture()


@pytest.mark.parametrize("function", ENDS[1:])
def test_communicators_that_have_ended_are_not_used(pair: Ranks, function: str) -> None:
    arrays, comm = pair.arrays(numbers(2)), pair.comms[0]
    assert not any(pair.end(function))
    for again in (*ENDS, "ncclCommGetAsyncError"):
        call = getattr(pair.library, again)
        about = [byref(c_int())] if again not in ENDS else []
        assert call(c_void_p(comm), *about) == INTERNAL_ERROR
    pair.comms = [comm]
    assert pair.all_reduce(arrays) == INTERNAL_ERROR
    pair.comms = []
    assert ["was used that was" in str(each) for each in pair.emulator.failures] == [True] * 5
    pair.emulator.failures.clear()


def test_communicators_that_are_finalized_take_no_more(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    assert not any(pair.end("ncclCommFinalize"))
    assert pair.library.ncclCommFinalize(c_void_p(pair.comms[0])) == INVALID_ARGUMENT
    assert pair.ask(0, arrays[0], arrays[0]) == INTERNAL_ERROR
    assert "was finalized" in str(pair.emulator.failures.pop())


def test_communicators_end_when_nothing_goes_on(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.library.hang()
    pair.all_reduce(arrays)
    assert pair.library.ncclCommDestroy(c_void_p(pair.comms[0])) == INTERNAL_ERROR
    assert "while its work goes on" in str(pair.emulator.failures.pop())
    assert pair.library.ncclCommFinalize(c_void_p(pair.comms[0])) == INTERNAL_ERROR
    assert "told to hang" in str(pair.emulator.failures.pop())
    assert not any(pair.end("ncclCommAbort"))


@pytest.mark.parametrize(
    ("listed", "status", "found"),
    [
        ([0, 2], INVALID_ARGUMENT, "Invalid device 2 (totalnDev=2)"),
        ([-1], INVALID_ARGUMENT, "Invalid device -1 (totalnDev=2)"),
        ([], INVALID_ARGUMENT, "Invalid device count requested : 0"),
        (
            [0, 1, 1],
            INVALID_USAGE,
            "Duplicate GPU detected : rank 1 and rank 2 both on CUDA device 1",
        ),
    ],
)
def test_cards_that_are_not_connected(
    pair: Ranks, listed: list[int], status: int, found: str
) -> None:
    made, given = (c_void_p * 4)(), (c_int * 4)(*listed)
    ask = pair.library.ncclCommInitAll
    assert ask(byref(made), c_int(len(listed)), byref(given)) == status
    assert last_error(pair) == found
    assert list(made) == [None] * 4
    assert ask(c_void_p(), c_int(1), byref(given)) == INVALID_ARGUMENT


def test_ranks_of_one_card_have_streams_and_memory_of_their_own(
    connect: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = shared(connect, monkeypatch)
    arrays = ranks.arrays(numbers(2))
    ranks.all_reduce(arrays)
    assert ranks.reads(arrays) == [sum(numbers(2)).tolist()] * 2
    assert ranks.all_reduce([arrays[0], arrays[0]]) == INTERNAL_ERROR
    assert "ranks 0 and 1 of an all-reduce use the same memory" in str(ranks.emulator.failures[0])
    ranks.emulator.failures.clear()
    ranks.end("ncclCommAbort")


def test_communicators_are_not_made_in_a_group_or_on_a_lost_card(pair: Ranks) -> None:
    made = c_void_p()
    pair.library.ncclGroupStart()
    ask = pair.library.ncclCommInitAll
    assert ask(byref(made), c_int(1), None) == INTERNAL_ERROR
    assert pair.library.ncclGroupEnd() == INTERNAL_ERROR
    assert "made in a group" in str(pair.emulator.failures.pop())
    pair.emulator.fail("launchKernel", 719)
    with pytest.raises(RuntimeError, match="LaunchFailure"):
        pair.benches[1].set(pair.benches[1].empty(1), 1)
    assert ask(byref(made), c_int(2), None) == CUDA_ERROR
    assert pair.end("ncclCommAbort") == [0, 0, CUDA_ERROR]


def test_pointers_that_are_passed_as_plain_ints_are_cut_off(pair: Ranks) -> None:
    # As with the real library, which would crash.
    assert pair.library.ncclCommAbort(pair.comms[0]) == INTERNAL_ERROR
    assert "no communicator" in str(pair.emulator.failures.pop())


def test_one_thread_asks_several_ranks_in_a_group(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    assert pair.ask(0, arrays[0], arrays[0]) == 0
    assert pair.ask(1, arrays[1], arrays[1]) == INTERNAL_ERROR
    assert "in a group, or waits for ever" in str(pair.emulator.failures.pop())
    pair.end("ncclCommAbort")


# ---------------------------------------------------------------------- what is left at the end


def test_what_hangs_is_found_at_the_end() -> None:
    ranks = Ranks(Emulator(cards(2)))
    told(ranks, ranks.arrays(numbers(2)))
    with pytest.raises(EmulatorError, match="told to hang"):
        ranks.emulator.finish()


def test_communicators_that_are_left_are_found_at_the_end() -> None:
    emulator = Emulator(cards(2))
    comms = init(emulator, [1, 0])
    emulator.nccl.ncclCommAbort(c_void_p(comms[0]))
    with pytest.raises(EmulatorError, match="neither destroyed nor aborted: rank 1 on card 0"):
        emulator.finish()


def test_a_group_that_is_left_open_is_found_at_the_end() -> None:
    emulator = Emulator(cards(1))
    emulator.nccl.ncclGroupStart()
    with pytest.raises(EmulatorError, match=r"groups were started and not ended.*MainThread"):
        emulator.finish()
    emulator.failures.clear()
    assert emulator.nccl.ncclGroupEnd() == 0
    emulator.finish()


# ---------------------------------------------------------------------- beside the real library


@pytest.fixture
def real() -> ctypes.CDLL:
    try:
        library: ctypes.CDLL = nccl.load()
    except DeviceUnavailableError as error:
        pytest.skip(str(error))
    return library


def test_functions_are_called_as_those_of_the_real_library(real: ctypes.CDLL) -> None:
    emulated = Emulator(cards(1)).nccl
    names = [name for name in vars(emulated) if name.startswith("nccl")]
    assert len(names) == 14
    assert all(hasattr(real, name) for name in names)


def test_it_answers_as_the_real_library_does_without_a_card(real: ctypes.CDLL) -> None:
    def answers(library: Any) -> list[Any]:
        nothing, number = c_void_p(), c_int()
        last = library.ncclGetLastError
        given: list[Any] = [
            text(library.ncclGetErrorString, c_int(status)) for status in range(-1, 9)
        ]
        given += [library.ncclGetVersion(nothing)]
        given += [library.ncclGroupEnd(), text(last, nothing)]
        given += [library.ncclGroupStart(), library.ncclGroupStart()]
        given += [library.ncclGroupEnd(), library.ncclGroupEnd()]
        given += [getattr(library, name)(nothing) for name in ENDS]
        given += [library.ncclCommGetAsyncError(nothing, byref(number))]
        integer, size = c_int(7), c_size_t(1)
        given += [library.ncclAllReduce(nothing, nothing, size, integer, c_int(0), *[nothing] * 2)]
        return [*given, text(last, nothing)]

    version, emulated = c_int(), Emulator(cards(1)).nccl
    assert real.ncclGetVersion(byref(version)) == 0
    if version.value != emulated.version:
        pytest.skip(f"The library is another version, {version.value}.")
    assert answers(emulated) == answers(real)


@pytest.mark.parametrize("grouped", [True, False])
def test_freeing_what_another_thread_uses(pair: Ranks, grouped: bool) -> None:
    """The abort itself may come at any time; what it frees it frees at the end of its group."""
    library, arrays = pair.library, pair.arrays(numbers(2))
    library.ncclGroupStart()
    pair.ask(0, arrays[0], arrays[0])

    def abort() -> None:
        if grouped:
            library.ncclGroupStart()
        for comm in pair.comms:
            library.ncclCommAbort(c_void_p(comm))

    thread = threading.Thread(target=abort)
    thread.start()
    thread.join()
    assert bool(pair.emulator.failures) is not grouped
    pair.emulator.failures.clear()
    library.ncclGroupEnd()
    pair.comms = []
    pair.emulator.last_looks.clear()
