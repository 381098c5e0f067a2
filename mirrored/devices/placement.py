"""The placement of ops: scopes, rules, and the log of placements.

It runs for every eager op, so each answer is worked out once and remembered, and the log costs next
to nothing while it is off.
"""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from mirrored._arguments import explained
from mirrored._contexts import Within
from mirrored._logging import logger
from mirrored.devices.device_registry import checked_bool, registry
from mirrored.devices.logical_device import Device
from mirrored.devices.names import DeviceSpec, LogicalDevice
from mirrored.errors import InvalidArgumentError

# Where several types have a kernel, the first of these that is there.
_PREFERENCE = {"GPU": 0, "CPU": 1}


class _Request:
    """One device specification, with the answers found for it so far, by the op's device types."""

    __slots__ = ("answers", "is_partial", "spec")

    def __init__(self, spec: DeviceSpec | None) -> None:
        self.spec = spec
        self.answers: dict[Any, Any] = {}
        # A scope around this one says the rest.
        self.is_partial = spec is not None and None in (spec.device_type, spec.device_index)


class _Entered:
    """A request in force, and what is in force again once its scope ends."""

    __slots__ = ("outer", "request")

    def __init__(self, request: _Request, outer: _Entered | None) -> None:
        self.request = request
        self.outer = outer


_ANYWHERE = _Request(None)
_OUTSIDE = _Entered(_ANYWHERE, None)
_scope: ContextVar[_Entered] = ContextVar("mirrored_device", default=_OUTSIDE)
# Returns the scope of the caller. `request.answers` may keep whatever depends on the scope and the
# devices alone: they are forgotten where placements may change.
active_scope: Callable[[], _Entered] = _scope.get
_requests: dict[DeviceSpec, _Request] = {}
_soft = True


class DeviceScope:
    """The context manager that ``device`` returns.

    It holds no state of its own, so one may be entered several times, in several threads.
    """

    __slots__ = ("_request",)

    def __init__(self, request: _Request) -> None:
        self._request = request

    def __reduce__(self) -> Any:
        return device, (self._request.spec,)

    def __enter__(self) -> None:
        outer, request = _scope.get(), self._request
        if request.is_partial:
            around, spec = outer.request.spec, request.spec
            if around is not None and spec is not None:
                request = _request_for(around.merged(spec))
        _scope.set(_Entered(request, outer))

    def __exit__(self, *_: object) -> None:
        _scope.set(_scope.get().outer or _OUTSIDE)


