"""Cards that read each other's memory, so that copies between them need not pass through the host.

Where they cannot, copies work too: the driver takes them through the host.
"""

from __future__ import annotations

from typing import Any

from mirrored._logging import logger
from mirrored.backends.cuda import nvml

_ALREADY_ON = 704  # cudaErrorPeerAccessAlreadyEnabled: CuPy, or another device of the card, did it.


def reads(reader: nvml.Card, owner: nvml.Card) -> bool:
    """Return whether a card can read the memory of another, as NVML says. It starts nothing."""
    if reader.pci_bus_id == owner.pci_bus_id:
        return True
    matrix = nvml.peer_access()
    return matrix is not None and matrix[reader.index][owner.index]


def let_read(runtime: Any, reader: int, owner: int) -> None:
    """Let a card read the memory of another from now on, where it can.

    Args:
        runtime: The functions of CUDA.
        reader: CUDA's number of the card, which is the current one.
        owner: That of the other one.
    """
    if not runtime.deviceCanAccessPeer(reader, owner):
        return
    try:
        runtime.deviceEnablePeerAccess(owner)
    except runtime.CUDARuntimeError as error:
        if error.status != _ALREADY_ON:
            # A card can have too many peers; one that is lost says so at the next call too.
            logger.info(
                "Copies from card %d to card %d pass through the host. The reason: %s",
                owner,
                reader,
                error,
            )
