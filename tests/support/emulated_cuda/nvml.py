"""NVML, the library that lists cards, of the emulated ones.

It writes through pointers and returns statuses, as the one in C does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_char, c_int, c_uint, c_ulonglong, c_void_p

from emulated_cuda.cards import Card
from emulated_cuda.foreign import Library, write, write_text

_UNINITIALIZED, _INVALID_ARGUMENT, _INSUFFICIENT_SIZE = 1, 2, 7
_NO_PEERS = 1  # NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED.
_HANDLE = 0x7F0000000000  # Of the first card; it does not fit an int.
_DRIVER, _CUDA = "580.65.06", 13000


class _Pci(ctypes.Structure):
    _fields_ = (
        ("bus_id_legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("device_id", c_uint),
        ("subsystem_id", c_uint),
        ("bus_id", c_char * 32),
    )


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class _Nvml:
    """The library's state."""

    def __init__(self, cards: Sequence[Card]) -> None:
        self._cards = cards
        self._initialized = 0

    def init(self) -> int:
        self._initialized += 1
        return 0

    def shutdown(self) -> int:
        if not self._initialized:
            return _UNINITIALIZED
        self._initialized -= 1
        return 0

    def plain(self, write_it: Callable[..., int]) -> Callable[..., int]:
        """Return a function of the library."""

        def call(*args: int) -> int:
            return write_it(*args) if self._initialized else _UNINITIALIZED

        return call

    def of_card(self, write_it: Callable[..., int]) -> Callable[..., int]:
        """Return a function of a card, which is given for its handle."""

        def call(handle: int | None, *args: int) -> int:
            if not self._initialized:
                return _UNINITIALIZED
            number = (handle or 0) - _HANDLE
            if not 0 <= number < len(self._cards):
                return _INVALID_ARGUMENT
            return write_it(self._cards[number], *args)

        return call

    def count(self, to: int) -> int:
        write(to, c_uint(len(self._cards)))
        return 0

    def by_index(self, number: int, to: int) -> int:
        if number >= len(self._cards):
            return _INVALID_ARGUMENT
        write(to, c_void_p(_HANDLE + number))
        return 0


def _text(pointer: int, length: int, text: str) -> int:
    return 0 if write_text(pointer, length, text) else _INSUFFICIENT_SIZE


def _pci(card: Card, to: int) -> int:
    identifier = f"0000{card.pci_bus_id}".encode()
    write(to, _Pci(card.pci_bus_id.encode(), 0, card.pci_bus, 0, 0, 0, identifier))
    return 0


def _memory(card: Card, to: int) -> int:
    write(to, _Memory(card.memory, card.memory, 0))
    return 0


def _capability(card: Card, major: int, minor: int) -> int:
    for to, value in zip((major, minor), card.compute_capability, strict=True):
        write(to, c_int(value))
    return 0


def _cuda_version(to: int) -> int:
    write(to, c_int(_CUDA))
    return 0


def _peers(cards: Sequence[Card], handles: tuple[int, int], to: int) -> int:
    reader, owner = (cards[handle - _HANDLE] for handle in handles)
    write(to, c_int(0 if reader.peers and owner.peers else _NO_PEERS))
    return 0


def emulated_nvml(cards: Sequence[Card]) -> Library:
    """Return the library for these cards."""
    nvml = _Nvml(cards)
    text = [c_void_p, c_uint]
    return Library(
        {
            "nvmlInit_v2": ([], nvml.init),
            "nvmlShutdown": ([], nvml.shutdown),
            "nvmlSystemGetDriverVersion": (
                text,
                nvml.plain(lambda to, length: _text(to, length, _DRIVER)),
            ),
            "nvmlSystemGetCudaDriverVersion_v2": ([c_void_p], nvml.plain(_cuda_version)),
            "nvmlDeviceGetCount_v2": ([c_void_p], nvml.plain(nvml.count)),
            "nvmlDeviceGetHandleByIndex_v2": ([c_uint, c_void_p], nvml.plain(nvml.by_index)),
            "nvmlDeviceGetName": (
                [c_void_p, *text],
                nvml.of_card(lambda card, to, length: _text(to, length, card.name)),
            ),
            "nvmlDeviceGetUUID": (
                [c_void_p, *text],
                nvml.of_card(lambda card, to, length: _text(to, length, card.uuid)),
            ),
            "nvmlDeviceGetP2PStatus": (
                [c_void_p, c_void_p, c_int, c_void_p],
                nvml.plain(lambda a, b, which, to: _peers(cards, (a, b), to)),
            ),
            "nvmlDeviceGetPciInfo_v3": ([c_void_p, c_void_p], nvml.of_card(_pci)),
            "nvmlDeviceGetMemoryInfo": ([c_void_p, c_void_p], nvml.of_card(_memory)),
            "nvmlDeviceGetCudaComputeCapability": ([c_void_p] * 3, nvml.of_card(_capability)),
        }
    )
