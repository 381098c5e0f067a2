"""Keeps recorded functions by what they were recorded for, and no more of them than is sensible.

A loop that makes a new kind of call every time would record for ever, so it is told so.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from mirrored._logging import logger
from mirrored.devices import hold_devices
from mirrored.program.arrays import Arenas

Recording = TypeVar("Recording")

_MOST = 64
_WARN_AT = 16


class Recordings(Generic[Recording]):
    """Recordings by key; the one that was used longest ago goes when there are too many.

    Args:
        what: What messages call the function that is recorded.
        most: How many are kept.

    Attributes:
        arenas: Memory for programs of recordings that do not run at the same time.
        lock: Held by who runs such a program.
    """

    def __init__(self, what: str, most: int = _MOST) -> None:
        """Begin with none."""
        self._what = what
        self._most = most
        self._kept: OrderedDict[Hashable, Recording] = OrderedDict()
        self._made = 0
        self._holders = 0
        # One at a time records, and runs what shares the arenas.
        self.lock = threading.RLock()
        self.arenas = Arenas()
        hold_devices(self)

    def __reduce__(self) -> Any:
        return Recordings, (self._what, self._most)  # What is recorded does not travel.

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def __iter__(self) -> Iterator[Recording]:
        """Return an iterator over those that are kept."""
        return iter(self._kept.values())

    def get(
        self,
        key: Hashable,
        make: Callable[[], Recording],
        *,
        is_current: Callable[[Recording], bool],
    ) -> Recording:
        """Return the recording for a key, made where there is none that still fits.

        Args:
            key: What it is recorded for.
            make: Records it.
            is_current: Whether a recording that is kept still fits.
        """
        known = self.find(key, is_current=is_current)
        return self.keep(key, make()) if known is None else known

    def find(self, key: Hashable, *, is_current: Callable[[Recording], bool]) -> Recording | None:
        """Return the recording for a key, where there is one that still fits.

        Args:
            key: What it was recorded for.
            is_current: Whether a recording that is kept still fits.
        """
        known = self._kept.get(key)
        if known is None or not is_current(known):
            return None
        self._kept.move_to_end(key)
        return known

    def keep(self, key: Hashable, made: Recording) -> Recording:
        """Keep a recording, and return it.

        Args:
            key: What it was recorded for.
            made: The recording.
        """
        known = self._kept.get(key)
        self._kept[key] = made
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        self._made += known is None
        if self._made == _WARN_AT:
            logger.warning(
                "%s has been recorded for %d different kinds of calls, which takes time and "
                "memory for each. Received: calls whose shapes, dtypes or Python arguments keep "
                "changing. Pad batches to one size, and pass numbers that change as tensors.",
                self._what,
                self._made,
            )
        return made

    @contextmanager
    def memory(self, let_go: Callable[[Recording], None]) -> Iterator[None]:
        """Within this context let programs keep the memory that they take of the arenas.

        Args:
            let_go: Called with each recording once the memory is given back, by the last holder.
        """
        with self.lock:
            self._holders += 1
        try:
            yield
        finally:
            with self.lock:
                self._holders -= 1
                if not self._holders:
                    for each in self:
                        let_go(each)
                    self.arenas.give_back()

    def lose_devices(self) -> None:
        """Forget all: they are bound to memory of devices that are about to go."""
        self.clear()

    def clear(self) -> None:
        """Forget all, and give their memory back."""
        self._kept.clear()
        self._made = 0
        self.arenas.clear()
