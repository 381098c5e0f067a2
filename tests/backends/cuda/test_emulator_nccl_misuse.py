"""The emulated NCCL refuses what the real one refuses, and what that would crash or hang with."""

import ctypes
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
    Ranks,
    init,
    last_error,
    numbers,
    text,
)

from mirrored.backends.cuda import nccl
from mirrored.errors import DeviceUnavailableError

Install = Callable[..., Emulator]


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


def test_finalizing_waits_for_what_goes_on(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.all_reduce(arrays)
    events = [bench.event() for bench in pair.benches]
    assert not any(pair.end("ncclCommFinalize"))
    assert not any(pair.end())
    assert pair.reads(arrays) == [sum(numbers(2)).tolist()] * 2
    for event in events:
        event.synchronize()


def test_communicators_that_are_left_are_found_at_the_end() -> None:
    emulator = Emulator(cards(2))
    comms = init(emulator, [1, 0])
    emulator.nccl.ncclCommAbort(c_void_p(comms[0]))
    with pytest.raises(EmulatorError, match="neither destroyed nor aborted: rank 1 on card 0"):
        emulator.finish()


def test_no_pointer_is_no_communicator(pair: Ranks) -> None:
    assert [getattr(pair.library, name)(c_void_p()) for name in ENDS] == [0] * 3
    for name in ("Count", "CuDevice", "UserRank", "GetAsyncError"):
        call = getattr(pair.library, f"ncclComm{name}")
        assert call(c_void_p(), byref(c_int())) == INVALID_ARGUMENT
        assert call(c_void_p(pair.comms[0]), c_void_p()) == INVALID_ARGUMENT


# ---------------------------------------------------------------------- making communicators


def test_communicators_know_their_ranks(connect: Callable[..., Ranks]) -> None:
    ranks = connect(3, [2, 0])
    known = []
    for comm in ranks.comms:
        for name in ("Count", "CuDevice", "UserRank"):
            value = c_int()
            call = getattr(ranks.library, f"ncclComm{name}")
            assert call(c_void_p(comm), byref(value)) == 0
            known.append(value.value)
    assert known == [2, 2, 0, 2, 0, 1]


def test_without_a_list_the_first_cards_are_used(emulated_cuda: Install) -> None:
    emulator = emulated_cuda(cards=3)
    made, device = (c_void_p * 2)(), c_int()
    assert emulator.nccl.ncclCommInitAll(byref(made), c_int(2), None) == 0
    assert emulator.nccl.ncclCommCuDevice(c_void_p(made[1]), byref(device)) == 0
    assert (device.value, emulator.counts["contexts"]) == (1, 2)
    assert [emulator.nccl.ncclCommDestroy(c_void_p(comm)) for comm in made] == [0, 0]


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


@pytest.mark.parametrize(
    ("enabled", "version", "status"),
    [("1", 23000, 0), ("1", 22907, INVALID_USAGE), ("0", 23203, INVALID_USAGE)],
)
def test_several_ranks_on_one_card(
    emulated_cuda: Install,
    monkeypatch: pytest.MonkeyPatch,
    enabled: str,
    version: int,
    status: int,
) -> None:
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", enabled)
    emulator = emulated_cuda(cards=1)
    emulator.nccl.version = version
    made, listed = (c_void_p * 2)(), (c_int * 2)(0, 0)
    assert emulator.nccl.ncclCommInitAll(byref(made), c_int(2), byref(listed)) == status
    for comm in made:
        assert emulator.nccl.ncclCommDestroy(c_void_p(comm)) == 0


def shared(connect: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch) -> Ranks:
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    return connect(1, [0, 0])


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


def test_ranks_on_one_stream_wait_for_ever(
    connect: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = shared(connect, monkeypatch)
    arrays = ranks.arrays(numbers(2))
    ranks.streams[1].synchronize()
    assert ranks.all_reduce(arrays, stream=ranks.streams[0].ptr) == 0
    assert ranks.polls([ranks.benches[0].event()]) == {600}
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
    assert pair.end("ncclCommAbort") == [0, CUDA_ERROR, CUDA_ERROR]


def test_pointers_that_are_passed_as_plain_ints_are_cut_off(pair: Ranks) -> None:
    # As with the real library, which would crash.
    assert pair.library.ncclCommAbort(pair.comms[0]) == INTERNAL_ERROR
    assert "no communicator" in str(pair.emulator.failures.pop())


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


def test_the_version_is_told(pair: Ranks) -> None:
    version = c_int()
    assert pair.library.ncclGetVersion(byref(version)) == 0
    assert version.value == pair.library.version == 23203
