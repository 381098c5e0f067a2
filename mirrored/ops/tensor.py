"""Tensors: immutable, C-contiguous arrays that live on one logical device.

What an operator computes is defined by the ops; here is only which one it calls.
"""

import gc
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mirrored._absent import refused_members
from mirrored._late import FilledByFiles
from mirrored._tracebacks import shorten, shortened
from mirrored._types import PartialShapeLike
from mirrored.backends import Pool, Storage
from mirrored.devices import Device, device, empty_with, place
from mirrored.devices.work_timing import copy_work, observers, tell
from mirrored.errors import DevicesResetError
from mirrored.ops.spec import DType, TensorSpec, check_shape
from mirrored.ops.tensor_shape import TensorShape

_new_tuple = tuple.__new__  # Shapes of tensors need no check.

# What Python's operators call: ops by their names, and "truediv". Ops make tensors, and so stand
# above them: each enters itself.
operators: FilledByFiles[Callable[..., "Tensor"]] = FilledByFiles("mirrored.ops")


# Returns a number that no tensor or variable had before; tapes tell them apart by it.
new_id: Callable[[], int] = itertools.count(1).__next__


def _binary(name: str) -> tuple[Callable[[Any, Any], "Tensor"], Callable[[Any, Any], "Tensor"]]:
    """Return an operator's methods: of what is on the left, and of what is on the right."""

    def left(self: Any, other: Any) -> "Tensor":
        try:
            return operators[name](self, other)
        except Exception as error:
            shorten(error)
            raise

    def right(self: Any, other: Any) -> "Tensor":
        try:
            return operators[name](other, self)
        except Exception as error:
            shorten(error)
            raise

    return left, right


def _unary(name: str) -> Callable[[Any], "Tensor"]:
    """Return the method of an operator that has one operand."""

    def operate(self: Any) -> "Tensor":
        try:
            return operators[name](self)
        except Exception as error:
            shorten(error)
            raise

    return operate


class Operators:
    """The operators of Python, each of which calls an op; for tensors and variables.

    NumPy values and Python numbers adopt the tensor's dtype.
    """

    __slots__ = ()
    # NumPy arrays on the left leave an operator to the tensor; NumPy's functions take its values.
    __array_priority__: ClassVar[int] = 100
    _keras_mask: Any = None  # What layers say of a tensor's steps, under Keras' name.
    # Equality is elementwise, so identity cannot be what hashing goes by.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The size of each axis."""
        raise NotImplementedError

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self.shape

    def numpy(self) -> Any:
        """Return a copy of the values on the host: an array, or a scalar for rank 0."""
        raise NotImplementedError

    def to_numpy(self) -> NDArray[Any]:
        """Return a copy of the values as an array, by the name that matplotlib calls."""
        return np.asarray(self.numpy())

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    __add__, __radd__ = _binary("AddV2")
    __sub__, __rsub__ = _binary("Sub")
    __mul__, __rmul__ = _binary("Mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("FloorDiv")
    __mod__, __rmod__ = _binary("FloorMod")
    __pow__, __rpow__ = _binary("Pow")
    __matmul__, __rmatmul__ = _binary("matmul")
    __and__, __rand__ = _binary("LogicalAnd")
    __or__, __ror__ = _binary("LogicalOr")
    __xor__, __rxor__ = _binary("xor")
    __lt__, __gt__ = _binary("Less")[0], _binary("Greater")[0]
    __le__, __ge__ = _binary("LessEqual")[0], _binary("GreaterEqual")[0]
    __neg__, __abs__, __invert__ = _unary("Neg"), _unary("Abs"), _unary("LogicalNot")

    def __eq__(self, other: Any) -> Any:
        try:
            return False if other is None else operators["Equal"](self, other)
        except Exception as error:
            shorten(error)
            raise

    def __ne__(self, other: Any) -> Any:
        try:
            return True if other is None else operators["NotEqual"](self, other)
        except Exception as error:
            shorten(error)
            raise

    def __getitem__(self, index: Any) -> "Tensor":
        try:
            return operators["index"](self, index)
        except Exception as error:
            shorten(error)
            raise

    @shortened
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Scalar tensor has no `len()`")
        return self.shape[0]

    @shortened
    def __iter__(self) -> Iterator["Tensor"]:
        if not self.shape:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(self.shape[0]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "Unable to avoid copy: a variable, or a value of another dtype or of a real GPU, "
                "is not shared with NumPy. Received: copy=False. Leave `copy` unset."
            )
        return np.asarray(self.numpy(), dtype=dtype)

    def __bool__(self) -> bool:
        try:
            if self.size != 1:
                raise ValueError(
                    "The truth value of a tensor with any number of elements but one is ambiguous. "
                    f"Received: shape {self.shape}. Reduce it first."
                )
            return bool(self.numpy().item())
        except Exception as error:
            shorten(error)
            raise

    def __float__(self) -> float:
        try:
            return float(self._scalar())
        except Exception as error:
            shorten(error)
            raise

    def __int__(self) -> int:
        try:
            return int(self._scalar())
        except Exception as error:
            shorten(error)
            raise

    @shortened
    def __index__(self) -> int:
        return operator.index(self._scalar())

    def _scalar(self) -> Any:
        if self.shape:
            raise TypeError(
                "Only 0-dimensional tensors can be converted to Python scalars. Received: shape "
                f"{self.shape}. Reduce it, or pick an element, first."
            )
        return self.numpy()

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if spec else str(self.numpy())


def _matmul(a: Any, b: Any) -> "Tensor":
    matrices = _rank(a) == 2 == _rank(b)
    return operators["MatMul" if matrices else "BatchMatMulV2"](
        a, b, transpose_a=False, transpose_b=False
    )


operators["matmul"] = _matmul


def _rank(x: Any) -> int:
    return x.ndim if isinstance(x, Operators) else np.ndim(x)


_ARRAYS = (Operators, np.ndarray)


def is_mask(index: Any) -> bool:
    """Whether an index is a condition: of numbers there is one an axis, and no array of them."""
    return isinstance(index, bool) or (isinstance(index, _ARRAYS) and index.dtype == np.bool_)


class Index(tuple[Any, ...]):
    """The items of an index. Unlike those of Python before 3.12, its slices have a hash."""

    __slots__ = ()

    def __hash__(self) -> int:
        parts: tuple[Any, ...] = ()
        for item in self:
            is_slice = type(item) is slice
            parts += (item.start, item.stop, item.step) if is_slice else (item,)
        return hash(parts)


def index_items(index: Any) -> Index:
    """Return the items of an index, with integers as Python's."""
    items = index if isinstance(index, tuple) else (index,)
    return Index(map(_index_item, items))


def _index_item(item: Any) -> Any:
    if item is None or item is Ellipsis:
        return item
    if type(item) is slice:
        return slice(*map(_optional_int, (item.start, item.stop, item.step)))
    return _optional_int(item)


def _optional_int(item: Any) -> int | None:
    if item is None or type(item) is int:
        return item
    is_integer = isinstance(item, int | np.integer) and not isinstance(item, bool | np.bool_)
    if is_integer or (isinstance(item, Operators) and item.shape == () and item.dtype.kind == "i"):
        return int(item)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), None (a new axis) and scalar int32 or "
        f"int64 tensors are valid indices. Received: {item!r}"
    )


