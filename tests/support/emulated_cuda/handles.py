"""What the emulated libraries for matrices share: handles, and work on the streams of these."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_int, c_void_p
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from emulated_cuda import faults
from emulated_cuda.addresses import Block, Region
from emulated_cuda.faults import EmulatorError
from emulated_cuda.foreign import Library, write
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Queue

OK, NOT_INITIALIZED = 0, 1
_SCRIBBLE = 1 << 16  # How much of a workspace is written over with each call, at most.


@dataclass
class Handle:
    """What a handle stands for: its card, stream, math mode and workspace."""

    card: int
    stream: int = 0
    mode: int = 0
    workspace: tuple[int, int] | None = None


class InMemory(Protocol):
    """Something that begins at an address."""

    @property
    def address(self) -> int:
        """Where it begins."""

    @property
    def nbytes(self) -> int:
        """How long it is."""


T = TypeVar("T", bound=InMemory)


def addresses(array: int, count: int) -> list[int]:
    """Return the addresses that an array in a card's memory has."""
    return list((ctypes.c_longlong * count).from_address(array))


def factor(letter: str, square: Any, pivots: int, info: int) -> None:
    """Replace a matrix by its LU factors, as LAPACK does."""
    from scipy.linalg import lapack

    (a,) = square.view()
    with np.errstate(all="ignore"):
        a[...], exchanged, result = getattr(lapack, f"{letter.lower()}getrf")(a)
    for i, row in enumerate(exchanged):
        write(pivots + 4 * i, c_int(int(row) + 1))
    write(info, c_int(result))


class Handles:
    """A library's state.

    Args:
        machine: The machine.
    """

    name: ClassVar[str]
    prefix: ClassVar[str] = ""
    suffix: ClassVar[str] = "_v2"
    alloc_failed: ClassVar[int]
    invalid_value: ClassVar[int]
    execution_failed: ClassVar[int]
    internal_error: ClassVar[int]
    version_number: ClassVar[int]

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._handles: dict[int, Handle] = {}

    def state(self, handle: int | None) -> Handle | None:
        """Return what a handle stands for."""
        return self._handles.get(handle or 0)

    def create(self, to: int | None) -> int:
        """Make a handle for the current card."""
        machine = self.machine
        if not to:
            return self.invalid_value
        with machine.call(f"{self.name}Create"):
            machine.unsafe()
            number = machine.handle() + (1 << 40)  # It does not fit an int.
            self._handles[number] = Handle(machine.use(machine.current.device))
        write(to, c_void_p(number))
        return OK

    def destroy(self, handle: int | None) -> int:
        """Forget a handle."""
        return OK if self._handles.pop(handle or 0, None) else NOT_INITIALIZED

    def version(self, handle: int | None, to: int | None) -> int:
        """Write the version as one number."""
        if not to:
            return self.invalid_value
        write(to, c_int(self.version_number))
        return OK

    def get_property(self, which: int, to: int | None) -> int:
        """Write a part of the version."""
        if which not in range(3) or not to:
            return self.invalid_value
        number = self.version_number
        write(to, c_int((number // 10000, number // 100 % 100, number % 100)[which]))
        return OK

    def set_stream(self, handle: int | None, stream: int | None) -> int:
        """Let a handle use a stream."""
        state = self.state(handle)
        if state is None:
            return NOT_INITIALIZED
        state.stream, state.workspace = stream or 0, None  # As the documentation says.
        if self.queue(state).card != state.card:
            raise EmulatorError(f"A handle of {self.name} was given a stream of another card.")
        return OK

    def queue(self, state: Handle) -> Queue:
        """Return the stream of a handle."""
        machine = self.machine
        return machine.queue(state.stream) if state.stream else machine.null_queue(state.card)

    def inside(self, card: int, address: int, nbytes: int) -> tuple[Region, Block]:
        """Return the array that some bytes are in."""
        block = self.machine.addresses.block(address)
        if block is None or address + nbytes > block.address + block.asked:
            raise EmulatorError(
                f"{self.name}: {nbytes} bytes from {address:#x} on are in no array."
            )
        if not block.region.live:
            raise EmulatorError(f"{self.name}: the pool of this memory is gone, and it with it.")
        other = block.region.card
        if other != card and (card, other) not in self.machine.peers:
            raise EmulatorError(f"{self.name}: an array is on card {other}, the handle on {card}.")
        return block.region, block

    def in_memory(self, state: Handle, part: T) -> T:
        """Return what work finds at an address, which has to be in memory of the handle's card."""
        region = self.machine.addresses.region(part.address)
        if region is None or not region.live or region.card != state.card:
            raise EmulatorError(f"{self.name}: at {part.address:#x} is no memory of the card.")
        return part

    def launch(
        self,
        state: Handle,
        function: str,
        used: Sequence[tuple[int, int]],
        run: Callable[[], None],
        scribbled: tuple[int, int] | None,
        label: str = "",
    ) -> int:
        """Ask the stream of a handle for work.

        Args:
            state: The handle.
            function: The name of the function.
            used: Addresses and lengths of what the work uses.
            run: Does it.
            scribbled: The scratch memory, whose content is spoiled.
            label: What the work is called; empty: as the function.
        """
        machine = self.machine
        with machine.call(function, state.card):
            queue = self.queue(state)
            if queue.capture is not None and state.workspace is None:
                return self.internal_error
            if machine.current.device != state.card:
                raise EmulatorError(f"{function} needs its handle's card to be the current one.")
            parts = [*used] if scribbled is None else [*used, scribbled]
            touched = [self.inside(state.card, *part) for part in parts]

            def work() -> None:
                if not all(region.live for region, _ in touched):
                    raise faults.error(faults.ILLEGAL_ADDRESS)
                if scribbled is not None:
                    ctypes.memset(scribbled[0], 0xEE, min(scribbled[1], _SCRIBBLE))
                run()
                for _, block in touched:
                    block.check(function)

            machine.enqueue(queue, label or function, work)
        return OK

    def library(self, functions: dict[str, tuple[list[Any], Callable[..., int]]]) -> Library:
        """Return the library, with the functions that every handle needs among others."""
        start, end = self.prefix or self.name, self.suffix
        common: dict[str, tuple[list[Any], Callable[..., int]]] = {
            f"{start}Create{end}": ([c_void_p], self.create),
            f"{start}Destroy{end}": ([c_void_p], self.destroy),
            f"{start}SetStream{end}": ([c_void_p, c_void_p], self.set_stream),
            f"{self.name}GetVersion{end}": ([c_void_p, c_void_p], self.version),
            f"{self.name}GetProperty": ([c_int, c_void_p], self.get_property),
        }
        both = {**common, **functions}
        return Library({name: (types, self._status(call)) for name, (types, call) in both.items()})

    def _status(self, function: Callable[..., int]) -> Callable[..., int]:
        """Return a function that gives a status for what another one raises."""

        def call(*args: Any) -> int:
            # Nothing can be raised through C.
            with self.machine.lock:
                try:
                    return function(*args)
                except EmulatorError as error:
                    self.machine.failures.append(error)
                    return self.internal_error
                except RuntimeError as error:
                    memory = getattr(error, "status", 0) == faults.MEMORY_ALLOCATION
                    return self.alloc_failed if memory else self.execution_failed

        return call
