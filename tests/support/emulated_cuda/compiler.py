"""Compiles CUDA C for the host, by way of a header that stands in for what CUDA adds to C++.

A text is compiled once a process, whichever emulator asks for it.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

from cupy.cuda.compiler import CompileException

from emulated_cuda.faults import EmulatorError

_HERE = Path(__file__).parent
_FLAGS = ("-O1", "-shared", "-fPIC", "-w", "-x", "c++")
# A static variable of a template would else be one for all modules that have it.
_OWN_SYMBOLS = ("-fno-gnu-unique", "-Wl,-Bsymbolic")
# Of NVRTC's options those that say something to g++; all others are refused.
_OPTIONS = {
    "--fmad=false": "-ffp-contract=off",
    "-fmad=false": "-ffp-contract=off",
    "--std=c++14": "-std=c++14",
    "--std=c++17": "-std=c++17",
    "-std=c++14": "-std=c++14",
    "-std=c++17": "-std=c++17",
}
_BARRIER = re.compile(r"__sync(?:threads|warp)\b|__shfl_\w+|emulated_shuffle")
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\('
)
_DYNAMIC = re.compile(r"extern\s+__shared__\s+([^;\[\]]*?)\s*\b(\w+)\s*\[\s*\]\s*;")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r"^\s*#\s*include.*$", re.MULTILINE)
_BOUNDS = """
extern "C" __attribute__((weak, visibility("hidden")))
char __start_emulated_shared[], __stop_emulated_shared[];
extern "C" char *const emulated_shared_bounds[] = {
    __start_emulated_shared, __stop_emulated_shared};
"""
_FAULTS = {
    -1: "the host has no memory for the threads' stacks",
    1: "threads of a block wait at a barrier that others do not come to",
    2: "a shuffle of more than 8 bytes",
    3: "a shuffle of part of a warp: the mask has to be 0xffffffff",
    4: "a barrier in a kernel whose text has none",
}
# Dynamic shared memory in bytes; for more a kernel has to ask beforehand, which is not emulated.
LARGEST_DYNAMIC = 48 << 10

_lock = threading.Lock()  # The threads' library has one set of stacks.


class Parameter(ctypes.Structure):
    """A kernel's parameter: its kind and size, and those of what it points to.

    Kinds: 'p' pointer, 'i' and 'u' integers, 'f' floating-point, 'b' bool, 's' struct.
    """

    _fields_ = (
        ("kind", ctypes.c_char),
        ("pointee", ctypes.c_char),
        ("size", ctypes.c_int),
        ("pointee_size", ctypes.c_int),
    )


class _Entry(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int),
        ("parameters", ctypes.POINTER(Parameter)),
        ("call", ctypes.c_void_p),
    )


class Compiled(NamedTuple):
    """A kernel that the host can run.

    Attributes:
        name: Its name in the text.
        parameters: What it takes.
        call: The address of what calls it with pointers to its arguments.
        as_fibers: Whether its threads wait for each other.
        shared: Where its module's static shared memory begins and ends.
    """

    name: str
    parameters: tuple[Parameter, ...]
    call: int
    as_fibers: bool
    shared: tuple[int, int]

    def run(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Any,
        dynamic: int,
        seed: int,
    ) -> None:
        """Run all of it.

        Args:
            grid: Its size in blocks.
            block: Its size in threads.
            args: An array of pointers to the arguments.
            dynamic: Bytes of dynamic shared memory.
            seed: What the order of blocks and threads hangs on.

        Raises:
            EmulatorError: It does what a GPU would hang or go wrong at.
        """
        three = ctypes.c_uint * 3
        with _lock:
            fault = _threads().emulated_run(
                self.call,
                args,
                three(*grid),
                three(*block),
                self.as_fibers,
                dynamic,
                *self.shared,
                seed,
            )
        if fault:
            raise EmulatorError(f"Kernel {self.name!r}: {_FAULTS[fault]}.")


@functools.cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="emulated_cuda_")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # A forked process leaves it alone.
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)


@functools.cache
def _threads() -> ctypes.CDLL:
    target = _folder() / "threads.so"
    subprocess.run(
        ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", _HERE / "threads.cpp", "-o", target],
        check=True,
    )
    # Kernels find threadIdx and the like there.
    library = ctypes.CDLL(str(target), mode=ctypes.RTLD_GLOBAL)
    library.emulated_run.argtypes = [
        *[ctypes.c_void_p] * 4,
        ctypes.c_int,
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint,
    ]
    return library


@functools.cache
def compiled(code: str, options: tuple[str, ...]) -> dict[str, Compiled]:
    """Return the kernels of a text by name.

    Args:
        code: CUDA C.
        options: NVRTC's.

    Raises:
        CompileException: It does not compile; CuPy's.
        EmulatorError: It has what NVRTC takes and this emulator does not.
    """
    _threads()
    text = _COMMENT.sub(" ", code)
    if _INCLUDE.search(text):
        raise EmulatorError("Kernels include no headers: NVRTC may have none.")
    unknown = [option for option in options if option not in _OPTIONS]
    if unknown:
        raise EmulatorError(f"Options that the emulator does not know: {unknown}.")
    names = _KERNEL.findall(text)
    dynamic = r"\1 *const \2 = (\1 *)emulated_dynamic_shared;"
    entries = "".join(f"EMULATED_KERNEL({name})\n" for name in names)
    whole = (
        f'#include "{_HERE / "shim.h"}"\n#line 1 "kernel"\n{_DYNAMIC.sub(dynamic, code)}\n'
        f"{_BOUNDS}{entries}"
    )
    library = _load(whole, options)
    start, end = (ctypes.c_void_p * 2).in_dll(library, "emulated_shared_bounds")
    as_fibers = _BARRIER.search(text) is not None
    made = {}
    for name in names:
        entry = _Entry.in_dll(library, f"emulated_kernel_{name}")
        parameters = tuple(entry.parameters[i] for i in range(entry.count))
        made[name] = Compiled(name, parameters, entry.call, as_fibers, (start or 0, end or 0))
    return made


def _load(text: str, options: tuple[str, ...]) -> ctypes.CDLL:
    flags = [_OPTIONS[option] for option in options]
    name = hashlib.sha256("\0".join([text, *flags]).encode()).hexdigest()[:24]
    target = _folder() / f"{name}.so"
    command = ["g++", *_FLAGS, *flags, *_OWN_SYMBOLS, "-", "-o", str(target)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileException(done.stderr, text, name, options, "nvrtc")
    return ctypes.CDLL(str(target))
