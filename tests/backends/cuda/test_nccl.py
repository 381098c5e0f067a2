"""Sums over cards by NCCL: what is asked of the library, and what becomes of what it answers.

The emulated library is strict about groups, streams and memory, and hangs or fails when told to.
"""

import ctypes
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from logical_card import Device, N

from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.backends.cuda import nccl, nccl_settings, nvml, toolkit
from mirrored.backends.cuda.nccl import NcclCommunicator
from mirrored.backends.stream_backend import Place
from mirrored.errors import CollectiveError, DeviceUnavailableError, ResourceExhaustedError

# By NCCL's numbers of them; each is tried with some number of ranks.
SIZES = {
    "int8": 1,
    "uint8": 2,
    "int32": 3,
    "uint32": 4,
    "int64": 1,
    "uint64": 2,
    "float16": 3,
    "float32": 4,
    "float64": 1,
    "bfloat16": 2,
}
INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS = 3, 4, 5, 6, 7

Emulate = Callable[..., Any]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL has read no settings, and what is set here does not stay."""
    monkeypatch.setattr(nccl_settings, "_read", None)
    for name in (*nccl_settings.SETTINGS, MULTI_RANK):
        monkeypatch.setenv(name, "")  # So that it is put back as it was.
        monkeypatch.delenv(name)


class Connected:
    """Devices that are connected, with a stream each for sums.

    Args:
        cards: The card of each rank.
        place: Where these are among those of several processes; None: there are no others.
    """

    def __init__(self, cards: Sequence[int], place: Place | None = None) -> None:
        self.devices = [Device(card) for card in cards]
        self.ranks = [device.backend for device in self.devices]
        self.communicator = self.ranks[0].connect(self.ranks, place)
        self.streams = [rank.another() for rank in self.ranks]

    def all_reduce(self, sends: Sequence[Any], receives: Sequence[Any]) -> None:
        """Ask for a sum after the work so far, with the work from then on after it."""
        for rank, stream in zip(self.ranks, self.streams, strict=True):
            stream.wait(rank.record())
        self.communicator.all_reduce(sends, receives, self.streams)
        for rank, stream in zip(self.ranks, self.streams, strict=True):
            rank.wait(stream.record())

    def ones(self, dtype: Any = np.float32, size: int = N) -> list[Any]:
        return [device.array(np.ones(size, dtype)) for device in self.devices]

    def read(self, arrays: Sequence[Any]) -> list[Any]:
        return [device.read(array) for device, array in zip(self.devices, arrays, strict=True)]

    def sum_of_ones(self) -> None:
        """Hold that sums work."""
        arrays = self.ones()
        self.all_reduce(arrays, arrays)
        for found in self.read(arrays):
            assert set(found.tolist()) == {len(self.ranks)}


@pytest.fixture
def connect(emulated_cuda: Emulate) -> Iterator[Callable[..., Any]]:
    """Return ``connect(cards=(0, 1), **options)``: the emulator and what is connected there."""
    made = []

    def make(cards: Sequence[int] = (0, 1), **options: Any) -> Any:
        emulator = emulated_cuda(cards=max(cards) + 1, **options)
        made.append(Connected(cards))
        return emulator, made[-1]

    yield make
    for each in made:
        each.communicator.close()


# ------------------------------------------------------------------------------ sums


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(("dtype", "size"), SIZES.items(), ids=SIZES)
def test_sums(
    dtype: str, size: int, in_place: bool, seed: int, connect: Callable[..., Any]
) -> None:
    """The highest card comes first: ranks are in the order of the devices, not of the cards."""
    rng = np.random.default_rng(20)
    _, connected = connect(list(reversed(range(size))), seed=seed)
    hosts = [rng.integers(0, 5, N).astype(np.dtype(dtype)) for _ in range(size)]
    sends = [d.array(host) for d, host in zip(connected.devices, hosts, strict=True)]
    receives = sends if in_place else connected.ones(np.dtype(dtype))
    connected.all_reduce(sends, receives)
    expected = np.sum([host.astype(np.int64) for host in hosts], 0)
    for found in connected.read(receives):
        np.testing.assert_array_equal(found.astype(np.int64), expected)
    for found, host in zip(connected.read(sends), hosts, strict=True):
        np.testing.assert_array_equal(found, expected if in_place else host)


@pytest.mark.parametrize("seed", range(6))
def test_several_in_a_row(seed: int, connect: Callable[..., Any]) -> None:
    """Each waits for what computes its input, and what reads it waits for it."""
    emulator, connected = connect((0, 1, 2), seed=seed)
    arrays = [device.busy() for device in connected.devices]
    for _ in range(3):
        connected.all_reduce(arrays, arrays)
        for device, array in zip(connected.devices, arrays, strict=True):
            device.add(array, array, array)
    for found in connected.read(arrays):
        assert found.tolist() == [64 * 6**3] * N
    calls = emulator.nccl.calls
    assert (calls["ncclGroupStart"], calls["ncclGroupEnd"], calls["ncclAllReduce"]) == (3, 3, 9)


def test_each_rank_works_on_its_stream(connect: Callable[..., Any]) -> None:
    emulator, connected = connect((0, 1))
    connected.sum_of_ones()
    assert [launched.stream for launched in emulator.nccl.log] == [
        stream.stream.ptr for stream in connected.streams
    ]
    assert {rank.stream.ptr for rank in connected.ranks}.isdisjoint(
        launched.stream for launched in emulator.nccl.log
    )


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_no_elements(shape: tuple[int, ...], connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    arrays = [device.array(np.ones(shape, np.float32)) for device in connected.devices]
    connected.all_reduce(arrays, arrays)
    assert not emulator.nccl.calls["ncclGroupStart"]


Change = Callable[[Connected, list[Any], list[Any], list[Any]], object]

REFUSED: dict[str, tuple[str, Change]] = {
    "an array is missing": (r"for 2 ranks\. Received: \(1, 2, 2\)", lambda c, a, b, s: a.pop()),
    "a stream is missing": (r"Received: \(2, 2, 1\)", lambda c, a, b, s: s.pop()),
    "another size": (
        "the same dtype and size. Received: 1000 of float32, 3 of float32 elements",
        lambda c, a, b, s: a.__setitem__(0, a[0][:3]),
    ),
    "another size of the sum": (
        "the same dtype and size",
        lambda c, a, b, s: b.__setitem__(1, b[1][:3]),
    ),
    "another dtype": (
        "float32, 1000 of int32",
        lambda c, a, b, s: b.__setitem__(0, b[0].view(np.int32)),
    ),
    "a dtype that has no sum": (
        "NCCL sums int8, .*, bfloat16. Received: bool. Cast",
        lambda c, a, b, s: [
            arrays.__setitem__(i, arrays[i].view(bool)) for arrays in (a, b) for i in (0, 1)
        ],
    ),
    "no contiguous array": (
        r"contiguous. Received: an array of shape \(500,\)",
        lambda c, a, b, s: [
            arrays.__setitem__(i, arrays[i][::2]) for arrays in (a, b) for i in (0, 1)
        ],
    ),
    "a sum over a part of what is added": (
        "begin 4 bytes apart",
        lambda c, a, b, s: [
            (b.__setitem__(i, a[i][1:]), a.__setitem__(i, a[i][:-1])) for i in (0, 1)
        ],
    ),
    "what is added, over a part of the sum": (
        "begin 4 bytes apart",
        lambda c, a, b, s: [
            (a.__setitem__(i, b[i][1:]), b.__setitem__(i, b[i][:-1])) for i in (0, 1)
        ],
    ),
    "streams of the wrong cards": (
        r"0000:01:00\.0. Received: a stream on Emulated H200 at 0000:02:00\.0",
        lambda c, a, b, s: s.reverse(),
    ),
}


@pytest.mark.parametrize(("said", "change"), REFUSED.values(), ids=REFUSED)
def test_arrays_that_do_not_go_together(
    said: str, change: Change, connect: Callable[..., Any]
) -> None:
    emulator, connected = connect()
    sends, receives, streams = connected.ones(), connected.ones(), list(connected.streams)
    change(connected, sends, receives, streams)
    with pytest.raises(ValueError, match=said):
        connected.communicator.all_reduce(sends, receives, streams)
    assert not emulator.nccl.calls["ncclGroupStart"]
    connected.sum_of_ones()


# ------------------------------------------------------------------------------ errors


def test_no_connection(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    emulator.fail("ncclCommInitAll", 2)
    with pytest.raises(CollectiveError) as error:
        Connected((0, 1))
    assert str(error.value) == (
        "NCCL failed over Emulated H200 at 0000:01:00.0, Emulated H200 at 0000:02:00.0. "
        "Received: ncclCommInitAll answered ncclSystemError (2); its last message, perhaps of an "
        "earlier call, is 'ncclCommInitAll was told to fail'. Set NCCL_DEBUG=WARN to see NCCL's "
        "messages; `python -m mirrored devices` shows the versions that are used."
    )
    Connected((0, 1)).communicator.abort()


def test_no_memory_for_a_connection(emulated_cuda: Emulate) -> None:
    emulator = emulated_cuda(cards=2)
    ranks = [Device(card).backend for card in (0, 1)]
    assert all(rank.stream is not None for rank in ranks)  # They are made.
    emulator.fail("setDevice", 2)
    with pytest.raises(ResourceExhaustedError, match="too little memory left"):
        ranks[0].connect(ranks)


@pytest.mark.parametrize(
    ("function", "after"),
    [("ncclGroupStart", 1), ("ncclAllReduce", 1), ("ncclAllReduce", 2), ("ncclGroupEnd", 1)],
)
def test_a_refused_sum(function: str, after: int, connect: Callable[..., Any]) -> None:
    """No group stays open: the emulator would tell, and the next sum would hang."""
    emulator, connected = connect()
    emulator.fail(function, INVALID_USAGE, after=after)
    arrays = connected.ones()
    with pytest.raises(CollectiveError, match=rf"{function} answered ncclInvalidUsage \(5\)"):
        connected.all_reduce(arrays, arrays)
    connected.communicator.abort()
    connected.communicator = connected.ranks[0].connect(connected.ranks)
    connected.sum_of_ones()


def test_the_first_error_is_told(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    emulator.fail("ncclAllReduce", INVALID_USAGE)
    emulator.fail("ncclGroupEnd", INTERNAL_ERROR)
    arrays = connected.ones()
    with pytest.raises(CollectiveError, match="ncclAllReduce answered"):
        connected.all_reduce(arrays, arrays)
    connected.communicator.abort()


def test_an_unknown_status(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    emulator.fail("ncclGroupStart", 99)
    arrays = connected.ones()
    with pytest.raises(CollectiveError, match=r"answered an unknown status \(99\)"):
        connected.all_reduce(arrays, arrays)


def test_an_error_that_comes_later(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    connected.sum_of_ones()
    assert connected.communicator.failure() is None
    emulator.nccl.break_async(result=REMOTE_ERROR)
    arrays = connected.ones()
    connected.all_reduce(arrays, arrays)
    said = connected.communicator.failure()
    for card in ("0000:01:00.0", "0000:02:00.0"):
        assert f"{card}: ncclCommGetAsyncError answered ncclRemoteError (6)" in said
    connected.communicator.abort()
    assert connected.communicator.failure() is None


def test_a_question_that_fails(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    emulator.fail("ncclCommGetAsyncError", INTERNAL_ERROR)
    assert "ncclInternalError (3)" in connected.communicator.failure()


def test_what_goes_on_is_no_failure(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    emulator.nccl.break_async(result=IN_PROGRESS)
    arrays = connected.ones()
    connected.all_reduce(arrays, arrays)
    assert connected.communicator.failure() is None
    connected.communicator.abort()


# ------------------------------------------------------------------------------ the end


def test_an_abort(connect: Callable[..., Any]) -> None:
    """All ranks at once; and what waits for the sum goes on."""
    emulator, connected = connect()
    emulator.nccl.hang()
    arrays = connected.ones()
    connected.all_reduce(arrays, arrays)
    before = emulator.nccl.calls.copy()
    connected.communicator.abort()
    asked = emulator.nccl.calls - before
    assert asked == {"ncclGroupStart": 1, "ncclCommAbort": 2, "ncclGroupEnd": 1}
    for rank in connected.ranks:
        rank.synchronize()
    before = emulator.nccl.calls.copy()
    connected.communicator.abort()  # Again, and closing: nothing.
    connected.communicator.close()
    assert emulator.nccl.calls == before
    with pytest.raises(CollectiveError, match="not connected any more"):
        connected.all_reduce(arrays, arrays)


@pytest.mark.parametrize("function", ["ncclCommAbort", "ncclGroupEnd"])
def test_an_abort_that_fails_has_tried_all(function: str, connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    emulator.fail(function, INTERNAL_ERROR)
    with pytest.raises(CollectiveError, match=f"{function} answered ncclInternalError"):
        connected.communicator.abort()
    assert emulator.nccl.calls["ncclCommAbort"] == 2


class Asking:
    """A thread that asks for a sum, in a call that does not return.

    Args:
        connected: The devices.
        emulator: Their machine.
        function: The call.
        until: What lets it return; None: an abort.
    """

    def __init__(
        self, connected: Connected, emulator: Any, function: str, until: threading.Event | None
    ) -> None:
        self.errors: list[CollectiveError] = []
        self._connected = connected
        self._arrays = connected.ones()
        emulator.nccl.block(function, until)
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()
        while not emulator.nccl.calls[function]:
            threading.Event().wait(0.001)

    def _ask(self) -> None:
        try:
            self._connected.all_reduce(self._arrays, self._arrays)
        except CollectiveError as error:
            self.errors.append(error)


@pytest.mark.usefixtures("no_deadlock")
@pytest.mark.parametrize("function", ["ncclAllReduce", "ncclGroupEnd"])
def test_an_abort_while_a_call_does_not_return(function: str, connect: Callable[..., Any]) -> None:
    """Nothing is freed that the hanging thread may read, and that asks for nothing more."""
    emulator, connected = connect()
    asking = Asking(connected, emulator, function, None)
    connected.communicator.abort()
    asking.thread.join()
    assert len(asking.errors) == 1
    # Either both ranks were asked, or one was and then what keeps the group from taking effect.
    assert emulator.nccl.calls["ncclAllReduce"] == 2
    assert not emulator.nccl.log


@pytest.mark.usefixtures("no_deadlock")
@pytest.mark.parametrize("function", ["ncclAllReduce", "ncclGroupEnd"])
def test_an_abort_of_a_call_that_never_returns(
    function: str, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator, connected = connect()
    monkeypatch.setattr(nccl, "_LEAVES", 0.01)
    release = threading.Event()
    asking = Asking(connected, emulator, function, release)
    with pytest.raises(CollectiveError, match=r"did not return .* not freed\. End the process"):
        connected.communicator.abort()
    assert emulator.nccl.calls["ncclCommAbort"] == 2
    release.set()
    asking.thread.join()
    emulator.last_looks.clear()  # The group is open, and what it would free is left.


@pytest.mark.usefixtures("no_deadlock")
def test_an_abort_while_disconnecting_does_not_return(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator, connected = connect()
    emulator.nccl.block("ncclCommFinalize", None)
    thread = threading.Thread(target=connected.communicator.close)
    thread.start()
    while not emulator.nccl.calls["ncclCommFinalize"]:
        threading.Event().wait(0.001)
    connected.communicator.abort()
    thread.join()
    calls = emulator.nccl.calls
    assert (calls["ncclCommDestroy"], calls["ncclCommAbort"]) == (0, 2)


def test_an_abort_between_two_calls(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one would be about memory that is to be freed."""
    emulator, connected = connect()
    ask, asked, arrays = emulator.nccl.ncclAllReduce, [], connected.ones()
    thread = threading.Thread(target=connected.communicator.abort)

    def abort_after_it(*args: Any) -> int:
        asked.append(ask(*args))
        if thread.ident is None:
            thread.start()
        while emulator.nccl.calls["ncclCommAbort"] < 2:
            threading.Event().wait(0.001)
        return asked[-1]

    monkeypatch.setattr(emulator.nccl, "ncclAllReduce", abort_after_it)
    with pytest.raises(CollectiveError, match="not connected any more"):
        connected.all_reduce(arrays, arrays)
    thread.join()
    assert asked == [0, INVALID_ARGUMENT]  # The second call keeps the group from taking effect.
    assert not emulator.nccl.log


