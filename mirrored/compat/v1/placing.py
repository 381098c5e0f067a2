"""Where the operations of a graph run, and the lines that tell of it."""

from collections.abc import Sequence
from typing import Any

from mirrored._logging import logger
from mirrored.compat.v1.graph import Graph
from mirrored.compat.v1.graph_elements import Operation
from mirrored.compat.v1.messages import ConfigProto
from mirrored.devices import Device, DeviceSpec, logical_devices
from mirrored.devices.info import get_device_details
from mirrored.errors import InvalidArgumentError
from mirrored.ops.dispatch import has_kernel
from mirrored.ops.op import OPS
from mirrored.ops.spec import FLOATS, bool_, int64, uint32

_ANY = ("GPU", "CPU")
# What runs on the CPU alone.
_ON_HOST = frozenset(("PyFunc", "PyFuncStateless", "Print"))
# What a GPU runs if a program asks for one.
_ON_HOST_FIRST = frozenset(("IteratorGetNext", "MakeIterator"))
# What a GPU computes of floats alone, since TensorFlow has no other kernels.
_PRODUCTS = frozenset(("MatMul", "BatchMatMulV2", "Einsum", "MatVec", "Tensordot"))
# The dtypes of variables that a GPU keeps besides floats, by TensorFlow's kernels.
_KEPT = {bool_, int64, uint32}

# What begins a graph: TensorFlow places it where its only consumers are.
_BEGINNINGS = frozenset(("Const", "Placeholder"))
# What tells of shapes alone, and is placed with what it tells of.
_OF_SHAPES = frozenset(("Shape", "Size", "Rank"))


class Placement:
    """The devices of a graph's operations, found for those that are new when a run starts.

    Args:
        graph: The graph.
        options: Whether what cannot run where it is to be is placed elsewhere, and whether a line
            tells of each.
    """

    def __init__(self, graph: Graph, options: ConfigProto) -> None:
        self._graph = graph
        self._soft, self._logs = options.allow_soft_placement, options.log_device_placement
        self._devices: dict[Operation, Device] = {}
        if self._logs:
            _tell_devices()

    def place(self) -> None:
        """Place what the graph has got since the last run.

        Raises:
            InvalidArgumentError: An operation cannot run where it is to be. None is placed then.
        """
        operations = self._graph.get_operations()
        if len(operations) == len(self._devices):
            return
        new = operations[len(self._devices) :]
        devices: dict[Operation, Device] = {}
        for operation in new:  # What begins a graph is placed with what it is for.
            if operation.type not in _BEGINNINGS:
                devices[operation] = self._device(operation, self._near(operation, devices))
        consumers = _consumers(new)
        for operation in new:
            if operation.type in _BEGINNINGS:
                # Others that begin a graph are of no device yet.
                around = {devices.get(consumer) for consumer in consumers[operation]} - {None}
                near = around.pop() if len(around) == 1 else None
                devices[operation] = self._device(operation, near)
        self._devices.update((op, devices[op]) for op in new)
        if self._logs:
            for operation in new:
                device = devices[operation].full_name
                logger.info("%s: (%s): %s", operation.name, operation.type, device)

    def _near(self, operation: Operation, devices: dict[Operation, Device]) -> Device | None:
        """Return the device of what an operation tells the shape of, where a run finds that."""
        if operation.type not in _OF_SHAPES or not operation.inputs:
            return None
        (value, *_) = operation.inputs
        fixed = value._shape is not None and None not in value._shape
        return None if fixed else {**self._devices, **devices}.get(value.op)

    def device_of(self, operation: Operation) -> Device:
        """Return the device of an operation that was placed."""
        return self._devices[operation]

    def _device(self, operation: Operation, near: Device | None) -> Device:
        """Return the device that an operation was drawn for; without any, one that is near."""
        there = logical_devices()
        able = [device for kind in _types_of(operation) for device in there if device.type == kind]
        spec = operation.node.device
        if spec is None:
            return near if near in able else able[0]
        matching = [device for device in able if _matches(spec, device)]
        if matching:
            return matching[0]
        # Another type or number will do, another process would not.
        if self._soft and spec.is_local:
            return able[0]
        start = f"Cannot assign a device for operation {operation.name}: "
        asked = spec.to_string()
        if not any(_matches(spec, device) for device in there):
            names = ", ".join(device.full_name for device in there)
            raise InvalidArgumentError(
                f"{start}{{{{node {operation.name}}}}} was explicitly assigned to {asked} but "
                f"available devices are [ {names} ]. Make sure the device specification refers to "
                f"a valid device.\n\t [[{{{{node {operation.name}}}}}]]"
            )
        raise InvalidArgumentError(
            f"{start}Could not satisfy explicit device specification '{asked}' because no "
            f"supported kernel for {spec.device_type} devices is available.\n"
            f"{_colocation(operation)}\n\t [[{{{{node {operation.name}}}}}]]"
        )


def _consumers(operations: Sequence[Operation]) -> dict[Operation, list[Operation]]:
    """Return the operations that take or wait for each of some, among these."""
    consumers: dict[Operation, list[Operation]] = {key: [] for key in operations}
    for operation in operations:
        for producer in {*operation.control_inputs, *(tensor.op for tensor in operation.inputs)}:
            if producer in consumers:
                consumers[producer].append(operation)
    return consumers


def _matches(spec: DeviceSpec, device: Device) -> bool:
    return (
        spec.is_local
        and spec.device_type in (None, device.type)
        and spec.device_index in (None, device.index)
    )


def _types_of(operation: Operation) -> tuple[str, ...]:
    """Return the types of device that an operation may run on, best first."""
    if operation.type in _ON_HOST_FIRST:
        return _ANY[::-1]
    factors = operation.inputs if operation.type in _PRODUCTS else ()
    if (
        operation.type in _ON_HOST
        or any(factor._dtype not in FLOATS for factor in factors)
        or any(variable._dtype not in FLOATS | _KEPT for variable in _variables_of(operation))
    ):
        return ("CPU",)
    op: Any = OPS.get(operation.type)
    if op is None:
        return _ANY
    there = {item.type for item in logical_devices() if has_kernel(op, item.backend)}
    return tuple(kind for kind in _ANY if kind in op.devices and kind in there)


def _colocation(operation: Operation) -> str:
    """Return what TensorFlow tells of the operations that have to be where one is."""
    variables = _variables_of(operation)
    operations = operation.graph.get_operations() if variables else ()
    members = [other for other in operations if variables & _variables_of(other)] or [operation]
    types = {member.type: " ".join(_types_of(member)) for member in members}
    return "\n".join(
        [
            "Colocation Debug Info:",
            "Colocation group had the following types and supported devices: ",
            *(f"{kind}: {able} " for kind, able in types.items()),
            "",
            "Colocation members, user-requested devices, and framework assigned devices, if any:",
            *(f"  {op.name} ({op.type}) {op.device}".rstrip() for op in members),
        ]
    )


def _variables_of(operation: Operation) -> set[Any]:
    return {*operation.keeps, *operation.reads, *operation.writes}


def _tell_devices() -> None:
    """Write which GPUs a session finds."""
    gpus = logical_devices("GPU")
    if not gpus:
        logger.info("Device mapping: no known devices.")
        return
    logger.info("Device mapping:")
    for gpu in gpus:
        details = get_device_details(gpu.physical)
        card = "simulated"
        if not gpu.simulated:
            card = f"name: {details['device_name']}, pci bus id: {details['pci_bus_id']}"
        number = gpu.physical.name.rpartition(":")[2]
        logger.info("%s -> device: %s, %s", gpu.full_name, number, card)
