"""``mirrored devices``: lists devices, memory limits, and the libraries that GPUs need.

It is the first thing to look at, and to send along, when something is slow, missing or wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import platform
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mirrored import devices
from mirrored._commands.command_line import Result, Say
from mirrored._logging import logger
from mirrored._numbers import counted
from mirrored.backends import MEGABYTE, platforms
from mirrored.backends.fingerprint import blas_libraries, blas_text, unknown_blas
from mirrored.devices import PhysicalDevice
from mirrored.devices.device_registry import registry
from mirrored.workers import Workers, connect
from mirrored.workers.launch import launch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the command has none."""


def execute(options: argparse.Namespace, say: Say) -> Result:
    """List the devices of this process, or of each worker.

    Args:
        options: The parsed arguments.
        say: Prints a line.
    """
    return report_by_worker(_describe, _lines, say)


def report_by_worker(
    describe: Callable[[], dict[str, Any]],
    lines: Callable[[dict[str, Any]], Iterable[str]],
    say: Say,
) -> Result:
    """Print a report of this process, or of each worker.

    Args:
        describe: Returns the fields of a report, as the JSON has them.
        lines: Returns the lines of text of a report.
        say: Prints a line.
    """
    workers = launched_workers()
    report = describe()
    if workers is None:
        for line in lines(report):
            say(line)
        return Result(report={"workers": [{"worker": 0, "host": platform.node()} | report]})
    reports = [
        {"worker": rank, "host": workers.hosts[rank]} | gathered
        for rank, gathered in enumerate(workers.gather(report, "what commands print"))
    ]
    if not workers.is_chief:
        return Result()
    for gathered in reports:
        say(f"Worker {gathered['worker']} of {workers.count}, on host {gathered['host']}")
        for line in lines(gathered):
            say(textwrap.indent(line, "  "))
    return Result(report={"workers": reports})


def launched_workers() -> Workers | None:
    """Return the workers that this program was started as; None if it is alone."""
    if launch() is None:
        return None
    with quiet_log():
        workers = connect()
    return workers if workers.count > 1 else None


@contextlib.contextmanager
def quiet_log() -> Iterator[None]:
    """Keep INFO lines out of the text that a command prints."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def description(physical: PhysicalDevice) -> str:
    """Return the product name of a device, and where it is."""
    details = devices.get_device_details(physical)
    if not details:
        return f"host CPU ({platform.machine()})"
    capability = details.get("compute_capability")
    if not isinstance(capability, tuple):
        return str(details["device_name"])
    number = ".".join(map(str, capability))
    return f"{details['device_name']}, compute capability {number}, at {details['pci_bus_id']}"


def short_name(name: str) -> str:
    """Return the last part of a device's name.

    Example:
        >>> short_name("/job:localhost/replica:0/task:0/device:GPU:1")
        'GPU:1'
    """
    return name.rpartition("device:")[2]


def _describe() -> dict[str, Any]:
    """Return the fields of a worker, as the JSON has them."""
    physical = [
        {"name": device.name, "description": description(device)}
        for device in devices.list_physical_devices()
    ]
    logical = [
        {
            "name": device.full_name,
            "memory_limit": device.pool.limit,
            "physical_device": device.physical.name,
        }
        for device in devices.logical_devices()
    ]
    libraries: dict[str, list[str]] = {}
    for known in platforms():
        for line in known.report(registry.hardware().values()):
            if line.startswith(" "):  # It belongs to the heading before.
                libraries[next(reversed(libraries))].append(line.removeprefix("  "))
            else:
                libraries[line] = []
    return {
        "physical_devices": physical,
        "logical_devices": logical,
        "blas": _blas(),
        "libraries": libraries,
    }


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield "Physical devices"
    for device in report["physical_devices"]:
        yield f"  {short_name(device['name'])}  {device['description']}"
    yield "Logical devices"
    for device in report["logical_devices"]:
        limit = device["memory_limit"]
        memory = "no memory limit" if limit is None else f"{limit / MEGABYTE:.10g} MB"
        on = short_name(device["physical_device"])
        yield f"  {short_name(device['name'])}  {memory}, on physical device {on}"
    for heading, lines in {"BLAS": report["blas"], **report["libraries"]}.items():
        yield heading
        for line in lines:
            yield f"  {line}"


def _blas() -> list[str]:
    """Return a line for each BLAS that NumPy has loaded."""
    names = [
        f"{blas_text(library)}, {counted(library['num_threads'], 'thread')}"
        for library in blas_libraries()
    ]
    return names or [unknown_blas()]
