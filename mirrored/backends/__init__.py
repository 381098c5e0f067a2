"""The registry of backends: finds the hardware of this machine without initialising it.

Everything above asks here for physical devices and never learns which array module runs them.
"""

import os
import platform

from mirrored._logging import logger
from mirrored.backends.backend import MEGABYTE as MEGABYTE
from mirrored.backends.backend import Backend as Backend
from mirrored.backends.backend import Hardware as Hardware
from mirrored.backends.backend import OutOfPoolMemory as OutOfPoolMemory
from mirrored.backends.backend import Platform as Platform
from mirrored.backends.backend import Pool as Pool
from mirrored.backends.backend import Storage as Storage
from mirrored.backends.backend import visible
from mirrored.backends.cuda import Cuda
from mirrored.backends.host import HostBackend as HostBackend
from mirrored.backends.host import HostPlace as HostPlace

SIMULATED_GPU_NAME = "simulated GPU (host memory)"

_platforms: list[Platform] = [Cuda()]


def register(added: Platform) -> None:
    """Let a platform's devices be found, behind those of platforms that were there before.

    Args:
        added: The platform. It is asked once devices are looked for the next time.

    Example:
        >>> class Nothing(Platform):
        ...     def hardware(self):
        ...         return ()
        >>> nothing = Nothing()
        >>> register(nothing)
        >>> nothing in platforms()
        True
        >>> unregister(nothing)
    """
    _platforms.append(added)


def unregister(removed: Platform) -> None:
    """Undo `register`; devices that were found stay."""
    _platforms.remove(removed)


def platforms() -> tuple[Platform, ...]:
    """Return the registered platforms."""
    return tuple(_platforms)


def probe(simulated_gpus: int = 0, memory_limit: int | None = None) -> tuple[Hardware, ...]:
    """Return this machine's physical devices: the CPU, then those of all platforms.

    CUDA_VISIBLE_DEVICES is read now. Simulated GPUs replace real ones; without simulation only
    real GPUs are returned. No device is started, and no memory taken on one.

    Args:
        simulated_gpus: How many GPUs to simulate on the host, 0 for none.
        memory_limit: The memory of each simulated GPU in bytes, None for no limit.

    Example:
        >>> [hardware.device_type for hardware in probe(simulated_gpus=2)]
        ['CPU', 'GPU', 'GPU']
    """
    cpu = Hardware("CPU", 0, f"host CPU ({platform.machine()})", _open_host)
    if simulated_gpus:
        return (cpu, *_simulated_gpus(simulated_gpus, memory_limit))
    return (cpu, *(device for known in _platforms for device in known.hardware()))


def host_memory() -> int | None:
    """Return the bytes of memory that the host has, or None where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def set_deterministic() -> None:
    """Let GPUs that are connected from now on add in the same order in every run.

    It costs speed on some machines. What runs on one device does so anyway.

    Raises:
        RuntimeError: It is too late: GPUs were connected in this process before.
    """
    for known in _platforms:
        known.set_deterministic()


def _open_host(_: int | None) -> Backend:
    return HostBackend()


def _simulated_gpus(count: int, memory_limit: int | None) -> list[Hardware]:
    details = {"device_name": SIMULATED_GPU_NAME, "simulated": True}
    gpus = [
        Hardware(
            "GPU",
            ordinal,
            SIMULATED_GPU_NAME,
            _open_host,
            memory=memory_limit,
            simulated=True,
            details=details,
        )
        for ordinal in range(count)
    ]
    shown = visible(gpus)
    if len(shown) < count:
        logger.warning(
            "%d of %d simulated GPUs are visible: CUDA_VISIBLE_DEVICES=%r hides the others, as it "
            "would hide real GPUs. Unset it to use all of them.",
            len(shown),
            count,
            os.environ.get("CUDA_VISIBLE_DEVICES"),
        )
    return shown
