"""The registry of devices and their configuration, fixed when a device is first used.

Everything may be changed until then; afterwards every tensor depends on it, so it is frozen.
"""

import functools
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

from mirrored import backends
from mirrored._arguments import explained
from mirrored._logging import check_level, logger
from mirrored.backends import MEGABYTE, Hardware, HostBackend
from mirrored.devices.logical_device import Device
from mirrored.devices.names import LogicalDevice, PhysicalDevice, shown_by
from mirrored.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mirrored._stalls import StallReporter

MOST_SIMULATED = 1024  # GPUs: each takes some time to make.


@explained
class LogicalDeviceConfiguration(NamedTuple):
    """How one logical device of a physical one is to be made.

    Attributes:
        memory_limit: Its memory in MB (2**20 bytes); None for no limit, on a CPU only.
        experimental_priority: The priority of its stream on a GPU, lower is more urgent.

    Example:
        >>> import mirrored as mr
        >>> mr.config.LogicalDeviceConfiguration(memory_limit=1024)
        LogicalDeviceConfiguration(memory_limit=1024, experimental_priority=None)
    """

    memory_limit: float | None = None
    experimental_priority: int | None = None


class Simulation(NamedTuple):
    """The simulated GPUs asked for: how many, and the memory of each in bytes."""

    gpus: int
    memory_limit: int | None


