"""``mirrored fingerprint``: prints what the bits of results depend on here."""

from __future__ import annotations

import argparse

from mirrored._commands.command_line import Result, Say
from mirrored._commands.show_devices import report_by_worker
from mirrored.backends.fingerprint import fingerprint
from mirrored.devices.device_registry import registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the command has none."""


def execute(options: argparse.Namespace, say: Say) -> Result:
    """Print the facts of this process, or of each worker.

    Args:
        options: The parsed arguments.
        say: Prints a line.
    """
    return report_by_worker(
        lambda: {"fingerprint": fingerprint(registry.visible_hardware())},
        lambda report: (f"{name}: {fact}" for name, fact in report["fingerprint"].items()),
        say,
    )