@explained
def device(device_name: str | LogicalDevice | DeviceSpec | Device | None) -> DeviceScope:
    """Ask for a device for the ops inside a ``with`` block.

    An inner scope overrides the parts that it names, as in TensorFlow: 'GPU' inside 'GPU:1' is
    'GPU:1', and 'CPU' there is 'CPU:1'. Whether the device exists is found out by the first op,
    because naming one does not initialise the devices.

    Args:
        device_name: A name in any form, as in 'GPU:1', '/gpu:1' or '/device:GPU:1'; a device; None
            to clear what an outer scope asked for.

    Raises:
        ValueError: The name cannot be parsed, or is neither a name nor a device.

    Example:
        >>> import mirrored as mr
        >>> with mr.device("CPU:0"):
        ...     mr.constant([1.0, 2.0]).device
        '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    if device_name is None:
        return DeviceScope(_ANYWHERE)
    if isinstance(device_name, Device):
        device_name.require()
        device_name = device_name.full_name
    if type(device_name) is str:
        return _scope_of(device_name)
    return DeviceScope(_request_for(to_spec(device_name)))


@functools.lru_cache(maxsize=256)
def _scope_of(name: str) -> DeviceScope:
    return DeviceScope(_request_for(to_spec(name)))


def _request_for(spec: DeviceSpec) -> _Request:
    request = _requests.get(spec)
    if request is None:  # The first time; tapes ask for a device with every op.
        request = _requests.setdefault(spec, _Request(spec))
    return request


def in_device_scope() -> bool:
    """Return whether the running code is inside a ``device`` scope."""
    return _scope.get() is not _OUTSIDE


def current_device_spec() -> DeviceSpec | None:
    """Return what the innermost ``device`` scope asks for, None outside any.

    Example:
        >>> from mirrored import devices
        >>> with devices.device("GPU:1"):
        ...     devices.current_device_spec().to_string()
        '/device:GPU:1'
    """
    return _scope.get().request.spec


def place(op_name: str, types: tuple[str, ...]) -> Device:
    """Return the device that an op runs on.

    Args:
        op_name: The op's name, for messages.
        types: The device types that the op has a kernel for, as in ``("GPU", "CPU")``.

    Raises:
        InvalidArgumentError: The device asked for is not there or cannot run the op, and soft
            placement is off; or no device can run it.

    Example:
        >>> from mirrored import devices
        >>> devices.place("MatMul", ("GPU", "CPU")).name
        '/device:CPU:0'
    """
    request = _scope.get().request
    answers = request.answers
    try:
        known: Device = answers[types]
        return known
    except KeyError:
        answer = registry.stand_in() if _node_names.get() is placed_nowhere else None
        if answer is None:
            answer = answers[types] = _choose(op_name, types, request.spec)
        return answer


def get_device(name: str | LogicalDevice | DeviceSpec | Device) -> Device:
    """Return the logical device of a name, initialising the devices.

    Args:
        name: A name in any form, or a device. Without an index it is the first of its type.

    Raises:
        InvalidArgumentError: There is no such device; the message lists those there are.

    Example:
        >>> from mirrored import devices
        >>> devices.get_device("cpu:0").name
        '/device:CPU:0'
    """
    spec = to_spec(name)
    match = find_device(spec)
    if match is None or (isinstance(name, Device) and name is not match):
        raise InvalidArgumentError(
            f"{spec.full_name()} unknown device. Received: {name!r}. {describe_devices()} "
            "Name one of these."
        )
    return match


# A device travels as its name, and is the one of that name where it arrives.
copyreg.pickle(Device, lambda device: (get_device, (device.full_name,)))


def find_device(spec: DeviceSpec) -> Device | None:
    """Return the first logical device that a spec with a type names, None where there is none."""
    if spec.device_type is None:
        return None
    return next(iter(_matching(spec, registry.devices())), None)


def logical_devices(device_type: str | None = None) -> tuple[Device, ...]:
    """Return the logical devices, CPU first, initialising them.

    Args:
        device_type: 'CPU' or 'GPU' for those only.

    Example:
        >>> from mirrored import devices
        >>> devices.logical_devices("CPU")
        (<Device /job:localhost/replica:0/task:0/device:CPU:0>,)
    """
    devices = registry.devices()
    if device_type is None:
        return devices
    return tuple(device for device in devices if device.type == device_type)


@explained
def set_soft_device_placement(enabled: bool) -> None:
    """Choose what happens where a device asked for is not there or cannot run an op.

    Args:
        enabled: True (the default) to run the op on a device that can; False for an error.

    Raises:
        ValueError: ``enabled`` is not a bool.

    Example:
        >>> import mirrored as mr
        >>> mr.config.set_soft_device_placement(False)
        >>> mr.config.get_soft_device_placement()
        False
    """
    global _soft
    _soft = checked_bool(enabled, "enabled")
    forget_placements()


def get_soft_device_placement() -> bool:
    """Return whether an op runs elsewhere when the device asked for cannot run it.

    Example:
        >>> import mirrored as mr
        >>> mr.config.get_soft_device_placement()
        True
    """
    return _soft


def forget_placements() -> None:
    """Forget the answers of ``place``, after something that they depend on has changed."""
    for request in (_ANYWHERE, *_requests.values()):
        # A new dict: a thread that is working out an answer now keeps it in the old one.
        request.answers = {}


def to_spec(name: object) -> DeviceSpec:
    """Return the specification that a user's name or device stands for.

    Raises:
        InvalidArgumentError: It is neither.
        DevicesResetError: It is a device that is gone.
    """
    match name:
        case Device():
            name.require()
            return DeviceSpec.from_string(name.full_name)
        case DeviceSpec():
            return name
        case LogicalDevice(text, _):
            return DeviceSpec.from_string(text)
        case str():
            return DeviceSpec.from_string(name)
    raise InvalidArgumentError(
        f"Expecting a string device name. Got {type(name)}({name}). Write it as in '/GPU:0'."
    )


def _choose(op_name: str, types: tuple[str, ...], spec: DeviceSpec | None) -> Device:
    devices = registry.devices()
    able = [
        device
        for kind in sorted(types, key=lambda kind: _PREFERENCE.get(kind, 2))
        for device in devices
        if device.type == kind
    ]
    if not able:
        raise InvalidArgumentError(
            f"No supported device found in available devices. Supported device types "
            f"[{', '.join(types)}]. {describe_devices()} [Op:{op_name}]"
        )
    if spec is None:
        return able[0]
    asked = spec.full_name()
    matching = _matching(spec, able)
    if matching:
        return matching[0]
    if _soft and spec.is_local:
        return able[0]
    if _matching(spec, devices):
        raise InvalidArgumentError(
            f"Could not satisfy device specification '{asked}'. enable_soft_placement={_soft:d}. "
            f"Supported device types [{', '.join(types)}]. {describe_devices()} Place the op on a "
            f"supported type, or call set_soft_device_placement(True). [Op:{op_name}]"
        )
    # Soft placement stays within the process, so it does not help where another is named.
    advice = ", or call set_soft_device_placement(True)" if spec.is_local else ""
    raise InvalidArgumentError(
        f"{asked} unknown device. {describe_devices()} Name one of these{advice}. [Op:{op_name}]"
    )


def _matching(spec: DeviceSpec, candidates: list[Device] | tuple[Device, ...]) -> list[Device]:
    return [
        device
        for device in candidates
        if spec.is_local
        and spec.device_type in (None, device.type)
        and spec.device_index in (None, device.index)
    ]


def describe_devices() -> str:
    """Return the sentence of error messages that lists the logical devices."""
    names = ", ".join(device.full_name for device in registry.devices())
    return f"All available devices [{names}]."


# ---------------------------------------------------------------------------- the log

_logged = False

# From an op's name to that of its node in the function that is being recorded, where one is.
NodeNames = Callable[[str], str | None]
_node_names: ContextVar[NodeNames | None] = ContextVar("mirrored_node_names", default=None)


def placed_nowhere(op_name: str) -> None:
    """Name no node: within `placed_as(placed_nowhere)` ops have shapes alone, and need no device.

    Args:
        op_name: The op's name.
    """


def placed_as(names: NodeNames | None) -> Within:
    """Within this context ops are placed in a function, and not executed.

    Args:
        names: From an op's name to that of its node, or to None where that was told before. Instead
            of a function None: they are executed after all. `placed_nowhere`: they are not run
            anywhere, so no device is created for them.

    Example:
        >>> from mirrored import devices
        >>> with devices.placed_as(lambda op_name: f"inner/{op_name}"):
        ...     devices.log_placement("MatMul", devices.get_device("CPU:0"))
    """
    return Within(_node_names, names)


@explained
def set_log_device_placement(enabled: bool) -> None:
    """Turn the placement log on or off, at any time.

    Each op then writes ``Executing op MatMul in device /job:localhost/...`` to the logger
    ``mirrored``, at level INFO, which goes to standard error by default. An op of a recorded
    function writes ``MatMul: (MatMul): /job:localhost/...`` once, when it is recorded, and each
    call of the function writes ``Executing op __inference_step_8 in device ...``.

    Args:
        enabled: Whether ops are logged.

    Raises:
        ValueError: ``enabled`` is not a bool.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.set_log_device_placement(True)
        >>> mr.debugging.get_log_device_placement()
        True
    """
    global _logged
    _logged = checked_bool(enabled, "enabled")
    forget_placements()  # What was planned without the log would not be logged.


def get_log_device_placement() -> bool:
    """Return whether ops are logged with their device.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.get_log_device_placement()
        False
    """
    return _logged


def log_placement(op_name: str, device: Device) -> None:
    """Write the placement log's line for an op, where the log is on.

    Example:
        >>> from mirrored import devices
        >>> devices.log_placement("MatMul", devices.get_device("CPU:0"))
    """
    if not _logged:
        return
    names = _node_names.get()
    if names is None:
        logger.info("Executing op %s in device %s", op_name, device.full_name)
        return
    op_name = "Const" if op_name == "_EagerConst" else op_name
    node = names(op_name)
    if node is not None:
        logger.info("%s: (%s): %s", node, op_name, device.full_name)