class Registry:
    """The devices of this process. The values it is given were checked by its callers.

    Attributes:
        lock: Held from the check that it is not initialised until a setting is changed.
        growth: What was set by ``set_memory_growth``, by device.
        fractions: What was set by ``set_memory_fraction``, by device.
        logical: What was set by ``set_logical_device_configuration``, by device.
    """

    def __init__(self) -> None:
        # Reentrant, because what it guards lists physical devices on the way.
        self.lock = threading.RLock()
        self._devices: tuple[Device, ...] = ()  # Empty until initialised: a CPU is a must.
        self._stalls: StallReporter | None = None
        self.clear()

    def clear(self) -> tuple[Device, ...]:
        """Forget every setting and every device, and return the devices that there were."""
        with self.lock:
            if self._stalls is not None:
                self._stalls.stop()
                self._stalls = None
            gone = self._devices
            self.growth: dict[PhysicalDevice, bool] = {}
            self.fractions: dict[PhysicalDevice, float] = {}
            self.logical: dict[PhysicalDevice, list[LogicalDeviceConfiguration]] = {}
            self._visible: list[PhysicalDevice] | None = None
            self._in_order = False
            self._simulation: Simulation | None = None
            self._hardware: dict[PhysicalDevice, Hardware] | None = None
            self._devices = ()
            return gone

    @property
    def initialised(self) -> bool:
        """Whether the logical devices exist, and the configuration is frozen."""
        return bool(self._devices)

    def hardware(self) -> dict[PhysicalDevice, Hardware]:
        """Return the physical devices, CPU first, looking for them the first time."""
        with self.lock:
            if self._hardware is None:
                check_level()
                self._report_stalls()
                wanted = self._simulation or _simulation_from_environment()
                self._hardware = _named(backends.probe(wanted.gpus, wanted.memory_limit))
                self._simulation = wanted
            return self._hardware

    def _report_stalls(self) -> None:
        """Start the reports of stalls, where the environment asks for them."""
        if self._stalls is None and os.environ.get("MIRRORED_REPORT_STALL"):
            from mirrored._stalls import StallReporter, seconds_from_environment

            seconds = seconds_from_environment()
            if seconds is not None:
                self._stalls = StallReporter(seconds)
                self._stalls.start()

    @property
    def visible(self) -> list[PhysicalDevice]:
        """The visible physical devices, all of them unless set otherwise."""
        with self.lock:
            return list(self.hardware()) if self._visible is None else self._visible

    def visible_hardware(self) -> list[Hardware]:
        """Return the visible physical devices, for backends; nothing is initialised."""
        with self.lock:
            return [self.hardware()[device] for device in self.visible]

    def show(self, devices: list[PhysicalDevice], *, in_order: bool = False) -> None:
        """Make these visible, and number them in their own order instead of the machine's."""
        self._visible, self._in_order = devices, in_order

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """Within this context an exception leaves the settings as they are now."""
        with self.lock:
            shown = self._visible, self._in_order
            growth, fractions = dict(self.growth), dict(self.fractions)
            logical = dict(self.logical)
            try:
                yield
            except BaseException:
                self._visible, self._in_order = shown
                self.growth, self.fractions, self.logical = growth, fractions, logical
                raise

    @property
    def simulation(self) -> Simulation | None:
        """The simulated GPUs asked for; None before a setting or the first listing."""
        return self._simulation

    @simulation.setter
    def simulation(self, wanted: Simulation) -> None:
        # The GPUs that were there are gone, and with them what was set for them.
        with self.lock:
            self._simulation = wanted
            self._hardware = None
            self._visible = None
            self._in_order = False
            self.growth = {}
            self.fractions = {}
            self.logical = {d: c for d, c in self.logical.items() if d.device_type != "GPU"}

    def known(self, device: object, device_type: str | None = None) -> PhysicalDevice:
        """Return a physical device that a user gave; raise where there is none of that type."""
        hardware = self.hardware()
        if (
            not isinstance(device, PhysicalDevice)
            or device not in hardware
            or device_type not in (None, device.device_type)
        ):
            listed = ", ".join(
                known.name for known in hardware if device_type in (None, known.device_type)
            )
            raise InvalidArgumentError(
                f"Unrecognized device: {device!r}. Use devices from list_physical_devices(): "
                f"[{listed}]"
            )
        return device

    def refuse_if_initialised(self, option: str) -> None:
        """Raise a RuntimeError unless the configuration may still be changed."""
        if self.initialised:
            raise RuntimeError(
                f"{option} cannot be modified after being initialized. Do this at the start of the "
                "program, before the first tensor, strategy or list_logical_devices(), or after "
                "mr.config.experimental.reset_devices()."
            )

    def memory(self, device: PhysicalDevice) -> int | None:
        """Return the bytes that this process may use of a device, None for no limit.

        Raises:
            InvalidArgumentError: It is to be a part of the host's memory, which is not known.
        """
        whole = self.hardware()[device].memory
        fraction = self.fractions.get(device)
        if fraction is None:
            return whole
        whole = backends.host_memory() if whole is None else whole
        if whole is None:
            raise InvalidArgumentError(
                f"A memory fraction of {fraction} was set for {device.name}, which has no memory "
                "limit, and the host does not say how much memory it has. Set a limit for "
                "simulated GPUs: set_simulated_gpus(count, memory_limit=...)."
            )
        return int(whole * fraction)

    @property
    def grows(self) -> bool:
        """Whether GPUs that are not split take memory as it is needed, not all at the start."""
        return self._allow_growth(self.visible)

    def devices(self) -> tuple[Device, ...]:
        """Return the logical devices, CPU first, making them the first time."""
        return self._devices or self._initialise()

    def stand_in(self) -> Device | None:
        """Return what a device is to ops of which shapes alone are wanted, where none is made yet.

        Else None: such ops are placed as all others are.
        """
        return None if self._devices else _stand_in()

    def _initialise(self) -> tuple[Device, ...]:
        with self.lock:
            if self._devices:  # Another thread was first.
                return self._devices
            self._devices = tuple(self._make_devices())
            hardware = self.hardware()
        for device in self._devices:
            _announce(device, hardware[device.physical])
        return self._devices

    def _make_devices(self) -> list[Device]:
        order = self.visible if self._in_order else self.hardware()
        visible = [device for device in order if device in self.visible]
        if not any(device.device_type == "CPU" for device in visible):
            raise InvalidArgumentError(
                "No CPU devices are available in this process. Make the CPU visible with "
                "set_visible_devices: data enters and leaves through it."
            )
        growth = self._allow_growth(visible)
        devices: list[Device] = []
        for physical in visible:
            first = sum(device.type == physical.device_type for device in devices)
            devices += self._split(physical, first, growth=growth)
        return devices

    def _split(self, physical: PhysicalDevice, first: int, *, growth: bool) -> list[Device]:
        """Return the logical devices of one physical one, numbered from ``first``."""
        hardware = self.hardware()[physical]
        parts = self.logical.get(physical)
        shared = None
        if parts is None:
            wanted: list[tuple[int | None, int | None]] = [(self.memory(physical), None)]
        else:
            wanted = [(_bytes(part.memory_limit), part.experimental_priority) for part in parts]
            # Nothing to share where the card has no limit: counting twice would cost twice.
            if hardware.memory is not None:
                whole = hardware.open_backend(None)
                shared = whole.make_pool(hardware.memory, parent=None, growth=True)
        devices = []
        for index, (limit, priority) in enumerate(wanted, start=first):
            # Each has a backend of its own, with its own stream: they work side by side.
            backend = hardware.open_backend(priority)
            devices.append(
                Device(
                    physical.device_type,
                    index,
                    physical=physical,
                    backend=backend,
                    pool=backend.make_pool(limit, parent=shared, growth=growth),
                    simulated=hardware.simulated,
                )
            )
        return devices

    def _allow_growth(self, visible: Iterable[PhysicalDevice]) -> bool:
        whole_gpus = [d for d in visible if d.device_type == "GPU" and d not in self.logical]
        settings = {device: self.growth.get(device) for device in whole_gpus}
        if len(set(settings.values())) > 1:
            listed = ", ".join(f"{device.name} {value}" for device, value in settings.items())
            raise InvalidArgumentError(
                f"Memory growth cannot differ between GPU devices: {listed}. Call "
                "set_memory_growth with the same value for each visible GPU."
            )
        forced = _growth_from_environment()
        return any(settings.values()) if forced is None else forced


