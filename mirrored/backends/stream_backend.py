"""The interface of a backend that works beside the host, on streams or in memory of its own.

Recorded programs are fed, launched and read through this, and learn nothing else of the hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mirrored.backends.backend import Backend
from mirrored.errors import DeviceUnavailableError

Shape = tuple[int, ...]
DType = np.dtype[Any]


SUMS = frozenset({"Sum", "Mean"})  # The ops that a loop of the host adds rows for.


class FusedOp(NamedTuple):
    """One op of a fused kernel.

    Attributes:
        name: The op's name.
        inputs: Where each input comes from: the number of one of the kernel's inputs, or, counted
            on from those, of an earlier op.
        shape: The shape of the result.
        dtype: Its dtype.
    """

    name: str
    inputs: tuple[int, ...]
    shape: Shape
    dtype: DType


class Fusion(NamedTuple):
    """Elementwise ops on arrays of as many elements, which one kernel computes.

    On the host there are sums over the first axes among them, which no other one of the ops reads.
    An element of an op depends on the same element of earlier ops alone; the kernel's inputs
    broadcast to the shape of the op that reads them.

    Attributes:
        inputs: The shape and dtype of each input.
        ops: The ops, in order.
        outputs: The numbers, from 0, of the ops whose results are kept.
    """

    inputs: tuple[tuple[Shape, DType], ...]
    ops: tuple[FusedOp, ...]
    outputs: tuple[int, ...]


class OpSpec(NamedTuple):
    """What is known of an op of a recorded step before it has memory.

    Attributes:
        inputs: The shape and dtype of each input.
        output: Those of the result.
        attrs: The op's attributes.
    """

    inputs: tuple[tuple[Shape, DType], ...]
    output: tuple[Shape, DType]
    attrs: Mapping[str, Any]


class Combination(NamedTuple):
    """Ops that one kernel computes.

    Attributes:
        run: The kernel: run(xp, outputs, inputs, attrs), with one of each for each op. An output is
            None where it has no memory, an input where an earlier one of the ops computes it.
        stores: For each op whether the kernel can write its result to memory.
        fits: Whether it computes ops of these shapes, dtypes and attributes.
    """

    run: Callable[..., None]
    stores: tuple[bool, ...]
    fits: Callable[[Sequence[OpSpec]], bool] = lambda ops: True


# A place in the work of a device that others can wait for.
Event = Any


class Place(NamedTuple):
    """Where the ranks of one process are among those of several that are connected.

    Attributes:
        first: The number of its first rank.
        total: How many ranks all of them have.
        key: What all of them were given for this, of the first one's `new_key`.
    """

    first: int
    total: int
    key: bytes


class Launchable(Protocol):
    """Work that was captured once and is launched as a whole."""

    def launch(self) -> None:
        """Let the device do the work after all that it was asked for before."""


class StreamBackend(Backend, Protocol):
    """A backend whose programs the host feeds, launches and reads.

    What a method does here serves a device without streams, kernels or links for it: work is done
    when it is asked for, so nothing has to be waited for. A backend that derives from this
    overrides what it can do better; the methods of `Backend` come from a class before it.
    """

    def fuses(self, op_name: str) -> bool:
        """Whether an op can be one of several that one kernel computes."""
        return False

    def fused_kernel(self, fusion: Fusion) -> Callable[..., None]:
        """Return the kernel of fused ops: kernel(xp, outputs, inputs, flag).

        With a flag, an array of one int32, it writes nothing while that is 0.
        """
        raise NotImplementedError(f"{type(self).__name__} fuses no ops. Received: {fusion}")

    @property
    def combinations(self) -> Mapping[tuple[str, ...], Combination]:
        """What of several ops one kernel computes, by their names in order.

        Each op reads the result of the one before it, or has the inputs of that, and more behind
        them.
        """
        return {}

    def finite_kernel(self) -> Callable[..., None] | None:
        """Return what sets a flag to 0 unless first elements are finite: kernel(xp, flag, *arrays).

        A flag that is 0 stays 0. None: the host looks at them, in the kernel's turn.
        """
        return None

    @property
    def report_kernels(self) -> tuple[Callable[..., None], Callable[..., None]] | None:
        """What puts bytes where an array says, and what says so there.

        The first is kernel(xp, state, bytes), and the second kernel(xp, state, address, count,
        size): there are `count` places of `size` bytes, in the device's memory or in pinned
        memory, which are taken in turn from the first on; or none, where the address is 0. The
        array is of four numbers of 64 bits. None: results are fetched.
        """
        return None

    @property
    def lock(self) -> AbstractContextManager[object]:
        """What a thread holds where no other one may ask devices of this memory for work."""
        return nullcontext()

    @property
    def beside(self) -> StreamBackend:
        """The same device with another stream, for work that may run at the same time."""
        return self.another()

    @property
    def settings(self) -> Hashable:
        """What launches depend on beside their arguments; what was captured under others is old."""
        return None

    def another(self, *, urgent: bool = False) -> StreamBackend:
        """Return the same device with a stream of its own, that nothing else uses.

        Where it is urgent, what waits there goes before what waits on other streams.
        """
        return self

    def record(self) -> Event:
        """Return an event at the end of the work so far."""
        return None

    def is_done(self, event: Event) -> bool:
        """Return whether the device has come to an event; it waits for nothing.

        Raises:
            DeviceLostError: The device cannot go on.
        """
        return True

    def wait(self, event: Event) -> None:
        """Let work from now on wait for an event, of this device or of another one."""

    def wait_on_host(self, event: Event) -> None:
        """Let the host wait for an event of this device."""

    def why_not_connected(self, others: Sequence[StreamBackend]) -> str | None:
        """Return why this device cannot `connect` to others, in a sentence; None: it can.

        It looks, and starts nothing.
        """
        return f"NCCL cannot be used: {type(self).__name__} does not connect devices."

    def new_key(self) -> bytes:
        """Return what several processes connect their devices by, once: one of them makes it.

        It goes on until they are connected, or the process ends.

        Raises:
            CollectiveError: It could not be made.
        """
        raise DeviceUnavailableError(str(self.why_not_connected(())))

    def connect(self, ranks: Sequence[StreamBackend], place: Place | None = None) -> Communicator:
        """Return a communicator of devices, this one among them, in the order of ranks.

        It may never return: see `mirrored.backends.communication.connection`.

        Args:
            ranks: The devices of this process.
            place: Where they are among those of several processes; None: there are no others.

        Raises:
            DeviceUnavailableError: They cannot be connected; the text says what mends that.
            CollectiveError: They could not be.
        """
        raise DeviceUnavailableError(str(self.why_not_connected(ranks)))

    def reads(self, other: StreamBackend) -> bool:
        """Return whether copies from another device come directly, without the host between."""
        return False

    def capture(self, work: Callable[[], object]) -> Launchable | None:
        """Return what a function launches here, captured, or None where that is not possible.

        Nothing of it is done. The function may let other devices of the same memory work for it,
        if it waits for them.
        """
        return None

    def pinned(self, shape: Shape, dtype: DType) -> NDArray[Any]:
        """Return an array of host memory that is copied to the device, and back, without delay."""
        return np.empty(shape, dtype)

    def feed(
        self, source: NDArray[Any], by_way_of: Any, target: Any, after: Event | None
    ) -> tuple[Event, Event]:
        """Copy pinned memory to the device beside the compute work, and in its turn into an array.

        Args:
            source: Pinned memory, which may not change before the first of the two ends.
            by_way_of: An array of as many bytes, which holds it from then on.
            target: Another one, where compute work from now on finds it.
            after: What the first copy waits for.

        Returns:
            Where the copies end: that beside the compute work, and that in its turn.
        """
        self.bring(source, target)
        return self.record(), self.record()

    def bring(self, source: NDArray[Any], target: Any) -> None:
        """Copy pinned memory into an array, after the work so far.

        Args:
            source: Pinned memory, which is read when the device comes to the copy.
            target: An array of as many bytes.
        """
        self.copy_between(source, target)

    def fetch(self, copies: Sequence[tuple[Any, NDArray[Any]]]) -> Event:
        """Copy arrays into pinned memory, after the work so far, and return where that ends.

        Args:
            copies: Arrays of this device, each with pinned memory of as many bytes.
        """
        for source, target in copies:
            target[...] = self.to_host(source)
        return self.record()


class Communicator(Protocol):
    """Connected devices, a rank on each. All calls of one come from one thread at a time.

    Only `abort` may be called beside another call, from another thread.
    """

    def all_reduce(
        self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[StreamBackend]
    ) -> None:
        """Ask all ranks, as one group, for the sum of one array a rank; wait for nothing.

        Args:
            sends: For each rank the array that it adds, all of one size and dtype, contiguous.
            receives: For each rank the array for the sum: its `sends`, or memory apart from it.
            streams: For each rank the device, with the stream that its part is to run on.

        Raises:
            ValueError: The arrays do not go together, or their dtype has no sum here; nothing was
                asked for.
            CollectiveError: It was refused; what some ranks were asked for may never end.
        """

    def failure(self) -> str | None:
        """Return what has gone wrong since, beside the calls; None: nothing. It never blocks.

        It may be asked just after an abort has begun, and has nothing to say then.
        """

    def abort(self) -> None:
        """Let all that was asked for end at once, with any results. It may never return."""

    def close(self) -> None:
        """Disconnect the devices, once all that was asked for is done. Again: do nothing."""


def is_offloaded(backend: Backend) -> TypeGuard[StreamBackend]:
    """Return whether a backend works beside the host: on streams, or in memory of its own."""
    return backend.streamed or not backend.host_readable
