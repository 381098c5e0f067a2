"""Compiles CUDA C for the host, by way of a header that stands in for what CUDA adds to C++.

To start a compiler takes longer than to compile a kernel. So texts that were asked for are compiled
when the first of them runs, all in one go; and what is compiled is kept in a folder of temporary
files, for this process and all others.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cupy.cuda.compiler import CompileException

from emulated_cuda.faults import EmulatorError

_HERE = Path(__file__).parent
_SHARED = ("-std=c++17", "-shared", "-fPIC", "-w", "-x", "c++")
# A static variable of a template would else be one for all modules that have it.
_OWN_SYMBOLS = ("-fno-gnu-unique", "-Wl,-Bsymbolic")
# Kernels run for microseconds: what is quick to compile is quickest.
_FLAGS = (*_SHARED, "-O0", "-nostdlib", *_OWN_SYMBOLS)
# Lets float32 numbers below the normal ones be 0, as a mode of the host's processor does.
FLUSHES = "-ftz=true"
# Of NVRTC's options those that are known, with what they say to g++; all others are refused.
_OPTIONS = {
    FLUSHES: "",
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
# One instruction of PTX, of one operand: the shim has a function for each.
_INSTRUCTION = re.compile(
    r'\basm\s*\(\s*"([\w.]+) %0, %1;"\s*:\s*"=\w"\(([^()]*)\)\s*:\s*"\w"\(([^()]*)\)\s*\)'
)
_INCLUDE = re.compile(r"^\s*#\s*include.*$", re.MULTILINE)
_MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
# A text among others: with names and shared memory of its own, and without its macros behind it.
_AMONG_OTHERS = """
#define EMULATED_SECTION "shared_{key}"
namespace text_{key} {{
#line 1 "kernel"
{code}
{entries}
}}
{undone}
#undef EMULATED_SECTION
extern "C" __attribute__((weak, visibility("hidden")))
char __start_shared_{key}[], __stop_shared_{key}[];
extern "C" char *const emulated_bounds_{key}[] = {{__start_shared_{key}, __stop_shared_{key}}};
"""
_FAULTS = {
    -1: "the host has no memory for the threads' stacks",
    1: "threads of a block wait at a barrier that others do not come to",
    2: "a shuffle of more than 8 bytes",
    3: "a shuffle of part of a warp: the mask has to be 0xffffffff",
    4: "a barrier in a kernel whose text has none",
    5: "a load or store of several elements at a place that is not a multiple of their size",
}
# Dynamic shared memory in bytes; for more a kernel has to ask beforehand, which is not emulated.
LARGEST_DYNAMIC = 48 << 10

_lock = threading.Lock()  # The threads' library has one set of stacks.


class Parameter(NamedTuple):
    """A kernel's parameter: its kind and size, and those of what it points to.

    Kinds: 'p' pointer, 'i' and 'u' integers, 'f' floating-point, 'b' bool, 's' struct.
    """

    kind: str
    pointee: str
    size: int
    pointee_size: int


class _Parameter(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_char),
        ("pointee", ctypes.c_char),
        ("size", ctypes.c_int),
        ("pointee_size", ctypes.c_int),
    )

    def read(self) -> Parameter:
        """Return it as a tuple, which is read in less time, at each launch."""
        kinds = self.kind.decode(), self.pointee.decode()
        return Parameter(*kinds, self.size, self.pointee_size)


class _Entry(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int),
        ("parameters", ctypes.POINTER(_Parameter)),
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
        flushes: Whether numbers below the normal ones are 0 in it. (Those of float64 too.)
    """

    name: str
    parameters: tuple[Parameter, ...]
    call: int
    as_fibers: bool
    shared: tuple[int, int]
    flushes: bool

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
                self.flushes,
            )
        if fault:
            raise EmulatorError(f"Kernel {self.name!r}: {_FAULTS[fault]}.")


