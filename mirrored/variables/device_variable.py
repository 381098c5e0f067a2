"""Variables with one value on one device, and the memory that holds their values.

An assign gives the variable another tensor, and where recorded programs need its memory to stay in
one place, a read is a copy.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mirrored import devices, ops
from mirrored._contexts import Within
from mirrored.backends import Storage
from mirrored.devices import Device
from mirrored.devices.work_timing import copy_from_host, copy_within
from mirrored.errors import (
    OperatorNotAllowedInGraphError,
    ResourceExhaustedError,
    WorkersChangedError,
)
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import RecordedTensor, active_listeners, active_recorder, only, recorded_by
from mirrored.ops.op import OPS
from mirrored.ops.spec import DType, TensorSpec, check_same_dtype
from mirrored.ops.tensor import Tensor, new_id
from mirrored.ops.tensor_shape import TensorShape
from mirrored.ops.tensor_views import uncast
from mirrored.program import register_variable
from mirrored.program.variable_access import Moves, Writes, variable_writes
from mirrored.variables.variable import (
    Prepared,
    Traits,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)

# What the placement log calls each way of writing. Those beside "assign" are ops on the old value.
_WRITES = {
    "assign": "AssignVariableOp",
    "assign_add": "AssignAddVariableOp",
    "assign_sub": "AssignSubVariableOp",
}

# How many times its bytes a value may keep alive of what it was joined with.
_MOST_KEPT = 1 << 10


class VariableStorage:
    """Memory at a fixed address for the values of variables of one dtype, one after the other.

    Recorded programs bind to it. A variable moves in with `DeviceVariable.move`.

    Args:
        device: The variables' device.
        dtype: Their dtype.
        size: How many elements they have together.

    Raises:
        ResourceExhaustedError: The device has no room for it.
    """

    __slots__ = ("__weakref__", "device", "spec", "storage")

    def __init__(self, device: Device, dtype: DType, size: int) -> None:
        self.device = device
        self.spec = TensorSpec((size,), dtype)
        purpose = f"the memory of variables that lie together, {size} values of type {dtype.name},"
        self.storage: Storage = device.allocate((size,), dtype, purpose)

    @property
    def array(self) -> Any:
        """All its elements."""
        return self.storage.array


class VariableState(NamedTuple):
    """A variable with one value, as it travels to another process or becomes a copy.

    Attributes:
        value: The value, on the host.
        name: The name, without TensorFlow's ``:0``; so are the others those of `Variable`.
    """

    value: NDArray[Any]
    name: str
    trainable: bool
    synchronization: VariableSynchronization
    aggregation: VariableAggregation
    traits: Traits

    def restored(self, device: str | Device) -> "DeviceVariable":
        """Return a variable with this state on a device."""
        with recorded_by(None), only(), devices.device(device):
            modes = self.synchronization, self.aggregation
            variable = DeviceVariable(self.value, self.trainable, self.name, None, *modes)
            variable._traits = self.traits
            return variable


class StandIns:
    """Copies of variables that replace them during a trial, which changes none of the originals.

    What is tried out runs on the copies; where it writes an older variable, it fails.

    Args:
        make: From the state of a variable to what stands in for it.
    """

    def __init__(self, make: Callable[[VariableState], Variable]) -> None:
        self.make = make
        self._oldest = new_id()

    def in_force(self) -> Within:
        """Return a context in which deep copies get these copies; older variables are read-only."""
        return Within(_stand_ins, self)

    def check_written(self, variable: "DeviceVariable") -> None:
        """Raise RuntimeError if a variable is older than these copies.

        Args:
            variable: A variable that is about to be written.
        """
        if variable._id < self._oldest:
            raise RuntimeError(
                "A trial step runs on copies of the model, and must not write to anything else. "
                f"Received: a new value for the variable {variable.name!r}, which is not reached "
                "through attributes of the model. Keep its owner (a metric or an optimizer) in "
                "an attribute, and use it through `self`."
            )


class Undone:
    """Restores, at the end of a context, the variables that were written in it.

    Attributes:
        is_trial: Whether it does so in any case.
    """

    def __init__(self) -> None:
        self.is_trial = True
        self._before: dict[int, tuple[DeviceVariable, Tensor]] = {}

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Return the context; writes that a recorder notes do not count."""
        token = _undone.set(self)
        try:
            yield
        finally:
            _undone.reset(token)
            self._restore()

    @contextmanager
    def after_failure(self) -> Iterator[None]:
        """Return a context that restores them only where a device is full, or workers die in it."""
        if _undone.get() is not None:
            yield  # Who is around it decides.
            return
        self.is_trial = False
        token = _undone.set(self)
        try:
            yield
        except (ResourceExhaustedError, WorkersChangedError):
            self._restore()
            raise
        finally:
            _undone.reset(token)

    def _restore(self) -> None:
        for variable, value in self._before.values():
            variable._give_back(value)

    def written(self) -> dict[int, "DeviceVariable"]:
        """Return the variables that were written, by their ids."""
        return {id(variable): variable for variable, _ in self._before.values()}

    def note(self, variable: "DeviceVariable") -> None:
        """Keep the value of a variable that is about to be written.

        Args:
            variable: The variable.
        """
        if variable._id not in self._before:
            self._before[variable._id] = (variable, variable._kept())


