"""`cupy.cuda.runtime` over the emulated machine, with the names and the numbers of the real one.

Parameters are called as CuPy calls them, so that what is accepted here is accepted there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import index
from typing import Any

from cupy.cuda import runtime as real

from emulated_cuda import faults
from emulated_cuda.addresses import Block, Region
from emulated_cuda.faults import EmulatorError
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Event, Queue

_DRIVER, _RUNTIME = 13000, 12090  # The versions that it says it has.
# Constants that are what they are in CuPy.
_CONSTANTS = (
    "memcpyHostToHost",
    "memcpyHostToDevice",
    "memcpyDeviceToHost",
    "memcpyDeviceToDevice",
    "memcpyDefault",
    "streamDefault",
    "streamNonBlocking",
    "streamCaptureModeGlobal",
    "streamCaptureModeThreadLocal",
    "streamCaptureModeRelaxed",
    "eventDefault",
    "eventBlockingSync",
    "eventDisableTiming",
    "CUDARuntimeError",
)


class Runtime:
    """The functions, as methods.

    Args:
        machine: The machine.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        for name in _CONSTANTS:
            setattr(self, name, getattr(real, name))

    # ------------------------------------------------------------------ cards

    def getDeviceCount(self) -> int:
        """Return the number of cards."""
        with self._machine.call("getDeviceCount"):
            return len(self._machine.cards)

    def getDevice(self) -> int:
        """Return the number of the thread's card."""
        return self._machine.current.device

    def setDevice(self, device: int) -> None:
        """Let the thread work with a card."""
        machine, device = self._machine, self._card(device)
        with machine.call("setDevice", device):
            machine.current.device = machine.use(device)

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        """Return some of what CUDA says of a card, which needs no context."""
        card = self._machine.cards[self._card(device)]
        major, minor = card.compute_capability
        return {
            "name": card.name.encode(),
            "totalGlobalMem": card.memory,
            "major": major,
            "minor": minor,
            "multiProcessorCount": 132,
            "pciBusID": card.pci_bus,
            "pciDeviceID": 0,
            "pciDomainID": 0,
        }

    def deviceGetByPCIBusId(self, pci_bus_id: str) -> int:
        """Return a card's number."""
        with self._machine.call("deviceGetByPCIBusId"):
            for number, card in enumerate(self._machine.cards):
                # CUDA takes a domain of eight digits, as NVML writes it, too.
                if pci_bus_id.upper().removeprefix("0000") == card.pci_bus_id.removeprefix("0000"):
                    return number
            raise faults.error(faults.INVALID_DEVICE)

    def deviceGetPCIBusId(self, device: int) -> str:
        """Return a card's place."""
        return self._machine.cards[self._card(device)].pci_bus_id

    def deviceCanAccessPeer(self, device: int, peerDevice: int) -> int:
        """Return whether a card may use another one's memory."""
        a, b = self._card(device), self._card(peerDevice)
        cards = self._machine.cards
        return int(a != b and cards[a].peers and cards[b].peers)

    def deviceEnablePeerAccess(self, peerDevice: int) -> None:
        """Let the current card use another one's memory."""
        machine, peer = self._machine, self._card(peerDevice)
        with machine.call("deviceEnablePeerAccess"):
            pair = machine.use(machine.current.device), peer
            if not self.deviceCanAccessPeer(*pair):
                raise faults.error(faults.PEER_ACCESS_UNSUPPORTED)
            if pair in machine.peers:
                raise faults.error(faults.PEER_ACCESS_ALREADY_ENABLED)
            machine.peers.add(pair)

    def runtimeGetVersion(self) -> int:
        """Return the runtime's version."""
        return _RUNTIME

    def driverGetVersion(self) -> int:
        """Return the newest version that the driver can work with."""
        return _DRIVER

    def memGetInfo(self) -> tuple[int, int]:
        """Return the free bytes of the current card, and all."""
        machine = self._machine
        with machine.call("memGetInfo"):
            card = machine.use(machine.current.device)
            return machine.free_bytes(card), machine.cards[card].memory

    def deviceSynchronize(self) -> None:
        """Wait for all streams of the current card."""
        machine = self._machine
        with machine.call("deviceSynchronize"):
            card = machine.use(machine.current.device)
            machine.break_captures(machine.captures_on(card))
            machine.synchronize([q for q in machine.scheduler.queues if q.card == card])

    # ------------------------------------------------------------------ streams and events

    def streamSynchronize(self, stream: int) -> None:
        """Wait for a stream."""
        with self._on(stream, "streamSynchronize") as queue:
            self._machine.synchronize([queue])

    def streamQuery(self, stream: int) -> int:
        """Return 0 where a stream has nothing left to do, 600 where it has."""
        return self._query(
            "streamQuery", lambda: self._machine.queue(index(stream)), lambda queue: queue.actions
        )

    def streamIsCapturing(self, stream: int) -> bool:
        """Whether a stream is being captured."""
        with self._machine.lock:
            return self._machine.queue(stream).capture is not None

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        """Let a stream wait for an event."""
        with self._on(stream, "streamWaitEvent") as queue:
            self._machine.wait(queue, self._machine.event(index(event)))

    def eventRecord(self, event: int, stream: int) -> None:
        """Record an event on a stream."""
        with self._on(stream, "eventRecord") as queue:
            self._machine.record(self._machine.event(index(event)), queue)

    def eventSynchronize(self, event: int) -> None:
        """Wait for an event."""
        machine = self._machine
        with machine.lock:
            made = self._outside_capture(machine.event(index(event)))
            with machine.call("eventSynchronize", made.card):
                machine.use(machine.current.device)  # Whichever card the event is of.
                machine.unsafe()
                mark = made.mark
                if mark is not None:
                    machine.run_until(lambda: mark.done)
                machine.raise_if_lost(made.card)

    def eventQuery(self, event: int) -> int:
        """Return 0 where an event is done, 600 where not, and otherwise an error."""
        return self._query(
            "eventQuery",
            lambda: self._outside_capture(self._machine.event(index(event))),
            lambda made: made.mark is not None and not made.mark.done,
        )

    def _query(self, name: str, what: Callable[[], Any], busy: Callable[[Any], object]) -> int:
        machine = self._machine
        try:
            with machine.lock:
                asked = what()
                with machine.call(name, asked.card):
                    machine.unsafe()
                    if busy(asked):
                        machine.scheduler.progress()
                    machine.raise_if_lost(asked.card)
                    return faults.NOT_READY if busy(asked) else 0
        except real.CUDARuntimeError as error:
            return int(error.status)

    def _outside_capture(self, event: Event) -> Event:
        if event.captured is not None:
            capture = event.captured[0]
            capture.broken = True
            raise faults.error(faults.CAPTURED_EVENT)
        return event

    # ------------------------------------------------------------------ copies

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        """Copy, in the order of a stream's work."""
        with self._on(stream, "memcpyAsync") as queue:
            self._copy(queue, index(dst), index(src), index(size), index(kind))

    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None:
        """Copy, and wait: for the null stream, which waits for no stream that is non-blocking."""
        with self._on(0, "memcpy") as queue:
            self._machine.unsafe()
            self._copy(queue, index(dst), index(src), index(size), index(kind))
            self._machine.synchronize([queue])

    def memcpyPeerAsync(
        self, dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int
    ) -> None:
        """Copy from one card to another, in the order of a stream's work."""
        machine = self._machine
        with self._on(stream, "memcpyPeerAsync") as queue:
            to, origin = index(dst), index(src)
            for where, device in ((to, dstDevice), (origin, srcDevice)):
                region = machine.addresses.region(where)
                if region is None or region.card != self._card(device):
                    raise EmulatorError(f"memcpyPeerAsync: no memory of card {device}.")
            self._enqueue_copy(queue, "copy to another card", to, origin, index(size))

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:
        """Fill memory, in the order of a stream's work."""
        start, byte, nbytes = index(ptr), index(value) & 0xFF, index(size)
        with self._on(stream, "memsetAsync") as queue:
            self._machine.use(queue.card)
            touched = self._touched((start,), nbytes)

            def run() -> None:
                _check_live(touched)
                ctypes.memset(start, byte, nbytes)

            self._machine.enqueue(queue, "memset", run)

    def _copy(self, queue: Queue, to: int, origin: int, nbytes: int, kind: int) -> None:
        machine = self._machine
        machine.use(queue.card)
        if not nbytes:
            return
        sides = [machine.addresses.region(where) for where in (origin, to)]
        on_card = tuple(side is not None and side.card is not None for side in sides)
        wanted = {1: (False, True), 2: (True, False), 3: (True, True)}.get(kind, on_card)
        if on_card != wanted or not any(on_card):
            raise EmulatorError(f"A copy of kind {kind} is not between such memories: {on_card}.")
        if any(s is not None and s.card not in (None, queue.card) for s in sides):
            raise EmulatorError("A copy between cards is memcpyPeerAsync's.")
        if None not in sides:  # Pinned memory, which is read and written later.
            self._enqueue_copy(queue, "copy", to, origin, nbytes)
            return
        if queue.capture is not None:
            machine.break_captures([queue.capture])
        if on_card[1]:
            taken = (ctypes.c_char * nbytes).from_buffer_copy(ctypes.string_at(origin, nbytes))
            self._enqueue_copy(queue, "copy of pageable memory", to, taken, nbytes)
            return
        self._touched((origin,), nbytes)
        machine.synchronize([queue])
        ctypes.memmove(to, origin, nbytes)

    def _enqueue_copy(self, queue: Queue, label: str, to: int, origin: Any, nbytes: int) -> None:
        """Ask for a copy from an address, or of bytes that were taken before."""
        addresses = (to, origin) if isinstance(origin, int) else (to,)
        touched = self._touched(addresses, nbytes)

        def run() -> None:
            _check_live(touched)
            ctypes.memmove(to, origin, nbytes)

        self._machine.enqueue(queue, label, run)

    def _touched(self, addresses: tuple[int, ...], nbytes: int) -> list[Region]:
        """Return the memory of cards that is used, of which each has to be within an array."""
        found = []
        for address in addresses:
            region = self._machine.addresses.region(address)
            if region is None:
                continue
            found.append(region)
            if region.card is None:
                end = region.start + region.nbytes
            else:
                block: Block | None = self._machine.addresses.block(address)
                end = 0 if block is None else block.address + block.asked
            if address + nbytes > end:
                raise EmulatorError(f"{nbytes} bytes from {address:#x} on are in no array.")
        return found

    # ------------------------------------------------------------------ all of them

    def _card(self, device: int) -> int:
        if not 0 <= index(device) < len(self._machine.cards):
            raise faults.error(faults.INVALID_DEVICE)
        return index(device)

    def _on(self, stream: int, function: str) -> _OnQueue:
        return _OnQueue(self._machine, index(stream), function)


class _OnQueue:
    """A call about a stream."""

    def __init__(self, machine: Machine, stream: int, function: str) -> None:
        self._machine = machine
        self._stream = stream
        self._function = function

    def __enter__(self) -> Queue:
        self._machine.lock.acquire()
        try:
            queue = self._machine.queue(self._stream)
            self._machine.call(self._function, queue.card)
            return queue
        except BaseException:
            self._machine.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._machine.lock.release()


def _check_live(regions: list[Region]) -> None:
    if not all(region.live for region in regions):
        raise faults.error(faults.ILLEGAL_ADDRESS)