def test_an_interrupt_between_two_calls_launches_neither(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator, connected = connect()
    ask, numbers, arrays = emulator.nccl.ncclAllReduce, itertools.count(), connected.ones()

    def interrupted(*args: Any) -> int:
        if next(numbers) == 1:
            raise KeyboardInterrupt
        return int(ask(*args))

    monkeypatch.setattr(emulator.nccl, "ncclAllReduce", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connected.all_reduce(arrays, arrays)
    assert not emulator.nccl.log
    connected.sum_of_ones()
    assert [each.rank for each in emulator.nccl.log] == [0, 1]


@pytest.mark.parametrize("function", ["ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"])
def test_ctrl_c_while_a_sum_is_asked_for(
    function: str, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It acts once the group has ended: in one that stayed open the next sum would never begin."""
    emulator, connected = connect()
    connected.sum_of_ones()
    ask, arrays = getattr(emulator.nccl, function), connected.ones()

    def interrupted(*args: Any) -> int:
        answer = int(ask(*args))
        signal.raise_signal(signal.SIGINT)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(emulator.nccl, function, interrupted)
        with pytest.raises(KeyboardInterrupt):
            connected.all_reduce(arrays, arrays)
    connected.sum_of_ones()
    assert len(emulator.nccl.log) == 6  # All of it was asked for.


def test_closing(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    arrays = connected.ones()
    connected.all_reduce(arrays, arrays)
    connected.communicator.close()
    calls = emulator.nccl.calls.copy()
    assert (calls["ncclCommFinalize"], calls["ncclCommDestroy"], calls["ncclCommAbort"]) == (
        2,
        2,
        0,
    )
    connected.communicator.close()
    connected.communicator.abort()
    assert emulator.nccl.calls == calls
    assert connected.communicator.failure() is None
    for found in connected.read(arrays):
        assert set(found.tolist()) == {2}


def test_closing_what_failed(connect: Callable[..., Any]) -> None:
    emulator, connected = connect()
    emulator.fail("ncclCommFinalize", REMOTE_ERROR)
    with pytest.raises(CollectiveError, match="ncclCommFinalize answered ncclRemoteError"):
        connected.communicator.close()
    calls = emulator.nccl.calls
    assert (calls["ncclCommDestroy"], calls["ncclCommAbort"]) == (0, 2)
    connected.communicator.close()


# ------------------------------------------------------------------------------ threads


@pytest.mark.usefixtures("no_deadlock")
def test_two_threads_with_cards_in_another_order(connect: Callable[..., Any]) -> None:
    _, first = connect((0, 1))
    second = Connected((1, 0))

    def work(connected: Connected) -> None:
        for _ in range(30):
            connected.sum_of_ones()

    threads = [threading.Thread(target=work, args=(each,)) for each in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    second.communicator.close()


@pytest.mark.usefixtures("no_deadlock")
def test_the_cards_go_on_while_they_are_connected(emulated_cuda: Emulate) -> None:
    emulator, release = emulated_cuda(cards=2), threading.Event()
    devices, made = [Device(card) for card in (0, 1)], []
    ranks = [device.backend for device in devices]
    emulator.nccl.block("ncclCommInitAll", release)
    thread = threading.Thread(target=lambda: made.append(ranks[0].connect(ranks)))
    thread.start()
    while not emulator.nccl.calls["ncclCommInitAll"]:
        threading.Event().wait(0.001)
    assert [set(device.read(device.busy()).tolist()) for device in devices] == [{64}, {64}]
    release.set()
    thread.join()
    made[0].close()


# ------------------------------------------------------------------------------ who is connected


def test_cards_can_be_connected(emulated_cuda: Emulate) -> None:
    emulated_cuda(cards=3)
    first, second, third = (Device(card).backend for card in range(3))
    assert first.why_not_connected([second, third]) is None
    assert second.why_not_connected([first, second, third]) is None


def test_ranks_of_several_processes(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here one process has all of them, which it could connect without an id as well."""
    monkeypatch.setenv("EMULATED_NCCL", str(tmp_path))
    emulator = emulated_cuda(cards=2)
    emulator.fail("ncclGetUniqueId", 2)
    rank = Device().backend
    with pytest.raises(CollectiveError, match=r"(?s)id for the cards.*NCCL_SOCKET_IFNAME"):
        rank.new_key()
    connected = Connected((0, 1), Place(0, 2, rank.new_key()))
    for _ in range(2):
        connected.sum_of_ones()
    connected.communicator.close()
    assert emulator.nccl.calls["ncclCommInitAll"] == 0
    connected = Connected((0, 1), Place(0, 2, rank.new_key()))
    emulator.nccl.hang()
    arrays = connected.ones()
    connected.communicator.all_reduce(arrays, arrays, connected.streams)
    connected.communicator.abort()
    emulator.fail("ncclCommInitRank", 6)
    with pytest.raises(CollectiveError, match="ncclCommInitRank answered ncclRemoteError"):
        Connected((0, 1), Place(0, 2, rank.new_key()))


def test_a_library_that_is_too_old(emulated_cuda: Emulate) -> None:
    """Aborts of several ranks may wait for each other there."""
    emulator = emulated_cuda(cards=2)
    ranks = [Device(card).backend for card in (0, 1)]
    emulator.nccl.version = 22105
    for asked in (ranks, ranks[:1]):
        why = ranks[0].why_not_connected(asked[1:])
        assert why is not None
        assert "cannot be ended before version 2.22. Received: 2.21.5. Upgrade it: pip" in why
    with pytest.raises(DeviceUnavailableError, match=r"before version 2\.22"):
        ranks[0].connect(ranks)
    emulator.nccl.version = 22203
    assert ranks[0].why_not_connected(ranks) is None


@pytest.mark.parametrize("where", ["environment", "file"])
def test_calls_that_would_not_wait(
    where: str, emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """NCCL would answer that it goes on, and the handles would be lost."""
    emulated_cuda(cards=2)
    ranks = [Device(card).backend for card in (0, 1)]
    if where == "file":
        (tmp_path / "nccl.conf").write_text("NCCL_COMM_BLOCKING=0\n")
        monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "nccl.conf"))
    else:
        monkeypatch.setenv("NCCL_COMM_BLOCKING", "0")
    why = ranks[0].why_not_connected(ranks)
    assert why is not None
    assert "with NCCL_COMM_BLOCKING=0 its calls return before they are done." in why
    assert where in why
    with pytest.raises(DeviceUnavailableError, match="Remove it there"):
        ranks[0].connect(ranks)
    monkeypatch.setenv("NCCL_COMM_BLOCKING", "1")
    assert ranks[0].why_not_connected(ranks) is None


def test_several_devices_of_a_card(emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = emulated_cuda()
    ranks = [Device().backend for _ in range(2)]
    why = ranks[0].why_not_connected(ranks)
    assert why == (
        "NCCL cannot be used: it takes one device per card. Received: several of Emulated H200 "
        "at 0000:01:00.0. Sum the devices of one card first; for tests, "
        "MIRRORED_NCCL_MULTI_RANK=1 allows it."
    )
    with pytest.raises(DeviceUnavailableError, match="one device per card"):
        ranks[0].connect(ranks)
    monkeypatch.setenv(MULTI_RANK, "1")
    emulator.nccl.version = 22907
    assert "need version 2.30 or later, and 2.29.7 is installed" in str(
        ranks[0].why_not_connected(ranks[1:])
    )
    assert "NCCL_MAX_CTAS" not in os.environ  # Nothing was changed by asking.
    emulator.nccl.version = 23004
    assert ranks[0].why_not_connected(ranks) is None
    connected = Connected((0, 0, 0))
    connected.sum_of_ones()
    connected.communicator.close()
    assert os.environ["NCCL_MAX_CTAS"] == "2"


def test_several_devices_of_a_card_too_late(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect((0, 1))
    monkeypatch.setenv(MULTI_RANK, "1")
    ranks = [Device().backend for _ in range(2)]
    assert "did not read NCCL_MULTI_RANK_GPU_ENABLE=1, " in str(ranks[0].why_not_connected(ranks))
    with pytest.raises(DeviceUnavailableError, match="was in use before"):
        ranks[0].connect(ranks)


def test_no_nccl(emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = emulated_cuda(cards=2)
    first, second = (Device(card).backend for card in range(2))

    def missing() -> None:
        raise DeviceUnavailableError("no NCCL: a command")

    monkeypatch.setattr(nccl, "load", missing)
    assert first.why_not_connected([second]) == "no NCCL: a command"
    with pytest.raises(DeviceUnavailableError, match="no NCCL: a command"):
        first.connect([first, second])
    assert not emulator.counts["contexts"]  # CUDA was not started.


# ------------------------------------------------------------------------------ the real library

USED = (
    "ncclGetVersion",
    "ncclGetLastError",
    "ncclCommInitAll",
    "ncclCommGetAsyncError",
    "ncclGroupStart",
    "ncclGroupEnd",
    "ncclAllReduce",
    "ncclCommFinalize",
    "ncclCommDestroy",
    "ncclCommAbort",
)


@pytest.fixture
def real() -> Any:
    """The library itself."""
    if toolkit.find("nccl", 2) is None:
        pytest.skip("no NCCL is installed")
    return nccl.load()


def test_the_real_library(real: Any) -> None:
    assert nccl.version(real).startswith("2.")
    for name in USED:
        assert isinstance(getattr(real, name), ctypes._CFuncPtr)


def test_the_real_library_without_a_card(real: Any) -> None:
    if nvml.survey() != nvml.Survey():
        pytest.skip("this machine has a driver")
    device = type("Current", (nullcontext,), {"id": 0})()
    ranks: list[Any] = [
        SimpleNamespace(where=f"card {number}", memory=f"{number}", device=device)
        for number in range(2)
    ]
    with pytest.raises(
        CollectiveError,
        match=r"over card 0, card 1\. Received: ncclCommInitAll answered nccl\w+ \(\d\)",
    ):
        NcclCommunicator(real, ranks)


def test_the_version() -> None:
    def version(pointer: Any) -> int:
        pointer._obj.value = 22703
        return 0

    assert nccl.version(SimpleNamespace(ncclGetVersion=version)) == "2.27.3"


def test_dtypes_are_those_of_the_header() -> None:
    assert list(nccl._DATATYPES.items()) == [(name, i) for i, name in enumerate(SIZES)]
    assert np.dtype(ml_dtypes.bfloat16).name == "bfloat16"


def test_launches_that_wait_for_their_kernels(
    emulated_cuda: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated_cuda(cards=2)
    ranks = [Device(card).backend for card in (0, 1)]
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")
    assert ranks[0].why_not_connected(ranks) is None
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert ranks[0].why_not_connected(ranks[:1]) is None
    why = ranks[0].why_not_connected(ranks)
    assert why is not None
    assert why.startswith("NCCL cannot be used: with CUDA_LAUNCH_BLOCKING=1 each launch waits")
