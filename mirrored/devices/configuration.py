"""The functions of ``mr.config`` that set and return how devices are used.

Each checks everything before it changes anything, and refuses changes once devices are in use.
"""

import math
from collections.abc import Sequence

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored.backends import MEGABYTE, product_settings
from mirrored.devices.device_registry import (
    MOST_SIMULATED,
    LogicalDeviceConfiguration,
    Simulation,
    checked_bool,
    checked_fraction,
    registry,
)
from mirrored.devices.names import PhysicalDevice
from mirrored.errors import InvalidArgumentError

_POLICIES = ("silent", "warn", "explicit", "silent_for_int32")
_policy = "silent"


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the physical devices that logical ones are made of.

    Args:
        device_type: 'CPU' or 'GPU' for those only.

    Example:
        >>> import mirrored as mr
        >>> mr.config.get_visible_devices()
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    return [device for device in registry.visible if device_type in (None, device.device_type)]


def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str | None = None
) -> None:
    """Choose the physical devices that logical ones are made of.

    Args:
        devices: One device or a list of them; ``[]`` hides every device of the type.
        device_type: 'CPU' or 'GPU' to choose among those only; None replaces the whole list.

    Raises:
        ValueError: A device is not there, is of another type, or is named twice.
        RuntimeError: The devices are initialised, and this would change them.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(4)
        >>> gpus = mr.config.list_physical_devices("GPU")
        >>> mr.config.set_visible_devices(gpus[1:], "GPU")
        >>> len(mr.config.list_logical_devices("GPU"))
        3
    """
    # A physical device is a tuple itself.
    single = isinstance(devices, PhysicalDevice) or not isinstance(devices, (list, tuple))
    with registry.lock:
        listed = [devices] if single else devices
        chosen = [registry.known(device, device_type) for device in listed]
        if len(set(chosen)) < len(chosen):
            raise InvalidArgumentError(f"No duplicates allowed in `devices` argument: {chosen}")
        kept = [
            device
            for device in registry.visible
            if device_type is not None and device.device_type != device_type
        ]
        if registry.visible == kept + chosen:
            return
        registry.refuse_if_initialised("Visible devices")
        registry.show(kept + chosen)