class Text:
    """CUDA C that was asked for.

    Args:
        code: All of it.
        options: NVRTC's.

    Attributes:
        names: Its kernels.
    """

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        bare = _COMMENT.sub(" ", code)
        if _INCLUDE.search(bare):
            raise EmulatorError("Kernels include no headers: NVRTC may have none.")
        unknown = [option for option in options if option not in _OPTIONS]
        if unknown:
            raise EmulatorError(f"Options that the emulator does not know: {unknown}.")
        self.names = _KERNEL.findall(bare)
        self._as_fibers = _BARRIER.search(bare) is not None
        self._options = options
        self._flushes = FLUSHES in options
        self._flags = tuple(sorted({_OPTIONS[option] for option in options} - {""}))
        if "alignas" in bare:
            self._flags += ("-fsanitize=alignment",)  # What is found is told by `threads.cpp`.
        dynamic = r"\1 *const \2 = (\1 *)emulated_dynamic_shared;"
        # Names of C would be the same in all texts.
        self._code = _INSTRUCTION.sub(_as_function, _DYNAMIC.sub(dynamic, code))
        self._code = self._code.replace('extern "C"', "")
        self._key = _digest(_compiler(), self._code, *self._flags, str(self._flushes))
        self._error: CompileException | None = None
        self._compiled: dict[str, Compiled] | None = None
        _asked.append(self)

    @property
    def is_compiled(self) -> bool:
        """Whether `kernels` takes no time."""
        return self._compiled is not None

    def is_at_hand(self) -> bool:
        """Whether `kernels` compiles nothing; a text that cannot be compiled is at hand too."""
        if self._compiled is None and self._error is None:
            with _compiling:
                return self.load()
        return True

    @property
    def kernels(self) -> dict[str, Compiled]:
        """Its kernels, compiled, by name.

        Raises:
            CompileException: It does not compile; CuPy's.
        """
        with _compiling:
            if self._compiled is None and self._error is None:
                _compile_all_that_was_asked_for()
        if self._compiled is None:
            raise self._error or EmulatorError("A text is neither compiled nor wrong.")
        return self._compiled

    def load(self, made: Path | None = None) -> bool:
        """Load it from a library, or if any process has compiled it; return whether that is so."""
        path = made or _folder() / f"{self._key}.so"
        if not path.exists():
            return False
        _threads()  # Which has what it refers to.
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            if path.exists():
                raise
            return False  # Somebody has just cleared the folder.
        start, end = (ctypes.c_void_p * 2).in_dll(library, f"emulated_bounds_{self._key}")
        self._compiled = {}
        for name in self.names:
            entry = _Entry.in_dll(library, f"emulated_kernel_{name}_{self._key}")
            parameters = tuple(entry.parameters[i].read() for i in range(entry.count))
            bounds = (start or 0, end or 0)
            self._compiled[name] = Compiled(
                name, parameters, entry.call, self._as_fibers, bounds, self._flushes
            )
        return True

    def among_others(self) -> str:
        """Return what to compile, of which there can be many in one file."""
        names = [f"EMULATED_KERNEL({name}, {self._key})" for name in self.names]
        undone = [f"#undef {name}" for name in _MACRO.findall(self._code)]
        return _AMONG_OTHERS.format(
            key=self._key, code=self._code, entries="\n".join(names), undone="\n".join(undone)
        )

    def refuse(self, said: str) -> None:
        """Note that it does not compile, and what the compiler said."""
        self._error = CompileException(said, self._code, self._key, self._options, "nvrtc")

    @staticmethod
    def compile(texts: Sequence[Text]) -> None:
        """Compile texts in one go; where that fails one by one, for one of them is wrong."""
        flags = texts[0]._flags
        whole = "\n".join(
            [(_HERE / "shim.h").read_text(), *(each.among_others() for each in texts)]
        )
        made = _built(f"{_digest(whole, *flags)}.so", (*_FLAGS, *flags, "-"), whole)
        if isinstance(made, Path):
            for text in texts:
                _linked(made, text._key)
                text.load(made)
        elif len(texts) == 1:
            texts[0].refuse(made)
        else:
            for text in texts:
                Text.compile([text])


_asked: list[Text] = []  # And not compiled yet.
_compiling = threading.Lock()


@functools.cache
def asked_for(code: str, options: tuple[str, ...]) -> Text:
    """Return a text, which is compiled once it is needed.

    Args:
        code: CUDA C.
        options: NVRTC's.

    Raises:
        EmulatorError: It has what NVRTC takes and this emulator does not.
    """
    return Text(code, options)


def compile_all() -> None:
    """Compile all texts that were asked for, before something that has a deadline."""
    with _compiling:
        _compile_all_that_was_asked_for()


def _compile_all_that_was_asked_for() -> None:
    by_flags: dict[tuple[str, ...], list[Text]] = {}
    while _asked:
        text = _asked.pop()
        if not text.load():
            by_flags.setdefault(text._flags, []).append(text)
    for texts in by_flags.values():
        Text.compile(texts)


def _as_function(instruction: re.Match[str]) -> str:
    name, result, operand = instruction.groups()
    return f"{result} = emulated_{name.replace('.', '_')}({operand})"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@functools.cache
def _compiler() -> str:
    """Return what the compiler and what it adds to each text can be told by."""
    path = os.path.realpath(shutil.which("g++") or "g++")
    files = [(_HERE / name).read_text() for name in ("compiler.py", "shim.h", "threads.cpp")]
    return _digest(path, str(os.stat(path).st_mtime_ns), *files)


@functools.cache
def _folder() -> Path:
    """Return the user's own folder for what is compiled, or a new one where it is not theirs."""
    folder = Path(tempfile.gettempdir()) / f"emulated_cuda_{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="emulated_cuda_"))


def _built(name: str, flags: tuple[str, ...], text: str | None = None) -> Path | str:
    """Return what g++ makes, which is there at once or not at all, or what it complains about."""
    target = _folder() / name
    target.parent.mkdir(mode=0o700, exist_ok=True)  # Somebody may have cleared it.
    with tempfile.TemporaryDirectory(dir=_folder()) as own:
        made = Path(own) / "made.so"
        command = ["g++", *flags, "-o", str(made)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        os.replace(made, target)
    return target


def _linked(library: Path, key: str) -> None:
    """Let a text be found in a library by its own name."""
    link = library.with_name(f"{key}.so")
    new = library.with_name(f"{key}.{os.getpid()}")
    new.symlink_to(library.name)
    os.replace(new, link)


@functools.cache
def _threads() -> ctypes.CDLL:
    path = _folder() / f"threads_{_compiler()}.so"
    if not path.exists():
        made = _built(
            path.name, (*_SHARED, "-O2", str(_HERE / "threads.cpp"), "-Wl,--no-as-needed", "-lm")
        )
        if isinstance(made, str):
            raise EmulatorError(made)
    # Kernels find threadIdx and the like there.
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emulated_run.argtypes = [
        *[ctypes.c_void_p] * 4,
        ctypes.c_int,
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint,
        ctypes.c_int,
    ]
    return library
