"""The eager call of an op: convert, check, place, allocate, run, log, tell.

Everything that users compute outside a recorded program passes through `execute`. A backend's own
kernel of an op is chosen here, for programs too.
"""

import functools
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mirrored.backends import Backend
from mirrored.devices import Device, log_placement, place
from mirrored.devices.work_timing import kernel_work, observers, tell
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import as_tensors
from mirrored.ops.hooks import RecordedTensor, active_listeners, active_recorder, take_constant_room
from mirrored.ops.host_tensor import HostTensor
from mirrored.ops.narrow_floats import admitted, suited
from mirrored.ops.spec import TensorSpec, is_narrow
from mirrored.ops.tensor import Tensor

if TYPE_CHECKING:
    from mirrored.ops.op import Kernel, Op

# Of constants they give the same bits on every device: they move values, or round as IEEE 754 says.
_ALIKE = frozenset(
    ("BroadcastTo", "ConcatV2", "Fill", "Mul", "OnesLike", "RealDiv", "Reshape", "ZerosLike")
)


def execute(op: "Op", inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Tensor:
    """Run `op` on the device that the placement rules choose and return its result.

    Args:
        op: What to run.
        inputs: Tensors, variables, NumPy values or Python numbers; the latter two adopt the
            dtype of the first tensor.
        attrs: The op's attributes.

    Raises:
        InvalidArgumentError: Shapes, dtypes, values or the device do not fit the op.
        ResourceExhaustedError: The device has no room for the result.
    """
    tensors = as_tensors(inputs)
    specs = [tensor._spec for tensor in tensors]
    direct = True
    for input_spec in specs:
        if input_spec.dtype not in op.direct:
            tensors, direct = admitted(op, tensors), False
            specs = [tensor._spec for tensor in tensors]
            break
    spec = op.infer(*specs, **attrs)
    device = place(op.name, op.devices)
    if not has_kernel(op, device.backend):
        device = place(op.name, ("CPU",))
    if not direct:
        op = suited(op, specs, device.backend)
    local = [tensor if tensor._device is device else tensor.copy_to(device) for tensor in tensors]
    log_placement(op.name, device)
    recorder = active_recorder()
    is_recorded = recorder is not None and _is_recorded(op, local)
    if recorder is not None and not is_recorded and op.view is None:
        take_constant_room(spec.shape, spec.dtype.itemsize)
    if recorder is not None and is_recorded:
        output = recorder.record(op, tuple(local), attrs, spec, device)
    elif recorder is not None and _is_folded(op, local, spec):
        output = _fold(op, local, attrs, spec, device)
    else:
        # What depends on shapes alone may be asked of tensors that have no values.
        arrays = [None if op.shape_only else tensor._array for tensor in local]
        if observers:
            output = _run_observed(op, device, tensors, local, arrays, attrs, spec)
        else:
            output = _run(op, device, local, arrays, attrs, spec)
    for listener in active_listeners():
        listener.on_op(op, tensors, attrs, output)
    return output


def _is_recorded(op: "Op", tensors: list[Tensor]) -> bool:
    """Whether the result is known only when the program runs; what is constant is computed now."""
    if op.shape_only:
        return False
    for tensor in tensors:  # A generator would take longer, in each op.
        if isinstance(tensor, RecordedTensor):
            return True
    return op.random or op.stateful


def _is_folded(op: "Op", tensors: list[Tensor], spec: TensorSpec) -> bool:
    """Whether a constant of a recorded function is computed on the host, which waits for no card.

    The host computes with floats of 16 bits otherwise than cards do.
    """
    on_host = op.shape_only or all(type(tensor) is HostTensor for tensor in tensors)
    return on_host and op.name in _ALIKE and not is_narrow(spec.dtype)


def _fold(
    op: "Op", tensors: list[Any], attrs: dict[str, Any], spec: TensorSpec, device: Device
) -> Tensor:
    """Return the result of an op of constants, which stays on the host."""
    arrays = [None if op.shape_only else tensor.host_array() for tensor in tensors]
    if op.view is not None:
        return HostTensor(op.view(*arrays, **attrs), device)
    out = np.empty(spec.shape, spec.dtype)
    if op.kernel is not None:
        with np.errstate(all="ignore"):
            op.kernel(np, out, *arrays, **attrs)
    return HostTensor(out, device)


def _run(
    op: "Op",
    device: Device,
    tensors: list[Tensor],
    arrays: list[Any],
    attrs: dict[str, Any],
    spec: TensorSpec,
) -> Tensor:
    """Compute the result of an op from tensors of its device, and their arrays."""
    if op.validate is not None and device.backend.host_readable and not device.backend.streamed:
        check = op.validate(*arrays, **attrs)
        if check is not None:
            check()
    if op.view is not None:
        return Tensor(op.view(arrays[0], **attrs), tensors[0]._storage, device, spec)
    storage = device.allocate(spec.shape, spec.dtype)
    _run_kernel(op, device, storage.array, tensors, arrays, attrs)
    return Tensor(storage.array, storage, device, spec)


def _run_observed(
    op: "Op",
    device: Device,
    tensors: tuple[Tensor, ...],
    local: list[Tensor],
    arrays: list[Any],
    attrs: dict[str, Any],
    spec: TensorSpec,
) -> Tensor:
    """Compute the result of an op, and tell how long that took."""
    start = perf_counter_ns()
    output = _run(op, device, local, arrays, attrs, spec)
    if op.view is None:
        device.backend.synchronize()
        read = () if op.shape_only else tensors
        bytes_in = sum(tensor.size * tensor.dtype.itemsize for tensor in read)
        sources = [tensor._device for tensor in tensors]
        bytes_out = output.size * output.dtype.itemsize
        tell(kernel_work(op.name, sources, device, bytes_in, bytes_out), start)
    return output


def _run_kernel(
    op: "Op",
    device: Device,
    out: Any,
    tensors: list[Tensor],
    arrays: list[Any],
    attrs: dict[str, Any],
) -> None:
    backend = device.backend
    kernel, workspace_of, verdicts = implementation(op, backend)
    if kernel is None:
        raise InvalidArgumentError(f"{op.name} has no kernel for {device.full_name}.")
    if workspace_of is None:
        backend.run(kernel, backend.xp, out, *arrays, **attrs)
        return
    specs = workspace_of(*(tensor.spec for tensor in tensors), **attrs)
    # The storages live until the kernel has run; then their memory goes back.
    storages = [device.allocate(shape, dtype) for shape, dtype in specs]
    workspace = tuple(storage.array for storage in storages)
    backend.run(kernel, backend.xp, out, *arrays, workspace=workspace, **attrs)
    if verdicts:
        require_results(op, backend, workspace[0][:verdicts])


class Implementation(NamedTuple):
    """What computes an op on one device.

    Attributes:
        kernel: Writes the result.
        workspace: From the inputs' specs and the attributes to shapes and dtypes of scratch arrays;
            None: it needs none.
        verdicts: The number of rows of the first of these arrays where the kernel leaves another
            number than 0 for what it has no result for.
    """

    kernel: "Kernel | None"
    workspace: Callable[..., Sequence[tuple[Any, Any]]] | None
    verdicts: int = 0


def implementation(op: "Op", backend: Backend) -> Implementation:
    """Return what computes an op: the backend's own kernel, where it has one."""
    own = backend.kernels.get(op.name)
    if own is None:
        return _in_numpy(op)
    workspace = functools.partial(_asked, backend, own.workspace) if own.asks else own.workspace
    return Implementation(own.run, workspace, own.verdicts)


def _asked(backend: Backend, workspace: Any, *specs: Any, **attrs: Any) -> list[tuple[Any, Any]]:
    """Return the scratch arrays of a kernel that asks a library of the device for their sizes."""
    scratch: list[tuple[Any, Any]] = []
    backend.run(lambda: scratch.extend(workspace(backend.xp, *specs, **attrs)))
    return scratch


@functools.cache
def _in_numpy(op: "Op") -> Implementation:
    """Return what computes an op on the host: the same for each call, of which there are many."""
    return Implementation(op.kernel, op.workspace)


def require_results(op: "Op", backend: Backend, verdicts: Any) -> None:
    """Raise the error of an op where its kernel has left another verdict than 0.

    Raises:
        InvalidArgumentError: It has no result for a part of its inputs.
    """
    if backend.to_host(verdicts).any():
        raise InvalidArgumentError(f"{op.failure} [Op:{op.name}]")


def has_kernel(op: "Op", backend: Backend) -> bool:
    """Return whether a backend can compute an op: what is not NumPy needs kernels of its own."""
    return backend.host_readable or op.view is not None or op.name in backend.kernels
