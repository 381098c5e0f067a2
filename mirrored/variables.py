"""Variables: named values that can be assigned, and who gets to say what making one makes.

A read is a snapshot: an assign gives the variable another tensor, and where recorded programs need
its memory to stay in one place, a read is a copy.
"""

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from mirrored import devices, ops
from mirrored.backends import Storage
from mirrored.devices import Device
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.ops.dispatch import adopt, is_tensor
from mirrored.ops.listeners import active_listeners
from mirrored.ops.observing import copy_within
from mirrored.ops.recording import (
    RecordedTensor,
    active_recorder,
    recorded_by,
    variable_writes,
)
from mirrored.ops.registry import OPS
from mirrored.ops.spec import DType, Shape, TensorSpec, check_same_dtype
from mirrored.ops.tensor import Operators, Tensor, new_id, value_text


class VariableSynchronization(enum.Enum):
    """When the copies of a variable on several replicas are brought together.

    Example:
        >>> import mirrored as mr
        >>> mr.VariableSynchronization.ON_WRITE.name
        'ON_WRITE'
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How values that replicas assign to one variable become one value.

    Example:
        >>> import mirrored as mr
        >>> mr.VariableAggregation.MEAN.name
        'MEAN'
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


# What the placement log calls each way of writing. Those beside "assign" are ops on the old value.
_WRITES = {
    "assign": "AssignVariableOp",
    "assign_add": "AssignAddVariableOp",
    "assign_sub": "AssignSubVariableOp",
}


class Creator(Protocol):
    """Makes a variable; `next_creator` is what would have made it otherwise."""

    def __call__(self, next_creator: Callable[..., "Variable"], **kwargs: Any) -> "Variable":
        """Return the variable."""


_creators: ContextVar[tuple[Creator, ...]] = ContextVar("mirrored_variable_creators", default=())


@contextmanager
def variable_creator_scope(creator: Creator) -> Iterator[None]:
    """Within this context let `creator` make the variables."""
    token = _creators.set((*_creators.get(), creator))
    try:
        yield
    finally:
        _creators.reset(token)


class _VariableType(type):
    """Lets `Variable(...)` ask the creators; classes below it are made as any other."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        return _create(*args, **kwargs)


