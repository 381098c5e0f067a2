"""The hardware that there is, found without using any of it.

Everything above asks here for physical devices and never learns which array module runs them.
"""

import os
import platform

from mirrored.backends.base import MEGABYTE as MEGABYTE
from mirrored.backends.base import Backend as Backend
from mirrored.backends.base import Hardware as Hardware
from mirrored.backends.base import OutOfPoolMemory as OutOfPoolMemory
from mirrored.backends.base import Pool as Pool
from mirrored.backends.base import Storage as Storage
from mirrored.backends.host import HostBackend as HostBackend
from mirrored.backends.visibility import visible_ordinals

SIMULATED_GPU_NAME = "simulated GPU (host memory)"


def probe(simulated_gpus: int = 0, memory_limit: int | None = None) -> tuple[Hardware, ...]:
    """Return this machine's physical devices: the CPU, then the GPUs.

    CUDA_VISIBLE_DEVICES is read now. Simulated GPUs replace real ones; without simulation only
    real GPUs are returned.

    Args:
        simulated_gpus: How many GPUs to simulate on the host, 0 for none.
        memory_limit: The memory of each simulated GPU in bytes, None for no limit.

    Example:
        >>> [hardware.device_type for hardware in probe(simulated_gpus=2)]
        ['CPU', 'GPU', 'GPU']
    """
    cpu = Hardware("CPU", 0, f"host CPU ({platform.machine()})", HostBackend)
    gpus = _simulated_gpus(simulated_gpus, memory_limit)
    visible = visible_ordinals(os.environ.get("CUDA_VISIBLE_DEVICES"), len(gpus))
    return (cpu, *(gpus[ordinal] for ordinal in visible))


def host_memory() -> int | None:
    """Return the bytes of memory that the host has, or None where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _simulated_gpus(count: int, memory_limit: int | None) -> list[Hardware]:
    details = {"device_name": SIMULATED_GPU_NAME, "simulated": True}
    return [
        Hardware(
            "GPU",
            ordinal,
            SIMULATED_GPU_NAME,
            HostBackend,
            memory=memory_limit,
            simulated=True,
            details=details,
        )
        for ordinal in range(count)
    ]