@functools.cache
def _stand_in() -> Device:
    """Return a device of no configuration: the host's memory, of which next to nothing is used."""
    backend = HostBackend()
    return Device(
        "CPU",
        0,
        physical=PhysicalDevice("/physical_device:CPU:0", "CPU"),
        backend=backend,
        pool=backend.make_pool(None, parent=None, growth=True),
        simulated=False,
    )


def checked_bool(value: object, name: str) -> bool:
    """Return a flag that a user gave; raise where it is something else than a bool, 0 or 1."""
    if not isinstance(value, int) or value not in (0, 1):
        raise InvalidArgumentError(f"`{name}` must be True or False. Received: {value!r}")
    return bool(value)


def checked_fraction(value: object, name: str) -> float | None:
    """Return the part of a device's memory that a user gave, None for 0; raise where it is none."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise InvalidArgumentError(
            f"`{name}` must be a number from 0, for no limit, to 1. Received: {name}={value!r}. "
            "More than the card's memory (unified memory) is not supported."
        )
    return float(value) or None


def _named(devices: Iterable[Hardware]) -> dict[PhysicalDevice, Hardware]:
    """Number the devices of each type from 0, hidden ones left out, as CUDA does."""
    named: dict[PhysicalDevice, Hardware] = {}
    for hardware in devices:
        kind = hardware.device_type
        number = sum(device.device_type == kind for device in named)
        named[PhysicalDevice(f"/physical_device:{kind}:{number}", kind)] = hardware
    return named


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else int(megabytes * MEGABYTE)


def _announce(device: Device, hardware: Hardware) -> None:
    if device.pool.limit is not None:
        memory = f"{device.pool.limit / MEGABYTE:.10g} MB memory"
    else:
        total = backends.host_memory()
        host = "" if total is None else f" (the host has {total // MEGABYTE} MB)"
        memory = f"no memory limit{host}"
    logger.debug(
        "Created logical device %s with %s -> physical device: %s, name: %s%s",
        device.full_name,
        memory,
        device.physical.name,
        hardware.name,
        _card(hardware),
    )


def _card(hardware: Hardware) -> str:
    """Return what TensorFlow tells of a real card besides its name."""
    capability = hardware.details.get("compute_capability")
    if not isinstance(capability, tuple):
        return ""
    number = ".".join(map(str, capability))
    return f", pci bus id: {hardware.details['pci_bus_id']}, compute capability: {number}"


def _simulation_from_environment() -> Simulation:
    text = os.environ.get("MIRRORED_SIMULATED_GPUS", "").strip()
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    if text and not (is_number and int(text) <= MOST_SIMULATED):
        raise InvalidArgumentError(
            "The environment variable MIRRORED_SIMULATED_GPUS must be a number of GPUs from 0 to "
            f"{MOST_SIMULATED}. Received: {text!r:.80}. Set it as in MIRRORED_SIMULATED_GPUS=4, or "
            "unset it."
        )
    return Simulation(int(text or 0), None)


def _growth_from_environment() -> bool | None:
    for name in ("MIRRORED_FORCE_GPU_ALLOW_GROWTH", "TF_FORCE_GPU_ALLOW_GROWTH"):
        text = os.environ.get(name, "").strip().lower()
        if text in ("true", "1"):
            return True
        if text in ("false", "0"):
            return False
        if text:
            logger.warning("Ignored %s: it must be 'true' or 'false'. Received: %r", name, text)
    return None


registry = Registry()


def memory_table(devices: Sequence[Device], contents: Sequence[str] = ()) -> str:
    """Return a table of devices with their memory.

    Args:
        devices: The devices.
        contents: What is on each of them.
    """
    from mirrored import _html  # For notebooks.

    pools = [device.pool for device in devices]
    columns: dict[str, list[object]] = {"device": [device.short_name for device in devices]}
    if any(pool.limit is not None for pool in pools):
        columns["memory"] = [
            "" if pool.limit is None else _html.bar(pool.current, pool.limit) for pool in pools
        ]
    columns["in use"] = [f"{pool.current / MEGABYTE:.1f} MB" for pool in pools]
    columns["limit"] = [
        "none" if pool.limit is None else f"{pool.limit / MEGABYTE:.1f} MB" for pool in pools
    ]
    numbers = range(len(columns) - 2, len(columns))
    if any(contents):
        columns["what is there"] = list(contents)
    return _html.table(zip(*columns.values(), strict=True), list(columns), right=numbers)


def _html_of(device: LogicalDevice | PhysicalDevice) -> str | None:
    """Return a table of the memory of a device and its parts, which this does not initialise."""
    there = registry.devices() if registry.initialised else ()
    known = [part for part in there if device.name in (part.name, part.physical.name)]
    return memory_table(known) if known else None


shown_by.append(_html_of)
