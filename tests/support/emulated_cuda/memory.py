"""CuPy's memory pool over the emulated cards, and pinned memory of the host.

The pool caches, splits and merges blocks as CuPy's does, with an arena for each stream.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import cupy

from emulated_cuda import faults
from emulated_cuda.addresses import UNIT, Block, Region, poison
from emulated_cuda.faults import EmulatorError
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Queue

_SMALLEST_PINNED = 1


@dataclass(eq=False)
class _Chunk:
    """A part of a region, in use or free, and the parts beside it."""

    region: Region
    offset: int
    size: int
    queue: Queue
    before: _Chunk | None = None
    behind: _Chunk | None = None
    fresh: bool = True  # No work of any stream can still be using it.
    free: bool = False

    def split(self, size: int) -> _Chunk | None:
        """Keep so many bytes and return the rest, if there is one."""
        if self.size == size:
            return None
        rest = _Chunk(self.region, self.offset + size, self.size - size, self.queue)
        rest.fresh, rest.before, rest.behind = self.fresh, self, self.behind
        if self.behind is not None:
            self.behind.before = rest
        self.size, self.behind = size, rest
        return rest

    def merge(self, behind: _Chunk) -> None:
        """Take the next part in."""
        self.size += behind.size
        self.fresh = self.fresh and behind.fresh
        self.behind = behind.behind
        if self.behind is not None:
            self.behind.before = self


class _Owner:
    """Gives a block back when the last array that uses it goes.

    Args:
        machine: The machine.
        pool: The pool that it goes back to; it lives only as long as somebody else keeps it.
        chunk: The memory.
        block: The same, as the machine knows it.
    """

    def __init__(self, machine: Machine, pool: _CardPool, chunk: _Chunk, block: Block) -> None:
        self._freed = machine.freed
        self._machine = machine
        self._pool = weakref.ref(pool)
        self._chunk = chunk
        self._block = block

    def __del__(self) -> None:
        self._freed.append(self._give_back)

    def _give_back(self) -> None:
        self._machine.addresses.remove_block(self._block)
        self._machine.recycled(self._block, self._chunk.queue, used=True)
        pool = self._pool()
        if pool is not None:
            pool.take_back(self._chunk)


class _CardPool:
    """The part of a pool that is on one card."""

    def __init__(self, machine: Machine) -> None:
        self.limit = 0
        self.total = 0
        self.used = 0
        self._machine = machine
        self._regions: list[Region] = []
        self._free: dict[int, list[_Chunk]] = {}
        # As in CuPy: memory goes with its pool, even if arrays use it.
        weakref.finalize(self, _free_all, machine, self._regions).atexit = False

    @property
    def cached(self) -> int:
        return sum(chunk.size for chunks in self._free.values() for chunk in chunks)

    def malloc(self, nbytes: int, queue: Queue) -> tuple[_Chunk, Block]:
        size = -(-nbytes // UNIT) * UNIT
        arena = self._free.setdefault(queue.handle, [])
        fitting = [chunk for chunk in arena if chunk.size >= size]
        if fitting:
            chunk = min(fitting, key=lambda each: each.size)
            arena.remove(chunk)
            rest = chunk.split(size)
            if rest is not None:
                rest.free = True
                arena.append(rest)
        else:
            chunk = _Chunk(self._grow(size), 0, size, queue)
        chunk.free = False
        self.used += size
        block = Block(chunk.region, chunk.offset, size, nbytes)
        self._machine.addresses.add_block(block)
        if chunk.fresh:
            block.prepare()
        else:
            self._machine.recycled(block, queue, used=False)
        return chunk, block

    def take_back(self, chunk: _Chunk) -> None:
        arena = self._free.setdefault(chunk.queue.handle, [])
        self.used -= chunk.size
        chunk.fresh = False
        if chunk.behind is not None and chunk.behind.free:
            arena.remove(chunk.behind)
            chunk.merge(chunk.behind)
        if chunk.before is not None and chunk.before.free:
            before = chunk.before
            arena.remove(before)
            before.merge(chunk)
            chunk = before
        chunk.free = True
        arena.append(chunk)

    def free_all_blocks(self, queue: Queue | None) -> None:
        for handle, arena in self._free.items():
            if queue is not None and handle != queue.handle:
                continue
            whole = [chunk for chunk in arena if chunk.before is None and chunk.behind is None]
            for chunk in whole:
                arena.remove(chunk)
                self._regions.remove(chunk.region)
                self.total -= chunk.size
                self._machine.unsafe()
                self._machine.free(chunk.region)

    def _grow(self, size: int) -> Region:
        if self.limit and self.total + size > self.limit:
            raise cupy.cuda.memory.OutOfMemoryError(size, self.total, self.limit)
        # As in CuPy: what is cached is given back, then what is garbage, and only then it is over.
        for collect in (False, True):
            try:
                return self._take(size)
            except RuntimeError as error:
                if getattr(error, "status", 0) != faults.MEMORY_ALLOCATION:
                    raise
            if collect:
                gc.collect()
            self._machine.settle()
            self.free_all_blocks(None)
        try:
            return self._take(size)
        except RuntimeError as error:
            if getattr(error, "status", 0) != faults.MEMORY_ALLOCATION:
                raise
        raise cupy.cuda.memory.OutOfMemoryError(size, self.total, self.limit)

    def _take(self, size: int) -> Region:
        region = self._machine.malloc(size)
        self.total += size
        self._regions.append(region)
        return region


def _free_all(machine: Machine, regions: list[Region]) -> None:
    machine.freed.extend(partial(machine.free, region) for region in regions)


class MemoryPool:
    """`cupy.cuda.MemoryPool`: a pool on each card, of which the current one is used.

    Args:
        machine: The machine.
        current_queue: Returns the current stream.
    """

    def __init__(self, machine: Machine, current_queue: Callable[[], Queue]) -> None:
        self._machine = machine
        self._current_queue = current_queue
        self._pools: dict[int, _CardPool] = {}

    @property
    def _pool(self) -> _CardPool:
        card = self._machine.current.device
        if card not in self._pools:
            self._pools[card] = _CardPool(self._machine)
        return self._pools[card]

    def malloc(self, size: int) -> Any:
        """Return memory for the current stream."""
        machine, card = self._machine, self._machine.current.device
        with machine.lock:
            with machine.call("poolMalloc"):
                pool = self._pool
            if not size:
                return _pointer(0, 0, None, card)
            chunk, block = pool.malloc(size, self._current_queue())
            return _pointer(block.address, size, _Owner(machine, pool, chunk, block), card)

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Let the pool take at most so much of the current card; 0 for no limit."""
        if fraction is not None:
            raise EmulatorError("Limits by a fraction are not emulated.")
        with self._machine.call("setLimit"):
            self._pool.limit = size or 0

    def get_limit(self) -> int:
        """Return the limit in bytes."""
        return self._read(lambda pool: pool.limit)

    def used_bytes(self) -> int:
        """Return the bytes that arrays use."""
        return self._read(lambda pool: pool.used)

    def free_bytes(self) -> int:
        """Return the bytes that are cached."""
        return self._read(lambda pool: pool.cached)

    def total_bytes(self) -> int:
        """Return the bytes that the pool has taken."""
        return self._read(lambda pool: pool.total)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give back to the card what is cached and not a part of something in use."""
        machine = self._machine
        with machine.call("free"):
            self._pool.free_all_blocks(None if stream is None else machine.queue(stream.ptr))

    def _read(self, what: Callable[[_CardPool], int]) -> int:
        # As in CuPy it works on a lost card too: it asks nothing of it.
        with self._machine.lock:
            self._machine.settle()
            return what(self._pool)


def _pointer(address: int, nbytes: int, owner: object, card: int) -> Any:
    memory = cupy.cuda.UnownedMemory(address, nbytes, owner, card)
    return cupy.cuda.MemoryPointer(memory, 0)


class _Pinned:
    """Pinned memory; other programs' data is in it as soon as nobody keeps it."""

    def __init__(self, machine: Machine, size: int) -> None:
        self.region = Region(max(size, _SMALLEST_PINNED), None)
        self.ptr = self.region.start
        self.size = size
        machine.addresses.add(self.region)
        poison(self.ptr, size)

    def __del__(self) -> None:
        poison(self.ptr, self.size)


def alloc_pinned_memory(machine: Machine, size: int) -> Any:
    """Return pinned memory, as CuPy's object with the buffer protocol."""
    with machine.call("hostAlloc"):
        machine.unsafe()
        return cupy.cuda.PinnedMemoryPointer(_Pinned(machine, size), 0)