@refused_members(
    "tf.Tensor",
    "T astype backing_device clip consumers cpu eval experimental_ref gpu graph "
    "is_packed item max mean min name op ravel ref reshape sum tolist transpose "
    "value_index",
)
class Tensor(Operators):
    """An immutable array on one logical device. Ops make tensors; `constant` makes the first.

    Example:
        >>> import mirrored as mr
        >>> t = mr.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> t.shape, t.dtype.name, t.device
        ((2, 2), 'float32', '/job:localhost/replica:0/task:0/device:CPU:0')
        >>> (t * 2.0).numpy()
        array([[2., 4.],
               [6., 8.]], dtype=float32)
    """

    __slots__ = (
        *("__weakref__", "_array", "_assigns", "_device", "_id", "_keras_mask", "_logits", "_spec"),
        "_storage",
    )

    _assigns: Callable[..., Any]  # Of those that are parts of variables.

    def __init__(
        self, array: Any, storage: Storage, device: Device, spec: TensorSpec | None = None
    ) -> None:
        """Wrap an array that is, or is a view of, the memory of `storage` on `device`."""
        self._array = array
        self._storage = storage
        self._device = device
        self._spec = TensorSpec(array.shape, array.dtype) if spec is None else spec
        self._id = new_id()
        # Which activation made this tensor from which logits, where one did.
        self._logits: tuple[str, Tensor] | None = None
        self._keras_mask = None

    @property
    def device(self) -> str:
        """The full name of the logical device that holds the values."""
        return self._device.full_name

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._spec.dtype

    @property
    def shape(self) -> TensorShape:
        """The size of each axis."""
        return _new_tuple(TensorShape, self._spec.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._spec.shape)

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype together."""
        return self._spec

    def numpy(self) -> Any:
        """Return a copy of the values on the host: an array, or a scalar for rank 0."""
        start = perf_counter_ns() if observers else 0
        array = self._device.backend.to_host(self._array)
        if start:
            tell(copy_work(self._device, None, array.nbytes), start)
        return array[()] if not array.shape else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and dtype in (None, self.dtype) and is_readable(self):
            return shared(self)
        return super().__array__(dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        is_told = max_version is not None and max_version[0] >= 1
        if copy is not True and is_told and is_readable(self):
            array = shared(self)
        elif copy is False:
            raise BufferError(
                "A tensor is read-only, so its memory can be shared only on the host and only with "
                "libraries that accept read-only memory. Received: copy=False. Leave `copy` unset."
            )
        else:
            array = np.asarray(self.numpy())
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        keywords = {name: value for name, value in options.items() if value is not None}
        return array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # The host.

    def set_shape(self, shape: PartialShapeLike | None) -> None:
        """Check that the tensor has a shape; it has it already.

        Args:
            shape: Its sizes, of which some may be None; None: any shape.

        Raises:
            ValueError: It has another one.
        """
        check_shape("Tensor", self.shape, shape)

    @property
    def assign(self) -> Callable[..., Any]:
        """Sets the part of a variable that this is: tensors have it that are `variable[...]`.

        Called as a variable's `assign`, with a value that broadcasts to the part's shape; the other
        elements stay as they are.
        """
        try:
            assigns: Callable[..., Any] = self._assigns
        except AttributeError:
            raise AttributeError(
                "'Tensor' object has no attribute 'assign'. Only an index of a variable can be "
                "assigned to, as in `v[0].assign(value)`; tensors never change."
            ) from None
        return assigns

    def copy_to(self, device: Device) -> "Tensor":
        """Return this tensor where it is on `device` already, else a copy there."""
        if device is self._device:
            return self
        storage = device.allocate(self.shape, self.dtype)
        start = perf_counter_ns() if observers else 0
        device.backend.copy_across(self._device.backend, self._array, storage.array)
        if start:
            device.backend.synchronize()
            tell(copy_work(self._device, device, storage.nbytes), start)
        return Tensor(storage.array, storage, device, self._spec)

    # What a program's input is filled from; no method, since each call of a program asks for it.
    _feed = property(operator.attrgetter("_array"))

    def __copy__(self) -> "Tensor":
        return self  # Nothing can change it.

    def __deepcopy__(self, memo: Any) -> "Tensor":
        return self

    def __reduce__(self) -> Any:
        return _placed, (np.asarray(self.numpy()), self.device)

    def __str__(self) -> str:
        return f"mr.Tensor({_own_lines(str(self.numpy()))}, {self._described()})"

    def __repr__(self) -> str:
        return f"<mr.Tensor: {self._described()}, numpy={value_text(self)}>"

    def _repr_html_(self, title: str = "Tensor", where: str = "") -> str | None:
        # Neither what is only recorded, nor what is not on its device yet, has the array.
        own: Any = type(self)
        array = getattr(self, "_array", None) if own._array is vars(Tensor)["_array"] else None
        if array is None:
            return None
        from mirrored import _html

        shown = _html.values(array, self._device.backend.to_host)
        place = where or f"on {self._device.short_name}"
        return _html.titled(title, f"{self._described()}, {place}", shown)

    def _described(self) -> str:
        return f"shape={self.shape}, dtype={self.dtype.name}"


def _placed(array: NDArray[Any], device_name: str) -> Tensor:
    """Return a tensor that was pickled, where the placement rules bring what asks for a device."""
    with device(device_name):
        where = place("_EagerConst", ("GPU", "CPU"))
    storage = where.allocate(array.shape, array.dtype)
    where.backend.copy_from_host(storage, array)
    return Tensor(storage.array, storage, where)


def value_text(value: Operators) -> str:
    """Return the values as reprs show them: an array's repr, a bare scalar for rank 0."""
    try:
        values = value.numpy()
    except DevicesResetError:  # Whoever looks at it, as a debugger, is shown that.
        return "<gone with its device>"
    return _own_lines(repr(values)) if value.shape else str(values)


