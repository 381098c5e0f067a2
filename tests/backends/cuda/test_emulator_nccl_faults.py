"""The emulated NCCL fails as it is told to, and takes calls from several threads."""

import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_void_p

import numpy as np
import pytest

pytest.importorskip("cupy")
from emulated_cuda import Emulator, EmulatorError, cards
from emulated_cuda.ranks import (
    CUDA_ERROR,
    ENDS,
    INTERNAL_ERROR,
    INVALID_USAGE,
    REMOTE_ERROR,
    Ranks,
    init,
    last_error,
    numbers,
)

# ---------------------------------------------------------------------- faults that tests ask for


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
@pytest.mark.parametrize("how", ["sum", "nan"])
def test_the_last_rank_can_be_wrong(pair: Ranks, dtype: str, how: str) -> None:
    pair.library.wrong(after=2, how=how)
    right = sum(numbers(2, dtype)).tolist()
    for time in range(3):
        arrays = pair.arrays(numbers(2, dtype))
        assert pair.all_reduce(arrays) == 0
        first, last = pair.reads(arrays)
        assert first == right
        if time != 1:
            assert last == right
        elif how == "nan" and dtype.startswith("f"):
            assert np.isnan(last).all()
        else:
            assert not np.equal(last, right).any()


def test_wrong_sums_of_nothing_are_wrong(pair: Ranks) -> None:
    pair.library.wrong()
    arrays = pair.arrays([np.zeros(3, np.float32)] * 2)
    pair.all_reduce(arrays)
    assert 0 not in pair.reads(arrays)[1]
    with pytest.raises(ValueError, match="'sum' or 'nan'"):
        pair.library.wrong(how="odd")


def asynchronous(ranks: Ranks) -> list[int]:
    found = []
    for comm in ranks.comms:
        status = c_int(-1)
        assert ranks.library.ncclCommGetAsyncError(c_void_p(comm), byref(status)) == 0
        found.append(status.value)
    return found


def test_asynchronous_errors(pair: Ranks) -> None:
    pair.library.break_async(after=2)
    for expected in (0, REMOTE_ERROR):
        assert pair.all_reduce(pair.arrays(numbers(2))) == 0
        assert asynchronous(pair) == [expected] * 2
    assert pair.polls([pair.benches[0].event()]) == {600}
    pair.end("ncclCommAbort")


