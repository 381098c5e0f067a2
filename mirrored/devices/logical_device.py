"""A logical device while it computes: its backend, and its memory with a limit.

There is one object for each device of a configuration, so devices compare by identity.
"""

import gc
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from mirrored._numbers import in_units
from mirrored.backends import Backend, HostPlace, OutOfPoolMemory, Pool, Storage
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices.names import PhysicalDevice, full_name
from mirrored.errors import DevicesResetError, ResourceExhaustedError

_Allocated = TypeVar("_Allocated")


class Device:
    """A logical device that arrays live on.

    Made by the registry when it is initialised, never by users.

    Attributes:
        name: As in '/device:GPU:0'.
        full_name: As in '/job:localhost/replica:0/task:0/device:GPU:0'.
        type: 'CPU' or 'GPU'.
        index: Its number among the logical devices of its type.
        physical: The device that it is, or is part of.
        backend: What computes and copies there.
        pool: Its memory.
        simulated: Whether it stands in for hardware that is not there.

    Example:
        >>> from mirrored import devices
        >>> devices.get_device("CPU:0").full_name
        '/job:localhost/replica:0/task:0/device:CPU:0'
    """

    __slots__ = (
        "__weakref__",
        "backend",
        "full_name",
        "index",
        "name",
        "physical",
        "pool",
        "simulated",
        "type",
    )

    def __init__(
        self,
        device_type: str,
        index: int,
        *,
        physical: PhysicalDevice,
        backend: Backend,
        pool: Pool,
        simulated: bool,
    ) -> None:
        self.type = device_type
        self.index = index
        self.name = f"/device:{device_type}:{index}"
        self.full_name = full_name(device_type, index)
        self.physical = physical
        self.backend = backend
        self.pool = pool
        self.simulated = simulated

    @property
    def short_name(self) -> str:
        """The name as tables and pictures show it, as in GPU:0."""
        return f"{self.type}:{self.index}"

    @property
    def why_no_card(self) -> str | None:
        """What it is where nothing can connect it with others, for messages; None: a card."""
        if self.type != "GPU":
            return "not a GPU"
        if is_offloaded(self.backend):
            return None
        return "simulated in host memory" if self.simulated else "in host memory"

    @property
    def is_gone(self) -> bool:
        """Whether the devices were set up again since it was made."""
        return isinstance(self.backend, _Gone)

    def end(self) -> None:
        """Let go of backend and memory; whatever asks for them from now on is told so."""
        gone: Any = _Gone(self.full_name)
        self.backend = self.pool = gone

    def require(self) -> None:
        """Raise DevicesResetError where the device is gone."""
        if isinstance(self.backend, _Gone):
            raise _gone_error(self.full_name)

    def __repr__(self) -> str:
        if self.is_gone:
            return f"<Device {self.full_name}, gone>"
        simulated = ", simulated" if self.simulated else ""
        return f"<Device {self.full_name}{simulated}>"

    def allocate(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], purpose: str | None = None
    ) -> Storage:
        """Return uninitialised memory for an array on this device.

        Args:
            shape: The array's shape, any rank.
            dtype: Its element type.
            purpose: What the error calls it; None: a tensor of that shape.

        Raises:
            ResourceExhaustedError: The memory limit does not allow it, not even after the garbage
                collector ran once.

        Example:
            >>> import numpy as np
            >>> from mirrored import devices
            >>> devices.get_device("CPU:0").allocate((2, 3), np.dtype("float32")).nbytes
            24
        """
        try:
            return self.backend.allocate(self.pool, shape, dtype)
        except OutOfPoolMemory:
            pass
        dims = ",".join(map(str, shape))
        label = purpose or f"tensor with shape [{dims}] and type {dtype.name}"
        return self._ask_again(partial(self.backend.allocate, self.pool, shape, dtype), label)

    def allocate_at(
        self, wanted: Sequence[tuple[HostPlace, int]], purpose: str | None = None
    ) -> list[Storage]:
        """Return bytes of the host at places that they keep, counted as this device's.

        Args:
            wanted: The places, each with the number of its bytes.
            purpose: What the error calls them.

        Raises:
            ResourceExhaustedError: As for `allocate`; none of them is allocated then.
        """
        try:
            return HostPlace.allocate(self.pool, wanted)
        except OutOfPoolMemory:
            pass
        label = purpose or f"tensor with shape [{wanted[0][1]}] and type uint8"
        return self._ask_again(partial(HostPlace.allocate, self.pool, wanted), label)

    def _ask_again(self, allocate: Callable[[], _Allocated], label: str) -> _Allocated:
        """Allocate once garbage is collected; the error says for what there is no room."""
        gc.collect()  # Tensors in reference cycles, such as those of a failed call's traceback.
        try:
            return allocate()
        except OutOfPoolMemory as refused:
            text = self._explain(refused, label)
        # Not within the block above: the frames of an error's context would keep every tensor of
        # the failed call alive, as long as a notebook keeps the error.
        raise ResourceExhaustedError(text)

    def _explain(self, refused: OutOfPoolMemory, label: str) -> str:
        said = (
            f"OOM when allocating {label} on {self.full_name}: {format_bytes(refused.asked)} "
            f"asked for, {format_bytes(self.pool.current)} in use"
        )
        if refused.pool is None:
            return f"{said}, and the host has no more memory. Free memory, or request less."
        limit = format_bytes(refused.pool.limit or 0)
        if refused.pool is self.pool:
            return f"{said}, limit {limit}. Use a smaller batch or model, or raise the limit."
        return (
            f"{said}. The limit of {self.physical.name}, {limit}, is shared by its logical "
            f"devices, which use {format_bytes(refused.pool.current)}. Use a smaller batch or "
            "model, or set a higher limit for the physical device."
        )


class _Gone:
    """Stands where the backend and the pool of a device were: to ask it for anything is an error.

    So a tensor of that device needs no look before each op.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, _: str) -> NoReturn:
        raise _gone_error(self._name)


def _gone_error(name: str) -> DevicesResetError:
    return DevicesResetError(
        f"{name} no longer exists: mr.config.experimental.reset_devices() has set up the devices "
        "again, as pytest's `simulated_gpus` does for each test. Tensors, variables, models, "
        "optimizers, strategies and iterators that were created before cannot be used any more. "
        "Create them again, in a test in a fixture or a function."
    )


def in_order(devices: Iterable[Device]) -> list[Device]:
    """Return devices by type, and those of a type by index."""
    return sorted(devices, key=operator.attrgetter("type", "index"))


def format_bytes(nbytes: int) -> str:
    """Return a number of bytes in a readable unit and exactly.

    Example:
        >>> format_bytes(1536 * 1024)
        '1.5 MB (1572864 bytes)'
        >>> format_bytes(12)
        '12 bytes'
    """
    rounded = in_units(nbytes, ["GB", "MB", "KB"])
    return f"{nbytes} bytes" if rounded is None else f"{rounded} ({nbytes} bytes)"
