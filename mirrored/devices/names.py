"""The names of devices: the grammar of device strings, and the entries of device lists.

The grammar and its errors are TensorFlow's, so that the names in users' scripts keep working.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mirrored.errors import InvalidArgumentError

# The types that may stand alone, as in "/GPU:1"; after "device:" any type may.
_SHORT_TYPES = frozenset({"CPU", "GPU", "TPU"})

_LOCAL = "/job:localhost/replica:0/task:0"


class PhysicalDevice(NamedTuple):
    """A device that the machine has (or simulates), before it is split and used.

    Attributes:
        name: As in '/physical_device:GPU:0'.
        device_type: 'CPU' or 'GPU'.

    Example:
        >>> import mirrored as mr
        >>> mr.config.list_physical_devices("CPU")
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """

    name: str
    device_type: str

    def _repr_html_(self) -> str | None:
        return next((show(self) for show in shown_by), None)


class LogicalDevice(NamedTuple):
    """A device that computes: a physical one, or a part of one.

    Attributes:
        name: As in '/device:GPU:0'.
        device_type: 'CPU' or 'GPU'.

    Example:
        >>> import mirrored as mr
        >>> mr.config.list_logical_devices("CPU")
        [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """

    name: str
    device_type: str

    def _repr_html_(self) -> str | None:
        return next((show(self) for show in shown_by), None)


# What notebooks show of a device: this file knows of names alone.
shown_by: list[Callable[[LogicalDevice | PhysicalDevice], str | None]] = []


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device's name in parts, each of which may be left open.

    Args:
        job: Name of the job, None for any.
        replica: Index of the replica, None for any.
        task: Index of the task, None for any.
        device_type: 'CPU' or 'GPU', None for any.
        device_index: Index among the devices of its type, None for any.

    Example:
        >>> from mirrored.devices import DeviceSpec
        >>> DeviceSpec.from_string("/gpu:1").to_string()
        '/device:GPU:1'
        >>> DeviceSpec(device_type="CPU").to_string()
        '/device:CPU:*'
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Read a device's name.

        Args:
            spec: As in '/job:localhost/replica:0/task:0/device:GPU:1', '/device:GPU:1', '/GPU:1',
                'GPU:1', 'GPU:*' or 'GPU'; the empty string leaves every part open.

        Raises:
            ValueError: The name has an unknown part, two device types, or an index that is not a
                whole number from 0.
        """
        return _parse(spec)

    def merged(self, inner: DeviceSpec) -> DeviceSpec:
        """Return the name with the parts that an inner scope names.

        Args:
            inner: The name that the inner scope has.

        Example:
            >>> from mirrored.devices import DeviceSpec
            >>> DeviceSpec.from_string("/GPU:1").merged(DeviceSpec.from_string("CPU")).to_string()
            '/device:CPU:1'
        """
        pairs = ((getattr(inner, slot), getattr(self, slot)) for slot in self.__slots__)
        return DeviceSpec(*(own if named is None else named for named, own in pairs))

    def to_string(self) -> str:
        """Return the name, without the parts that are left open."""
        parts = [
            f"/{key}:{value}"
            for key, value in (("job", self.job), ("replica", self.replica), ("task", self.task))
            if value is not None
        ]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            parts.append(f"/device:{self.device_type}:{index}")
        return "".join(parts)

    @property
    def is_local(self) -> bool:
        """Whether the job, replica and task, as far as they are given, are this process."""
        return (
            self.job in (None, "localhost") and self.replica in (None, 0) and self.task in (None, 0)
        )

    def full_name(self) -> str:
        """Return the name with this process, and index 0, where a part is left open.

        Example:
            >>> from mirrored.devices import DeviceSpec
            >>> DeviceSpec.from_string("GPU").full_name()
            '/job:localhost/replica:0/task:0/device:GPU:0'
        """
        return DeviceSpec(
            "localhost" if self.job is None else self.job,
            self.replica or 0,
            self.task or 0,
            self.device_type,
            None if self.device_type is None else self.device_index or 0,
        ).to_string()


def full_name(device_type: str, index: int) -> str:
    """Return the full name of a logical device of this process.

    Example:
        >>> full_name("GPU", 0)
        '/job:localhost/replica:0/task:0/device:GPU:0'
    """
    return f"{_LOCAL}/device:{device_type}:{index}"


# A program names few devices, but may name them again for every op in a loop.
@lru_cache(maxsize=1024)
def _parse(spec: str) -> DeviceSpec:
    job: str | None = None
    task_parts: dict[str, int] = {}
    device: tuple[str, int | None] | None = None
    for part in spec.split("/"):
        fields = part.split(":")
        if fields == [""]:
            continue
        parsed = _device_part(fields, spec)
        if parsed is not None:
            if device is not None:
                raise InvalidArgumentError(
                    "Multiple device types are not allowed while parsing the device spec: "
                    f"{spec}. Name one device, as in '/GPU:0'."
                )
            device = parsed
        elif fields[0] == "job" and len(fields) == 2:
            job = fields[1]
        elif fields[0] in ("replica", "task") and len(fields) == 2:
            task_parts[fields[0]] = _index(fields[1], fields[0], spec)
        else:
            raise InvalidArgumentError(
                f"Unknown attribute '{fields[0]}' is encountered while parsing the device spec: "
                f"'{spec}'. Write a device as '/GPU:0' or '/device:GPU:0'."
            )
    kind, index = device or (None, None)
    return DeviceSpec(job, task_parts.get("replica"), task_parts.get("task"), kind, index)


def _device_part(fields: list[str], spec: str) -> tuple[str, int | None] | None:
    """Return type and index where the fields name a device, otherwise None."""
    if fields[0].upper() in _SHORT_TYPES and len(fields) <= 2:
        kind, index = fields[0].upper(), fields[1] if len(fields) == 2 else "*"
    elif fields[0] == "device" and len(fields) == 3:
        kind, index = fields[1], fields[2]
        kind = kind.upper() if kind.upper() in _SHORT_TYPES else kind
    else:
        return None
    return kind, None if index == "*" else _index(index, "device", spec)


def _index(text: str, key: str, spec: str) -> int:
    index = int(text)  # Its ValueError is the one that TensorFlow's users know.
    if index < 0:
        raise InvalidArgumentError(
            f"Malformed device specification '{spec}': the {key} index must be 0 or more. "
            f"Received: {index}"
        )
    return index
