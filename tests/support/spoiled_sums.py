"""Scripted devices whose sums are changed on the way, element by element.

A script says which all-reduces go wrong; here a test says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scripted_communicator import Script, ScriptedBackend

# Changes, in its place, what a rank gets: called with the numbers of the all-reduce and the rank.
Spoil = Callable[[int, int, np.ndarray], None]


def spoiled_backends(
    count: int, spoil: Spoil = lambda number, rank, total: None, script: Script | None = None
) -> list[ScriptedBackend]:
    """Return devices whose sums are spoiled; for the rest they follow the script."""
    script = script or Script()
    return [_SpoiledBackend(script, f"card {number}", spoil) for number in range(count)]


class _SpoiledBackend(ScriptedBackend):
    def __init__(self, script: Script, memory: str, spoil: Spoil) -> None:
        super().__init__(script, memory)
        self._spoil = spoil

    def connect(self, ranks: Sequence[ScriptedBackend]) -> Any:
        return _Spoiling(super().connect(ranks), self._spoil)


class _Spoiling:
    """A communicator that spoils each sum behind its all-reduce."""

    def __init__(self, communicator: Any, spoil: Spoil) -> None:
        self._communicator = communicator
        self._spoil = spoil
        self._number = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._communicator, name)

    def all_reduce(
        self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[ScriptedBackend]
    ) -> None:
        self._communicator.all_reduce(sends, receives, streams)
        for rank, (stream, receive) in enumerate(zip(streams, receives, strict=True)):
            stream.run(self._spoil, self._number, rank, receive)
        self._number += 1
