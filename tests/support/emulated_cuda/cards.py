"""The cards that the emulator pretends to have.

CuPy and NVML are told of the same ones, each in its own way.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One card, as `nvidia-smi` would list it.

    Args:
        name: What its maker calls it.
        memory: Bytes, all of them free at the start.
        compute_capability: Major and minor.
        pci_bus: The number of the bus; it tells cards apart, and orders them.
        peers: Whether other cards may be let into its memory.
    """

    name: str = "Emulated H200"
    memory: int = 1 << 30
    compute_capability: tuple[int, int] = (9, 0)
    pci_bus: int = 1
    peers: bool = True

    @property
    def pci_bus_id(self) -> str:
        """Domain, bus, device and function, as CUDA writes them."""
        return f"0000:{self.pci_bus:02X}:00.0"

    @property
    def uuid(self) -> str:
        """What tells this card from all others, as NVML writes it."""
        return f"GPU-00000000-0000-0000-0000-{self.pci_bus:012x}"


def cards(count: int, memory: int = 1 << 30) -> list[Card]:
    """Return so many alike cards of so many bytes each."""
    return [Card(memory=memory, pci_bus=1 + number) for number in range(count)]
