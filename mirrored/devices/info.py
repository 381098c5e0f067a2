"""Information on devices: lists, details and memory use.

What lists logical devices or measures them initialises all; the rest leaves them as they are, so
that they can still be configured afterwards.
"""

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored.backends import Hardware
from mirrored.devices.configuration import get_visible_devices
from mirrored.devices.device_registry import checked_bool, registry
from mirrored.devices.logical_device import Device
from mirrored.devices.names import DeviceSpec, LogicalDevice, PhysicalDevice
from mirrored.devices.placement import describe_devices, find_device, to_spec
from mirrored.errors import InvalidArgumentError

_ANY = (0, 0)


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the physical devices, CPU first, without initialising them.

    Args:
        device_type: 'CPU' or 'GPU' for those only.

    Raises:
        ValueError: The environment variable MIRRORED_SIMULATED_GPUS is malformed.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.config.list_physical_devices("GPU")
        [PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]
    """
    return [device for device in registry.hardware() if device_type in (None, device.device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the logical devices, CPU first; this initialises them and freezes the registry.

    Args:
        device_type: 'CPU' or 'GPU' for those only.

    Raises:
        ValueError: The configuration cannot be used as it is; it may still be changed then.

    Example:
        >>> import mirrored as mr
        >>> mr.config.list_logical_devices()
        [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """
    return [
        LogicalDevice(device.name, device.type)
        for device in registry.devices()
        if device_type in (None, device.type)
    ]


def get_device_details(device: PhysicalDevice) -> dict[str, object]:
    """Return what is known about a physical device.

    Args:
        device: A physical device.

    Returns:
        ``{}`` for a CPU. For a GPU ``device_name``; for a real one also ``compute_capability``, a
        tuple as in ``(9, 0)``, ``pci_bus_id`` and ``uuid``; for a simulated one
        ``'simulated': True``.

    Raises:
        ValueError: There is no such device.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> gpu = mr.config.list_physical_devices("GPU")[0]
        >>> mr.config.experimental.get_device_details(gpu)
        {'device_name': 'simulated GPU (host memory)', 'simulated': True}
    """
    return dict(registry.hardware()[registry.known(device)].details)


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Return whether there is a visible GPU. Simulated GPUs count, unless CUDA is asked for.

    Args:
        cuda_only: Whether only CUDA GPUs count, which simulated ones are not.
        min_cuda_compute_capability: The least compute capability of a GPU that counts, as in
            ``(7, 0)``; simulated GPUs have none. None for any.

    Raises:
        ValueError: `cuda_only` is not a bool, or the capability is not a pair of integers.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.test.is_gpu_available(), mr.test.is_gpu_available(cuda_only=True)
        (True, False)
    """
    cuda_only = checked_bool(cuda_only, "cuda_only")
    least = _checked_capability(min_cuda_compute_capability)
    gpus = [registry.hardware()[gpu] for gpu in get_visible_devices("GPU")]
    return any(_capability(gpu) >= least and not (cuda_only and gpu.simulated) for gpu in gpus)


def gpu_device_name() -> str:
    """Return the name of the first GPU, an empty string where none is visible.

    Example:
        >>> import mirrored as mr
        >>> mr.test.gpu_device_name()
        ''
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> mr.test.gpu_device_name()
        '/device:GPU:0'
    """
    return "/device:GPU:0" if get_visible_devices("GPU") else ""


def is_built_with_cuda() -> bool:
    """Return whether the library can use CUDA: True, be there a GPU, and CuPy for it, or not.

    Example:
        >>> import mirrored as mr
        >>> mr.test.is_built_with_cuda()
        True
    """
    return True


def get_memory_info(device: str | LogicalDevice | DeviceSpec | Device) -> dict[str, int]:
    """Return the memory in use on a logical device, initialising the devices.

    Args:
        device: A logical device, or its name with an index, as in 'GPU:0'.

    Returns:
        ``current``, bytes in use now, and ``peak``, the most since the start or the last
        ``reset_memory_stats``.

    Raises:
        ValueError: The name has no type or index, or there is no such device.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.config.experimental.get_memory_info("GPU:0")
        {'current': 0, 'peak': 0}
    """
    pool = _measured(device).pool
    return {"current": pool.current, "peak": pool.peak}


def reset_memory_stats(device: str | LogicalDevice | DeviceSpec | Device) -> None:
    """Start measuring a logical device's peak memory again from what is in use now.

    Args:
        device: A logical device, or its name with an index, as in 'GPU:0'.

    Raises:
        ValueError: The name has no type or index, or there is no such device.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.config.experimental.reset_memory_stats("GPU:0")
    """
    _measured(device).pool.reset_peak()


def _capability(gpu: Hardware) -> tuple[object, ...]:
    capability = gpu.details.get("compute_capability")
    return capability if isinstance(capability, tuple) else _ANY


def _checked_capability(value: object) -> tuple[object, ...]:
    if value is None:
        return _ANY
    parts = value if isinstance(value, tuple | list) else ()
    pair = tuple(as_integer(part) for part in parts)
    if len(pair) != 2 or None in pair:
        raise InvalidArgumentError(
            "`min_cuda_compute_capability` must be a pair of integers, such as (7, 0), or None. "
            f"Received: {value!r}"
        )
    return pair


def _measured(name: str | LogicalDevice | DeviceSpec | Device) -> Device:
    try:
        spec = to_spec(name)
    except ValueError:
        spec = DeviceSpec()
    if spec.device_type is None or spec.device_index is None:
        raise InvalidArgumentError(
            f"Failed parsing device name: {name!r}. Note a valid device string should at least "
            'contain a device type and a device index, like "GPU:0".'
        )
    device = find_device(spec)
    if device is None:
        raise InvalidArgumentError(f"No matching devices found for {name!r}. {describe_devices()}")
    return device


explain_functions(__name__, all_but="gpu_device_name is_built_with_cuda")
