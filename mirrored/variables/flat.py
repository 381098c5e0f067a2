"""Several variables of one device as one vector, so that an optimizer updates them in one pass.

They are packed when the step that trains them is recorded. Outside of programs small variables are
joined for a step.
"""

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mirrored import devices
from mirrored.devices.work_timing import copy_within
from mirrored.ops.hooks import active_recorder
from mirrored.ops.spec import DType, Shape, TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.variable_access import variable_writes
from mirrored.variables.device_variable import DeviceVariable, VariableStorage
from mirrored.variables.variable import Variable

_LINE = 16  # Elements: the floats of a cache line.


class FlatVariable:
    """The values of several variables of one device and dtype as one vector.

    A recorded program updates them in place, after `pack`. Outside of programs they are copied.

    Args:
        members: The variables.

    Attributes:
        members: The same.
    """

    def __init__(self, members: Sequence[DeviceVariable]) -> None:
        self.members = tuple(members)
        self._device = members[0]._device

    @property
    def name(self) -> str:
        """The names of the first and the last variable."""
        return f"{self.members[0].name} to {self.members[-1].name}"

    @property
    def device(self) -> str:
        """The full name of the device that holds the values."""
        return self._device.full_name

    @cached_property
    def shape(self) -> Shape:
        """The number of all elements."""
        return (self._parts[-1][0].stop,)

    @cached_property
    def _parts(self) -> list[tuple[slice, TensorSpec]]:
        """Where each of the variables is in the vector, with its shape and dtype."""
        ends = list(itertools.accumulate((member.size for member in self.members), initial=0))
        specs = [member._tensor._spec for member in self.members]
        return list(zip(map(slice, ends, ends[1:]), specs, strict=True))

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.members[0].dtype

    def pinned(self) -> tuple[VariableStorage, int]:
        """Return the memory that holds the values, and their offset in it."""
        starts = [part.start for part, _ in self._parts]
        with variable_writes:
            memory = self.members[0]._stays_in
            places = [(member._stays_in, member._offset) for member in self.members]
            is_alone = memory is not None and memory.spec.shape == self.shape
            if not is_alone or places != [(memory, start) for start in starts]:
                memory = VariableStorage(self._device, self.dtype, self.shape[0])
                for member, start in zip(self.members, starts, strict=True):
                    member.move(memory, start)
        return self.members[0].pinned()[0], 0

    def read_value(self) -> Tensor:
        """Return the values as one vector."""
        recorder = active_recorder()
        if recorder is None:
            storage = self.members[0]._tensor._storage
            ids = [member._tensor._id for member in self.members]
            if getattr(storage, "parts", None) != ids:
                return self.joined([member._view() for member in self.members])
            if devices.get_log_device_placement():
                for _ in ids:
                    devices.log_placement("ReadVariableOp", self._device)
            return Tensor(storage.array, storage, self._device)
        return recorder.read(self)

    def commit(self, value: Tensor) -> None:
        """Assign a vector's parts to the members; allocates nothing."""
        recorder = active_recorder()
        if recorder is not None:
            recorder.write(self, value)
            for _ in self.members:
                devices.log_placement("AssignVariableOp", self._device)
            return
        ids = []
        for member, (part, spec) in zip(self.members, self._parts, strict=True):
            array = value._array[part].reshape(spec.shape)
            tensor = Tensor(array, value._storage, self._device, spec)
            member.commit(tensor)
            ids.append(tensor._id)
        if value._array is value._storage.array:
            value._storage.parts = ids

    def joined(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return tensors, of which each is like a variable, as one vector, outside of programs."""
        device = self._device
        storage = device.allocate(self.shape, self.dtype)
        for tensor, (part, spec) in zip(tensors, self._parts, strict=True):
            source = tensor if tensor._device is device else tensor.copy_to(device)
            target = storage.array[part].reshape(spec.shape)
            copy_within(device, source._array, target, "ConcatV2")
        return Tensor(storage.array, storage, device)


def packing_order(variables: Sequence[Variable]) -> list[int]:
    """Return the indices of variables in packing order.

    The last ones come first, as their gradients do; but those that fill whole cache lines come
    before the others, so that the matrices among them begin where a line does.
    """
    last_first = range(len(variables) - 1, -1, -1)
    return sorted(last_first, key=lambda i: variables[i].size % _LINE != 0)


def packing_groups(variables: Sequence[Variable]) -> list[list[int]]:
    """Return the indices of variables per vector: grouped by device and dtype, in packing order."""
    groups: dict[Any, list[int]] = {}
    for i in packing_order(variables):
        groups.setdefault((variables[i].device, variables[i].dtype), []).append(i)
    return list(groups.values())


def pack(variables: Sequence[DeviceVariable]) -> FlatVariable:
    """Move variables into one vector, in this order, unless they are there, and return it.

    Raises:
        ResourceExhaustedError: The device has no room for them beside where they are now; they
            are as they were.
    """
    flat = FlatVariable(variables)
    flat.pinned()
    return flat
