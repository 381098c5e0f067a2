"""Ranks of the emulated NCCL in several processes, which send each other files of a folder.

The environment variable EMULATED_NCCL names the folder, in which each set of ranks has one of its
own, by its unique id. The cards of a process go on while its host waits for others, as real ones.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulated_cuda.collectives import AllReduce, Clique, Fate, Rank
from emulated_cuda.machine import Machine

FOLDER = "EMULATED_NCCL"
ID_BYTES = 128
_OFTEN = 0.001


def new_id() -> bytes:
    """Return an id that no others have."""
    return os.urandom(16).hex().encode().ljust(ID_BYTES, b"\0")


class SharedClique(Clique):
    """Ranks of several processes that were connected with each other.

    Args:
        size: How many.
        key: Their id.
    """

    def __init__(self, size: int, key: bytes) -> None:
        super().__init__(size)
        self.own: set[int] = set()
        self.folder = Path(os.environ[FOLDER], key.rstrip(b"\0").decode())
        self.folder.mkdir(exist_ok=True)

    def send(self, what: str, rank: int, value: Any) -> None:
        """Send something to all others."""
        part = self.folder / f"part.{what}.{rank}"
        part.write_bytes(pickle.dumps(value))
        part.rename(self.folder / f"{what}.{rank}")

    def received(self, what: str) -> list[Any]:
        """Return what all ranks have sent, by rank; nothing: some have not."""
        paths = [self.folder / f"{what}.{rank}" for rank in range(self.size)]
        try:
            return [pickle.loads(path.read_bytes()) for path in paths if path.stat()]
        except FileNotFoundError:
            return []

    def take_back(self, rank: int) -> None:
        """Take back what others have not had of a rank that was aborted: they wait for ever."""
        for number in self.open:
            (self.folder / f"sum{number}.{rank}").unlink(missing_ok=True)

    def meet(self) -> None:
        """Return when all ranks have come, as the real library connects them."""
        for rank in self.own:
            self.send("here", rank, "here")
        while not self.received("here"):
            time.sleep(_OFTEN)

    def all_reduce(self, number: int, fate: Fate) -> AllReduce:
        """Return an all-reduce of these ranks."""
        return SharedAllReduce(self, number, fate)

    @property
    def ranks(self) -> list[int]:
        """Those of this process."""
        return sorted(self.own)


class SharedAllReduce(AllReduce):
    """One all-reduce, of which this process has some ranks."""

    _clique: SharedClique
    _is_sent = False
    _found: Sequence[Any] = ()

    def _reasons(self) -> list[str]:
        reasons = super()._reasons()
        if reasons or self.done:
            return reasons
        if not self._is_sent:
            self._is_sent = True
            for rank, part in self.parts.items():
                self._clique.send(f"sum{self._number}", rank, (tuple(part.asked), part.read()))
        self._found = self._found or self._clique.received(f"sum{self._number}")
        if not self._found:
            return ["other processes have not come to it"]
        asked = {asked for asked, _ in self._found}
        return ["processes were asked for different ones"] if len(asked) > 1 else []

    def _arrays(self) -> list[Any]:
        for rank in self._clique.own:  # Who has sent this one has read the one before.
            (self._clique.folder / f"sum{self._number - 1}.{rank}").unlink(missing_ok=True)
        return [array for _, array in self._found]


def keep_going(machine: Machine, ranks: Sequence[Rank]) -> None:
    """Let the cards work from now on, whatever the host does, until all of some ranks are gone."""

    def go_on() -> None:
        while not all(rank.gone for rank in ranks):
            with machine.lock:
                machine.scheduler.progress()
            time.sleep(_OFTEN)

    threading.Thread(target=go_on, name="emulated-cards", daemon=True).start()
