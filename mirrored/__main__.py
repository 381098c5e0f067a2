"""``python -m mirrored devices``: what this machine offers to train on, in plain text.

It is the first thing to look at, and to send along, when something is slow or missing.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata

import numpy as np

from mirrored import devices
from mirrored.backends import MEGABYTE
from mirrored.backends.cuda import blas, nvml, toolkit
from mirrored.devices import Device, PhysicalDevice
from mirrored.errors import DeviceUnavailableError

# What an optional part does, and the distributions that bring it.
_OPTIONAL = (
    ("CuPy", "arrays on GPUs", ("cupy-cuda12x", "cupy-cuda13x", "cupy")),
    ("CUDA runtime", "for NVRTC", ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")),
    ("NVRTC", "compiles kernels", ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")),
    ("cuBLAS", "matrix products", ("nvidia-cublas-cu12", "nvidia-cublas")),
    ("NCCL", "sums across GPUs", ("nvidia-nccl-cu12", "nvidia-nccl-cu13")),
)

_CUPY_OF = {"cupy-cuda12x": 12, "cupy-cuda13x": 13}


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
    commands.add_parser("devices", help="print devices, memory limits, the BLAS, what GPUs need")
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
    listed = devices.list_physical_devices()
    for physical in listed:
        yield f"  {physical.name}  {_what_it_is(physical)}"
    yield "Logical devices"
    for device in devices.logical_devices():
        yield f"  {device.full_name}  {_memory(device)}, on {device.physical.name}"
    yield "BLAS"
    for line in _blas():
        yield f"  {line}"
    found = nvml.survey()
    yield "NVIDIA driver"
    yield f"  {_driver(found)}"
    if len(found.cards) > 1:
        yield "Peer access: which card reads the memory of which"
        yield from _peers(nvml.peer_access())
    yield "Packages for real GPUs"
    yield from _packages(found.cuda)
    if any("compute_capability" in devices.get_device_details(d) for d in listed):
        yield "Libraries that the GPUs are used with"
        yield from _libraries()


def _what_it_is(physical: PhysicalDevice) -> str:
    details = devices.get_device_details(physical)
    if not details:
        return f"host CPU ({platform.machine()})"
    capability = details.get("compute_capability")
    if not isinstance(capability, tuple):
        return str(details["device_name"])
    number = ".".join(map(str, capability))
    return f"{details['device_name']}, compute capability {number}, at {details['pci_bus_id']}"


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


def _driver(found: nvml.Survey) -> str:
    if found.problem is not None:
        return found.problem
    if found.cuda is None:
        return "none found: GPUs need one, from https://www.nvidia.com/drivers"
    cards = f"{len(found.cards)} card{'' if len(found.cards) == 1 else 's'}"
    newest = ".".join(map(str, found.cuda))
    return f"{found.driver or 'version unknown'}, for CUDA up to {newest}, {cards}"


def _peers(matrix: list[list[bool]] | None) -> Iterable[str]:
    """Yield a row a card, numbered as `nvidia-smi` does."""
    if matrix is None:
        yield "  unknown: NVML does not say"
        return
    yield "       " + "".join(f"{owner:>4}" for owner in range(len(matrix)))
    for reader, row in enumerate(matrix):
        said = ("yes" if each else "no" for each in row)
        yield f"  {reader:>4} " + "".join(f"{each:>4}" for each in said)


def _packages(cuda: tuple[int, int] | None) -> Iterable[str]:
    """Yield which of the optional distributions there are, and how to install the others."""
    missing = False
    major = None if cuda is None else cuda[0]
    for name, purpose, distributions in _OPTIONAL:
        found = []
        for distribution in distributions:
            with contextlib.suppress(metadata.PackageNotFoundError):
                found.append(f"{distribution} {metadata.version(distribution)}")
                # Another CuPy beside the one that is there would break both.
                major = _CUPY_OF.get(distribution, major)
        missing = missing or not found
        yield f"  {name} ({purpose}): {', '.join(found) or 'not installed'}"
    if missing and major is not None:
        yield f"  To install what is missing: {toolkit.install_command(major)}"
    elif missing:
        yield (
            "  To install what is missing, for an NVIDIA driver of CUDA 12: "
            f"{toolkit.install_command(12)}; of CUDA 13: {toolkit.install_command(13)}"
        )


def _libraries() -> Iterable[str]:
    """Yield the versions of what is loaded for GPUs; it starts CUDA, and takes no memory there."""
    try:
        cupy = toolkit.toolkit()
    except DeviceUnavailableError as error:
        yield f"  {error}"
        return
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    yield f"  CuPy {cupy.__version__}"
    yield f"  CUDA runtime {runtime // 1000}.{runtime % 1000 // 10}"
    yield f"  NVRTC {'.'.join(map(str, cupy.cuda.nvrtc.getVersion()))}"
    try:
        yield f"  cuBLAS {blas.version(blas.load())}"
    except DeviceUnavailableError as error:
        yield f"  {error}"
    nccl = toolkit.nccl_version()
    if nccl is None:
        yield f"  NCCL not found. Install it: {toolkit.install_command(runtime // 1000)}"
    else:
        yield f"  NCCL {nccl}"


if __name__ == "__main__":
    sys.exit(main())
