"""The module `pynvml`, through which NVML lists cards, of the emulated ones."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from emulated_cuda.cards import Card

_UNINITIALIZED, _INVALID_ARGUMENT = 1, 2
_NO_PEERS = 1  # NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED.


class _Refused(Exception):
    """What NVML answers instead of success."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class EmulatedNvml:
    """What stands in for the module; a card is its own handle.

    Args:
        cards: The cards, in the order of their numbers.
    """

    NVMLError = _Refused

    def __init__(self, cards: Sequence[Card]) -> None:
        self._listed = cards
        self._started = 0

    @property
    def _cards(self) -> Sequence[Card]:
        if not self._started:
            raise _Refused(_UNINITIALIZED)
        return self._listed

    def nvmlInit(self) -> None:
        self._started += 1

    def nvmlShutdown(self) -> None:
        if not self._started:
            raise _Refused(_UNINITIALIZED)
        self._started -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65.06"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return len(self._cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        if index >= len(self._cards):
            raise _Refused(_INVALID_ARGUMENT)
        return self._cards[index]

    def nvmlDeviceGetName(self, card: Card) -> str:
        return self._known(card).name

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return self._known(card).uuid

    def nvmlDeviceGetPciInfo(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(domain=0, bus=self._known(card).pci_bus, device=0)

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> SimpleNamespace:
        return SimpleNamespace(total=self._known(card).memory)

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> tuple[int, int]:
        return self._known(card).compute_capability

    def nvmlDeviceGetP2PStatus(self, reader: Card, owner: Card, which: int) -> int:
        return 0 if self._known(reader).peers and self._known(owner).peers else _NO_PEERS

    def _known(self, card: Card) -> Card:
        if card not in self._cards:
            raise _Refused(_INVALID_ARGUMENT)
        return card
