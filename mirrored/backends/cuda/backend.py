"""Arrays and work of one logical device on a CUDA card, through CuPy.

Everything is asked for on one stream, in order; the host waits only where it reads.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._logging import logger
from mirrored.backends import precision
from mirrored.backends.base import Backend, OutOfPoolMemory, OwnKernel, Pool, Storage
from mirrored.backends.cuda import blas, fusion, kernels, toolkit
from mirrored.backends.cuda.faults import translated, translation
from mirrored.backends.cuda.kernels.checks import ALL_FINITE
from mirrored.backends.cuda.kernels.cross_entropy import LOSS_AND_GRAD, SPARSE_LOSS_AND_GRAD
from mirrored.backends.cuda.launcher import CudaLauncher
from mirrored.backends.cuda.nvml import Card
from mirrored.backends.cuda.pool import CudaPool
from mirrored.backends.streams import Chain, Event, Launchable
from mirrored.errors import ResourceExhaustedError

_KERNELS: Mapping[str, OwnKernel] = MappingProxyType({**fusion.KERNELS, **kernels.KERNELS})

# Pairs of ops that one kernel computes.
_FUSED: Mapping[tuple[str, str], Callable[..., None]] = MappingProxyType(
    {
        ("SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyGrad"): (
            SPARSE_LOSS_AND_GRAD.run
        ),
        ("SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyGrad"): LOSS_AND_GRAD.run,
    }
)

# What cuBLAS may use while it computes, in bytes: its own recommendation for Hopper cards, and for
# those before (the documentation of cublasSetWorkspace).
_WORKSPACE, _WORKSPACE_BEFORE_HOPPER = 32 << 20, 4 << 20


class CudaBackend:
    """The backend of one logical device.

    Nothing on the card is touched before something is asked of it.

    Args:
        card: The card that the device is on.
        priority: The priority of its work, lower is more urgent; None: that of all others.
    """

    host_readable: bool = False
    kernels: Mapping[str, OwnKernel] = _KERNELS

    def __init__(self, card: Card, priority: int | None = None) -> None:
        self.memory = card.pci_bus_id
        self._card = card
        self._priority = priority
        self._where = f"{card.name} at {card.pci_bus_id}"
        self._lock = threading.RLock()
        self._pool: CudaPool | None = None

    # ------------------------------------------------------------------ the card, opened

    @cached_property
    def _cupy(self) -> Any:
        return toolkit.toolkit()

    @cached_property
    def _device(self) -> Any:
        with translated(self._where):
            ordinal = self._cupy.cuda.runtime.deviceGetByPCIBusId(self._card.pci_bus_id)
            return self._cupy.cuda.Device(ordinal)

    @cached_property
    def _stream(self) -> Any:
        return self._new_stream()

    @cached_property
    def _copies(self) -> Any:
        """The stream of what is uploaded beside the work of the other one."""
        return self._new_stream()

    @cached_property
    def _libraries(self) -> Any:
        """Memory of libraries: beside the device's pool, whose limit is for arrays."""
        return self._cupy.cuda.MemoryPool()

    @cached_property
    def xp(self) -> CudaLauncher:
        """What launches the device's kernels."""
        return CudaLauncher(self._cupy, self._stream, self._make_blas)

    def _new_stream(self) -> Any:
        with translated(self._where), self._device:
            return self._cupy.cuda.Stream(non_blocking=True, priority=self._priority)

    def _make_blas(self) -> blas.Blas:
        hopper = self._card.compute_capability >= (9, 0)
        nbytes = _WORKSPACE if hopper else _WORKSPACE_BEFORE_HOPPER
        with self._device, self._stream:
            memory = self._libraries.malloc(nbytes)
            workspace = self._cupy.ndarray((nbytes,), np.uint8, memptr=memory)
            return blas.Blas(blas.load(), self._stream.ptr, workspace)

    def _entered(self) -> _Entered:
        """Work on the card, with CUDA's errors as the library's."""
        return _Entered(self._where, self._device)

    # ------------------------------------------------------------------ arrays

    def make_pool(self, limit: int | None, *, parent: Pool | None, growth: bool) -> Pool:
        """Return a pool that takes memory of the card when the first array is made."""
        return CudaPool(limit, parent, growth, self._where)

    def allocate(self, pool: Pool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Storage:
        """Return uninitialised memory for an array.

        Raises:
            OutOfPoolMemory: The pool's limit, or the card's memory, does not allow it.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        if not isinstance(pool, CudaPool):
            raise TypeError(f"A device's pool is one that its backend made. Received: {pool!r}")
        with translated(self._where, asked=nbytes), self._device, self._stream:
            memory = pool.malloc(self._cupy, nbytes)
        return Storage(self._cupy.ndarray(shape, dtype, memptr=memory), pool, nbytes)

    def address(self, array: Any) -> int:
        """Return where an array begins in the card's memory, in bytes."""
        return int(array.data.ptr)

    def run(self, kernel: Callable[..., object], *args: Any, **attrs: Any) -> None:
        """Call a kernel, which launches on this device's stream.

        Raises:
            ResourceExhaustedError: The card has too little memory for what the kernel needs beside
                its arrays.
        """
        with self._entered(), self._stream:
            kernel(*args, **attrs)

    def synchronize(self) -> None:
        """Wait until all that was asked of the device is done."""
        with self._entered():
            self._stream.synchronize()

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        """Copy a NumPy array of the storage's shape and dtype into it."""
        self.copy_between(
            array.astype(storage.array.dtype, casting="equiv", copy=False), storage.array
        )

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a NumPy copy, once it is computed."""
        out = np.empty(array.shape, array.dtype)
        if out.nbytes:
            runtime = self._cupy.cuda.runtime
            with self._entered():
                runtime.memcpyAsync(
                    out.ctypes.data,
                    array.data.ptr,
                    out.nbytes,
                    runtime.memcpyDeviceToHost,
                    self._stream.ptr,
                )
                self._stream.synchronize()
        return out

    def copy_between(self, source: Any, target: Any) -> None:
        """Copy an array of this device, or one of NumPy, into the array ``target``."""
        _check_alike(source, target)
        if not target.nbytes:
            return
        runtime = self._cupy.cuda.runtime
        with self._entered():
            if isinstance(source, np.ndarray):
                # CUDA has read memory that is not pinned when this returns: it may change then.
                host = np.ascontiguousarray(source)
                address, kind = host.ctypes.data, runtime.memcpyHostToDevice
            else:
                address, kind = source.data.ptr, runtime.memcpyDeviceToDevice
            runtime.memcpyAsync(target.data.ptr, address, target.nbytes, kind, self._stream.ptr)

    def copy_across(self, backend: Backend, source: Any, target: Any) -> None:
        """Copy an array of another backend into the array ``target`` of this one."""
        if not isinstance(backend, CudaBackend):
            self.copy_between(source if backend.host_readable else backend.to_host(source), target)
            return
        _check_alike(source, target)
        if not target.nbytes:
            return
        self.wait(backend.record())
        with self._entered():
            self._cupy.cuda.runtime.memcpyPeerAsync(
                target.data.ptr,
                self._device.id,
                source.data.ptr,
                backend._device.id,
                target.nbytes,
                self._stream.ptr,
            )
        # From then on the other device may give the source's memory to something else.
        backend.wait(self.record())

    # ------------------------------------------------------------------ recorded programs

    def fuses(self, op_name: str) -> bool:
        """Whether an op can be a step of a chain."""
        return op_name in fusion.KERNELS

    def chain_kernel(self, chain: Chain) -> Callable[..., None]:
        """Return the kernel of a chain; see `StreamBackend`."""
        return fusion.chain_kernel(chain)

    def fused_kernel(self, first: str, second: str) -> Callable[..., None]:
        """Return the kernel of two ops; see `StreamBackend`."""
        return _FUSED[first, second]

    def finite_kernel(self) -> Callable[..., None]:
        """Return what clears a flag unless numbers are finite; see `StreamBackend`."""
        return ALL_FINITE

    @cached_property
    def beside(self) -> CudaBackend:
        """The same device with another stream, for work that may run at the same time."""
        return CudaBackend(self._card, self._priority)

    @property
    def settings(self) -> bool:
        """Whether products are made in TensorFloat-32."""
        return precision.tensor_float_32_allowed()

    def record(self) -> Event:
        """Return an event at the end of the work so far."""
        return self._event(self._stream)

    def wait_on_host(self, event: Any) -> None:
        """Let the host wait for an event of this device."""
        with self._entered():
            event.synchronize()

    def wait(self, event: Any) -> None:
        """Let work from now on wait for an event."""
        with self._entered():
            self._stream.wait_event(event)

    def _event(self, stream: Any) -> Any:
        with self._entered():
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            return event

    def capture(self, work: Callable[[], object]) -> Launchable | None:
        """Return what a function launches, captured as a CUDA graph; see `StreamBackend`."""
        if os.environ.get("MIRRORED_CUDA_GRAPHS", "1") == "0":
            _say_that_graphs_are_off()
            return None
        mode = self._cupy.cuda.runtime.streamCaptureModeThreadLocal
        collects = gc.isenabled()
        gc.disable()  # What it would destroy meanwhile, such as another graph, may end the capture.
        try:
            with self._device, self._stream:
                self._stream.begin_capture(mode)
                try:
                    work()
                finally:
                    graph = self._stream.end_capture()
        except (RuntimeError, NotImplementedError) as error:
            # What cannot be captured can still be launched; what is wrong with the card shows then.
            logger.info(
                "%s: a program could not be captured as a CUDA graph, and is replayed kernel by "
                "kernel. The reason: %s",
                self._where,
                error,
            )
            return None
        finally:
            if collects:
                gc.enable()
        return _Graph(self, graph)

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array of pinned host memory."""
        count = math.prod(shape)
        with self._entered():
            memory = self._cupy.cuda.alloc_pinned_memory(max(count * dtype.itemsize, 1))
        raw = np.frombuffer(memory, np.uint8, count * dtype.itemsize)
        return raw.view(dtype).reshape(shape)

    def upload(self, source: NDArray[Any], target: Any, after: Any) -> Event:
        """Copy pinned memory into an array beside the compute stream; see `StreamBackend`."""
        runtime = self._cupy.cuda.runtime
        with self._entered():
            if after is not None:
                self._copies.wait_event(after)
            runtime.memcpyAsync(
                target.data.ptr,
                source.ctypes.data,
                target.nbytes,
                runtime.memcpyHostToDevice,
                self._copies.ptr,
            )
        return self._event(self._copies)

    def download(self, source: Any, target: NDArray[Any]) -> None:
        """Copy an array into pinned memory after the work so far; see `StreamBackend`."""
        runtime = self._cupy.cuda.runtime
        with self._entered():
            runtime.memcpyAsync(
                target.ctypes.data,
                source.data.ptr,
                target.nbytes,
                runtime.memcpyDeviceToHost,
                self._stream.ptr,
            )


class _Entered:
    """A context on a card. It is entered several times in a step, so it does the least it can.

    Args:
        where: What to call the card in messages.
        device: CuPy's object for it.

    Raises:
        ResourceExhaustedError: The card has no memory for what was asked for.
        DeviceLostError: It cannot go on.
    """

    __slots__ = ("_device", "_where")

    def __init__(self, where: str, device: Any) -> None:
        self._where = where
        self._device = device

    def __enter__(self) -> None:
        try:
            self._device.__enter__()
        except Exception as error:
            self._translate(error)
            raise

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._device.__exit__(kind, error, traceback)
        if error is not None:
            self._translate(error)

    def _translate(self, error: BaseException) -> None:
        """Raise what is an error of CUDA's as one of the library's."""
        found = error if isinstance(error, OutOfPoolMemory) else translation(error, self._where)
        if isinstance(found, OutOfPoolMemory):
            found = ResourceExhaustedError(
                f"{self._where} has too little memory left for what kernels, libraries and copies "
                "need beside arrays. Give its logical devices lower memory limits, or end other "
                "programs that use the card."
            )
        if found is not None:
            raise found from error


class _Graph:
    """A captured function.

    Args:
        backend: The device that launches it.
        graph: What CuPy made of it.
    """

    def __init__(self, backend: CudaBackend, graph: Any) -> None:
        self._backend = backend
        self._graph = graph

    def __del__(self) -> None:
        # CUDA does not promise that a graph may go while it runs. On a lost card nothing does.
        with contextlib.suppress(RuntimeError):
            self._backend._stream.synchronize()

    def launch(self) -> None:
        """Let the device do all of it after what it was asked for before."""
        with self._backend._entered():
            self._graph.launch(self._backend._stream)


@cache
def _say_that_graphs_are_off() -> None:
    logger.info("MIRRORED_CUDA_GRAPHS=0: programs are replayed kernel by kernel.")


def _check_alike(source: Any, target: Any) -> None:
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ValueError(
            "A copy is between arrays of one shape and dtype. Received: "
            f"{source.dtype.name}{source.shape} for {target.dtype.name}{target.shape}."
        )
