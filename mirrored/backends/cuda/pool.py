"""The memory of one logical device on a card, with a hard limit, from CuPy's pool.

Nothing is taken of the card before the first array is made on the device.
"""

import threading
from typing import Any

from mirrored.backends.backend import OutOfPoolMemory
from mirrored.backends.cuda.context import CurrentCard
from mirrored.backends.cuda.faults import translated

# Without growth and without a limit: the share of the card's free memory that is taken at once. The
# rest is for contexts, libraries and other programs.
_SHARE = 0.9
# What CuPy rounds sizes up to, in bytes.
_UNIT = 512


class CudaPool:
    """What one logical device may use of its card's memory.

    It counts what CuPy reserves: arrays, rounded up to 512 bytes. Where several logical devices
    share the card, the card itself says when it is full.

    Args:
        limit: Hard limit in bytes; None for that of the card.
        growth: Whether it starts small and extends; without, the first array takes all of the
            limit, or of what is free, at once.
        card: What to call the card in messages.
    """

    def __init__(self, limit: int | None, growth: bool, card: str) -> None:
        self.limit = limit
        self._growth = growth
        self._card = card
        self._pool: Any = None
        self._device: Any = None
        self._peak = 0
        self._lock = threading.Lock()

    @property
    def current(self) -> int:
        """Bytes in use now."""
        if self._pool is None:
            return 0
        with translated(self._card), self._device:
            return self._used()

    def _used(self) -> int:
        return int(self._pool.used_bytes())  # CuPy tells of the current card alone.

    @property
    def peak(self) -> int:
        """The most bytes in use at once since the start or the last ``reset_peak``."""
        return self._peak

    def reset_peak(self) -> None:
        """Start measuring the peak again from what is in use now."""
        self._peak = self.current

    def release(self, nbytes: int) -> None:
        """Do nothing: memory goes back with the last array that uses it."""

    def close(self) -> None:
        """Give the pieces that CuPy keeps back to the card."""
        if self._pool is not None:
            with translated(self._card), self._device:
                self._pool.free_all_blocks()

    def malloc(self, cupy: Any, nbytes: int) -> Any:
        """Return memory of the current device, for the current stream.

        Raises:
            OutOfPoolMemory: The limit, or the card, does not allow it.
        """
        if self._pool is None:
            self._make(cupy)
        try:
            memory = self._pool.malloc(nbytes)
        except cupy.cuda.memory.OutOfMemoryError:
            memory = self._malloc_again(cupy, nbytes)
        self._peak = max(self._peak, self._used())
        return memory

    def _malloc_again(self, cupy: Any, nbytes: int) -> Any:
        """Return memory in the place of pieces that CuPy keeps, which count against its limit."""
        self._pool.free_all_blocks()
        try:
            return self._pool.malloc(nbytes)
        except cupy.cuda.memory.OutOfMemoryError:
            taken = self._used() + -(-nbytes // _UNIT) * _UNIT
            full = self.limit is not None and taken > self.limit
            # Below the limit it is the card that has no more, or no piece that is large enough.
            raise OutOfPoolMemory(nbytes, self if full else None) from None

    def _make(self, cupy: Any) -> None:
        with self._lock:
            if self._pool is not None:  # Another thread was first.
                return
            pool = cupy.cuda.MemoryPool()
            if self.limit is not None:
                pool.set_limit(size=self.limit)
            if not self._growth:
                self._take_all(cupy, pool)
            runtime = cupy.cuda.runtime
            self._device = CurrentCard(runtime, runtime.getDevice())
            self._pool = pool

    def _take_all(self, cupy: Any, pool: Any) -> None:
        """Let the pool reserve its memory: one block, which it cuts into smaller ones later."""
        free, _ = cupy.cuda.runtime.memGetInfo()
        wanted = int(free * _SHARE)
        if self.limit is not None:
            wanted = min(wanted, self.limit)
        try:
            pool.malloc(wanted // _UNIT * _UNIT)  # Dropped here: the pool keeps it.
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise OutOfPoolMemory(wanted, None) from error
