"""What a figure was measured on: processor, cores, memory, system and date.

A figure without these says nothing, so the report begins with them.
"""

import datetime
import os
import platform

from mirrored.backends.fingerprint import processor


def describe() -> dict[str, str]:
    """Return each fact by its name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": processor(),
        "cores": str(cores),
        "memory": memory(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "date": datetime.date.today().isoformat(),
        "load before": load(),
    }


def memory() -> str:
    """Return the machine's memory."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def load() -> str:
    """Return how many processes wanted to run in the last minute, on average."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