def get_memory_growth(device: PhysicalDevice) -> bool | None:
    """Return what was set by ``set_memory_growth``, None where nothing was.

    Args:
        device: A physical device.

    Raises:
        ValueError: There is no such device.

    Example:
        >>> import mirrored as mr
        >>> cpu = mr.config.list_physical_devices("CPU")[0]
        >>> print(mr.config.experimental.get_memory_growth(cpu))
        None
    """
    return registry.growth.get(registry.known(device))


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Choose whether a GPU's memory is taken as it is needed or all at the start.

    It must be the same for every visible GPU, which is checked when they are initialised. The
    environment variable MIRRORED_FORCE_GPU_ALLOW_GROWTH (or TF_FORCE_GPU_ALLOW_GROWTH), ``true``
    or ``false``, overrides it. A simulated GPU takes host memory as it is needed either way.

    Args:
        device: A physical GPU.
        enable: True to start small and extend; memory is never given back to the card.

    Raises:
        ValueError: There is no such device, it is no GPU, or it was split into logical ones.
        RuntimeError: The devices are initialised, and this would change them.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> gpu = mr.config.list_physical_devices("GPU")[0]
        >>> mr.config.experimental.set_memory_growth(gpu, True)
        >>> mr.config.experimental.get_memory_growth(gpu)
        True
    """
    with registry.lock:
        known = registry.known(device)
        if known in registry.logical:
            raise InvalidArgumentError(
                "Cannot set memory growth on device when virtual devices configured"
            )
        if known.device_type != "GPU":
            raise InvalidArgumentError(
                "Cannot set memory growth on non-GPU and non-Pluggable devices"
            )
        if registry.growth.get(known) is checked_bool(enable, "enable"):
            return
        registry.refuse_if_initialised("Physical devices")
        registry.growth[known] = bool(enable)


def get_memory_fraction(device: PhysicalDevice) -> float | None:
    """Return what was set by ``set_memory_fraction``, None where nothing was.

    Args:
        device: A physical device.

    Raises:
        ValueError: There is no such device.
    """
    return registry.fractions.get(registry.known(device))


def set_memory_fraction(device: PhysicalDevice, fraction: float) -> None:
    """Limit this process to a part of a GPU's memory.

    Of a simulated GPU without a memory limit it is a part of the host's memory.

    Args:
        device: A physical GPU.
        fraction: The part, at most 1.0; 0 to set none.

    Raises:
        ValueError: There is no such device, it is no GPU, it was split into logical ones, or the
            fraction is not from 0 to 1.
        RuntimeError: The devices are initialised, and this would change them.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1, memory_limit=100)
        >>> gpu = mr.config.list_physical_devices("GPU")[0]
        >>> mr.config.experimental.set_memory_fraction(gpu, 0.4)
        >>> mr.config.experimental.get_memory_fraction(gpu)
        0.4
    """
    wanted = checked_fraction(fraction, "fraction")
    with registry.lock:
        known = registry.known(device)
        if known in registry.logical:
            raise InvalidArgumentError(
                "Cannot set a memory fraction on device when virtual devices configured: each "
                "virtual device has a separate limit."
            )
        if known.device_type != "GPU":
            raise InvalidArgumentError("Cannot set a memory fraction on non-GPU devices")
        if registry.fractions.get(known) == wanted:
            return
        registry.refuse_if_initialised("Physical devices")
        registry.fractions.pop(known, None)
        if wanted is not None:
            registry.fractions[known] = wanted


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """Return what was set by ``set_logical_device_configuration``, None where nothing was.

    Args:
        device: A physical device.

    Raises:
        ValueError: There is no such device.

    Example:
        >>> import mirrored as mr
        >>> cpu = mr.config.list_physical_devices("CPU")[0]
        >>> print(mr.config.get_logical_device_configuration(cpu))
        None
    """
    parts = registry.logical.get(registry.known(device))
    return None if parts is None else list(parts)


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Split a physical device into logical ones.

    Args:
        device: A physical device.
        logical_devices: One configuration for each logical device. A GPU's need a memory limit;
            a CPU's may have one.

    Raises:
        ValueError: There is no such device, it cannot be split, or a configuration is unusable.
        RuntimeError: The devices are initialised, and this would change them.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> gpu = mr.config.list_physical_devices("GPU")[0]
        >>> half = mr.config.LogicalDeviceConfiguration(memory_limit=512)
        >>> mr.config.set_logical_device_configuration(gpu, [half, half])
        >>> [device.name for device in mr.config.list_logical_devices("GPU")]
        ['/device:GPU:0', '/device:GPU:1']
    """
    with registry.lock:
        known = registry.known(device)
        parts = _checked_parts(known, logical_devices)
        if known in registry.fractions:
            raise InvalidArgumentError("Cannot split a device whose memory fraction was set")
        if registry.logical.get(known) == parts:
            return
        registry.refuse_if_initialised("Virtual devices")
        registry.logical[known] = parts


def set_simulated_gpus(count: int, memory_limit: float | None = None) -> None:
    """Stand in for GPUs with host memory and NumPy, in place of any real ones.

    They are physical GPUs numbered from 0, and everything said of GPUs holds for them. What was
    set for the GPUs before is forgotten. The environment variable MIRRORED_SIMULATED_GPUS=4 does
    the same for a program as it is; this call overrides it.

    Args:
        count: How many; 0 for none, which brings real ones back.
        memory_limit: The memory of each in MB (2**20 bytes), None for no limit.

    Raises:
        ValueError: The count is not a whole number from 0 to 1024, or the limit is not above 0.
        RuntimeError: The devices are initialised, and this would change them.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(4, memory_limit=256)
        >>> len(mr.config.list_logical_devices("GPU"))
        4
    """
    limit = _checked_limit(memory_limit)
    wanted = Simulation(_checked_count(count), None if limit is None else int(limit * MEGABYTE))
    with registry.lock:
        if registry.simulation == wanted:
            return
        registry.refuse_if_initialised("Physical devices")
        registry.simulation = wanted


