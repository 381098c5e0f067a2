"""The eager call of an op: convert, check, place, allocate, run, log, tell.

Everything that users compute outside a recorded program passes through `execute`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.devices import Device, log_placement, place
from mirrored.errors import InvalidArgumentError
from mirrored.ops.listeners import active_listeners
from mirrored.ops.registry import Op, set_executor
from mirrored.ops.spec import (
    ALL_DTYPES,
    FLOATS,
    DType,
    as_dtype,
    as_shape,
    bool_,
    check_dtype,
    float32,
    int32,
    int64,
)
from mirrored.ops.tensor import Tensor


def execute(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Tensor:
    """Run `op` on the device that the placement rules choose and return its result.

    Args:
        op: what to run.
        inputs: tensors, variables, NumPy values or Python numbers; the latter two adopt the
            dtype of the first tensor.
        attrs: the op's attributes.

    Raises:
        InvalidArgumentError: shapes, dtypes, values or the device do not fit the op.
        ResourceExhaustedError: the device has no room for the result.
    """
    tensors = _as_tensors(inputs)
    for tensor in tensors:
        check_dtype(op.name, tensor.dtype, op.dtypes)
    spec = op.infer(*(tensor.spec for tensor in tensors), **attrs)
    device = place(op.name, op.devices)
    local = [tensor.copy_to(device) for tensor in tensors]
    log_placement(op.name, device)
    arrays = [tensor._array for tensor in local]
    if op.validate is not None and device.backend.host_readable:
        op.validate(*arrays, **attrs)
    if op.view is not None:
        output = Tensor(op.view(arrays[0], **attrs), local[0]._storage, device)
    else:
        storage = device.allocate(spec.shape, spec.dtype)
        _run_kernel(op, device, storage.array, tensors, arrays, attrs)
        output = Tensor(storage.array, storage, device)
    for listener in active_listeners():
        listener.on_op(op, tensors, attrs, output)
    return output


set_executor(execute)


def _run_kernel(
    op: Op,
    device: Device,
    out: Any,
    tensors: tuple[Tensor, ...],
    arrays: list[Any],
    attrs: dict[str, Any],
) -> None:
    backend = device.backend
    kernel = backend.kernels.get(op.name, op.kernel)
    if kernel is None:
        raise InvalidArgumentError(f"{op.name} has no kernel for {device.full_name}.")
    if op.workspace is None:
        backend.run(kernel, backend.xp, out, *arrays, **attrs)
        return
    specs = op.workspace(*(tensor.spec for tensor in tensors), **attrs)
    # The storages live until the kernel has run; then their memory goes back.
    storages = [device.allocate(spec.shape, spec.dtype) for spec in specs]
    workspace = tuple(storage.array for storage in storages)
    backend.run(kernel, backend.xp, out, *arrays, workspace=workspace, **attrs)


def _as_tensors(inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    dtype = None
    for value in inputs:
        if hasattr(value, "_as_tensor") or isinstance(value, Tensor):
            dtype = value.dtype
            break
    return tuple(value if type(value) is Tensor else adopt(value, dtype) for value in inputs)


def adopt(value: Any, dtype: DType | None) -> Tensor:
    """Return `value` as a tensor; numbers and NumPy values take `dtype` where they can.

    A float does not become an integer: it stays one, and the op that meets both says so.
    """
    if isinstance(value, Tensor):
        return value
    as_tensor = getattr(value, "_as_tensor", None)
    if as_tensor is not None:
        tensor: Tensor = as_tensor()
        return tensor
    if dtype is not None:
        # Straight to the dtype: by way of float32 a Python float would lose digits.
        array = _numeric(value)
        if _adopts(array.dtype, dtype):
            return from_host(array.astype(dtype, copy=False))
    return from_host(to_array(value))


def _adopts(given: DType, dtype: DType) -> bool:
    """Whether numbers of dtype `given` become `dtype` beside a tensor that has it."""
    if bool_ in (given, dtype):
        return given == dtype
    return dtype in FLOATS or given.kind in "iu"


def to_array(value: Any, dtype: DType | None = None) -> NDArray[Any]:
    """Return `value` as an array of a dtype that tensors have, without copying where it can.

    Python floats become float32 and Python integers int32; arrays keep their dtype.

    Raises:
        TypeError: it holds objects, strings, complex numbers or rows of different lengths.
    """
    array = _numeric(value)
    if dtype is not None:
        return array.astype(dtype, copy=False)
    array = _narrowed(array, value)
    if array.dtype not in ALL_DTYPES:
        raise TypeError(_unsupported(array, value))
    return array


def _numeric(value: Any) -> NDArray[Any]:
    """Return `value` as an array of numbers or booleans, of whatever width NumPy gives them."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(
            f"Cannot make a tensor of {type(value).__name__}: {error}. Give numbers in rows of "
            "equal length."
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(_unsupported(array, value))
    return array


