"""The arrays of a program's values: views of a few large pieces of memory, allocated once.

The plan says where each value is; here that becomes memory of a device and views of it.
"""

import operator
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from mirrored.backends import HostPlace, Storage
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import Device
from mirrored.program.dataflow import Node, Value
from mirrored.program.memory_planner import CONSTANTS, Block, MemoryPlan


class Arena:
    """Memory of one device, which programs use one after the other.

    On the host it keeps its place while its bytes are given back: programs stay bound to it.

    Args:
        device: The device.

    Attributes:
        device: The device.
        place: Where it is on the host; None: on a card, where it moves.
        storage: What its bytes are counted by; None: they are given back.
        array: The memory, at least as much as was taken; None: none of it is there.
        nbytes: How many bytes are taken.
    """

    __slots__ = ("__weakref__", "array", "device", "nbytes", "place", "storage")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.place = None if is_offloaded(device.backend) else HostPlace()
        self.storage: Storage | None = None
        self.array: Any = None
        self.nbytes = 0

    def let_go(self) -> None:
        """Give the bytes back; on the host what is there stays until the place is let go."""
        self.storage, self.nbytes = None, 0
        if self.place is None:
            self.array = None


class Arenas:
    """The memory of programs of which one runs at a time, so that they can share it.

    It is that of programs that are there: they hold their arenas, which are named weakly here.

    Attributes:
        version: Another number whenever an arena is not what it was: programs look again.
    """

    def __init__(self) -> None:
        self._arenas: WeakValueDictionary[Any, Arena] = WeakValueDictionary()
        self.version = 0

    def of(self, device: Device, name: Any) -> Arena:
        """Return the memory of a device, the same for the same name."""
        key = device, name
        arena = self._arenas.get(key)
        if arena is None:
            arena = self._arenas[key] = Arena(device)
        return arena

    def take(self, wanted: Iterable[tuple[Arena, int]], purpose: str | None = None) -> None:
        """Have memory in arenas, allocated once per device.

        Args:
            wanted: The arenas, each with the least number of bytes.
            purpose: What the error calls the memory.

        Raises:
            ResourceExhaustedError: A device has no room for it. What was too small is given back.
        """
        small: dict[Device, list[tuple[Arena, int]]] = {}
        for arena, nbytes in wanted:
            if arena.nbytes < nbytes or arena.array is None:
                if arena.nbytes:
                    arena.let_go()
                small.setdefault(arena.device, []).append((arena, nbytes))
        self.version += bool(small)
        for device, parts in small.items():
            places: list[Any] = [(arena.place, nbytes) for arena, nbytes in parts]
            if places[0][0] is None:
                byte = np.dtype(np.uint8)
                storages = [device.allocate((nbytes,), byte, purpose) for _, nbytes in parts]
            else:
                storages = device.allocate_at(places, purpose)
            for (arena, _), storage in zip(parts, storages, strict=True):
                arena.storage, arena.nbytes = storage, storage.nbytes
                arena.array = storage.array if arena.place is None else arena.place.array

    def give_back(self) -> None:
        """Give all memory back to the devices until programs ask for it again."""
        self.version += 1
        for reference in self._arenas.valuerefs():
            arena = reference()
            if arena is not None:
                arena.let_go()
                if arena.place is not None:
                    arena.place.let_go()

    def clear(self) -> None:
        """Give all back, and share it with no program that is made from now on."""
        if self._arenas:  # Most have none where devices are set up again, and many are asked.
            self.give_back()
            self._arenas.clear()


class Buffers:
    """Where a program's values are.

    Args:
        plan: Which value is where.
        arenas: The memory.
        purpose: What errors call it.
    """

    def __init__(self, plan: MemoryPlan, arenas: Arenas, purpose: str | None = None) -> None:
        self.plan = plan
        self._shared = arenas
        self._purpose = purpose
        self._version = -1
        # Memory counts for as long as somebody holds it: views of it are not enough. Other programs
        # may write where this one's values were, but not over its constants.
        constants = object()
        self._arenas: dict[tuple[Device, int], Arena] = {
            (device, replica): arenas.of(device, constants if replica == CONSTANTS else replica)
            for device, replica in plan.arenas
        }
        sizes = [nbytes + plan.alignment for nbytes in plan.arenas.values()]
        self._wanted = list(zip(self._arenas.values(), sizes, strict=True))
        self._memory: list[Any] = []
        self._bytes: dict[tuple[Device, int], Any] = {}
        self._bases: dict[Value, Any] = {}
        self._views: dict[Value, Any] = {}

    def take(self) -> bool:
        """Take the memory where it was given back; return whether it is where it was.

        Raises:
            ResourceExhaustedError: A device has no room.
        """
        if self._version == self._shared.version:
            return True
        self._shared.take(self._wanted, self._purpose)
        is_first, self._version = self._version < 0, self._shared.version
        before, self._memory = self._memory, [arena.array for arena in self._arenas.values()]
        if not is_first and all(map(operator.is_, before, self._memory)):
            for base, array in self._constants_gone():
                base.device.backend.copy_between(base.data.reshape(-1), array)
            return True
        self._bases.clear()
        self._views.clear()
        for (device, replica), arena in self._arenas.items():
            start = -device.backend.address(arena.array) % self.plan.alignment
            nbytes = self.plan.arenas[device, replica]
            self._bytes[device, replica] = arena.array[start : start + nbytes]
        return False

    def _constants_gone(self) -> Iterator[tuple[Value, Any]]:
        """Yield the constants that are to be written again, with their memory."""
        for (_, replica), arena in self._arenas.items():
            if replica == CONSTANTS and (arena.place is None or arena.place.forgets):
                for base, array in self._bases.items():
                    if base.data is not None and base.device is arena.device:
                        yield base, array

    def of(self, value: Value) -> Any:
        """Return the array of a value."""
        array = self._views.get(value)
        if array is None:
            array = self._views[value] = self._view(value)
        return array

    def workspace(self, node: Node) -> tuple[Any, ...]:
        """Return the scratch arrays of a node."""
        return tuple(
            self.bytes_of(block).view(spec.dtype).reshape(spec.shape)
            for spec, block in self.plan.scratch.get(node, ())
        )

    def piece(self, value: Value, thread: int, begin: int, end: int) -> Any:
        """Return a piece of a vector of a group, or a scalar."""
        block = self.plan.registers.get((thread, value.base))
        if block is not None:
            return self.bytes_of(block).view(value.spec.dtype)[: end - begin]
        array = self.of(value)
        return array[begin:end] if array.shape else array

    def _view(self, value: Value) -> Any:
        if value.constant is not None:
            return value.constant._array
        flat = self._bases.get(value.base)
        if flat is None:
            flat = self._bases[value.base] = self._base(value.base)
        if value is not value.base:
            flat = flat[value.offset : value.offset + value.size]
        return flat.reshape(value.spec.shape)

    def _base(self, base: Value) -> Any:
        if base.constant is not None:
            return base.constant._array.reshape(-1)
        if base.storage is not None:
            return base.storage.array
        array = self.bytes_of(self.plan.blocks[base]).view(base.spec.dtype)
        if base.data is not None:
            base.device.backend.copy_between(base.data.reshape(-1), array)
        return array

    def bytes_of(self, block: Block) -> Any:
        """Return the memory of a block."""
        place, root = block.place, block
        while root.parent is not None:
            root = root.parent
            place += root.place
        if root.storage is not None:
            memory = root.storage.array.view(np.uint8)
        else:
            memory = self._bytes[root.device, root.replica]
        return memory[place : place + block.nbytes]