_undone: ContextVar[Undone | None] = ContextVar("mirrored_undone", default=None)
_stand_ins: ContextVar[StandIns | None] = ContextVar("mirrored_stand_ins", default=None)

# Returns what takes back the writes of this context at its end; None: they stay.
undone: Callable[[], Undone | None] = _undone.get

# Returns what makes copies in this context; None: they are like what they are copies of.
stand_ins: Callable[[], StandIns | None] = _stand_ins.get


_alive: "WeakValueDictionary[int, DeviceVariable]" = WeakValueDictionary()


def variables_on(device: Device) -> "list[DeviceVariable]":
    """Return the variables of a device, while other threads may create some."""
    alive = (reference() for reference in _alive.valuerefs())
    return [variable for variable in alive if variable is not None and variable._device is device]


class DeviceVariable(Variable, plain=True):
    """A variable with one value on one device. Arguments as for `Variable`."""

    __slots__ = ("_device", "_id", "_offset", "_stays_in", "_tensor")

    def __init__(
        self,
        initial_value: Any,
        trainable: bool | None = None,
        name: str = "Variable",
        dtype: DType | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:
        """Compute the initial value and keep it on the current device."""
        value = initial_tensor(initial_value, dtype)
        self._device: Device = devices.place("VarHandleOp", ("GPU", "CPU"))
        self._tensor = own(value.copy_to(self._device))
        self._stays_in: VariableStorage | None = None
        self._offset = 0
        self._name = name
        self._trainable = True if trainable is None else bool(trainable)
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._traits = Traits(constraint)
        self._id = new_id()
        devices.log_placement("VarHandleOp", self._device)
        _alive[self._id] = self
        devices.log_placement("AssignVariableOp", self._device)

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self._tensor._spec.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the value."""
        return self._tensor.shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._tensor._spec.shape)

    @property
    def device(self) -> str:
        """The full name of the device that holds the value."""
        return self._device.full_name

    def read_value(self) -> Tensor:
        """Return the value; a later assignment does not change the returned tensor."""
        return self._read(lasts=True)

    def _view(self) -> Tensor:
        return self._read(lasts=False)

    def _read(self, *, lasts: bool) -> Tensor:
        value = self._unnoted(lasts=lasts)
        for listener in active_listeners():
            listener.on_read(self, value)
        return value

    def _unnoted(self, *, lasts: bool) -> Tensor:
        """Return a new tensor for every read, by which tapes identify the read, and notify none.

        Args:
            lasts: Whether it may be kept: later writes do not change it.
        """
        devices.log_placement("ReadVariableOp", self._device)
        recorder = active_recorder()
        if recorder is not None:
            value = recorder.read(self)
        else:
            current = self._kept() if lasts else self._tensor
            value = Tensor(current._array, current._storage, self._device, current.spec)
        if not self._traits.autocast:
            value = uncast(value)
        return value

    def _repr_html_(self, where: str = "") -> str | None:
        return self._tensor._repr_html_(f"Variable {self.name}", where)

    def state(self) -> VariableState:
        """Return the state from which another process, or a copy, creates the same variable."""
        with variable_writes:
            value = np.asarray(self._tensor.numpy())
        modes = self._synchronization, self._aggregation, self._traits
        return VariableState(value, self._name, self._trainable, *modes)

    def __reduce__(self) -> Any:
        others = stand_ins()
        if others is not None:
            return others.make, (self.state(),)
        return VariableState.restored, (self.state(), self.device)

    def pinned(self) -> tuple[VariableStorage, int]:
        """Return the memory that holds the value from now on, and the value's offset in it."""
        self._device.require()
        with variable_writes:
            memory = self._stays_in
            if memory is None:
                memory = VariableStorage(self._device, self.dtype, self.size)
                self.move(memory, 0)
            return memory, self._offset

    def move(self, memory: VariableStorage, offset: int) -> None:
        """Move the value to a fixed place; the value does not change.

        Args:
            memory: Memory on the variable's device, of its dtype.
            offset: How many elements come before it there.
        """
        spec = self._tensor._spec
        array = memory.storage.array[offset : offset + self.size].reshape(spec.shape)
        with variable_writes:
            self._device.backend.copy_between(self._tensor._array, array)
            self._tensor = Tensor(array, memory.storage, self._device, spec)
            self._stays_in, self._offset = memory, offset
            Moves.count += 1

    def prepare(self, method: str, value: Any) -> "list[tuple[DeviceVariable, Prepared]]":
        """Return this variable with what the method would write into it."""
        if method == "assign" and self._takes(value):
            return [(self, value)]
        with devices.device(self._device):
            if method == "change":
                return [(self, own(value(self._old()).copy_to(self._device)))]
            tensor = adopt(value, self.dtype)
            self._check_assigned(tensor.shape)
            check_same_dtype(_WRITES[method], self._tensor.spec, tensor.spec)
            if method != "assign":
                tensor = OPS[_WRITES[method]](self._old(), tensor)
            return [(self, own(tensor.copy_to(self._device)))]

    def _old(self) -> Tensor:
        """Return the old value for an update, without notifying tapes and without a copy."""
        recorder = active_recorder()
        return self._tensor if recorder is None else recorder.read(self)

    def _takes(self, value: Any) -> bool:
        """Whether a value is copied from the host directly to its fixed place."""
        return (
            self._stays_in is not None
            and isinstance(value, np.ndarray)
            and (value.shape, value.dtype) == self._tensor.spec
            and active_recorder() is None
        )

    def commit(self, value: Prepared, method: str = "assign") -> None:
        """Set a value that `prepare` or an op on this device returned; allocates nothing."""
        recorder = active_recorder()
        others = stand_ins()
        if others is not None:
            others.check_written(self)
        back = undone()
        if back is not None and recorder is None:
            back.note(self)
        if recorder is None:
            Writes.count += 1
        if isinstance(value, np.ndarray):
            copy_from_host(self._device, value, self._tensor._array)
        elif recorder is not None:
            recorder.write(self, value)
        elif self._stays_in is not None:
            try:
                copy_within(self._device, value._array, self._tensor._array, "AssignVariableOp")
            except ResourceExhaustedError:  # Others may be written by now: it moves there instead.
                self._tensor, self._stays_in, self._offset = value, None, 0
                Moves.count += 1
        else:
            self._tensor = value
        if method in ("assign", "change"):  # The others were logged when they were computed.
            devices.log_placement("AssignVariableOp", self._device)

    def set_in_place(self, value: NDArray[Any]) -> None:
        """Copy a value of the host into the memory of this variable, outside recordings.

        Where the host sees that it is there already, nothing is written.

        Args:
            value: An array of the variable's shape and dtype.
        """
        if self._stays_in is None:
            self.pinned()
        array = self._tensor._array
        backend = self._device.backend
        readable = backend.host_readable and not backend.streamed
        if readable and array.tobytes() == value.tobytes():
            return
        back = undone()
        if back is not None:
            back.note(self)
        Writes.count += 1
        copy_from_host(self._device, value, self._tensor._array)
        devices.log_placement("AssignVariableOp", self._device)

    def _kept(self) -> Tensor:
        """Return the value; later writes do not change the returned tensor."""
        current = self._tensor
        memory: Storage | None = current._storage  # None: its device is gone.
        is_alone = memory is None or memory.nbytes <= _MOST_KEPT * current._array.nbytes
        if self._stays_in is None and is_alone:
            return current
        storage = self._device.allocate(*current.spec)
        copy_within(self._device, current._array, storage.array, "ReadVariableOp")
        return Tensor(storage.array, storage, self._device, current.spec)

    def _give_back(self, value: Tensor) -> None:
        """Set a value that `_kept` returned."""
        Writes.count += 1
        with variable_writes:
            if self._stays_in is None:
                self._tensor = value
            else:
                copy_within(self._device, value._array, self._tensor._array, "AssignVariableOp")


def initial_tensor(initial_value: Any, dtype: DType | None) -> Tensor:
    """Compute and return the initial value of a variable."""
    value = initial_value() if callable(initial_value) else initial_value
    if not is_tensor(value):
        return ops.convert_to_tensor(value, dtype)
    tensor = adopt(value, None)
    if isinstance(tensor, RecordedTensor):
        raise OperatorNotAllowedInGraphError(
            "A variable is created once, and its initial value is computed then. Received: the "
            f"initial value {tensor!r}, which a recorded function computes in every call. Pass a "
            "function that returns the value, or create the variable outside."
        )
    return ops.convert_to_tensor(tensor, dtype)  # Which refuses another dtype, as TensorFlow does.


def own(tensor: Tensor) -> Tensor:
    """Return the tensor without the logits that probabilities carry, for a variable to keep."""
    if isinstance(tensor, RecordedTensor):
        if active_recorder() is None:
            tensor.numpy()  # Kept from a function that was recorded: it says so.
        return tensor
    if tensor._logits is not None:
        return Tensor(tensor._array, tensor._storage, tensor._device)
    return tensor


register_variable(DeviceVariable, lambda variable: (variable,))
