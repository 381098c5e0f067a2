"""What keeps steps that a device was asked for from writing variables, while the device works.

Whether a step writes is decided on one device for all, at its gate; this is the host's say in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mirrored.backends import Backend
from mirrored.backends.streams import StreamBackend, is_streamed
from mirrored.devices import Device
from mirrored.program.binding import Call
from mirrored.program.streamed.stages import Track
from mirrored.program.streamed.steps import BoundTrack

_DTYPE = np.dtype(np.float32)


class Gate:
    """A number that a step reads once all its sums are there: it writes where that is finite.

    All that it takes to change the number is made before, for a device whose kernels wait for each
    other may give no memory.

    Args:
        device: The device that decides.

    Attributes:
        array: The number.

    Raises:
        ResourceExhaustedError: The device has no room for it.
    """

    def __init__(self, device: Device) -> None:
        """Leave it shut."""
        self._storage = device.allocate((1,), _DTYPE)
        self.array: Any = self._storage.array
        self._stream: StreamBackend | None = None
        self._opened, self._shut = np.zeros(1, _DTYPE), np.full(1, np.nan, _DTYPE)
        if is_streamed(device.backend):
            # Copies on a stream of its own come by work that may never end.
            self._stream = device.backend.another()
            for name in ("_opened", "_shut"):
                pinned = self._stream.pinned((1,), _DTYPE)
                pinned[...] = getattr(self, name)
                setattr(self, name, pinned)
            # The memory may have been another array's, which the device is not done with.
            self._stream.wait(device.backend.record())
            self._stream.wait_on_host(self._stream.record())

    def open(self, behind: StreamBackend | None) -> None:
        """Let the steps that a stream is asked for from now on pass.

        Args:
            behind: The stream; None: the gate is on the host.
        """
        if self._stream is None or behind is None:
            self.array[...] = self._opened
        else:
            behind.wait(self._stream.upload(self._opened, self.array, None))

    def shut(self) -> None:
        """Let no step pass that has not done so when this returns."""
        if self._stream is None:
            self.array[...] = self._shut
        else:
            self._stream.wait_on_host(self._stream.upload(self._shut, self.array, None))


def spread_flag(
    origin: Backend, backends: Sequence[Backend], flags: Mapping[Any, Any]
) -> list[list[BoundTrack]]:
    """Return what brings the gate's decision to other memories: a stage, if there are any.

    Args:
        origin: The gate's device.
        backends: The devices that write.
        flags: For each memory the flag that says whether variables may be written.
    """
    others = {each.memory: each for each in reversed(backends) if each.memory in flags}
    others.pop(origin.memory, None)
    stage = []
    for memory, backend in others.items():
        # By way of a stream each: they need not wait for one another.
        source = origin.another() if is_streamed(origin) else origin
        copy = Call(backend.copy_across, (source, flags[origin.memory], flags[memory]))
        stage.append(BoundTrack(Track(backend, [], True, True), [copy]))
    return [stage] if stage else []
