"""How sessions set devices up: the options of the first one decide for the process."""

import re

from mirrored._logging import logger
from mirrored.compat.v1.messages import ConfigProto
from mirrored.devices import (
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_visible_devices,
    hold_devices,
    list_physical_devices,
    logical_devices,
    set_logical_device_configuration,
    set_memory_fraction,
    set_memory_growth,
)
from mirrored.devices.device_registry import registry
from mirrored.errors import InvalidArgumentError

_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")


class _Told:
    """Whether somebody was told that a session comes too late.

    Attributes:
        once: It is so.
    """

    def __init__(self) -> None:
        self.once = False

    def lose_devices(self) -> None:
        """Tell it again: the next session is the first one of new devices."""
        self.once = False


_warned = _Told()
hold_devices(_warned)


def set_up(config: ConfigProto) -> None:
    """Set devices up as a session's options say, or say that it is too late for them.

    Args:
        config: The options, which are checked.

    Raises:
        InvalidArgumentError: They ask for GPUs that are not there, or for a part of the memory of
            one that is split into logical devices. Nothing is set up then.
    """
    with registry.lock:
        if not registry.initialised:
            with registry.undone_on_failure():
                _apply(config)
                registry.devices()
            return
    late = _without_effect(config)
    if late and not _warned.once:
        _warned.once = True
        logger.warning(
            "Options of this session have no effect: %s. Devices were set up before, by the first "
            "session of the process or by an operation outside of graphs. Pass them to the first "
            "session, before anything is computed.",
            ", ".join(late),
        )


def _apply(config: ConfigProto) -> None:
    options = config.gpu_options
    (cpu,) = list_physical_devices("CPU")
    gpus, cpus = _chosen(config), config.device_count.get("CPU")
    if gpus is not None:
        registry.show([*get_visible_devices("CPU"), *gpus], in_order=True)
    if cpus not in (None, len(registry.logical.get(cpu, (cpu,)))):
        set_logical_device_configuration(cpu, [LogicalDeviceConfiguration()] * cpus)
    for gpu in get_visible_devices("GPU"):
        if options.per_process_gpu_memory_fraction:
            set_memory_fraction(gpu, options.per_process_gpu_memory_fraction)
        if options.allow_growth and gpu not in registry.logical:
            set_memory_growth(gpu, True)


def _chosen(config: ConfigProto) -> list[PhysicalDevice] | None:
    """Return the GPUs that a session asks for, in its order; None: those that are visible."""
    there, count = list_physical_devices("GPU"), config.device_count.get("GPU")
    listed = config.gpu_options.visible_device_list
    if not there or (not listed and count is None):
        return None  # Where there is none, TensorFlow does not look at the list either.
    visible = get_visible_devices("GPU")
    chosen = _listed(listed, there) if listed else [device for device in there if device in visible]
    return chosen[:count]


def _listed(text: str, there: list[PhysicalDevice]) -> list[PhysicalDevice]:
    """Return the GPUs whose numbers a list has."""
    numbers = []
    for entry in text.split(","):
        if not _NUMBER.fullmatch(entry):
            raise InvalidArgumentError(
                f"Could not parse entry in 'visible_device_list': '{entry}'. visible_device_list = "
                f"{text}. Write numbers with commas between them, as in '1,0'."
            )
        number = int(entry)
        if not 0 <= number < len(there):
            raise InvalidArgumentError(
                f"'visible_device_list' listed an invalid Device id '{number}' but visible device "
                f"count is {len(there)}. Received: {text!r}"
            )
        numbers.append(number)
    if len(set(numbers)) < len(numbers):
        raise InvalidArgumentError(f"visible_device_list contained a duplicate entry: {text}")
    return [there[number] for number in numbers]


def _without_effect(config: ConfigProto) -> list[str]:
    """Return the options that are not how devices were set up."""
    options, counts = config.gpu_options, config.device_count
    chosen, settings = _chosen(config), []
    gpus = list(dict.fromkeys(device.physical for device in logical_devices("GPU")))
    if chosen is not None and chosen != gpus:
        if options.visible_device_list:
            settings.append(f"visible_device_list={options.visible_device_list!r}")
        if "GPU" in counts:
            settings.append(f"device_count={counts!r}")
    elif counts.get("CPU", len(logical_devices("CPU"))) != len(logical_devices("CPU")):
        settings.append(f"device_count={counts!r}")
    fraction = options.per_process_gpu_memory_fraction
    if fraction and any(registry.fractions.get(gpu) != fraction for gpu in gpus):
        settings.append(f"per_process_gpu_memory_fraction={fraction!r}")
    # A simulated GPU takes memory as it is needed whatever was asked for.
    real = any(not device.simulated for device in logical_devices("GPU"))
    if options.allow_growth and real and not registry.grows:
        settings.append("allow_growth=True")
    return settings
