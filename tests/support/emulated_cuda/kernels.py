"""Modules and kernels of CuPy over the emulated cards: compiled for the host, and launched.

Arguments are held to the kernel's own parameters, where a GPU would read garbage: at the launch if
the kernel is compiled by then, or else when it runs.
"""

from __future__ import annotations

import ctypes
import json
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from emulated_cuda import faults
from emulated_cuda.addresses import Block, Region
from emulated_cuda.compiler import FLUSHES, LARGEST_DYNAMIC, Compiled, Parameter, asked_for
from emulated_cuda.faults import EmulatorError
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Queue

_Three = tuple[int, int, int]
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_BLOCK = (1024, 1024, 64)
_KINDS = {"i": "iu", "u": "iu", "f": "f", "b": "b"}  # Those of NumPy's dtypes.
_THREADS = 1024


class _Launch(NamedTuple):
    grid: _Three
    block: _Three
    args: tuple[Any, ...]
    shared: int


def compile_using_nvrtc(
    source: str, options: tuple[str, ...] = (), *, cache_in_memory: bool = False
) -> tuple[bytes, None]:
    """Return what `cupy.cuda.compiler.compile_using_nvrtc` does: what a module is loaded from.

    It adds nothing to the options that numbers hang on, where `RawModule` does.
    """
    if type(options) is not tuple or not cache_in_memory:
        raise TypeError(f"Options are a tuple, and nothing is written. Received: {options!r}.")
    asked_for(source, options)
    return json.dumps([source, options]).encode(), None


class Module:
    """`cupy.cuda.function.Module`.

    Args:
        machine: The machine.
        current_queue: Returns the current stream.
    """

    def __init__(self, machine: Machine, current_queue: Callable[[], Queue]) -> None:
        self._machine = machine
        self._current_queue = current_queue
        self._card = -1

    def load(self, cubin: bytes) -> None:
        """Load what `compile_using_nvrtc` returned on the current card."""
        machine = self._machine
        with machine.call("moduleLoad"):
            machine.ensure_context()
            machine.unsafe()
            self._card = machine.use(machine.current.device)
        source, options = json.loads(cubin)
        self.text = asked_for(source, tuple(options))

    def get_function(self, name: str) -> Function:
        """Return a kernel."""
        if name not in self.text.names:
            raise EmulatorError(f"There is no kernel {name!r} in the text.")
        return Function(self, name)

    def launch(self, name: str, launch: _Launch) -> None:
        """Ask the current stream for a launch."""
        machine, text = self._machine, self.text
        with machine.call("launchKernel"):
            if not _launchable(launch):
                raise faults.error(faults.INVALID_VALUE, launch=True)
            machine.ensure_context()
            queue = self._current_queue()
            if machine.use(queue.card) != self._card:
                raise faults.error(faults.INVALID_RESOURCE_HANDLE, launch=True)
            arguments = _Arguments(machine, queue.card, name, launch.args)
            if text.is_compiled:
                arguments.check(text.kernels[name])

            # Not the launch itself: it would keep the arrays, which CUDA does not.
            grid, block, shared = launch.grid, launch.block, launch.shared

            def run() -> None:
                kernel = text.kernels[name]
                arguments.check(kernel)
                arguments.check_live()
                seed = machine.rng.getrandbits(32)
                kernel.run(grid, block, arguments.pointers, shared, seed)
                arguments.check_guards()

            # Kernels of a new text wait for others, whose texts are then compiled with it.
            machine.enqueue(queue, name, run, lambda: not text.is_at_hand())
            machine.counts["kernels"] += 1


class Function:
    """`cupy.cuda.function.Function`: a kernel of a module, on its card.

    Args:
        module: The module.
        name: The kernel's name in its text.
    """

    def __init__(self, module: Module, name: str) -> None:
        self._module = module
        self.name = name

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        shared_mem: int = 0,
    ) -> None:
        """Launch it on the current stream."""
        launch = _Launch(_three(grid), _three(block), tuple(args), shared_mem)
        self._module.launch(self.name, launch)


