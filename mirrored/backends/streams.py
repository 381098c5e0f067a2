"""What a backend has to offer whose devices work on their own while the host goes on.

Recorded programs are fed, launched and read through this, and learn nothing else of the hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mirrored.backends.base import Backend

if TYPE_CHECKING:
    from mirrored.backends.communication.communicator import Communicator

Shape = tuple[int, ...]
DType = np.dtype[Any]


class Step(NamedTuple):
    """One op of a chain.

    Attributes:
        op: The op's name.
        inputs: Where each input comes from: the number of one of the chain's inputs, or, counted
            on from those, of an earlier step.
        shape: The shape of the result.
        dtype: Its dtype.
    """

    op: str
    inputs: tuple[int, ...]
    shape: Shape
    dtype: DType


class Chain(NamedTuple):
    """Elementwise ops on arrays of as many elements, which one kernel computes.

    An element of a step depends on the same element of earlier steps alone; the chain's inputs
    broadcast to the shape of the step that reads them.

    Attributes:
        inputs: The shape and dtype of each input.
        steps: The ops, in order.
        outputs: The numbers, from 0, of the steps whose results are kept.
    """

    inputs: tuple[tuple[Shape, DType], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]


# A place in the work of a device that others can wait for.
Event = Any


class Launchable(Protocol):
    """Work that was captured once and is launched as a whole."""

    def launch(self) -> None:
        """Let the device do the work after all that it was asked for before."""
        ...


class StreamBackend(Backend, Protocol):
    """A backend whose work runs on streams, beside the host."""

    def fuses(self, op_name: str) -> bool:
        """Whether an op can be a step of a chain."""
        ...

    def chain_kernel(self, chain: Chain) -> Callable[..., None]:
        """Return the kernel of a chain: kernel(xp, outputs, inputs, flag).

        With a flag, an array of one int32, it writes nothing while that is 0.
        """
        ...

    @property
    def fused(self) -> Mapping[tuple[str, str], Callable[..., None]]:
        """Kernels of two ops at once, by their names: kernel(xp, (first, second result), *inputs).

        The second op has the inputs of the first, and more behind them.
        """
        ...

    def finite_kernel(self) -> Callable[..., None]:
        """Return what sets a flag to 0 unless first elements are finite: kernel(xp, flag, *arrays).

        A flag that is 0 stays 0.
        """
        ...

    @property
    def beside(self) -> StreamBackend:
        """The same device with another stream, for work that may run at the same time."""
        ...

    @property
    def settings(self) -> Hashable:
        """What launches depend on beside their arguments; what was captured under others is old."""
        ...

    def another(self) -> StreamBackend:
        """Return the same device with a stream of its own, that nothing else uses."""
        ...

    def record(self) -> Event:
        """Return an event at the end of the work so far."""
        ...

    def is_done(self, event: Event) -> bool:
        """Return whether the device has come to an event; it waits for nothing.

        Raises:
            DeviceLostError: The device cannot go on.
        """
        ...

    def wait(self, event: Event) -> None:
        """Let work from now on wait for an event, of this device or of another one."""
        ...

    def wait_on_host(self, event: Event) -> None:
        """Let the host wait for an event of this device."""
        ...

    def why_not_connected(self, others: Sequence[StreamBackend]) -> str | None:
        """Return why this device cannot `connect` to others, in a sentence; None: it can.

        It looks, and starts nothing.
        """
        ...

    def connect(self, ranks: Sequence[StreamBackend]) -> Communicator:
        """Return a communicator of devices, this one among them, in the order of ranks.

        It may take for ever: see `mirrored.backends.communication.connection`.

        Raises:
            DeviceUnavailableError: They cannot be connected; the text says what mends that.
            CollectiveError: They could not be.
        """
        ...

    def reads(self, other: StreamBackend) -> bool:
        """Return whether copies from another device come directly, without the host between."""
        ...

    def capture(self, work: Callable[[], object]) -> Launchable | None:
        """Return what a function launches here, captured, or None where that is not possible.

        Nothing of it is done. The function may let other devices of the same memory work for it,
        if it waits for them.
        """
        ...

    def pinned(self, shape: Shape, dtype: DType) -> NDArray[Any]:
        """Return an array of host memory that is copied to the device, and back, without delay."""
        ...

    def upload(self, source: NDArray[Any], target: Any, after: Event | None) -> Event:
        """Copy pinned memory into an array beside the compute work, and return the copy's end.

        Compute work does not wait for it unless it is told to.

        Args:
            source: Pinned memory, which may not change before the end.
            target: An array of as many bytes.
            after: What the copy waits for.
        """
        ...

    def bring(self, source: NDArray[Any], target: Any) -> None:
        """Copy pinned memory into an array, after the work so far.

        Args:
            source: Pinned memory, which is read when the device comes to the copy.
            target: An array of as many bytes.
        """
        ...

    def download(self, source: Any, target: NDArray[Any]) -> None:
        """Copy an array into pinned memory, after the work so far.

        Args:
            source: An array of this device.
            target: Pinned memory of as many bytes; to be read after an event that is recorded now.
        """
        ...


def is_streamed(backend: Backend) -> TypeGuard[StreamBackend]:
    """Return whether a backend's work runs beside the host."""
    return not backend.host_readable
