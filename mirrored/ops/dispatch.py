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
from mirrored.devices import Device
from mirrored.devices.placement import active_scope, get_log_device_placement, log_placement, place
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
# Their kernels for the host copy values as they are, which raises no floating-point exception.
_MOVES = frozenset(("BroadcastTo", "ConcatV2", "Pack", "StridedSlice", "Transpose"))


class _Moving:
    """What these compute with: NumPy, but for copies by assignment, in half the time."""

    concatenate = staticmethod(np.concatenate)
    stack = staticmethod(np.stack)

    @staticmethod
    def copyto(target: Any, source: Any) -> None:
        target[...] = source


class _Plan:
    """What is the same in all calls of an op with such inputs and attributes.

    Attributes:
        op: What computes it.
        spec: The shape and dtype of the result.
        device: Where it is computed.
        implementation: What computes it there, once that was looked up.
        bare: Whether nothing of the backend's is needed around the kernel.
        scratch: The shapes and dtypes of its workspace, once they were computed.
    """

    __slots__ = ("bare", "device", "implementation", "op", "scratch", "spec")

    def __init__(self, op: "Op", spec: TensorSpec, device: Device) -> None:
        self.op = op
        self.spec = spec
        self.device = device
        self.implementation: Any = None  # An `Implementation`.
        self.bare = False
        self.scratch: Sequence[tuple[Any, Any]] | None = None


# Attributes of these types, and tuples of them, keep nothing large alive.
_PLAIN = (bool, int, float, str, slice, type(None), type(...), np.dtype)
_MOST_PLANS = 4096  # For one scope of placement, until they are forgotten.


def execute(
    op: "Op", inputs: tuple[Any, ...], attrs: dict[str, Any], key: tuple[Any, ...] | None = None
) -> Tensor:
    """Run `op` on the device that the placement rules choose and return its result.

    Args:
        op: What to run.
        inputs: Tensors, variables, NumPy values or Python numbers; the latter two adopt the
            dtype of the first tensor.
        attrs: The op's attributes.
        key: What calls with the same plan have in common, where the inputs are tensors and the
            caller knows it; None: the op, the specs of the inputs and the attributes.

    Raises:
        InvalidArgumentError: Shapes, dtypes, values or the device do not fit the op.
        ResourceExhaustedError: The device has no room for the result.
    """
    if key is None:
        signature: list[Any] = [op]
        for value in inputs:
            if not isinstance(value, Tensor):
                return execute(op, as_tensors(inputs), attrs)
            signature.append(value._spec)
        signature.extend(attrs.items())
        key = tuple(signature)
    recorder = active_recorder()
    try:
        plan = active_scope().request.answers.get(key)
    except TypeError:  # An attribute has no hash.
        plan = key = None
    if plan is None:
        kept = recorder is None or not recorder.shapes_alone
        inputs, plan = _planned(op, inputs, attrs, key if kept else None)
    device = plan.device
    local: Sequence[Tensor] = inputs
    for tensor in inputs:
        if tensor._device is not device:
            local = [tensor.copy_to(device) for tensor in inputs]
            break
    if recorder is None:
        output = _run(plan, inputs, local, attrs)
    elif _is_recorded(plan.op, local):
        output = recorder.record(plan.op, tuple(local), attrs, plan.spec, device)
    else:
        output = _constant(plan, inputs, local, attrs)
    for listener in active_listeners():
        listener.on_op(plan.op, inputs, attrs, output)
    return output


def _planned(
    op: "Op", tensors: tuple[Tensor, ...], attrs: dict[str, Any], key: tuple[Any, ...] | None
) -> tuple[tuple[Tensor, ...], _Plan]:
    """Return the inputs as an op admits them, and the plan of its call.

    Args:
        op: The op.
        tensors: Its inputs.
        attrs: Its attributes.
        key: Where the plan is kept for later calls; None: it is not.
    """
    specs, direct = [tensor._spec for tensor in tensors], True
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
    plan = _Plan(op, spec, device)
    log_placement(op.name, device)
    lasts = direct and not op.random and not get_log_device_placement()
    if key and lasts and _is_plain(tuple(attrs.values())):
        known = active_scope().request.answers
        if len(known) >= _MOST_PLANS:
            known.clear()
        known[key] = plan
    return tensors, plan


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, _PLAIN)


