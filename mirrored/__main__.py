"""``python -m mirrored devices``: what this machine offers to train on, in plain text.

It is the first thing to look at, and to send along, when something is slow or missing.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata

import numpy as np

from mirrored import devices
from mirrored.backends import MEGABYTE
from mirrored.devices import Device, PhysicalDevice

# What an optional part does, and the distributions that bring it.
_OPTIONAL = (
    ("CuPy", "arrays on real GPUs", ("cupy-cuda12x", "cupy-cuda13x", "cupy")),
    ("NCCL", "sums across real GPUs", ("nvidia-nccl-cu12", "nvidia-nccl-cu13")),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``python -m mirrored``.

    Args:
        arguments: The words after the program's name, None for those of the command line.

    Returns:
        The process's exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m mirrored", description="Data-parallel training on one host."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("devices", help="print devices, memory limits, the BLAS, optional parts")
    parser.parse_args(arguments)
    try:
        report = "\n".join(describe_machine())
    except ValueError as error:  # The environment asks for something that cannot be had.
        parser.exit(2, f"{error}\n")
    sys.stdout.write(f"{report}\n")
    return 0


def describe_machine() -> Iterable[str]:
    """Yield the lines of ``python -m mirrored devices``."""
    yield "Physical devices"
    for physical in devices.list_physical_devices():
        yield f"  {physical.name}  {_what_it_is(physical)}"
    yield "Logical devices"
    for device in devices.logical_devices():
        yield f"  {device.full_name}  {_memory(device)}, on {device.physical.name}"
    yield "BLAS"
    for line in _blas():
        yield f"  {line}"
    yield "Optional parts (for real GPUs, which this version does not use yet)"
    for name, purpose, distributions in _OPTIONAL:
        yield f"  {name} ({purpose}): {_installed(distributions)}"


def _what_it_is(physical: PhysicalDevice) -> str:
    details = devices.get_device_details(physical)
    if not details:
        return f"host CPU ({platform.machine()})"
    return str(details["device_name"])


def _memory(device: Device) -> str:
    limit = device.pool.limit
    return "no memory limit" if limit is None else f"{limit / MEGABYTE:.10g} MB"


def _blas() -> list[str]:
    """Return a line for each BLAS that NumPy has loaded."""
    from threadpoolctl import threadpool_info  # Slow to import, and needed here only.

    found = [
        f"{library['internal_api']} {library['version']}, "
        f"kernel {library.get('architecture', 'unknown')}, {library['num_threads']} threads"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return found or [f"the one inside NumPy {np.__version__}, which does not say what it is"]


def _installed(distributions: Iterable[str]) -> str:
    """Return which of the distributions there are, or how to install one."""
    found = []
    for distribution in distributions:
        try:
            found.append(f"{distribution} {metadata.version(distribution)}")
        except metadata.PackageNotFoundError:
            continue
    if found:
        return ", ".join(found)
    return (
        "not installed. For an NVIDIA driver of CUDA 12: pip install 'mirrored[cuda12]'; "
        "of CUDA 13: pip install 'mirrored[cuda13]'"
    )


if __name__ == "__main__":
    sys.exit(main())