def test_a_call_to_come_can_be_made_to_fail(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.emulator.fail("ncclAllReduce", INTERNAL_ERROR, after=2)
    assert pair.all_reduce(arrays) == INTERNAL_ERROR
    pair.emulator.fail("ncclGroupEnd", CUDA_ERROR)
    assert pair.all_reduce(arrays) == CUDA_ERROR
    assert "ncclGroupEnd was told to fail" in last_error(pair)
    assert pair.library.log == []  # All or nothing.
    pair.emulator.fail("ncclGroupStart", CUDA_ERROR)
    assert pair.library.ncclGroupStart() == CUDA_ERROR
    assert pair.library.ncclGroupEnd() == INVALID_USAGE
    pair.emulator.fail("ncclCommInitAll", 2)
    assert pair.library.ncclCommInitAll(byref(c_void_p()), c_int(1), None) == 2
    assert pair.all_reduce(arrays) == 0


@pytest.mark.parametrize("function", ENDS[1:])
def test_communicators_end_even_where_that_fails(pair: Ranks, function: str) -> None:
    pair.emulator.fail(function, CUDA_ERROR, after=2)
    assert pair.end(function) == [0, CUDA_ERROR, CUDA_ERROR]


@pytest.mark.usefixtures("no_deadlock")
@pytest.mark.parametrize("function", ["ncclCommInitAll", "ncclGroupEnd", "ncclCommAbort"])
def test_a_blocked_call_holds_nobody_up(pair: Ranks, function: str) -> None:
    released, done = threading.Event(), threading.Event()

    def work() -> None:
        if function == "ncclCommInitAll":
            more = init(pair.emulator, [0])
            pair.library.ncclCommDestroy(c_void_p(more[0]))
        elif function == "ncclGroupEnd":
            pair.library.ncclGroupStart()
            pair.library.ncclGroupEnd()
        else:
            pair.end(function)
        done.set()

    arrays = pair.arrays(numbers(2))
    pair.library.block(function, released)
    thread = threading.Thread(target=work)
    thread.start()
    while not pair.library.calls[function]:
        pass
    assert pair.all_reduce(arrays) == 0
    assert pair.reads(arrays) == [sum(numbers(2)).tolist()] * 2
    assert not done.is_set()
    released.set()
    thread.join()


def test_calls_are_blocked_for_a_time_or_refused(pair: Ranks) -> None:
    pair.library.block("ncclGroupStart", 0.001, after=2)
    for _ in range(2):
        assert pair.all_reduce(pair.arrays(numbers(2))) == 0
    with pytest.raises(ValueError, match="no such function"):
        pair.library.block("ncclAllTogether", 1)


@pytest.mark.usefixtures("no_deadlock")
def test_an_abort_takes_back_what_another_thread_is_about_to_launch(pair: Ranks) -> None:
    released, statuses = threading.Event(), []
    arrays = pair.arrays(numbers(2))
    pair.library.block("ncclGroupEnd", released)
    thread = threading.Thread(target=lambda: statuses.append(pair.all_reduce(arrays)))
    thread.start()
    while not pair.library.calls["ncclGroupEnd"]:
        pass
    assert not any(pair.end("ncclCommAbort"))
    released.set()
    thread.join()
    assert statuses == [INTERNAL_ERROR]
    assert pair.library.log == []


# ---------------------------------------------------------------------- groups and threads


def test_a_group_launches_at_its_outermost_end(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.library.ncclGroupStart()
    assert pair.all_reduce(arrays) == 0
    assert pair.library.log == []
    assert pair.library.ncclGroupEnd() == 0
    stream = [each.ptr for each in pair.streams]
    assert pair.library.log == [("ncclAllReduce", rank, 7, 7, stream[rank]) for rank in range(2)]
    assert pair.library.calls["ncclGroupEnd"] == 2
    assert pair.library.ncclGroupEnd() == INVALID_USAGE
    assert last_error(pair) == "ncclGroupEnd: not in a group call."


def test_groups_belong_to_threads(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    pair.library.ncclGroupStart()
    threads = [
        threading.Thread(target=pair.ask, args=(rank, array, array))
        for rank, array in enumerate(arrays)
    ]
    for thread in threads:
        thread.start()
        thread.join()
    assert pair.reads(arrays) == [sum(numbers(2)).tolist()] * 2
    assert pair.library.ncclGroupEnd() == 0


def test_one_thread_asks_several_ranks_in_a_group(pair: Ranks) -> None:
    arrays = pair.arrays(numbers(2))
    assert pair.ask(0, arrays[0], arrays[0]) == 0
    assert pair.ask(1, arrays[1], arrays[1]) == INTERNAL_ERROR
    assert "in a group, or waits for ever" in str(pair.emulator.failures.pop())
    pair.end("ncclCommAbort")


def test_threads_share_a_communicator(connect: Callable[..., Ranks]) -> None:
    ranks, steps = connect(3), 20
    arrays = ranks.arrays([np.ones(4, np.float64)] * 3)

    def work(rank: int) -> None:
        for _ in range(steps):
            assert ranks.ask(rank, arrays[rank], arrays[rank]) == 0

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ranks.reads(arrays) == [[3.0**steps] * 4] * 3


def test_a_group_that_is_left_open_is_found_at_the_end() -> None:
    emulator = Emulator(cards(1))
    emulator.nccl.ncclGroupStart()
    with pytest.raises(EmulatorError, match=r"groups were started and not ended.*MainThread"):
        emulator.finish()
    emulator.failures.clear()
    assert emulator.nccl.ncclGroupEnd() == 0
    emulator.finish()
