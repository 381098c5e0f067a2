"""Finds the hardware of this machine without initialising it.

Everything above asks here for physical devices and never learns which array module runs them.
"""

import os
import platform
from functools import partial

from mirrored._logging import logger
from mirrored.backends.backend import MEGABYTE as MEGABYTE
from mirrored.backends.backend import Backend as Backend
from mirrored.backends.backend import Hardware as Hardware
from mirrored.backends.backend import OutOfPoolMemory as OutOfPoolMemory
from mirrored.backends.backend import Pool as Pool
from mirrored.backends.backend import Storage as Storage
from mirrored.backends.cuda import nvml
from mirrored.backends.host import HostBackend as HostBackend
from mirrored.backends.host import HostPlace as HostPlace
from mirrored.backends.visibility import visible_ordinals

SIMULATED_GPU_NAME = "simulated GPU (host memory)"


def probe(simulated_gpus: int = 0, memory_limit: int | None = None) -> tuple[Hardware, ...]:
    """Return this machine's physical devices: the CPU, then the GPUs.

    CUDA_VISIBLE_DEVICES is read now. Simulated GPUs replace real ones; without simulation only
    real GPUs are returned. CUDA is not started, and no memory taken on a card.

    Args:
        simulated_gpus: How many GPUs to simulate on the host, 0 for none.
        memory_limit: The memory of each simulated GPU in bytes, None for no limit.

    Example:
        >>> [hardware.device_type for hardware in probe(simulated_gpus=2)]
        ['CPU', 'GPU', 'GPU']
    """
    cpu = Hardware("CPU", 0, f"host CPU ({platform.machine()})", _open_host)
    if simulated_gpus:
        gpus, ids = _simulated_gpus(simulated_gpus, memory_limit), []
    else:
        cards = nvml.cards()
        gpus, ids = [_gpu(card) for card in cards], [card.uuid for card in cards]
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = visible_ordinals(setting, len(gpus), ids)
    if len(visible) < simulated_gpus:
        logger.warning(
            "%d of %d simulated GPUs are visible: CUDA_VISIBLE_DEVICES=%r hides the others, as it "
            "would hide cards. Unset it to have all of them.",
            len(visible),
            simulated_gpus,
            setting,
        )
    return (cpu, *(gpus[ordinal] for ordinal in visible))


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
    from mirrored.backends.cuda import nccl  # Most machines never need it.

    nccl.set_deterministic()


def _gpu(card: nvml.Card) -> Hardware:
    return Hardware(
        "GPU",
        card.index,
        card.name,
        partial(_open_card, card),
        memory=card.memory,
        details={
            "device_name": card.name,
            "compute_capability": card.compute_capability,
            "pci_bus_id": card.pci_bus_id,
            "uuid": card.uuid,
        },
    )


def _open_card(card: nvml.Card, priority: int | None) -> Backend:
    from mirrored.backends.cuda.backend import CudaBackend  # Most machines never need it.

    return CudaBackend(card, priority)


def _open_host(_: int | None) -> Backend:
    return HostBackend()


def _simulated_gpus(count: int, memory_limit: int | None) -> list[Hardware]:
    details = {"device_name": SIMULATED_GPU_NAME, "simulated": True}
    return [
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
