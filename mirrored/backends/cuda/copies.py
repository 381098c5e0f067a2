"""Copies between a card and the host, through pinned memory, and between cards.

Where cards cannot read each other's memory copies work too: the driver takes them through the host.
"""

import threading
from collections import deque
from typing import Any, Protocol

from numpy.typing import NDArray

from mirrored._logging import logger
from mirrored.backends.cuda import nvml

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
            "A copy is between arrays of one shape and dtype. Received: "
            f"{source.dtype.name}{source.shape} for {target.dtype.name}{target.shape}."
        )
