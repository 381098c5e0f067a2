"""``python -m mirrored``: what this machine offers to train on, and whether its devices sum right.

It is the first thing to look at, and to send along, when something is slow, missing or wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import platform
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mirrored import devices
from mirrored._logging import logger
from mirrored.backends import MEGABYTE, platforms, selftest
from mirrored.devices import Device, LogicalDeviceConfiguration, PhysicalDevice
from mirrored.devices.device_registry import registry
from mirrored.distribute import CrossDeviceOps, NcclAllReduce, bandwidth
from mirrored.distribute.cross_device_ops.connections import streamed
from mirrored.errors import CollectiveError, DeviceLostError, DeviceUnavailableError
from mirrored.version import VERSION
from mirrored.workers import Workers, connect
from mirrored.workers.launch import launch
from mirrored.workers.measuring import Measured, measure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``python -m mirrored``.

    Args:
        arguments: The words after the program's name, None for those of the command line.

    Returns:
        The process's exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m mirrored",
        description="Data-parallel training. Started by mpiexec, it looks at all workers.",
    )
    parser.add_argument("--version", action="version", version=f"mirrored {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("devices", help="print devices, memory limits, the BLAS, what GPUs need")
    test = commands.add_parser(
        "selftest", help="try sums between the devices, and measure how fast they are"
    )
    test.add_argument(
        "--sizes",
        nargs="+",
        type=_bytes,
        metavar="SIZE",
        help="bytes that each device adds, as in 1K 4M 1G (default: 1K to 1G, each 4 times the "
        "one before)",
    )
    test.add_argument("--quick", action="store_true", help="three sizes, up to 4M, and few turns")
    parsed = parser.parse_args(arguments)
    workers = _workers()
    try:
        if parsed.command == "selftest":
            if workers is not None:
                return _test_and_measure_workers(workers, parsed.sizes, parsed.quick)
            return _test_and_measure(parsed.sizes, parsed.quick)
        report = "\n".join(describe_machine())
    except ValueError as error:  # The environment asks for something that cannot be had.
        parser.exit(2, f"{error}\n")
    if workers is None:
        _print(report)
        return 0
    for rank, lines in enumerate(workers.gather(report, "devices")):
        if workers.is_chief:
            _print(f"Worker {rank} of {workers.count}, on host {workers.hosts[rank]}")
            _print(textwrap.indent(lines, "  "))
    return 0


def _workers() -> Workers | None:
    """Return the workers that this program was started as; None: it is alone."""
    if launch() is None:
        return None
    with _quiet():
        workers = connect()
    return workers if workers.count > 1 else None


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
    for known in platforms():
        yield from known.report(registry.hardware().values())


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

    names = [
        f"{library['internal_api']} {library['version']}, "
        f"kernel {library.get('architecture', 'unknown')}, {library['num_threads']} threads"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return names or [f"the one inside NumPy {np.__version__}, which does not say what it is"]


# ---------------------------------------------------------------------- selftest

# The sizes of --quick, and how often each is measured with it and without.
_QUICK_SIZES = (1 << 10, 1 << 16, 1 << 22)
_QUICK_TURNS, _TURNS = 3, 7
_LARGEST = 1 << 26  # Bytes that workers add at most, where nobody asks for other sizes.
# The memory of each half of a GPU that does not say how much it has, in MB.
_HALF = 256


def _bytes(text: str) -> int:
    """Return a size in bytes, as in '4M': K, M and G are powers of 1024, as in nccl-tests."""
    match = re.fullmatch(r"([1-9]\d*)([KMG]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"a size is as in 512, 64K, 4M or 1G, not {text!r}")
    return int(match[1]) << 10 * " KMG".index(match[2].upper() or " ")


def _test_and_measure(sizes: Sequence[int] | None, quick: bool) -> int:
    """Test NCCL where it is used, print how fast all collectives are, and return the status."""
    summing = _summing_devices()
    _print("Devices")
    for device in summing:
        _print(f"  {device.full_name}  {_what_it_is(device.physical)}")
    passed = _test_nccl(summing)
    right = True
    chosen = list(sizes or (_QUICK_SIZES if quick else bandwidth.sizes(factor=4)))
    largest = bandwidth.largest_size(summing)
    fitting = [size for size in chosen if largest is None or size <= largest]
    _print(f"All-reduces of float32, summed over {len(summing)} devices")
    _print(f"  {bandwidth.HEADING}")
    for collective in bandwidth.collectives(summing):
        if passed or not isinstance(collective, NcclAllReduce):
            right &= _measure(summing, collective, fitting, _QUICK_TURNS if quick else _TURNS)
    if len(fitting) < len(chosen):
        _print(f"  Sizes above {largest} bytes were left out: there is too little memory.")
    if not right:
        _print("Some sums are wrong: see #wrong. Do not train on these devices.")
    return 0 if passed and right else 1


def _test_and_measure_workers(workers: Workers, sizes: Sequence[int] | None, quick: bool) -> int:
    """Sum between workers, print how fast that is, and return the status; all of them call it."""
    # Each size has to fit into every worker's memory several times.
    chosen = sizes or (_QUICK_SIZES if quick else bandwidth.sizes(largest=_LARGEST, factor=4))
    right = True
    if workers.is_chief:
        _print("Workers")
        for rank, host in enumerate(workers.hosts):
            _print(f"  worker {rank} on host {host}")
        _print(f"All-reduces of float32, summed over {workers.count} workers")
        _print(f"  {bandwidth.HEADING}")
    for row in measure(workers, chosen, turns=_QUICK_TURNS if quick else _TURNS):
        right &= not row.wrong
        if workers.is_chief:
            _print(f"  {_shown(row, workers.count)}")
    if workers.is_chief and not right:
        _print("Some sums are wrong: see #wrong. Do not train on these workers.")
    if workers.is_chief:
        _print("The devices of one worker are tested without mpiexec.")
    return 0 if right else 1


def _shown(row: Measured, ranks: int) -> bandwidth.Measurement:
    return bandwidth.Measurement(
        collective="Workers",
        ranks=ranks,
        nbytes=4 * row.elements,
        count=row.elements,
        dtype="float32",
        seconds=row.seconds,
        wrong=row.wrong,
    )


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


def _test_nccl(summing: Sequence[Device]) -> bool:
    """Print what the self-test of NCCL finds, and return whether all is well."""
    _print("Self-test of NCCL")
    reason = bandwidth.why_no_nccl(summing)
    if reason is not None:
        _print(f"  Not run. {reason}")
        return True
    leaders = bandwidth.leaders(summing)
    try:
        selftest.require(streamed(leaders), [device.full_name for device in leaders])
    except CollectiveError as error:
        _print("  Failed. " + str(error).replace("\n", "\n  "))
        return False
    _print("  Passed: sums of float32, float64 and int32, small and large, were right.")
    return True


def _measure(
    summing: Sequence[Device], collective: CrossDeviceOps, sizes: Sequence[int], turns: int
) -> bool:
    """Print the rows of one collective, and return whether all sums were right."""
    from tqdm import tqdm  # Slow to import, and needed here only.

    class Bar(tqdm):  # type: ignore[type-arg]  # tqdm is generic in its stubs only.
        monitor_interval = 0  # No watching thread, which would take time of what is measured.

    name, right, rows = type(collective).__name__, True, 0
    # Large sizes take long, so it is not they that the bar counts.
    total = len(sizes) * bandwidth.timings(turns)
    shown = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
    with (
        _quiet(),
        Bar(total=total, desc=name, bar_format=shown, leave=False, disable=None) as bar,
    ):
        measured = bandwidth.measure(
            summing, collective, sizes, turns=turns, after_timing=bar.update
        )
        try:
            bar.set_postfix_str(f"{sizes[0]} bytes" if sizes else "")
            for row in measured:
                Bar.write(f"  {row}", file=sys.stdout)
                rows += 1
                right &= not row.wrong
                bar.set_postfix_str(f"{sizes[rows]} bytes" if rows < len(sizes) else "")
        except (CollectiveError, DeviceLostError, DeviceUnavailableError) as error:
            Bar.write(f"  {name} failed. {error}", file=sys.stdout)
            return False
    if rows < len(sizes):
        _print(f"  {name} ended before {sizes[rows]} bytes: a device has too little memory.")
    return right


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log's INFO lines out of the table."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # What follows may take long, or crash.


if __name__ == "__main__":
    sys.exit(main())
