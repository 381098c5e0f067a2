"""The arrays of a program's values: parts of a few large pieces of memory, made once.

The plan says where each value is; here that becomes memory of a device and views of it.
"""

from typing import Any

import numpy as np

from mirrored.backends import Storage
from mirrored.devices import Device
from mirrored.program.graph import Node, Value
from mirrored.program.memory import ALIGNMENT, CONSTANTS, Block, Plan
from mirrored.program.schedule import Region

# Elements that a region computes at a time: a few vectors of 64k floats fit a core's own cache.
# Shorter vectors are not cut: the calls would cost more than the cache saves.
_PIECE = 1 << 16
_UNCUT = 1 << 17


class Memory:
    """The arenas of programs of which one runs at a time, so that they can share them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._arenas: dict[Any, Storage] = {}

    def arena(self, device: Device, name: Any, nbytes: int) -> Storage:
        """Return memory of at least so many bytes on a device, the same for the same name.

        Raises:
            ResourceExhaustedError: The device has no room for it.
        """
        storage = self._arenas.get((device, name))
        if storage is None or storage.nbytes < nbytes:
            self._arenas.pop((device, name), None)
            storage = device.allocate((nbytes,), np.dtype(np.uint8))
            self._arenas[device, name] = storage
        return storage


class Arrays:
    """Where a program's values are.

    Args:
        plan: Which value is where.
        memory: The arenas.
        threads: How many threads share regions.

    Raises:
        ResourceExhaustedError: A device has no room.
    """

    def __init__(self, plan: Plan, memory: Memory, threads: int) -> None:
        """Allocate the arenas."""
        self.plan = plan
        self._memory = memory
        self._threads = threads
        # Other programs may write where this one's values were, but not over its constants.
        self._own = own = Memory()
        self._arenas = {
            (device, lane): self._aligned(
                own if lane == CONSTANTS else memory, device, lane, nbytes
            )
            for (device, lane), nbytes in plan.arenas.items()
        }
        self._bases: dict[Value, Any] = {}
        self._registers: dict[tuple[int, int], dict[Value, Any]] = {}

    def of(self, value: Value) -> Any:
        """Return the array of a value."""
        if value.constant is not None:
            return value.constant._array
        flat = self._bases.get(value.base)
        if flat is None:
            flat = self._bases[value.base] = self._base(value.base)
        return flat[value.offset : value.offset + value.size].reshape(value.spec.shape)

    def workspace(self, node: Node) -> tuple[Any, ...]:
        """Return the scratch arrays of a node."""
        return tuple(
            self._bytes(block).view(spec.dtype).reshape(spec.shape)
            for spec, block in self.plan.scratch.get(node, ())
        )

    def pieces(self, region: Region, thread: int) -> list[tuple[int, int]]:
        """Return where the pieces of a thread's shard of a region begin and end."""
        share = -(-region.size // self._threads)
        share = -(-share // ALIGNMENT) * ALIGNMENT
        start, stop = min(thread * share, region.size), min((thread + 1) * share, region.size)
        step = _PIECE if stop - start > _UNCUT else max(stop - start, 1)
        return [(begin, min(begin + step, stop)) for begin in range(start, stop, step)]

    def piece(self, value: Value, region: Region, thread: int, begin: int, end: int) -> Any:
        """Return a piece of a vector of a region, or a scalar."""
        if value.base in self.plan.locals:
            return self._local(value.base, region, thread)[: end - begin]
        array = self.of(value)
        return array[begin:end] if array.shape else array

    def _aligned(self, memory: Memory, device: Device, name: Any, nbytes: int) -> Any:
        storage = memory.arena(device, name, nbytes + ALIGNMENT)
        start = -storage.array.ctypes.data % ALIGNMENT
        return storage.array[start : start + nbytes]

    def _base(self, base: Value) -> Any:
        if base.constant is not None:
            return base.constant._array.reshape(-1)
        if base.home is not None:
            return base.home.storage.array
        array = self._bytes(self.plan.blocks[base]).view(base.spec.dtype)
        if base.data is not None:
            base.device.backend.copy_between(base.data.reshape(-1), array)
        return array

    def _bytes(self, block: Block) -> Any:
        place, root = block.place, block
        while root.parent is not None:
            root = root.parent
            place += root.place
        if root.home is not None:
            memory = root.home.storage.array.view(np.uint8)
        else:
            memory = self._arenas[root.device, root.lane]
        return memory[place : place + block.nbytes]

    def _local(self, value: Value, region: Region, thread: int) -> Any:
        key = id(region), thread
        if key not in self._registers:
            self._registers[key] = self._make_registers(region, thread)
        return self._registers[key][value]

    def _make_registers(self, region: Region, thread: int) -> dict[Value, Any]:
        """Return for each value that only a region's pieces have, memory of one piece."""
        lengths = [end - begin for begin, end in self.pieces(region, thread)]
        numbers = _register_numbers(region, self.plan.locals)
        registers = {}
        for value, number in numbers.items():
            nbytes = max(lengths, default=0) * 8  # Of the widest dtype, so that all can share it.
            name = ("register", thread, number)
            memory = self._aligned(self._memory, value.device, name, nbytes)
            registers[value] = memory[: len(memory) // 8 * value.spec.dtype.itemsize].view(
                value.spec.dtype
            )
        return registers


def _register_numbers(region: Region, local: set[Value]) -> dict[Value, int]:
    """Give the values within a region as few registers as they need, one after the other."""
    last: dict[Value, int] = {}
    for i, node in enumerate(region.nodes):
        for value in node.inputs:
            last[value.base] = i
    numbers: dict[Value, int] = {}
    free: list[int] = []
    for i, node in enumerate(region.nodes):
        inputs = [value.base for value in node.inputs]
        ending = {value for value in inputs if value in numbers and last[value] == i}
        # Before the result has its place: it may take over only what the op may overwrite.
        early = {
            value
            for value in ending
            if inputs.index(value) in node.op.may_alias
            and inputs.count(value) == 1
            and value.spec == node.output.spec
        }
        free += [numbers[value] for value in early]
        if node.output in local:
            numbers[node.output] = free.pop() if free else len(set(numbers.values()) | set(free))
        free += [numbers[value] for value in ending - early]
    return numbers
