"""Arrays and work of one logical device on a CUDA card, through CuPy.

Everything is asked for on one stream, in order; the host waits only where it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends import product_settings
from mirrored.backends.backend import Backend, OutOfPoolMemory, OwnKernel, Pool, Storage
from mirrored.backends.communication.watch import WATCH
from mirrored.backends.cuda import blas, card_memory, graphs, kernels, nccl, toolkit
from mirrored.backends.cuda.card_memory import CudaPool
from mirrored.backends.cuda.compiling import Modules
from mirrored.backends.cuda.current_card import CurrentCard, Entered, lock_of, made_once, translated
from mirrored.backends.cuda.fusion import KERNELS as ELEMENTWISE
from mirrored.backends.cuda.fusion import fused_kernel
from mirrored.backends.cuda.graphs import Events
from mirrored.backends.cuda.kernels.step_end import AIM, ALL_FINITE, REPORT
from mirrored.backends.cuda.launcher import Launcher
from mirrored.backends.cuda.nvml import Card
from mirrored.backends.host import values_on_host
from mirrored.backends.stream_backend import (
    Combination,
    Communicator,
    Event,
    Fusion,
    Launchable,
    Place,
    StreamBackend,
)
from mirrored.errors import DeviceUnavailableError, ResourceExhaustedError

_KERNELS: Mapping[str, OwnKernel] = MappingProxyType({**ELEMENTWISE, **kernels.KERNELS})
_COMBINATIONS = MappingProxyType(kernels.COMBINATIONS)

# A priority above all others: CUDA takes the highest that the card has for it.
_HIGHEST = -(1 << 16)


class CudaBackend:
    """The backend of one logical device.

    Nothing on the card is touched before something is asked of it.

    Args:
        card: The card that the device is on.
        priority: The priority of its work, lower is more urgent; None: that of all others.
    """

    host_readable: bool = False
    streamed: bool = True
    kernels: Mapping[str, OwnKernel] = _KERNELS
    combinations: Mapping[tuple[str, ...], Combination] = _COMBINATIONS
    report_kernels: tuple[Callable[..., None], Callable[..., None]] = (REPORT, AIM)

    def __init__(self, card: Card, priority: int | None = None) -> None:
        self.memory = card.pci_bus_id
        self._card = card
        self._priority = priority
        self.where = f"{card.name} at {card.pci_bus_id}"
        self.lock = lock_of(card.pci_bus_id)
        self._pinned_copies = card_memory.PinnedCopies()
        # The cards whose memory this one was let read, as far as that goes.
        self._peers: set[str] = set()

    # ------------------------------------------------------------------ the card, opened

    @made_once
    def _cupy(self) -> Any:
        return toolkit.toolkit()

    @made_once
    def device(self) -> CurrentCard:
        """The card, to be made the current one."""
        runtime = self._cupy.cuda.runtime
        with translated(self.where):
            return CurrentCard(runtime, runtime.deviceGetByPCIBusId(self._card.pci_bus_id))

    @made_once
    def stream(self) -> Any:
        """The stream of all that the device computes."""
        return self._new_stream()

    @made_once
    def _copies(self) -> Any:
        """The stream of what is uploaded beside the work of the other one."""
        return self._new_stream()

    @made_once
    def _events(self) -> Events:
        return Events(partial(self._cupy.cuda.Event, disable_timing=True))

    @made_once
    def _libraries(self) -> Any:
        """Memory of libraries: beside the device's pool, whose limit is for arrays."""
        return self._cupy.cuda.MemoryPool()

    @made_once
    def xp(self) -> Launcher:
        """What launches the device's kernels."""
        modules = Modules(self._cupy, self._card.compute_capability)
        return Launcher(self._cupy, self.stream, self._make_blas, modules)

    def _new_stream(self) -> Any:
        with self.entered():
            return self._cupy.cuda.Stream(non_blocking=True, priority=self._priority)

    def _make_blas(self) -> blas.Blas:
        nbytes = blas.workspace_bytes(self._card.compute_capability)
        with self.device, self.stream:
            memory = self._libraries.malloc(nbytes)
            workspace = self._cupy.ndarray((nbytes,), np.uint8, memptr=memory)
            return blas.Blas(blas.load(), self.stream.ptr, workspace)

    def entered(self) -> Entered:
        """Work on the card, with CUDA's errors as the library's."""
        return Entered(self.where, self.device, self.lock)

    # ------------------------------------------------------------------ arrays

    def make_pool(self, limit: int | None, *, parent: Pool | None, growth: bool) -> Pool:
        """Return a pool that takes memory of the card when the first array is made."""
        return CudaPool(limit, growth, self.where)

    def allocate(self, pool: Pool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Storage:
        """Return uninitialised memory for an array.

        Raises:
            OutOfPoolMemory: The pool's limit, or the card's memory, does not allow it.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        if not isinstance(pool, CudaPool):
            raise TypeError(f"A device's pool must be created by its backend. Received: {pool!r}")
        with self.lock, translated(self.where, asked=nbytes), self.device, self.stream:
            memory = pool.malloc(self._cupy, nbytes)
        return Storage(self._cupy.ndarray(shape, dtype, memptr=memory), pool, nbytes)

    def address(self, array: Any) -> int:
        """Return where an array begins in the card's memory, in bytes."""
        return int(array.data.ptr)

    def run(self, kernel: Callable[..., object], *args: Any, **attrs: Any) -> None:
        """Call a kernel as `call` does."""
        self.call(kernel, args, attrs)

    def call(
        self, kernel: Callable[..., object], args: Sequence[Any], attrs: Mapping[str, Any]
    ) -> None:
        """Call a kernel, which launches on this device's stream.

        Raises:
            ResourceExhaustedError: The card has too little memory for what the kernel needs beside
                its arrays.
        """
        with self.entered(), self.stream:
            kernel(*args, **attrs)

    def synchronize(self) -> None:
        """Wait until all that was asked of the device is done."""
        for stream in (self.stream, self._copies):
            self.wait_on_host(self._event(stream))

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        """Copy a NumPy array of the storage's shape and dtype into it."""
        self.copy_between(
            array.astype(storage.array.dtype, casting="equiv", copy=False), storage.array
        )

    def to_host(self, array: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return a NumPy copy, as the work so far leaves the array; `out` gets it if passed.

        The array may be a variable's memory, which a step of another thread writes next. So the
        copy has its place among the work of the stream, and not beside it.
        """
        out = np.empty(array.shape, array.dtype) if out is None else out
        if not out.nbytes:
            return out
        # A copy to memory that is not pinned waits by itself, with no deadline. Arrays of alike
        # sizes share pinned memory one after the other, for it is kept.
        with self.entered():
            pinned = self.pinned((1 << (out.nbytes - 1).bit_length(),), np.dtype(np.uint8))
            done = self.fetch([(array, pinned)])
        try:
            self.wait_on_host(done)
        except BaseException:
            self._pinned_copies.keep(done, pinned)  # The copy may still write it.
            raise
        np.copyto(out, pinned[: out.nbytes].view(out.dtype).reshape(out.shape))
        return out

    def copy_between(self, source: Any, target: Any) -> None:
        """Copy an array of this device, or one of NumPy, into the array ``target``."""
        card_memory.check_alike(source, target)
        if not target.nbytes:
            return
        if isinstance(source, np.ndarray):
            self._copy_from_host(source, target)
            return
        with self.entered():
            self.xp.copy(target, source)

    def _copy_from_host(self, source: NDArray[Any], target: Any) -> None:
        """Copy through pinned memory: the source may change, or go, as soon as this returns."""
        self._pinned_copies.make_room(self)
        try:
            pinned = self.pinned(source.shape, source.dtype)
        except ResourceExhaustedError:
            self._copy_unpinned(np.ascontiguousarray(source), target)
            return
        with self.entered():
            np.copyto(pinned, source)
            self._bring(pinned, target, self.stream)
            self._pinned_copies.keep(self.record(), pinned)

    def _copy_unpinned(self, source: NDArray[Any], target: Any) -> None:
        """Copy slowly where the host has no pinned memory: new weights come one after the other."""
        # The copy waits for what is before it, and with no deadline: nothing is.
        self.wait_on_host(self.record())
        with self.entered():
            self._bring(source, target, self.stream)
            done = self.record()
            self._pinned_copies.keep(done, source)  # It may be read until then.
        self.wait_on_host(done)

    def copy_across(self, backend: Backend, source: Any, target: Any) -> None:
        """Copy an array of another backend into the array ``target`` of this one."""
        if not isinstance(backend, CudaBackend):
            self.copy_between(values_on_host(backend, source), target)
            return
        card_memory.check_alike(source, target)
        if not target.nbytes:
            return
        self.wait(backend.record())
        with self.entered():
            if backend.memory not in (self.memory, *self._peers):
                card_memory.let_read(self._cupy.cuda.runtime, self.device.id, backend.device.id)
                self._peers.add(backend.memory)
            self.xp.insist(
                self._cupy.cuda.runtime.memcpyPeerAsync,
                target.data.ptr,
                self.device.id,
                source.data.ptr,
                backend.device.id,
                target.nbytes,
                self.stream.ptr,
            )
        # From then on the other device may give the source's memory to something else.
        backend.wait(self.record())

    # ------------------------------------------------------------------ recorded programs

    def fuses(self, op_name: str) -> bool:
        """Whether an op can be one of several that one kernel computes."""
        return op_name in ELEMENTWISE

    def fused_kernel(self, fusion: Fusion) -> Callable[..., None]:
        """Return the kernel of fused ops; see `StreamBackend`."""
        return fused_kernel(fusion)

    def finite_kernel(self) -> Callable[..., None]:
        """Return what clears a flag unless numbers are finite; see `StreamBackend`."""
        return ALL_FINITE

    @made_once
    def beside(self) -> CudaBackend:
        """The same device with another stream, for work that may run at the same time."""
        return self.another()

    def another(self, *, urgent: bool = False) -> CudaBackend:
        """Return the same device with a stream of its own; see `StreamBackend`."""
        return CudaBackend(self._card, _HIGHEST if urgent else self._priority)

    @property
    def settings(self) -> bool:
        """Whether products are made in TensorFloat-32."""
        return product_settings.tensor_float_32_allowed()

    def record(self) -> Event:
        """Return an event at the end of the work so far."""
        return self._event(self.stream)

    def is_done(self, event: Any) -> bool:
        """Return whether the device has come to an event; see `StreamBackend`."""
        with translated(self.where):  # Without a lock: others may ask for work meanwhile.
            self.device.bind()
            status = graphs.query(event.ptr)
            if status not in (graphs.DONE, graphs.NOT_READY):
                raise self._cupy.cuda.runtime.CUDARuntimeError(status)
        return status == graphs.DONE

    def wait_on_host(self, event: Any) -> None:
        """Let the host wait for an event of this device, and look after collectives meanwhile.

        Raises:
            CollectiveError: One failed, or missed its deadline.
        """
        if not WATCH.idle:
            WATCH.wait(lambda: self.is_done(event))
            return
        with translated(self.where):  # Without the lock, as above.
            self.device.bind()
            event.synchronize()

    def wait(self, event: Any) -> None:
        """Let work from now on wait for an event."""
        with self.entered():
            self.stream.wait_event(event)

    def _event(self, stream: Any) -> Any:
        with self.entered():
            return self._events.recorded(stream)

    # ------------------------------------------------------------------ sums over several cards

    def why_not_connected(self, others: Sequence[StreamBackend]) -> str | None:
        """Return why this device cannot connect to others; see `StreamBackend`."""
        return _why_not([self, *(other for other in others if other is not self)])

    def new_key(self) -> bytes:
        """Return a unique id of NCCL; see `StreamBackend`."""
        return nccl.new_key(nccl.load())

    def connect(self, ranks: Sequence[StreamBackend], place: Place | None = None) -> Communicator:
        """Return a communicator of NCCL; see `StreamBackend`."""
        why = _why_not(ranks)
        if why is not None:
            raise DeviceUnavailableError(why)
        return nccl.NcclCommunicator(nccl.load(), _cuda(ranks), place)

    def reads(self, other: StreamBackend) -> bool:
        """Return whether copies from another device come directly; see `StreamBackend`."""
        return isinstance(other, CudaBackend) and card_memory.reads(self._card, other._card)

    # ------------------------------------------------------------------ graphs, pinned memory

    def capture(self, work: Callable[[], object]) -> Launchable | None:
        """Return what a function launches, captured as a CUDA graph; see `StreamBackend`."""
        return graphs.capture(self, work, self._cupy)

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array of pinned host memory."""
        nbytes = math.prod(shape) * dtype.itemsize
        try:
            with self.lock, translated(self.where), self.device:
                memory = self._cupy.cuda.alloc_pinned_memory(max(nbytes, 1))
        except OutOfPoolMemory:
            raise ResourceExhaustedError(
                f"The host has too little memory for {nbytes} bytes that {self.where} reads and "
                "writes directly. Use smaller batches, or end other programs."
            ) from None
        return np.frombuffer(memory, np.uint8, nbytes).view(dtype).reshape(shape)

    def feed(
        self, source: NDArray[Any], by_way_of: Any, target: Any, after: Any
    ) -> tuple[Event, Event]:
        """Copy pinned memory beside the compute stream, then into an array; see `StreamBackend`."""
        with self.entered():
            if after is not None:
                self._copies.wait_event(after)
            self._bring(source, by_way_of, self._copies)
            uploaded = self._events.recorded(self._copies)
            self.stream.wait_event(uploaded)
            self.xp.copy(target, by_way_of)
            return uploaded, self._events.recorded(self.stream)

    def _bring(self, pinned: NDArray[Any], target: Any, stream: Any) -> None:
        """Copy pinned memory to the card, on a stream."""
        runtime = self._cupy.cuda.runtime
        self.xp.insist(
            runtime.memcpyAsync,
            target.data.ptr,
            pinned.ctypes.data,
            target.nbytes,
            runtime.memcpyHostToDevice,
            stream.ptr,
        )

    def bring(self, source: NDArray[Any], target: Any) -> None:
        """Copy pinned memory into an array after the work so far; see `StreamBackend`."""
        with self.entered():
            self._bring(source, target, self.stream)

    def fetch(self, copies: Sequence[tuple[Any, NDArray[Any]]]) -> Event:
        """Copy arrays into pinned memory after the work so far; see `StreamBackend`."""
        runtime = self._cupy.cuda.runtime
        with self.entered():
            copy, kind = runtime.memcpyAsync, runtime.memcpyDeviceToHost
            for source, target in copies:
                to, where = target.ctypes.data, source.data.ptr
                self.xp.insist(copy, to, where, source.nbytes, kind, self.stream.ptr)
            return self._events.recorded(self.stream)


def _cuda(ranks: Sequence[Backend]) -> list[CudaBackend]:
    return [rank for rank in ranks if isinstance(rank, CudaBackend)]


def _why_not(ranks: Sequence[Backend]) -> str | None:
    """Return why NCCL cannot connect devices, None where it can."""
    cards = _cuda(ranks)
    if len(cards) < len(ranks):
        return "NCCL cannot be used: it connects only NVIDIA GPUs, and some devices are not."
    return nccl.why_not(cards)