def _own_lines(text: str) -> str:
    """Start text of several lines on a line of its own, as TensorFlow does."""
    return "\n" + text if "\n" in text else text


def _empty_tensors(pools: Sequence[Pool]) -> None:
    """Take the memory of pools from all tensors, whoever keeps them.

    They are looked for among what refers to their classes: to note each when it is made would cost
    every op more, and a list of all objects breaks threads that build a tuple meanwhile.
    """
    for candidate in gc.get_referrers(Tensor, Storage):
        kind = type(candidate)
        if kind is Tensor:
            if candidate._storage is not None and candidate._storage.pool in pools:
                candidate._array = candidate._storage = None
        elif kind is Storage and candidate.pool in pools:
            candidate.array = None


empty_with(_empty_tensors)


class _Lent:
    """What an array on a tensor's memory keeps: the tensor, and where its values are.

    It is to be read where it is, since tensors do not change.
    """

    __slots__ = ("__array_interface__", "_tensor")

    def __init__(self, tensor: Any) -> None:
        interface = np.asarray(tensor._array).__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], True)}
        self._tensor = tensor


def is_readable(tensor: Any) -> bool:
    """Return whether the host can read a tensor's memory.

    Args:
        tensor: The tensor.
    """
    return bool(tensor._device.backend.host_readable)


def shared(tensor: Any) -> NDArray[Any]:
    """Return the values where they are, for reading; their memory is counted as long.

    Args:
        tensor: The tensor, which the host can read.
    """
    tensor._device.backend.synchronize()
    return np.asarray(_Lent(tensor)).view(tensor.dtype)


def copy_to_host(tensor: Any, out: NDArray[Any]) -> None:
    """Copy the values of a tensor into an array of the host.

    Args:
        tensor: The tensor.
        out: An array of its shape and dtype.
    """
    start = perf_counter_ns() if observers else 0
    tensor._device.backend.to_host(tensor._array, out)
    if start:
        tell(copy_work(tensor._device, None, out.nbytes), start)
