"""All-reduces over the emulated cards: streams that wait for each other until all have come.

One that does not go together, or that was told to, waits until its ranks are aborted.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emulated_cuda import bfloat16
from emulated_cuda.addresses import poison
from emulated_cuda.faults import EmulatorError
from emulated_cuda.queues import Queue

BFLOAT16, AVERAGE = 9, 4
# ncclDataType_t; those of 8-bit floats are not emulated.
DATATYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("i1"),
    1: np.dtype("u1"),
    2: np.dtype("i4"),
    3: np.dtype("u4"),
    4: np.dtype("i8"),
    5: np.dtype("u8"),
    6: np.dtype("f2"),
    7: np.dtype("f4"),
    8: np.dtype("f8"),
    BFLOAT16: np.dtype("u2"),
}
# ncclRedOp_t.
OPERATIONS: dict[int, np.ufunc] = {
    0: np.add,
    1: np.multiply,
    2: np.maximum,
    3: np.minimum,
    AVERAGE: np.add,
}


class Fate(NamedTuple):
    """What happens to a collective.

    Attributes:
        wrong: What the last rank gets: 'sum' for a wrong one, 'nan'; nothing for what is right.
        hangs: Whether it never completes.
        error: What its ranks have from then on as their asynchronous error.
    """

    wrong: str = ""
    hangs: bool = False
    error: int = 0


_HANGS = "it was told to hang"


class Asked(NamedTuple):
    """What all ranks have to be asked for alike."""

    elements: int
    datatype: int
    operation: int


class Span(NamedTuple):
    """Memory of one array."""

    address: int
    nbytes: int

    def overlaps(self, other: Span) -> bool:
        """Whether they share memory."""
        return self.address < other.address + other.nbytes and (
            other.address < self.address + self.nbytes
        )

    def view(self, datatype: int) -> NDArray[Any]:
        """Return it as an array of what is stored."""
        memory: Any = (ctypes.c_char * self.nbytes).from_address(self.address)
        array: NDArray[Any] = np.frombuffer(memory, DATATYPES[datatype])
        return array


@dataclass(eq=False)
class Clique:
    """Ranks that were connected with each other.

    Attributes:
        size: How many.
        open: What goes on, by its number.
        callers: The rank that each thread asked without a group.
        error: The asynchronous error.
    """

    size: int
    open: dict[int, AllReduce] = field(default_factory=dict)
    callers: dict[Thread, int] = field(default_factory=dict)
    error: int = 0

    @property
    def ranks(self) -> list[int]:
        """Those of this process."""
        return list(range(self.size))

    def all_reduce(self, number: int, fate: Fate) -> AllReduce:
        """Return an all-reduce of these ranks."""
        return AllReduce(self, number, fate)

    def take_back(self, rank: int) -> None:
        """Let others have nothing more of a rank that was aborted; here they see that it was."""


@dataclass(eq=False)
class Rank:
    """What a communicator's handle stands for.

    Attributes:
        clique: Those that it is connected with, and itself.
        number: Its place among them.
        card: The number of its card.
        asked: How many collectives it was asked for.
        pending: What of those is not done.
        aborted: Whether it was aborted; what it has still to do then ends at once.
        finalized: Whether it takes no more.
        gone: What ended it, an empty string while nothing has.
    """

    clique: Clique
    number: int
    card: int
    asked: int = 0
    pending: set[Part] = field(default_factory=set)
    aborted: bool = False
    finalized: bool = False
    gone: str = ""


@dataclass(eq=False)
class Part:
    """What one rank does in an all-reduce: an action of its stream."""

    rank: Rank
    queue: Queue
    send: Span
    receive: Span
    asked: Asked
    whole: AllReduce | None = None

    @property
    def label(self) -> str:
        """What it is, and what it waits for."""
        why = self.whole.why_not() if self.whole is not None else ""
        return f"all-reduce of rank {self.rank.number}" + (f" ({why})" if why else "")

    def ready(self) -> bool:
        """Whether all have come, or nobody waits any more."""
        return self.rank.aborted or (self.whole is not None and not self.whole.why_not())

    def step(self) -> bool:
        """Do all of it, with those of the other ranks."""
        if self.rank.aborted:
            poison(*self.receive)
        elif self.whole is not None:
            self.whole.run()
        self.rank.pending.discard(self)
        return True

    def read(self) -> NDArray[Any]:
        """Return what it adds, in the dtype that is computed in."""
        array = self.send.view(self.asked.datatype)
        if self.asked.datatype == BFLOAT16:
            return bfloat16.widened(array)
        return array.astype(np.float32) if array.dtype == np.float16 else array.copy()

    def write(self, result: NDArray[Any]) -> None:
        """Write the result."""
        narrow = self.asked.datatype == BFLOAT16
        self.receive.view(self.asked.datatype)[...] = bfloat16.rounded(result) if narrow else result


class AllReduce:
    """One all-reduce of all ranks of a clique.

    Args:
        clique: The ranks.
        number: How many the clique was asked for before.
        fate: What happens to it.

    Attributes:
        parts: What each rank does in it, by its number.
        done: Whether the results are there.
    """

    def __init__(self, clique: Clique, number: int, fate: Fate) -> None:
        self.parts: dict[int, Part] = {}
        self.done = False
        self._clique = clique
        self._number = number
        self._fate = fate

    def why_not(self) -> str:
        """Return why it cannot go on now, an empty string where it can, or where it is done."""
        return next(iter(self._reasons()), "")

    @property
    def only_hangs(self) -> bool:
        """Whether nothing keeps it but that it was told to hang: all before it is done."""
        return self._reasons() == [_HANGS]

    def _reasons(self) -> list[str]:
        if self.done:
            return []
        parts = list(self.parts.values())
        missing = [rank for rank in self._clique.ranks if rank not in self.parts]
        apart = [part.rank.number for part in parts if part.rank.aborted]
        late = [part.rank.number for part in parts if not _is_next(part)]
        reasons = (
            (_HANGS, self._fate.hangs),
            (f"ranks {missing} were not asked", missing),
            ("ranks were asked for different ones", len({part.asked for part in parts}) > 1),
            (f"ranks {apart} were aborted", apart),
            ("the one before is not done", self._number - 1 in self._clique.open),
            (f"the streams of ranks {late} have not come to it", late),
        )
        return [why for why, holds in reasons if holds]

    def add(self, part: Part) -> None:
        """Take in what one rank does.

        Raises:
            EmulatorError: It writes where another rank reads or writes.
        """
        for other in self.parts.values():
            if part.receive.overlaps(other.receive) or (
                part.receive.overlaps(other.send) or other.receive.overlaps(part.send)
            ):
                raise EmulatorError(
                    f"NCCL: ranks {other.rank.number} and {part.rank.number} of an all-reduce use "
                    "the same memory."
                )
        self.parts[part.rank.number] = part
        part.whole = self

    def run(self) -> None:
        """Compute all results, unless they are there."""
        if self.done:
            return
        self.done = True
        del self._clique.open[self._number]
        with np.errstate(all="ignore"):
            result = self._reduced()
            for rank, part in self.parts.items():
                last = rank == self._clique.size - 1
                part.write(_another(result) if last and self._fate.wrong else result)
                if last and self._fate.wrong == "nan":
                    poison(*part.receive)

    def _reduced(self) -> NDArray[Any]:
        operation = next(iter(self.parts.values())).asked.operation
        arrays = self._arrays()
        result: NDArray[Any] = functools.reduce(OPERATIONS[operation], arrays)
        return (result / len(arrays)).astype(result.dtype) if operation == AVERAGE else result

    def _arrays(self) -> list[NDArray[Any]]:
        """Return what each rank adds."""
        return [self.parts[rank].read() for rank in range(self._clique.size)]


def _is_next(part: Part) -> bool:
    return bool(part.queue.actions) and part.queue.actions[0] is part


def _another(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of which each is another one."""
    if numbers.dtype.kind in "iu":
        return numbers ^ 1
    return np.where(numbers == 0, numbers.dtype.type(1), -numbers)