def _create(
    initial_value: Any = None,
    trainable: bool | None = None,
    *,
    name: str | None = None,
    dtype: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> "Variable":
    if initial_value is None:
        raise ValueError(
            "The `initial_value` arg to `mr.Variable` is required. Received: None. Give a value, "
            "or a function without arguments that returns one."
        )
    if not isinstance(aggregation, VariableAggregation):
        raise ValueError(
            f"Invalid variable aggregation mode: {aggregation} for variable: {name}. Give one of "
            f"{[str(each) for each in VariableAggregation]}."
        )
    make: Callable[..., Variable] = DeviceVariable
    for creator in _creators.get():
        make = _bound(creator, make)
    with recorded_by(None):  # It is made once, not whenever a recorded function runs.
        return make(
            initial_value=initial_value,
            trainable=trainable,
            name=name or "Variable",
            dtype=None if dtype is None else ops.as_dtype(dtype),
            synchronization=synchronization,
            aggregation=aggregation,
        )


def _bound(creator: Creator, make: Callable[..., "Variable"]) -> Callable[..., "Variable"]:
    return lambda **kwargs: creator(make, **kwargs)


class Variable(Operators, metaclass=_VariableType):
    """A value that can be assigned. It computes as the tensor that it holds when it is read.

    Inside a strategy's scope this makes a variable with a copy on every replica.

    Args:
        initial_value: A number, array or tensor, or a function without arguments that returns
            one.
        trainable: Whether tapes watch it and optimizers get it; True by default.
        name: What messages and files call it.
        dtype: The dtype to convert the initial value to.
        synchronization: When the copies on several replicas are brought together.
        aggregation: How values that replicas assign become one.

    Raises:
        ValueError: No initial value, or an unknown aggregation.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable([1.0, 2.0], name="q")
        >>> v
        <mr.Variable 'q:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>
        >>> v.assign_add([1.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
    """

    __slots__ = ("__weakref__",)

    if TYPE_CHECKING:  # The signature of `Variable(...)`; `_create` is what runs.

        def __init__(
            self,
            initial_value: Any = None,
            trainable: bool | None = None,
            *,
            name: str | None = None,
            dtype: Any = None,
            synchronization: VariableSynchronization = VariableSynchronization.AUTO,
            aggregation: VariableAggregation = VariableAggregation.NONE,
        ) -> None: ...

    @property
    def name(self) -> str:
        """The name, with TensorFlow's ``:0`` behind it."""
        raise NotImplementedError

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it and optimizers get it."""
        raise NotImplementedError

    @property
    def device(self) -> str:
        """The full name of the device that holds the value."""
        raise NotImplementedError

    @property
    def aggregation(self) -> VariableAggregation:
        """How values that replicas assign become one."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """Return the value; a later assign does not change what was returned."""
        raise NotImplementedError

    def assign(self, value: Any) -> "Variable":
        """Set the value and return the variable.

        Raises:
            ValueError: The shapes differ.
            InvalidArgumentError: The dtypes differ.
        """
        return self._write("assign", value)

    def assign_add(self, delta: Any) -> "Variable":
        """Add to the value and return the variable; errors as for `assign`."""
        return self._write("assign_add", delta)

    def assign_sub(self, delta: Any) -> "Variable":
        """Subtract from the value and return the variable; errors as for `assign`."""
        return self._write("assign_sub", delta)

    def prepare(self, method: str, value: Any) -> "list[tuple[DeviceVariable, Tensor]]":
        """Return what `assign`, `assign_add` or `assign_sub` would write into each copy.

        All that can fail happens here, and nothing is changed: variables that belong together
        are prepared one by one, and their copies are committed then.

        Args:
            method: The name of one of the three.
            value: Its argument.
        """
        raise NotImplementedError

    def _write(self, method: str, value: Any) -> "Variable":
        with variable_writes:
            for copy, each in self.prepare(method, value):
                copy.commit(each, method)
        return self

    def _no_in_place(self, _: Any) -> NoReturn:
        raise RuntimeError(
            "A variable is not changed by `variable += value` and the like. Use "
            "`variable.assign_add(value)` to change it, or `out = variable + value` to get a new "
            f"tensor. Received: the variable {self.name!r}."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __imatmul__ = _no_in_place

    def value(self) -> Tensor:
        """Return the value, as `read_value` does."""
        return self.read_value()

    def numpy(self) -> Any:
        """Return a copy of the value on the host."""
        return self.read_value().numpy()

    def _as_tensor(self) -> Tensor:
        return self.read_value()

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else str(self)

    def __repr__(self) -> str:
        return (
            f"<mr.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, "
            f"numpy={value_text(self)}>"
        )


class Home:
    """Memory that stays where it is: the values of variables of one dtype, one after the other.

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
        """Allocate the memory."""
        self.device = device
        self.spec = TensorSpec((size,), dtype)
        self.storage: Storage = device.allocate((size,), dtype)


class DeviceVariable(Variable):
    """A variable with one value on one device. Arguments as for `Variable`."""

    __slots__ = (
        "_aggregation",
        "_device",
        "_home",
        "_id",
        "_name",
        "_offset",
        "_tensor",
        "_trainable",
    )

    def __init__(
        self,
        initial_value: Any,
        trainable: bool | None = None,
        name: str = "Variable",
        dtype: DType | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> None:
        """Compute the initial value and keep it on the device that is current."""
        del synchronization  # There is nothing to synchronize one value with.
        value = initial_tensor(initial_value, dtype)
        self._device: Device = devices.place("VarHandleOp", ("GPU", "CPU"))
        self._tensor = own(value.copy_to(self._device))
        self._home: Home | None = None
        self._offset = 0
        self._name = name
        self._trainable = True if trainable is None else bool(trainable)
        self._aggregation = aggregation
        self._id = new_id()
        devices.log_placement("VarHandleOp", self._device)
        devices.log_placement("AssignVariableOp", self._device)

    @property
    def name(self) -> str:
        """The name, with TensorFlow's ``:0`` behind it."""
        return f"{self._name}:0"

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it and optimizers get it."""
        return self._trainable

    @property
    def aggregation(self) -> VariableAggregation:
        """How values that replicas assign become one."""
        return self._aggregation

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self._tensor.dtype

    @property
    def shape(self) -> Shape:
        """The shape of the value."""
        return self._tensor.shape

    @property
    def device(self) -> str:
        """The full name of the device that holds the value."""
        return self._device.full_name

    def read_value(self) -> Tensor:
        """Return the value; a later assign does not change what was returned."""
        devices.log_placement("ReadVariableOp", self._device)
        value = self._snapshot()
        for listener in active_listeners():
            listener.on_read(self, value)
        return value

    def _snapshot(self) -> Tensor:
        """Return a tensor of its own for each read: tapes tell by it when the variable was read."""
        recorder = active_recorder()
        if recorder is not None:
            return recorder.read(self)
        current = self._tensor
        if self._home is None:
            return Tensor(current._array, current._storage, self._device, current.spec)
        storage = self._device.allocate(*current.spec)
        copy_within(self._device, current._array, storage.array, "ReadVariableOp")
        return Tensor(storage.array, storage, self._device, current.spec)

    def pinned(self) -> tuple[Home, int]:
        """Return the memory that the value stays in from now on, and the value's place there."""
        if self._home is not None:
            return self._home, self._offset
        home = Home(self._device, self.dtype, self.size)
        self.move(home, 0)
        return home, 0

    def move(self, home: Home, offset: int) -> None:
        """Bring the value to a place where it stays; it keeps its value.

        Args:
            home: Memory on the variable's device, of its dtype.
            offset: How many elements come before it there.
        """
        array = home.storage.array[offset : offset + self.size].reshape(self.shape)
        self._device.backend.copy_between(self._tensor._array, array)
        self._tensor = Tensor(array, home.storage, self._device, self._tensor.spec)
        self._home, self._offset = home, offset

    def prepare(self, method: str, value: Any) -> "list[tuple[DeviceVariable, Tensor]]":
        """Return this variable with what the method would write into it."""
        with devices.device(self._device):
            tensor = adopt(value, self.dtype)
            if tensor.shape != self.shape:
                raise ValueError(
                    f"Cannot assign value to variable ' {self.name}': Shape mismatch."
                    f"The variable shape {self.shape}, and the assigned value shape "
                    f"{tensor.shape} are incompatible."
                )
            check_same_dtype(_WRITES[method], self._tensor.spec, tensor.spec)
            if method != "assign":
                recorder = active_recorder()
                old = self._tensor if recorder is None else recorder.read(self)
                tensor = OPS[_WRITES[method]](old, tensor)
            return [(self, own(tensor.copy_to(self._device)))]

    def commit(self, value: Tensor, method: str = "assign") -> None:
        """Take over a value that `prepare` or an op on this device made; allocates nothing."""
        recorder = active_recorder()
        if recorder is not None:
            recorder.write(self, value)
        elif self._home is not None:
            copy_within(self._device, value._array, self._tensor._array, "AssignVariableOp")
        else:
            self._tensor = value
        if method == "assign":  # The others were logged when they were computed.
            devices.log_placement(_WRITES[method], self._device)


def initial_tensor(initial_value: Any, dtype: DType | None) -> Tensor:
    """Return the tensor that a variable starts with, computed now."""
    value = initial_value() if callable(initial_value) else initial_value
    if not is_tensor(value):
        return ops.convert_to_tensor(value, dtype)
    tensor = adopt(value, None)
    if isinstance(tensor, RecordedTensor):
        raise OperatorNotAllowedInGraphError(
            "A variable is made once, and its initial value is computed then. Received: the "
            f"initial value {tensor!r}, which a recorded function computes in every call. Give "
            "a function that returns the value, or make the variable outside."
        )
    return tensor if dtype is None else ops.cast(tensor, dtype)


def own(tensor: Tensor) -> Tensor:
    """Return the tensor as a variable may keep it: without the logits that probabilities hold."""
    if isinstance(tensor, RecordedTensor):
        if active_recorder() is None:
            tensor.numpy()  # Kept from a function that was recorded: it says so.
        return tensor
    if tensor._logits is not None:
        return Tensor(tensor._array, tensor._storage, tensor._device)
    return tensor