def _narrowed(array: NDArray[Any], value: Any) -> NDArray[Any]:
    """Give Python's numbers, which NumPy makes 64 bits wide, the dtypes of TensorFlow."""
    if array.dtype.kind == "f" and not _holds_numpy(value):
        return array.astype(float32)
    if array.dtype == int64 and not _holds_numpy(value):
        limits = np.iinfo(int32)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise TypeError(
                f"Python integers become int32. Received: {value!r}, which does not fit. Give "
                "dtype='int64'."
            )
        return array.astype(int32)
    return array


def _holds_numpy(value: Any) -> bool:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, np.ndarray | np.generic)


def _unsupported(array: NDArray[Any], value: Any) -> str:
    names = ", ".join(sorted(each.name for each in ALL_DTYPES))
    return (
        f"Cannot make a tensor of dtype {array.dtype}: tensors are {names}. Received: "
        f"{value!r:.80}. Convert it first, as with .astype('float32')."
    )


def from_host(array: NDArray[Any]) -> Tensor:
    """Return a copy of `array` as a tensor on the device that the placement rules choose."""
    device = place("_EagerConst", ("GPU", "CPU"))
    tensor = transfer(array, device)
    log_placement("_EagerConst", device)
    return tensor


def transfer(array: NDArray[Any], device: Device) -> Tensor:
    """Return a copy of a host array on `device`. It feeds data: it is no op and not logged."""
    storage = device.allocate(array.shape, array.dtype)
    device.backend.copy_from_host(storage, array)
    return Tensor(storage.array, storage, device)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """Return a tensor that holds a copy of `value`.

    Args:
        value: a number, nested lists of numbers or an array. Python floats become float32 and
            Python integers int32; arrays keep their dtype.
        dtype: the dtype to convert to.
        shape: the shape to give it; a single number fills it, otherwise the counts agree.
        name: accepted for compatibility; eager tensors have no name.

    Raises:
        TypeError: `value` is not made of numbers, or its count does not fit `shape`.

    Example:
        >>> import mirrored as mr
        >>> mr.constant(2.0, shape=(2, 2)).numpy()
        array([[2., 2.],
               [2., 2.]], dtype=float32)
    """
    del name
    array = to_array(value, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        array = _with_shape(array, as_shape(shape), value)
    return from_host(array)


def _with_shape(array: NDArray[Any], shape: tuple[int, ...], value: Any) -> NDArray[Any]:
    if array.size == int(np.prod(shape)):
        return array.reshape(shape)
    if array.ndim == 0 or array.size == 1:
        return np.broadcast_to(array.reshape(()), shape)
    raise TypeError(
        f"Eager execution of mr.constant with unsupported shape. Tensor {array} (converted from "
        f"{value!r}) has {array.size} elements, but got `shape` {shape} with "
        f"{int(np.prod(shape))} elements."
    )


def convert_to_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return `value` as a tensor: itself, a variable's value, or a copy of numbers.

    Args:
        value: a tensor, a variable, an array, a number or nested lists of numbers.
        dtype: the dtype that numbers are converted to and that a tensor must have.

    Raises:
        TypeError: `value` is not made of numbers.
        ValueError: a tensor has another dtype than `dtype`.

    Example:
        >>> import mirrored as mr
        >>> mr.convert_to_tensor([1, 2]).dtype.name
        'int32'
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        tensor = adopt(value, None)
        if wanted is not None and tensor.dtype != wanted:
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
                f"{tensor.dtype.name}: {tensor!r}. Use mr.cast to convert it."
            )
        return tensor
    return from_host(to_array(value, wanted))
