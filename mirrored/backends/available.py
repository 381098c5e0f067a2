"""How much memory of the host this process may still take, before anything is taken.

A host gives more than it has, and then ends the process that uses it, without an error to catch.
"""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
# The limit of a container and what is used of it, of the second and of the first version of
# cgroups, as a container sees its own: https://docs.kernel.org/admin-guide/cgroup-v2.html.
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def available_host_memory() -> int | None:
    """Return the bytes that may still be taken, None where the system does not say."""
    found = [_of_the_host(), *(_left(limit, used) for limit, used in _CGROUPS)]
    return min((each for each in found if each is not None), default=None)


def _of_the_host() -> int | None:
    for line in _read(_MEMINFO).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) << 10  # It is in KiB, though it says kB.
    return None


def _left(limit: Path, used: Path) -> int | None:
    try:
        return max(0, int(_read(limit)) - int(_read(used)))
    except ValueError:  # There is no such file, or the limit is "max".
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
