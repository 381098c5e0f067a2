"""``mirrored selftest``: checks and times the sums between devices, or between workers."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mirrored import devices
from mirrored._commands.command_line import FAILED, SUCCESS, Result, Say, say_nothing
from mirrored._commands.show_devices import description, launched_workers, quiet_log
from mirrored._logging import room_for_a_line
from mirrored._numbers import counted
from mirrored.backends import MEGABYTE, selftest
from mirrored.devices import Device, LogicalDeviceConfiguration
from mirrored.devices.device_registry import registry
from mirrored.distribute import CrossDeviceOps, NcclAllReduce, bandwidth
from mirrored.distribute.cross_device_ops.connections import streamed
from mirrored.errors import CollectiveError, DeviceLostError, DeviceUnavailableError
from mirrored.workers import Workers
from mirrored.workers.measuring import largest_size, measure

# The default sizes. Each is timed in 3 turns; the sizes of --full and of --sizes in 7.
_QUICK_SIZES = (1 << 10, 1 << 16, 1 << 22)
_QUICK_TURNS, _TURNS = 3, 7
_LARGEST = 1 << 26  # Bytes that workers add at most with --full: several copies must fit.
# The memory of each half of a GPU that does not say how much it has, in MB.
_HALF = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick", action="store_true", help="1 KB, 64 KB and 4 MB (the default), few repetitions"
    )
    length.add_argument(
        "--full", action="store_true", help="1 KB to 1 GB, each size 4 times the previous size"
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=size_in_bytes,
        metavar="SIZE",
        help="bytes that each device adds, as in 1K 4M 1G",
    )


def size_in_bytes(text: str) -> int:
    """Return a size in bytes. K, M and G are powers of 1024, as in nccl-tests.

    Example:
        >>> size_in_bytes("4M")
        4194304
    """
    match = re.fullmatch(r"([1-9]\d*)([KMG]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"a size must be like 512, 64K, 4M or 1G, not {text!r}")
    return int(match[1]) << 10 * " KMG".index(match[2].upper() or " ")


def execute(options: argparse.Namespace, say: Say) -> Result:
    """Check and time the sums.

    Args:
        options: The parsed arguments.
        say: Prints a line.
    """
    is_full = options.full or (options.sizes is not None and not options.quick)
    turns = _TURNS if is_full else _QUICK_TURNS
    sizes = options.sizes or (None if is_full else _QUICK_SIZES)
    workers = launched_workers()
    test = _SelfTest(say if workers is None or workers.is_chief else say_nothing, turns)
    if workers is None:
        test.sum_between_devices(sizes or bandwidth.sizes(factor=4))
        return test.result()
    test.sum_between_workers(workers, sizes or bandwidth.sizes(largest=_LARGEST, factor=4))
    return test.result() if workers.is_chief else Result(test.result().status)


class _SelfTest:
    """Sums between devices or workers: prints a table, and collects the fields of the JSON.

    Args:
        say: Prints a line.
        turns: The number of turns that each size is timed in.
    """

    def __init__(self, say: Say, turns: int) -> None:
        self._say = say
        self._turns = turns
        self._passed = True
        self._report: dict[str, Any] = {}
        self._sums: list[dict[str, Any]] = []
        self._notes: list[str] = []

    def result(self) -> Result:
        """Return the result of the command."""
        report = {**self._report, "sums": self._sums, "notes": self._notes}
        return Result(SUCCESS if self._passed else FAILED, report)

    def sum_between_devices(self, sizes: Sequence[int]) -> None:
        """Test NCCL where it is used, and time all collectives."""
        summing = _summing_devices()
        self._report["devices"] = [device.full_name for device in summing]
        self._say("Devices")
        for device in summing:
            self._say(f"  {device.short_name}  {description(device.physical)}")
        has_nccl = self._test_nccl(summing)
        largest = bandwidth.largest_size(summing)
        fitting = _fitting(sizes, largest)
        self._say_heading(counted(len(summing), "device"))
        for collective in bandwidth.collectives(summing):
            if has_nccl or not isinstance(collective, NcclAllReduce):
                self._measure(summing, collective, fitting)
        self._note_problems("devices", sizes, largest)

    def sum_between_workers(self, workers: Workers, sizes: Sequence[int]) -> None:
        """Time the sums between workers; all of them call it."""
        self._report["workers"] = list(workers.hosts)
        self._say("Workers")
        for rank, host in enumerate(workers.hosts):
            self._say(f"  worker {rank} on host {host}")
        self._say_heading(counted(workers.count, "worker"))
        largest = largest_size(workers)
        for row in measure(workers, _fitting(sizes, largest), turns=self._turns):
            self._add(
                bandwidth.Measurement(
                    collective="Workers",
                    ranks=workers.count,
                    nbytes=4 * row.elements,
                    count=row.elements,
                    dtype="float32",
                    seconds=row.seconds,
                    wrong=row.wrong,
                )
            )
        self._note_problems("workers", sizes, largest)
        self._say("The devices of one worker are tested without mpiexec.")

    def _say_heading(self, summing: str) -> None:
        self._say(f"All-reduces of float32, summed over {summing}; algbw and busbw in GB/s")
        self._say(f"  {bandwidth.HEADING}")

    def _add(self, row: bandwidth.Measurement) -> None:
        self._passed &= not row.wrong
        rates = {
            "algorithm_bandwidth": row.algorithm_bandwidth,
            "bus_bandwidth": row.bus_bandwidth,
        }
        self._sums.append(asdict(row) | rates)
        self._say(f"  {row}")

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._say(f"  {text}")

    def _note_problems(self, summing: str, sizes: Sequence[int], largest: int | None) -> None:
        if len(_fitting(sizes, largest)) < len(sizes):
            self._note(f"Sizes above {largest} bytes were left out: there is too little memory.")
        if self._passed and not self._sums:
            self._passed = False
            self._note("No sum was tested. Choose smaller sizes with --sizes.")
        if any(row["wrong"] for row in self._sums):
            self._note(f"Some sums are wrong: see #wrong. Do not train on these {summing}.")

    def _test_nccl(self, summing: Sequence[Device]) -> bool:
        """Return whether NCCL may be used, and note why not."""
        self._say("Self-test of NCCL")
        reason = bandwidth.why_no_nccl(summing)
        passed, text = None, f"Not run. {reason}"
        if reason is None:
            leaders = bandwidth.leaders(summing)
            try:
                selftest.require(streamed(leaders), [device.full_name for device in leaders])
                passed = True
                text = "Passed: sums of float32, float64 and int32, small and large, were right."
            except CollectiveError as error:
                passed, text = False, f"Failed. {error}"
        self._report["nccl"] = {"passed": passed, "message": text}
        self._passed &= passed is not False
        self._say("  " + text.replace("\n", "\n  "))
        return passed is not False

    def _measure(
        self, summing: Sequence[Device], collective: CrossDeviceOps, sizes: Sequence[int]
    ) -> None:
        """Add the rows of one collective."""
        from tqdm import tqdm  # Slow to import, and needed here only.

        class Bar(tqdm):  # type: ignore[type-arg]  # tqdm is generic in its stubs only.
            monitor_interval = 0  # No watching thread, which would disturb what is measured.

        name, rows = type(collective).__name__, 0
        # Large sizes take long: the bar counts what was timed.
        total = len(sizes) * bandwidth.timings(self._turns)
        hidden = True if sys.stderr is None else None  # None: where there is no terminal.
        shown = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
        with (
            quiet_log(),
            Bar(total=total, desc=name, bar_format=shown, leave=False, disable=hidden) as bar,
        ):
            measured = bandwidth.measure(
                summing, collective, sizes, turns=self._turns, after_timing=bar.update
            )
            try:
                bar.set_postfix_str(f"{sizes[0]} bytes" if sizes else "")
                for row in measured:
                    with room_for_a_line():
                        self._add(row)
                    rows += 1
                    bar.set_postfix_str(f"{sizes[rows]} bytes" if rows < len(sizes) else "")
            except (CollectiveError, DeviceLostError, DeviceUnavailableError) as error:
                self._passed = False
                with room_for_a_line():
                    self._note(f"{name} failed. {error}")
                return
        if rows < len(sizes):
            self._note(f"{name} ended before {sizes[rows]} bytes: a device has too little memory.")


def _fitting(sizes: Sequence[int], largest: int | None) -> list[int]:
    return [size for size in sizes if largest is None or size <= largest]


def _summing_devices() -> Sequence[Device]:
    """Return what `MirroredStrategy()` takes; one device is split, so that there is a sum."""
    gpus = devices.list_physical_devices("GPU")
    physical = gpus or devices.list_physical_devices("CPU")
    alone = physical[0] if len(physical) == 1 else None
    if alone is not None and devices.get_logical_device_configuration(alone) is None:
        memory = registry.hardware()[alone].memory
        limit = _HALF if memory is None else memory // MEGABYTE // 4
        half = LogicalDeviceConfiguration(limit if gpus else None)
        devices.set_logical_device_configuration(alone, [half, half])
    return devices.logical_devices("GPU" if gpus else "CPU")
