"""Which memory is whose, and the memory of the cards itself, which is the host's.

Blocks have guard bytes around them, and memory that nobody wrote to is all 0xff: NaN, or -1.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from emulated_cuda.faults import EmulatorError

UNIT = 512  # CUDA aligns to it, and CuPy rounds up to it.
_MARGIN = 4096
_GUARD = 64
_GUARD_BYTES = b"\xa5" * (_GUARD + UNIT)  # As many as there can be behind a block.
_POISON_BYTE = 0xFF
# Of larger memory only the ends are poisoned: all of it would have to be there for that.
_POISONED_AT_MOST = 1 << 16
# Up to so many bytes pinned memory is from the heap, which is quicker.
_SMALL = 1 << 16


def _lazy_memory(nbytes: int) -> mmap.mmap:
    """Return memory that takes room only where it is touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, nbytes, flags)


class Region:
    """Memory from one call: of a card, or pinned memory of the host.

    Args:
        nbytes: How much, as CUDA counts it.
        card: The number of the card; None for the host.
    """

    def __init__(self, nbytes: int, card: int | None) -> None:
        self.nbytes = nbytes
        self.card = card
        self.live = True
        # A block at an offset is at twice that here, so that guards fit behind each.
        length = 2 * nbytes + 2 * _MARGIN
        small = card is None and length <= _SMALL
        self._memory: Any = bytearray(length) if small else _lazy_memory(length)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + _MARGIN
        self.end = self.start + length - 2 * _MARGIN


@dataclass(eq=False)
class Block:
    """A part of a region that is one array's.

    Attributes:
        region: The region.
        offset: Where it begins there, in bytes as CUDA counts them.
        size: Its bytes, rounded up.
        asked: The bytes asked for.
        guarded: Whether its guards were written.
        address: Where it begins in the host's memory.
    """

    region: Region
    offset: int
    size: int
    asked: int
    guarded: bool = False
    address: int = field(init=False)

    def __post_init__(self) -> None:
        self.address = self.region.start + 2 * self.offset
        # Where each guard is, and what it is.
        self._before = self.address - _GUARD, _GUARD_BYTES[:_GUARD]
        behind = _GUARD_BYTES[: self.size - self.asked + _GUARD]
        self._behind = self.address + self.asked, behind

    def prepare(self) -> None:
        """Write the guards, and poison what is between them."""
        if not self.region.live:
            return
        for start, guard in (self._before, self._behind):
            ctypes.memmove(start, guard, len(guard))
        poison(self.address, self.asked)
        self.guarded = True

    def check(self, who: str) -> None:
        """Raise where a guard was written over.

        Raises:
            EmulatorError: It was.
        """
        if not self.guarded or not self.region.live:
            return
        for start, guard in (self._before, self._behind):
            if ctypes.string_at(start, len(guard)) != guard:
                self.guarded = False  # Once is enough.
                place = "before" if start < self.address else "behind"
                raise EmulatorError(f"{who} wrote {place} an array's memory of {self.asked} bytes.")


def poison(address: int, nbytes: int) -> None:
    """Fill memory with what nobody should read."""
    if nbytes <= 2 * _POISONED_AT_MOST:
        ctypes.memset(address, _POISON_BYTE, nbytes)
    else:
        ctypes.memset(address, _POISON_BYTE, _POISONED_AT_MOST)
        ctypes.memset(address + nbytes - _POISONED_AT_MOST, _POISON_BYTE, _POISONED_AT_MOST)


class Addresses:
    """All memory that the emulator gave out."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: list[Region] = []
        self._in_use: Counter[int | None] = Counter()
        self._blocks: dict[Region, tuple[list[int], list[Block]]] = {}

    def add(self, region: Region) -> None:
        """Note a region."""
        place = bisect.bisect(self._starts, region.start)
        self._starts.insert(place, region.start)
        self._regions.insert(place, region)
        self._blocks[region] = ([], [])
        self._in_use[region.card] += region.nbytes

    def end(self, region: Region) -> None:
        """Note that a region was given back; what still uses it is told so."""
        region.live = False
        self._in_use[region.card] -= region.nbytes

    def add_block(self, block: Block) -> None:
        """Note that a part of a region is in use."""
        addresses, blocks = self._blocks[block.region]
        place = bisect.bisect(addresses, block.address)
        addresses.insert(place, block.address)
        blocks.insert(place, block)

    def remove_block(self, block: Block) -> None:
        """Note that it is not any more."""
        addresses, blocks = self._blocks[block.region]
        place = blocks.index(block)
        del addresses[place], blocks[place]

    def region(self, address: int) -> Region | None:
        """Return the region that an address is in, be it freed; None for other host memory."""
        place = bisect.bisect(self._starts, address) - 1
        if place < 0 or address > self._regions[place].end:
            return None
        return self._regions[place]

    def block(self, address: int) -> Block | None:
        """Return the block in use that an address is in."""
        region = self.region(address)
        return None if region is None else self.block_in(region, address)

    def block_in(self, region: Region, address: int) -> Block | None:
        """Return the block in use of a region that an address is in."""
        addresses, blocks = self._blocks[region]
        place = bisect.bisect(addresses, address) - 1
        if place < 0 or address > blocks[place].address + blocks[place].asked:
            return None
        return blocks[place]

    def blocks(self) -> list[Block]:
        """Return all blocks in use."""
        return [block for _, blocks in self._blocks.values() for block in blocks]

    def bytes_in_use(self, card: int) -> int:
        """Return what is taken of a card."""
        return self._in_use[card]
