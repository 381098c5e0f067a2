"""Communicators of the emulated NCCL: how they are made, and the ways in which they end.

Whoever uses one that has ended, or leaves one behind, is told; the real library would crash, or
keep the card's memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from ctypes import c_int, c_void_p
from typing import NamedTuple

from emulated_cuda.collectives import Clique, Rank
from emulated_cuda.faults import EmulatorError
from emulated_cuda.foreign import write
from emulated_cuda.machine import Machine
from emulated_cuda.processes import SharedClique, keep_going

OK, CUDA_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR = 0, 1, 3, 4, 5, 6
IN_PROGRESS = 7
_VERSION = 23203
_MULTI_RANK, _MULTI_RANK_VERSION = "NCCL_MULTI_RANK_GPU_ENABLE", 23000


class Joining(NamedTuple):
    """A rank that is to be connected with those of other processes: `ncclCommInitRank`."""

    to: int
    count: int
    key: bytes
    number: int
    card: int


class Communicators:
    """All communicators, by their handles.

    Args:
        machine: The machine.
        say: Notes the text of an error, and returns the status that it came with.

    Attributes:
        version: The library's, as in 23203.
        flagged: Set once all ranks of a clique were told to leave what they have left to do.
    """

    def __init__(self, machine: Machine, say: Callable[[str, int], int]) -> None:
        self.version = _VERSION
        self._machine = machine
        self._say = say
        self._ranks: dict[int, Rank] = {}
        self._multi_rank: bool | None = None
        self.flagged = threading.Event()

    def left(self) -> list[str]:
        """Describe those that were never ended."""
        ranks = [rank for rank in self._ranks.values() if not rank.gone]
        return [f"rank {rank.number} on card {rank.card}" for rank in ranks]

    def hang(self) -> bool:
        """Whether a collective of theirs hangs by now, and not only one before it is to be done."""
        cliques = [rank.clique for rank in list(self._ranks.values()) if not rank.gone]
        return any(each.only_hangs for clique in cliques for each in list(clique.open.values()))

    def rank(self, comm: int) -> Rank:
        """Return what a handle stands for.

        Raises:
            EmulatorError: There is no such communicator, or not any more.
        """
        rank = self._ranks.get(comm)
        if rank is None:
            raise EmulatorError(f"NCCL: {comm:#x} is no communicator.")
        if rank.gone:
            raise EmulatorError(f"NCCL: a communicator was used that was {rank.gone}.")
        return rank

    def about(self, what: Callable[[Rank], int]) -> Callable[..., int]:
        """Return a function that tells something of a communicator."""

        def tell(comm: int | None, to: int | None) -> int:
            if not comm or not to:
                return self._say("A communicator's number : argument is NULL", INVALID_ARGUMENT)
            write(to, c_int(what(self.rank(comm))))
            return OK

        return tell

    def make(self, to: int | None, count: int, devices: int | None) -> int:
        """Write a handle for each card to an array: `ncclCommInitAll`."""
        machine = self._machine
        machine.raise_if_lost(machine.current.device)
        if not to:
            return self._say("CommInitAll : comms argument is NULL", INVALID_ARGUMENT)
        if count < 1:
            return self._say(f"Invalid device count requested : {count}", INVALID_ARGUMENT)
        given = (c_int * count).from_address(devices) if devices else range(count)
        cards = list(given)
        for card in cards:
            if not 0 <= card < len(machine.cards):
                wrong = f"Invalid device {card} (totalnDev={len(machine.cards)})"
                return self._say(wrong, INVALID_ARGUMENT)
        if len(set(cards)) < len(cards) and not self._shared_cards():
            return self._say(_duplicate(cards), INVALID_USAGE)
        machine.unsafe()
        for card in cards:
            machine.raise_if_lost(machine.use(card))
        clique = Clique(count)
        handles = [machine.handle() + (1 << 40) for _ in cards]  # They do not fit an int.
        for number, (handle, card) in enumerate(zip(handles, cards, strict=True)):
            self._ranks[handle] = Rank(clique, number, card)
        if os.environ.get("NCCL_COMM_BLOCKING") == "0":  # Who takes it for an error has no handles.
            return IN_PROGRESS
        write(to, (c_void_p * count)(*handles))
        return OK

    def join(self, joining: list[Joining]) -> SharedClique:
        """Write a handle for each rank of this process that joins those of others."""
        machine = self._machine
        clique, ranks = SharedClique(joining[0].count, joining[0].key), []
        for each in joining:
            machine.raise_if_lost(machine.use(each.card))
            handle = machine.handle() + (1 << 40)
            clique.own.add(each.number)
            ranks.append(Rank(clique, each.number, each.card))
            self._ranks[handle] = ranks[-1]
            write(each.to, c_void_p(handle))
        keep_going(machine, ranks)
        return clique

    def finalize(self, comm: int | None) -> int:
        """Wait for all that one was asked for."""
        if not comm:
            return OK
        rank = self.rank(comm)
        if rank.finalized:
            return INVALID_ARGUMENT
        rank.finalized = True
        self._machine.run_until(lambda: not rank.pending)
        return OK

    def destroy(self, comm: int | None) -> int:
        """End one that has nothing left to do."""
        if not comm:
            return OK
        rank = self.rank(comm)
        if rank.pending:
            raise EmulatorError("NCCL: a communicator was destroyed while its work goes on.")
        self._machine.unsafe()
        rank.gone = "destroyed"
        self._machine.raise_if_lost(rank.card)
        return OK

    def flag(self, comm: int | None) -> Rank | None:
        """Tell one to leave all that it has left to do; `free` ends it."""
        if not comm:
            return None
        rank = self.rank(comm)
        if rank.aborted:
            raise EmulatorError("NCCL: a communicator was aborted twice.")
        rank.aborted = True
        rank.clique.take_back(rank.number)
        if all(each.aborted for each in self._ranks.values() if each.clique is rank.clique):
            self.flagged.set()
        return rank

    def free(self, rank: Rank) -> None:
        """End one that was told to leave all."""
        rank.gone = "aborted"
        self._machine.raise_if_lost(rank.card)

    def _shared_cards(self) -> bool:
        if self._multi_rank is None:  # It looks once in a process.
            self._multi_rank = os.environ.get(_MULTI_RANK) == "1"
        return self._multi_rank and self.version >= _MULTI_RANK_VERSION


def _duplicate(cards: list[int]) -> str:
    second = next(place for place, card in enumerate(cards) if card in cards[:place])
    card = cards[second]
    return (
        f"Duplicate GPU detected : rank {cards.index(card)} and rank {second} both on CUDA device "
        f"{card}"
    )
