"""The memory of a logical device on a card: CuPy's pool with a hard limit, and copies to the host.

Nothing is taken of the card before the first array is made on the device. Copies from the host go
through pinned memory. Where cards cannot read each other's memory copies work too: the driver takes
them through the host.
"""

import threading
from collections import deque
from typing import Any, Protocol

from numpy.typing import NDArray

from mirrored._logging import logger
from mirrored.backends.backend import OutOfPoolMemory
from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.current_card import CurrentCard, translated

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


_ALREADY_ON = 704  # cudaErrorPeerAccessAlreadyEnabled: CuPy, or another device of the card, did it.


# Bytes of copies from the host that may be under way at a time; pinned memory is dear.
_MOST_STAGED = 64 << 20


class Copying(Protocol):
    """What copies ask of a backend."""

    @property
    def lock(self) -> threading.RLock:
        """Held while the card is asked for work."""

    def is_done(self, event: Any) -> bool:
        """Return whether the device has come to an event."""

    def wait_on_host(self, event: Any) -> None:
        """Let the host wait for an event."""


class PinnedCopies:
    """Host memory of a device's copies that are under way, kept until the events behind them."""

    def __init__(self) -> None:
        self._staged: deque[tuple[Any, NDArray[Any]]] = deque()

    def keep(self, event: Any, memory: NDArray[Any]) -> None:
        """Keep memory until an event."""
        self._staged.append((event, memory))

    def make_room(self, backend: Copying) -> None:
        """Forget copies that are done, and wait for some where too much is under way."""
        staged = self._staged
        while True:
            with backend.lock:
                if not staged or not (backend.is_done(staged[0][0]) or self._is_too_much()):
                    return
                first = staged.popleft()
            try:
                backend.wait_on_host(first[0])  # Without the lock, as all waits.
            except BaseException:
                staged.appendleft(first)  # The copy may still read it.
                raise

    def _is_too_much(self) -> bool:
        return sum(memory.nbytes for _, memory in self._staged) > _MOST_STAGED


def reads(reader: nvml.Card, owner: nvml.Card) -> bool:
    """Return whether a card can read the memory of another, as NVML says. It starts nothing."""
    if reader.pci_bus_id == owner.pci_bus_id:
        return True
    matrix = nvml.peer_access()
    return matrix is not None and matrix[reader.index][owner.index]


def let_read(runtime: Any, reader: int, owner: int) -> None:
    """Let the current card read the memory of another from now on, where it can."""
    if not runtime.deviceCanAccessPeer(reader, owner):
        return
    try:
        runtime.deviceEnablePeerAccess(owner)
    except runtime.CUDARuntimeError as error:
        if error.status != _ALREADY_ON:
            # A card can have too many peers; one that is lost says so at the next call too.
            logger.debug(
                "Copies from card %d to card %d pass through the host. The reason: %s",
                owner,
                reader,
                str(error),  # Whoever keeps the log keeps nothing of what the error holds.
            )


def check_alike(source: Any, target: Any) -> None:
    """Raise ValueError unless two arrays are of one shape and dtype."""
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ValueError(
            "A copy needs arrays of the same shape and dtype. Received: "
            f"{source.dtype.name}{source.shape} for {target.dtype.name}{target.shape}."
        )
