"""Short ways to use the emulated NCCL, for its tests.

Arguments are given as the real library takes them, so that a test can change any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

import numpy as np

from emulated_cuda import Emulator
from emulated_cuda.bench import Bench

DTYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
}
BFLOAT16 = 9
SUM, PROD, MAX, MIN, AVG = range(5)
CUDA_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR = 1, 3, 4, 5, 6
ENDS = ("ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort")


class Ranks:
    """Connected cards, a bench on each.

    Args:
        emulator: The machine.
        devices: The card of each rank; None: all of them.
    """

    def __init__(self, emulator: Emulator, devices: Sequence[int] | None = None) -> None:
        self.emulator = emulator
        self.library: Any = emulator.nccl
        numbers = range(len(emulator.cards)) if devices is None else devices
        self.benches = [Bench(emulator, number) for number in numbers]
        self.comms = init(emulator, numbers)

    @property
    def streams(self) -> list[Any]:
        return [bench.stream for bench in self.benches]

    def arrays(self, host: Sequence[Any]) -> list[Any]:
        return [bench.array(each) for bench, each in zip(self.benches, host, strict=True)]

    def like(self, arrays: Sequence[Any]) -> list[Any]:
        pairs = zip(self.benches, arrays, strict=True)
        return [bench.empty(each.shape, each.dtype) for bench, each in pairs]

    def ask(self, rank: int, send: Any, receive: Any, /, **change: Any) -> int:
        """Ask one rank for an all-reduce, or for what a change makes of it."""
        asked = {
            "send": send.data.ptr,
            "receive": receive.data.ptr,
            "count": send.size,
            "datatype": DTYPES.get(send.dtype.name),
            "operation": SUM,
            "comm": self.comms[rank],
            "stream": self.streams[rank].ptr,
        } | change
        status = self.library.ncclAllReduce(
            c_void_p(asked["send"]),
            c_void_p(asked["receive"]),
            c_size_t(asked["count"]),
            c_int(asked["datatype"]),
            c_int(asked["operation"]),
            c_void_p(asked["comm"]),
            c_void_p(asked["stream"]),
        )
        return int(status)

    def all_reduce(self, sends: Any, receives: Any = None, order: Any = None, **change: Any) -> int:
        """Ask all ranks, or those of an order, in a group."""
        receives = sends if receives is None else receives
        self.library.ncclGroupStart()
        for rank in range(len(self.comms)) if order is None else order:
            self.ask(rank, sends[rank], receives[rank], **change)
        return int(self.library.ncclGroupEnd())

    def reads(self, arrays: Sequence[Any]) -> list[Any]:
        pairs = zip(self.benches, arrays, strict=True)
        return [bench.read(array).tolist() for bench, array in pairs]

    def polls(self, events: Sequence[Any], times: int = 60) -> set[int]:
        """Return what the last of some polls of events gave."""
        query = self.benches[0].runtime.eventQuery
        for _ in range(times):
            last = {query(event.ptr) for event in events}
        return last

    def end(self, function: str = "ncclCommDestroy") -> list[int]:
        """End all communicators in one group, or finalize them; return the statuses."""
        self.library.ncclGroupStart()
        statuses = [getattr(self.library, function)(c_void_p(comm)) for comm in self.comms]
        if function != "ncclCommFinalize":
            self.comms = []
        return [*statuses, self.library.ncclGroupEnd()]


def init(emulator: Emulator, numbers: Sequence[int]) -> list[int]:
    """Return the handles of connected cards."""
    library: Any = emulator.nccl
    made, listed = (c_void_p * len(numbers))(), (c_int * len(numbers))(*numbers)
    assert library.ncclCommInitAll(byref(made), c_int(len(numbers)), byref(listed)) == 0
    return [handle or 0 for handle in made]


def connecting(install: Callable[..., Emulator]) -> Iterator[Callable[..., Ranks]]:
    """Yield ``connect(size, devices=None, seed=0)``, which connects as many cards.

    Afterwards they are disconnected, unless they were, and all that was asked for has to be done.
    """
    made = []

    def connect(size: int, devices: Sequence[int] | None = None, seed: int = 0) -> Ranks:
        made.append(Ranks(install(cards=size, seed=seed), devices))
        return made[-1]

    yield connect
    for ranks in made:
        if ranks.comms:
            for stream in ranks.streams:
                stream.synchronize()
            assert not any(ranks.end())


def text(function: Any, argument: Any) -> str:
    """Return what a function that gives text gives."""
    function.restype = c_char_p
    return str(function(argument).decode())


def last_error(ranks: Ranks) -> str:
    """Return what NCCL says of its last error."""
    return text(ranks.library.ncclGetLastError, c_void_p())


def numbers(size: int, dtype: str = "float32") -> list[Any]:
    """Return as many arrays of small numbers, of which every sum is exact."""
    rng = np.random.default_rng(size)
    return [rng.integers(0, 9, 7).astype(dtype) for _ in range(size)]