def set_device_policy(device_policy: str | None) -> None:
    """Accept TensorFlow's setting for what happens when an input is on another device.

    Here an input is always copied where it is needed, without a word, whatever the policy.

    Args:
        device_policy: None or 'silent', 'warn', 'explicit', 'silent_for_int32'.

    Raises:
        ValueError: The policy is none of these.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_device_policy("silent")
    """
    global _policy
    if device_policy is not None and device_policy not in _POLICIES:
        listed = ", ".join(map(repr, _POLICIES))
        raise InvalidArgumentError(
            f"Invalid argument `device_policy`: {device_policy!r}. Use None or one of {listed}."
        )
    _policy = device_policy or "silent"


def get_device_policy() -> str:
    """Return what was set by ``set_device_policy``, by default 'silent'.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.get_device_policy()
        'silent'
    """
    return _policy


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Choose whether float32 products on GPUs may be computed in TensorFloat-32.

    The inputs are then rounded from 23 bits of mantissa to 10; sums are float32. It is enabled by
    default, as in TensorFlow, and matters on GPUs of compute capability 8.0 and above alone. A
    recorded step follows from its next run on.

    Args:
        enabled: Whether they may.

    Raises:
        ValueError: `enabled` is not a bool.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.enable_tensor_float_32_execution(False)
        >>> mr.config.experimental.tensor_float_32_execution_enabled()
        False
        >>> mr.config.experimental.enable_tensor_float_32_execution(True)
    """
    product_settings.allow_tensor_float_32(checked_bool(enabled, "enabled"))


def tensor_float_32_execution_enabled() -> bool:
    """Return whether float32 products on GPUs may be computed in TensorFloat-32.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.tensor_float_32_execution_enabled()
        True
    """
    return product_settings.tensor_float_32_allowed()


def _checked_count(value: object) -> int:
    """Return a whole number from 0 that a user gave; else raise."""
    count = as_integer(value)
    if count is None or count < 0:
        raise InvalidArgumentError(
            f"`count` must be a whole number, 0 or more. Received: count={value!r}"
        )
    if count > MOST_SIMULATED:
        raise InvalidArgumentError(
            f"At most {MOST_SIMULATED} simulated GPUs are possible. Received: count={value!r}"
        )
    return count


def _checked_limit(megabytes: object) -> float | None:
    """Return a memory limit in MB that a user gave, None for no limit; else raise."""
    if megabytes is None:
        return None
    if (
        isinstance(megabytes, bool)
        or not isinstance(megabytes, (int, float))
        or not 0 < megabytes < math.inf  # Which NaN is not either.
    ):
        raise InvalidArgumentError(
            "`memory_limit` must be a number of MB above 0, or None for no limit. "
            f"Received: memory_limit={megabytes!r}"
        )
    return megabytes


def _checked_parts(device: PhysicalDevice, parts: object) -> list[LogicalDeviceConfiguration]:
    """Return the parts that a user wants of a device; raise where it cannot be split so."""
    if device.device_type not in ("CPU", "GPU"):
        raise InvalidArgumentError(f"Virtual devices are not supported for {device.device_type}")
    # One configuration alone is a tuple too, but of numbers.
    listed = list(parts) if isinstance(parts, (list, tuple)) else []
    if not listed or not all(isinstance(part, LogicalDeviceConfiguration) for part in listed):
        raise InvalidArgumentError(
            "`logical_devices` must be a list of at least one LogicalDeviceConfiguration. "
            f"Received: {parts!r}"
        )
    for part in listed:
        _checked_limit(part.memory_limit)
        if device.device_type == "GPU" and part.memory_limit is None:
            raise InvalidArgumentError("Setting memory limit is required for GPU virtual devices")
    if len({part.experimental_priority is None for part in listed}) > 1:
        raise InvalidArgumentError("priority must be specified for all virtual devices")
    return listed


explain_functions(__name__, all_but="get_device_policy tensor_float_32_execution_enabled")