def _is_recorded(op: "Op", tensors: Sequence[Tensor]) -> bool:
    """Whether the result is known only when the program runs; what is constant is computed now."""
    if op.shape_only:
        return False
    for tensor in tensors:  # A generator would take longer, in each op.
        if isinstance(tensor, RecordedTensor):
            return True
    return op.random or op.stateful


def _constant(
    plan: _Plan, tensors: tuple[Tensor, ...], local: Sequence[Any], attrs: dict[str, Any]
) -> Tensor:
    """Compute a constant of a recorded function, on the host where that waits for no card.

    The host computes with floats of 16 bits otherwise than cards do.
    """
    op, (shape, dtype) = plan.op, plan.spec
    if op.view is None:
        take_constant_room(shape, dtype.itemsize)
    on_host = op.shape_only or all(type(tensor) is HostTensor for tensor in local)
    if not on_host or op.name not in _ALIKE or is_narrow(dtype):
        return _run(plan, tensors, local, attrs)
    arrays = [None if op.shape_only else tensor.host_array() for tensor in local]
    if op.view is not None:
        return HostTensor(op.view(*arrays, **attrs), plan.device)
    out = np.empty(shape, dtype)
    if op.kernel is not None:
        with np.errstate(all="ignore"):
            op.kernel(np, out, *arrays, **attrs)
    return HostTensor(out, plan.device)


def _run(
    plan: _Plan, tensors: tuple[Tensor, ...], local: Sequence[Tensor], attrs: dict[str, Any]
) -> Tensor:
    """Compute the result of a call, and tell observers how long that took.

    Args:
        plan: The plan.
        tensors: The inputs.
        local: The inputs on the device.
        attrs: The attributes.
    """
    start = perf_counter_ns() if observers else 0
    op, device, spec = plan.op, plan.device, plan.spec
    backend = device.backend
    args: list[Any] = [backend.xp, None]
    for tensor in local:
        # What depends on shapes alone may be asked of tensors that have no values.
        args.append(None if op.shape_only else tensor._array)
    if op.validate is not None and backend.host_readable and not backend.streamed:
        check = op.validate(*args[2:], **attrs)
        if check is not None:
            check()
    if op.view is not None:
        return Tensor(op.view(args[2], **attrs), local[0]._storage, device, spec)
    if plan.implementation is None:
        chosen = implementation(op, backend)
        on_host = backend.host_readable and not backend.streamed
        plan.bare = op.name in _MOVES and chosen.kernel is op.kernel and on_host
        plan.implementation = chosen
    kernel, workspace_of, verdicts = plan.implementation
    storage = device.allocate(spec.shape, spec.dtype)
    args[1] = storage.array
    if plan.bare:
        args[0] = _Moving
        kernel(*args, **attrs)
    elif workspace_of is None:
        backend.call(kernel, args, attrs)
    else:
        if plan.scratch is None:
            plan.scratch = workspace_of(*[tensor._spec for tensor in local], **attrs)
        # The storages live until the kernel has run; then their memory goes back.
        scratch = [device.allocate(shape, dtype) for shape, dtype in plan.scratch]
        workspace = tuple([part.array for part in scratch])
        backend.call(kernel, args, {**attrs, "workspace": workspace})
        if verdicts:
            require_results(op, backend, workspace[0][:verdicts])
    output = Tensor(storage.array, storage, device, spec)
    if start:
        _tell(plan, tensors, output, start)
    return output


def _tell(plan: _Plan, tensors: tuple[Tensor, ...], output: Tensor, start: int) -> None:
    """Tell observers how long an op has taken."""
    plan.device.backend.synchronize()
    read = () if plan.op.shape_only else tensors
    bytes_in = sum(tensor.size * tensor.dtype.itemsize for tensor in read)
    sources = [tensor._device for tensor in tensors]
    bytes_out = output.size * output.dtype.itemsize
    tell(kernel_work(plan.op.name, sources, plan.device, bytes_in, bytes_out), start)


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
