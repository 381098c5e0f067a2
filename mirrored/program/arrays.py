"""The arrays of a program's values: parts of a few large pieces of memory, made once.

The plan says where each value is; here that becomes memory of a device and views of it.
"""

from typing import Any

import numpy as np

from mirrored.backends import Storage
from mirrored.devices import Device
from mirrored.program.graph import Node, Value
from mirrored.program.memory import CONSTANTS, Block, Plan


class Memory:
    """The arenas of programs of which one runs at a time, so that they can share them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._arenas: dict[Any, Storage] = {}

    def arena(self, device: Device, name: Any, nbytes: int, purpose: str | None = None) -> Storage:
        """Return memory of at least so many bytes on a device, the same for the same name.

        Args:
            device: The device.
            name: The name.
            nbytes: The number of bytes.
            purpose: What the error calls the memory.

        Raises:
            ResourceExhaustedError: The device has no room for it.
        """
        storage = self._arenas.get((device, name))
        if storage is None or storage.nbytes < nbytes:
            self._arenas.pop((device, name), None)
            storage = device.allocate((nbytes,), np.dtype(np.uint8), purpose)
            self._arenas[device, name] = storage
        return storage


class Arrays:
    """Where a program's values are.

    Args:
        plan: Which value is where.
        memory: The arenas.
        purpose: What errors call them.

    Raises:
        ResourceExhaustedError: A device has no room.
    """

    def __init__(self, plan: Plan, memory: Memory, purpose: str | None = None) -> None:
        """Allocate the arenas."""
        self.plan = plan
        self._purpose = purpose
        # Other programs may write where this one's values were, but not over its constants.
        self._own = own = Memory()
        self._arenas = {
            (device, lane): self._aligned(
                own if lane == CONSTANTS else memory, device, lane, nbytes
            )
            for (device, lane), nbytes in plan.arenas.items()
        }
        self._bases: dict[Value, Any] = {}

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
            self.bytes_of(block).view(spec.dtype).reshape(spec.shape)
            for spec, block in self.plan.scratch.get(node, ())
        )

    def piece(self, value: Value, thread: int, begin: int, end: int) -> Any:
        """Return a piece of a vector of a region, or a scalar."""
        block = self.plan.registers.get((thread, value.base))
        if block is not None:
            return self.bytes_of(block).view(value.spec.dtype)[: end - begin]
        array = self.of(value)
        return array[begin:end] if array.shape else array

    def _aligned(self, memory: Memory, device: Device, name: Any, nbytes: int) -> Any:
        alignment = self.plan.alignment
        storage = memory.arena(device, name, nbytes + alignment, self._purpose)
        start = -device.backend.address(storage.array) % alignment
        return storage.array[start : start + nbytes]

    def _base(self, base: Value) -> Any:
        if base.constant is not None:
            return base.constant._array.reshape(-1)
        if base.home is not None:
            return base.home.storage.array
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
        if root.home is not None:
            memory = root.home.storage.array.view(np.uint8)
        else:
            memory = self._arenas[root.device, root.lane]
        return memory[place : place + block.nbytes]
