"""The part of the module `cupy` that the backend uses, over the emulated machine.

Arrays, pointers and exceptions are the real CuPy's; what would need a driver is not.
"""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace, TracebackType
from typing import Any

import cupy

from emulated_cuda import faults, memory
from emulated_cuda.faults import EmulatorError
from emulated_cuda.kernels import Module, RawModule, compile_using_nvrtc
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Event, Node, Queue, Run
from emulated_cuda.runtime import Runtime

_HIGHEST_PRIORITY = -5  # Of an H100; the lowest is 0.


class _Current(threading.local):
    """What is current in this thread, beside the card, and what was before that."""

    def __init__(self) -> None:
        self.devices: list[int] = []
        self.streams: dict[int, int] = {}
        self.stack: list[tuple[int, int]] = []


class Api:
    """What all the classes below share.

    Args:
        machine: The machine.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.runtime = Runtime(machine)
        self.current = _Current()

    def current_queue(self) -> Queue:
        """Return the current stream of the current card."""
        return self.machine.queue(self.current.streams.get(self.machine.current.device, 0))


class EmulatedDevice:
    """`cupy.cuda.Device`."""

    def __init__(self, api: Api, device: int | None = None) -> None:
        self._api = api
        self.id = api.machine.current.device if device is None else int(device)

    def __enter__(self) -> EmulatedDevice:
        machine = self._api.machine
        before = machine.current.device
        self._api.current.devices.append(before)
        if before != self.id:
            self._api.runtime.setDevice(self.id)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # CuPy sets it always, which makes a context. It would fail on a lost card too; here that
        # would hide why the block was left.
        machine = self._api.machine
        machine.current.device = machine.use(self._api.current.devices.pop())

    def use(self) -> None:
        """Let the thread work with it."""
        self._api.runtime.setDevice(self.id)

    def synchronize(self) -> None:
        """Wait for all its streams."""
        with self:
            self._api.runtime.deviceSynchronize()

    @property
    def mem_info(self) -> tuple[int, int]:
        """Its free bytes, and all."""
        with self:
            return self._api.runtime.memGetInfo()

    @property
    def compute_capability(self) -> str:
        """Major and minor in one string, as CuPy has it."""
        return "{}{}".format(*self._api.machine.cards[self.id].compute_capability)

    @property
    def pci_bus_id(self) -> str:
        """Its place."""
        return self._api.runtime.deviceGetPCIBusId(self.id)


class EmulatedEvent:
    """`cupy.cuda.Event`, of the current card."""

    def __init__(self, api: Api, block: bool = False, disable_timing: bool = False) -> None:
        self._api = api
        machine = api.machine
        with machine.call("eventCreate"):
            self.ptr = machine.handle()
            card = machine.use(machine.current.device)
            machine.events[self.ptr] = Event(card, timed=not disable_timing)
            machine.counts["events"] += 1
        self._forget = machine.events.pop

    def __del__(self) -> None:
        if hasattr(self, "_forget"):
            self._forget(self.ptr, None)

    @property
    def done(self) -> bool:
        """Whether it is done; False with any error."""
        return self._api.runtime.eventQuery(self.ptr) == 0

    def record(self, stream: EmulatedStream | None = None) -> None:
        """Record it on a stream, or on the current one."""
        handle = self._api.current_queue().handle if stream is None else stream.ptr
        self._api.runtime.eventRecord(self.ptr, handle)

    def synchronize(self) -> None:
        """Wait for it."""
        self._api.runtime.eventSynchronize(self.ptr)


class EmulatedStream:
    """`cupy.cuda.Stream`, of the current card."""

    def __init__(
        self,
        api: Api,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ) -> None:
        if not non_blocking or null or ptds or not isinstance(priority, int | None):
            raise EmulatorError("Only streams that are non_blocking are emulated.")
        self._api = api
        machine = api.machine
        with machine.call("streamCreate"):
            self.device_id = machine.use(machine.current.device)
            queue = machine.add_queue(self.device_id)
            queue.priority = min(max(priority or 0, _HIGHEST_PRIORITY), 0)  # As CUDA does.
            self.ptr = queue.handle
        self._destroy = machine.destroy_queue

    def __del__(self) -> None:
        if hasattr(self, "_destroy"):
            self._destroy(self.ptr)

    def __enter__(self) -> EmulatedStream:
        self._check_device()
        current = self._api.current
        current.stack.append((self.device_id, current.streams.get(self.device_id, 0)))
        current.streams[self.device_id] = self.ptr
        return self

    def __exit__(self, *_: object) -> None:
        device, before = self._api.current.stack.pop()
        self._api.current.streams[device] = before

    def use(self) -> EmulatedStream:
        """Make it the current stream."""
        self._check_device()
        self._api.current.streams[self.device_id] = self.ptr
        return self

    @property
    def priority(self) -> int:
        """How urgent it is: the lower, the more."""
        return self._api.machine.queue(self.ptr).priority

    def _check_device(self) -> None:
        current = self._api.machine.current.device
        if self.device_id != current:
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match "
                f"with the current device ({current})"
            )

    @property
    def done(self) -> bool:
        """Whether it has nothing left to do; False with any error."""
        return self._api.runtime.streamQuery(self.ptr) == 0

    def synchronize(self) -> None:
        """Wait for it."""
        self._api.runtime.streamSynchronize(self.ptr)

    def record(self, event: EmulatedEvent | None = None) -> EmulatedEvent:
        """Record an event, or a new one."""
        event = EmulatedEvent(self._api) if event is None else event
        self._api.runtime.eventRecord(event.ptr, self.ptr)
        return event

    def wait_event(self, event: EmulatedEvent) -> None:
        """Let work from now on wait for an event."""
        self._api.runtime.streamWaitEvent(self.ptr, event.ptr)

    def begin_capture(self, mode: int | None = None) -> None:
        """Note what it is asked for, instead of doing it."""
        machine = self._api.machine
        with machine.call("streamBeginCapture", self.device_id):
            relaxed = self._api.runtime.streamCaptureModeRelaxed  # type: ignore[attr-defined]
            machine.begin_capture(machine.queue(self.ptr), relaxed if mode is None else mode)

    def end_capture(self) -> EmulatedGraph:
        """Return what was noted."""
        machine = self._api.machine
        with machine.call("streamEndCapture", self.device_id):
            return EmulatedGraph(self._api, machine.end_capture(machine.queue(self.ptr)))


class EmulatedGraph:
    """`cupy.cuda.Graph`: it keeps arguments by value, and no memory."""

    def __init__(self, api: Api, nodes: list[Node]) -> None:
        self._api = api
        self._nodes = nodes
        self._last: Run | None = None

    def launch(self, stream: EmulatedStream | None = None) -> None:
        """Ask a stream for all of it."""
        machine = self._api.machine
        with machine.lock:
            queue = self._api.current_queue() if stream is None else machine.queue(stream.ptr)
            with machine.call("graphLaunch", queue.card):
                if queue.capture is not None or not queue.handle:
                    raise EmulatorError("Graphs are launched on streams that are not captured.")
                self._last = machine.enqueue_graph(queue, self._nodes, self._last)
                machine.counts["graphs"] += 1

    def upload(self, stream: EmulatedStream | None = None) -> None:
        """Do what the first launch would do beforehand."""
        machine = self._api.machine
        with machine.lock:
            queue = self._api.current_queue() if stream is None else machine.queue(stream.ptr)
            with machine.call("graphUpload", queue.card):
                machine.check_queue(queue)


def get_elapsed_time(api: Api, start_event: EmulatedEvent, end_event: EmulatedEvent) -> float:
    """Return the milliseconds between two events that are done."""
    machine = api.machine
    with machine.call("eventElapsedTime"):
        events = machine.event(start_event.ptr), machine.event(end_event.ptr)
        times = []
        for event in events:
            if not event.timed or event.mark is None:
                raise faults.error(faults.INVALID_RESOURCE_HANDLE)
            if not event.mark.done:
                raise faults.error(faults.NOT_READY)
            times.append(event.mark.time)
        return (times[1] - times[0]) * 1e3


def module(machine: Machine) -> Any:
    """Return what stands in for the module."""
    api = Api(machine)
    runtime = api.runtime
    cuda = SimpleNamespace(
        Device=partial(EmulatedDevice, api),
        Event=partial(EmulatedEvent, api),
        MemoryPointer=cupy.cuda.MemoryPointer,
        MemoryPool=partial(memory.MemoryPool, machine, api.current_queue),
        Stream=partial(EmulatedStream, api),
        UnownedMemory=cupy.cuda.UnownedMemory,
        alloc_pinned_memory=partial(memory.alloc_pinned_memory, machine),
        compiler=SimpleNamespace(
            CompileException=cupy.cuda.compiler.CompileException,
            compile_using_nvrtc=compile_using_nvrtc,
        ),
        driver=SimpleNamespace(CUDADriverError=cupy.cuda.driver.CUDADriverError),
        function=SimpleNamespace(
            LinkState=machine.ensure_context,
            Module=partial(Module, machine, api.current_queue),
        ),
        get_elapsed_time=partial(get_elapsed_time, api),
        nvrtc=SimpleNamespace(getVersion=lambda: (12, 9)),
        memory=SimpleNamespace(OutOfMemoryError=cupy.cuda.memory.OutOfMemoryError),
        runtime=runtime,
    )
    return SimpleNamespace(
        RawModule=partial(RawModule, machine, api.current_queue),
        __version__=cupy.__version__,
        cuda=cuda,
        ndarray=cupy.ndarray,
    )