class RawModule:
    """`cupy.RawModule` of a text, which is compiled with one option more than are given.

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
        self._given = code, (*options, FLUSHES)

    def compile(self) -> None:
        """Compile it now, where it would else be compiled once a kernel of it runs."""
        _ = asked_for(*self._given).kernels

    def get_function(self, name: str) -> Function:
        """Return a kernel, loaded on the current card."""
        machine = self._machine
        key = (*self._given, machine.current.device)
        if key not in machine.loaded:
            module = Module(machine, self._current_queue)
            module.load(compile_using_nvrtc(*self._given, cache_in_memory=True)[0])
            machine.loaded[key] = module
        found: Function = machine.loaded[key].get_function(name)
        return found


def _three(sizes: tuple[int, ...]) -> _Three:
    if type(sizes) is not tuple or not 1 <= len(sizes) <= 3:
        raise TypeError(f"CuPy takes tuples of up to three sizes. Received: {sizes!r}.")
    x, y, z = (*sizes, 1, 1)[:3]
    if min(x, y, z) < 1:
        raise EmulatorError(f"CuPy would launch 1 for a size below 1. Received: {sizes}.")
    return int(x), int(y), int(z)


def _launchable(launch: _Launch) -> bool:
    return (
        not any(map(operator.gt, launch.grid, _LARGEST_GRID))
        and not any(map(operator.gt, launch.block, _LARGEST_BLOCK))
        and launch.block[0] * launch.block[1] * launch.block[2] <= _THREADS
        and 0 <= launch.shared <= LARGEST_DYNAMIC
    )


class _Argument(NamedTuple):
    """An argument by value, and what is known of it.

    Attributes:
        value: What the kernel gets.
        dtype: That of an array or a number.
        kind: Its class.
        address: Where an array is.
    """

    value: Any
    dtype: np.dtype[Any] | None
    kind: type
    address: int | None = None

    def __str__(self) -> str:
        return f"{self.kind.__name__} {self.dtype!r}"


class _Arguments:
    """The arguments of one launch, by value: arrays may go before it runs."""

    def __init__(self, machine: Machine, card: int, name: str, args: tuple[Any, ...]) -> None:
        self._machine = machine
        self._card = card
        self._name = name
        self._checked = False
        self._regions: list[Region] = []
        self._blocks: list[Block] = []
        self._given = [self._argument(number, value) for number, value in enumerate(args)]
        values = [ctypes.addressof(each.value) for each in self._given]
        self.pointers = (ctypes.c_void_p * len(args))(*values)

    def check(self, kernel: Compiled) -> None:
        """Raise where they are not what the kernel takes; looked at once."""
        if self._checked:
            return
        if len(self._given) != len(kernel.parameters):
            raise EmulatorError(
                f"Kernel {self._name!r} takes {len(kernel.parameters)} arguments. "
                f"Received: {len(self._given)}."
            )
        for number, (given, parameter) in enumerate(
            zip(self._given, kernel.parameters, strict=True)
        ):
            self._check(number, given, parameter)
        self._checked = True

    def check_live(self) -> None:
        """Raise CUDA's error where memory was given back to the card."""
        if not all(region.live for region in self._regions):
            raise faults.error(faults.ILLEGAL_ADDRESS)

    def check_guards(self) -> None:
        """Raise where the kernel wrote beside its arrays."""
        for block in self._blocks:
            block.check(f"Kernel {self._name!r}")

    def _what(self, number: int) -> str:
        return f"Argument {number} of kernel {self._name!r}"

    def _argument(self, number: int, value: Any) -> _Argument:
        kind = type(value)
        if isinstance(value, cupy.ndarray):
            where = value.data.ptr
            self._note_memory(number, value.size, where)
            return _Argument(ctypes.c_void_p(where), value.dtype, kind, where)
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
            held = (ctypes.c_char * value.nbytes).from_buffer_copy(value.tobytes())
            return _Argument(held, value.dtype, kind)
        return _Argument(ctypes.c_void_p(0), None, kind)

    def _note_memory(self, number: int, size: int, where: int) -> None:
        if not size:
            return
        region = self._machine.addresses.region(where)
        block = None if region is None else self._machine.addresses.block_in(region, where)
        if region is None or block is None:
            self._regions.append(_nowhere)
        else:
            card = region.card
            if card != self._card and (self._card, card) not in self._machine.peers:
                raise EmulatorError(
                    f"{self._what(number)} is on card {card}, the kernel on {self._card}."
                )
            self._regions.append(region)
            self._blocks.append(block)

    def _check(self, number: int, given: _Argument, parameter: Parameter) -> None:
        (kind, pointee, size, width), dtype = parameter, given.dtype
        if kind == "p" and given.address is not None and dtype is not None:
            if pointee in "fbi" and (dtype.itemsize != width or not _same_kind(dtype, pointee)):
                raise EmulatorError(
                    f"{self._what(number)} points to {pointee}{width}. Received: {dtype}."
                )
            if width in (2, 4, 8, 16) and given.address % width:
                raise EmulatorError(f"{self._what(number)} is not aligned to {width} bytes.")
            return
        if kind == "p" and given.kind is type(None):
            return
        number_of = given.address is None and dtype is not None
        if not number_of or dtype.itemsize != size or not _same_kind(dtype, kind):
            needed = {"p": "an array of the device", "s": "a struct"}.get(kind, kind)
            raise EmulatorError(
                f"{self._what(number)} is {needed} of {size} bytes. Received: {given}."
            )


def _same_kind(dtype: np.dtype[Any], kind: str) -> bool:
    if kind == "s":
        return dtype.kind == "V"
    return dtype.kind in _KINDS.get(kind, "")


# What a pointer stands in that is in no array of any card.
_nowhere = Region(0, 0)
_nowhere.live = False
