"""What a figure was measured on: processor, cores, memory, system and date.

A figure without these says nothing, so the report begins with them.
"""

import datetime
import os
import platform
from pathlib import Path


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


def processor() -> str:
    """Return the processor's model, with its family where the system tells it."""
    facts: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    name = facts.get("model name") or platform.processor() or platform.machine()
    return (
        f"{name} (family {facts['cpu family']}, model {facts['model']})"
        if facts.get("cpu family")
        else name
    )


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
