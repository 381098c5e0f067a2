"""CuPy's RawModule over the emulated cards: it compiles for the host, and launches.

Arguments are held to the kernel's own parameters, where a GPU would read garbage.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from emulated_cuda import faults
from emulated_cuda.addresses import Block, Region
from emulated_cuda.compiler import LARGEST_DYNAMIC, Compiled, Parameter, compiled
from emulated_cuda.faults import EmulatorError
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Queue

_Three = tuple[int, int, int]
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_BLOCK = (1024, 1024, 64)
_THREADS = 1024


class RawModule:
    """`cupy.RawModule` of a text.

    Args:
        machine: The machine.
        current_queue: Returns the current stream.
        code: CUDA C.
        options: NVRTC's.
        backend: 'nvrtc'.
    """

    def __init__(
        self,
        machine: Machine,
        current_queue: Callable[[], Queue],
        *,
        code: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
    ) -> None:
        if type(options) is not tuple or backend != "nvrtc":
            raise TypeError(f"Options are a tuple, for 'nvrtc'. Received: {options!r}.")
        self._machine = machine
        self._current_queue = current_queue
        self._code = code
        self._options = options

    def get_function(self, name: str) -> Kernel:
        """Return a kernel, compiled and loaded on the current card."""
        kernel = Kernel(self, name)
        kernel.load()
        return kernel

    def load(self, name: str) -> Compiled:
        """Return a kernel of the module, which has to be loaded on the current card."""
        machine = self._machine
        key = self._code, self._options, machine.current.device
        if key not in machine.loaded:
            with machine.call("moduleLoad"):
                machine.unsafe()
                machine.use(machine.current.device)
                machine.loaded.add(key)
        kernels = compiled(self._code, self._options)
        if name not in kernels:
            raise EmulatorError(f"There is no kernel {name!r} in the text.")
        return kernels[name]

    def launch(self, kernel: Compiled, launch: _Launch) -> None:
        """Ask the current stream for a launch."""
        machine = self._machine
        with machine.call("launchKernel"):
            if not _launchable(launch):
                raise faults.error(faults.INVALID_VALUE, launch=True)
            queue = self._current_queue()
            machine.use(queue.card)
            arguments = _Arguments(machine, queue.card, kernel, launch.args)

            # Not the launch itself: it would keep the arrays, which CUDA does not.
            grid, block, shared = launch.grid, launch.block, launch.shared

            def run() -> None:
                arguments.check_live()
                seed = machine.rng.getrandbits(32)
                kernel.run(grid, block, arguments.pointers, shared, seed)
                arguments.check_guards()

            machine.enqueue(queue, kernel.name, run)
            machine.counts["kernels"] += 1


class _Launch(NamedTuple):
    grid: _Three
    block: _Three
    args: tuple[Any, ...]
    shared: int


class Kernel:
    """`cupy.RawKernel` of a module.

    Args:
        module: The module.
        name: The kernel's name in its text.
    """

    def __init__(self, module: RawModule, name: str) -> None:
        self._module = module
        self.name = name

    def load(self) -> Compiled:
        """Load it on the current card."""
        return self._module.load(self.name)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        *,
        shared_mem: int = 0,
    ) -> None:
        """Launch it on the current stream."""
        launch = _Launch(_three(grid), _three(block), tuple(args), shared_mem)
        self._module.launch(self.load(), launch)


def _three(sizes: tuple[int, ...]) -> _Three:
    if type(sizes) is not tuple or not 1 <= len(sizes) <= 3:
        raise TypeError(f"CuPy takes tuples of up to three sizes. Received: {sizes!r}.")
    x, y, z = (*sizes, 1, 1)[:3]
    if min(x, y, z) < 1:
        raise EmulatorError(f"CuPy would launch 1 for a size below 1. Received: {sizes}.")
    return int(x), int(y), int(z)


def _launchable(launch: _Launch) -> bool:
    return (
        all(size <= most for size, most in zip(launch.grid, _LARGEST_GRID, strict=True))
        and all(size <= most for size, most in zip(launch.block, _LARGEST_BLOCK, strict=True))
        and launch.block[0] * launch.block[1] * launch.block[2] <= _THREADS
        and 0 <= launch.shared <= LARGEST_DYNAMIC
    )


class _Arguments:
    """The arguments of one launch, by value: arrays may go before it runs."""

    def __init__(
        self, machine: Machine, card: int, kernel: Compiled, args: tuple[Any, ...]
    ) -> None:
        if len(args) != len(kernel.parameters):
            raise EmulatorError(
                f"Kernel {kernel.name!r} takes {len(kernel.parameters)} arguments. "
                f"Received: {len(args)}."
            )
        self._machine = machine
        self._card = card
        self._name = kernel.name
        self._regions: list[Region] = []
        self._blocks: list[Block] = []
        self._values = [
            self._value(number, value, parameter)
            for number, (value, parameter) in enumerate(zip(args, kernel.parameters, strict=True))
        ]
        self.pointers = (ctypes.c_void_p * len(args))(*map(ctypes.addressof, self._values))

    def check_live(self) -> None:
        """Raise CUDA's error where memory was given back to the card."""
        if not all(region.live for region in self._regions):
            raise faults.error(faults.ILLEGAL_ADDRESS)

    def check_guards(self) -> None:
        """Raise where the kernel wrote beside its arrays."""
        for block in self._blocks:
            block.check(f"Kernel {self._name!r}")

    def _value(self, number: int, value: Any, parameter: Parameter) -> Any:
        kind, size = parameter.kind.decode(), parameter.size
        if value is None and kind == "p":
            return ctypes.c_void_p(0)
        if isinstance(value, cupy.ndarray) and kind == "p":
            return self._pointer(number, value, parameter)
        scalar = isinstance(value, np.generic) or (
            isinstance(value, np.ndarray) and value.size == 1
        )
        if not scalar or value.nbytes != size or not _same_kind(value.dtype, kind):
            described = {"p": "an array of the device", "s": "a struct"}.get(kind, kind)
            raise EmulatorError(
                f"Argument {number} of kernel {self._name!r} is {described} of {size} bytes. "
                f"Received: {type(value).__name__} {getattr(value, 'dtype', value)!r}."
            )
        return (ctypes.c_char * size).from_buffer_copy(value.tobytes())

    def _pointer(self, number: int, array: Any, parameter: Parameter) -> Any:
        kind, size, where = parameter.pointee.decode(), parameter.pointee_size, array.data.ptr
        what = f"Argument {number} of kernel {self._name!r}"
        dtype = array.dtype
        if kind in "fbi" and (dtype.itemsize != size or not _same_kind(dtype, kind)):
            raise EmulatorError(f"{what} points to {kind}{size}. Received: {dtype}.")
        if size in (2, 4, 8, 16) and where % size:
            raise EmulatorError(f"{what} is not aligned to {size} bytes.")
        region = self._machine.addresses.region(where)
        if array.size and (region is None or self._machine.addresses.block(where) is None):
            self._regions.append(_nowhere)
        elif array.size and region is not None:
            card = region.card
            if card != self._card and (self._card, card) not in self._machine.peers:
                raise EmulatorError(f"{what} is on card {card}, the kernel on {self._card}.")
            block = self._machine.addresses.block(where)
            self._regions.append(region)
            if block is not None:
                self._blocks.append(block)
        return ctypes.c_void_p(where)


def _same_kind(dtype: np.dtype[Any], kind: str) -> bool:
    if kind == "s":
        return dtype.kind == "V"
    return dtype.kind in {"i": "iu", "u": "iu", "f": "f", "b": "b"}.get(kind, "")


# What a pointer stands in that is in no array of any card.
_nowhere = Region(0, 0)
_nowhere.live = False
