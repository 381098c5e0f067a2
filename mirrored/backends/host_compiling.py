"""Compiles C texts for the host in a thread, and keeps them on disk as kernels of cards are kept.

Without a compiler, and until a text is compiled, callers compute the same bits by NumPy's calls.
"""

import atexit
import ctypes
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mirrored._logging import logger
from mirrored._threads import join_all, new_thread, start
from mirrored.backends.cuda.compiling import cache_folder, read_kept, write_kept

# The environment variable with the command of the compiler; empty: no compiler is used.
VARIABLE = "MIRRORED_CC"

# No contraction and no reassociation: each operation rounds as NumPy's. What the last two options
# give up is `errno` and the flags of exceptions, not bits.
_FLAGS = (
    *("-O3", "-march=native", "-shared", "-fPIC", "-x", "c"),
    *("-fno-fast-math", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)
_LONGEST = 60.0  # Seconds that the compiler may take for a text.


class CompilerError(Exception):
    """A text cannot be compiled; the message is the compiler's."""


class HostKernel:
    """A function `fused` of a C text, which takes a pointer to its arguments.

    Args:
        text: The text.

    Attributes:
        text: The same.
        function: The function; None: it is not compiled yet, or cannot be.
    """

    __slots__ = ("function", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.function: Any = None


class _State:
    """What a process compiles.

    Attributes:
        kernels: All kernels by their text.
        waiting: Those that no thread has been started for.
        failed: The settings of the compiler with which none is compiled any more.
        running: The compilers that run.
        threads: The threads that wait for them.
        ends: Whether the process ends.
    """

    def __init__(self) -> None:
        self.kernels: dict[str, HostKernel] = {}
        self.waiting: list[HostKernel] = []
        self.failed: set[str | None] = set()
        self.running: list[subprocess.Popen[bytes]] = []
        self.threads: list[threading.Thread] = []
        self.ends = False

    def forget(self) -> None:
        """Forget what threads compile, which a forked child does not have."""
        self.kernels = {text: known for text, known in self.kernels.items() if known.function}
        self.running.clear()
        self.threads.clear()

    def end(self) -> None:
        """End all compilers, and wait until their threads have removed their files."""
        self.ends = True
        for process in [*self.running]:
            _kill(process)
        join_all(self.threads, 5.0)


_state = _State()
atexit.register(_state.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)


def compiles() -> bool:
    """Return whether there is a compiler, as far as is known now."""
    setting = os.environ.get(VARIABLE)
    if setting == "" or setting in _state.failed:
        return False
    try:
        program = _command(setting)[0]
    except ValueError as error:  # It has an open quotation mark.
        _give_up(setting, str(error))
        return False
    if shutil.which(program) is None:
        _give_up(setting, f"there is no program {program!r}")
        return False
    return True


def kernel_of(text: str) -> HostKernel:
    """Return the kernel of a text, which `compile_in_background` compiles.

    Args:
        text: The text.
    """
    kernel = HostKernel(text)
    known = _state.kernels.setdefault(text, kernel)
    if known is kernel:
        _state.waiting.append(kernel)
    return known


def compile_in_background() -> None:
    """Start a thread that compiles all new kernels, if there are some."""
    new, _state.waiting = _state.waiting, []
    if not new:
        return
    setting = os.environ.get(VARIABLE)
    thread = new_thread("mirrored-compiler", _compile_all, setting, new)
    _state.threads[:] = [thread, *(old for old in _state.threads if old.is_alive())]
    try:
        start(thread)
    except RuntimeError as error:
        _give_up(setting, str(error))


def run(kernel: HostKernel, arguments: Any, otherwise: Callable[[], object]) -> None:
    """Call a kernel, or as long as it is not compiled something else.

    Args:
        kernel: The kernel.
        arguments: Its arguments.
        otherwise: What computes the same.
    """
    function = kernel.function
    if function is None:
        otherwise()
    else:
        function(arguments)


def _command(setting: str | None) -> list[str]:
    if setting is not None:
        command, *options = shlex.split(setting) or [setting]
        # It runs in another folder.
        return [os.path.abspath(command) if os.sep in command else command, *options]
    if shutil.which("cc") is None and find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return ["cc"]


def _give_up(setting: str | None, message: str) -> None:
    """Compile no more with a setting of the compiler, and say so once."""
    if setting in _state.failed:
        return
    _state.failed.add(setting)
    if setting is None:
        logger.debug("Ops run as NumPy's calls, since they cannot be compiled: %s", message)
        return
    logger.warning(
        "Ops run as NumPy's calls, since the compiler of %s fails. Received: %s=%s: %s. Set it to "
        "the command of a C compiler, or unset it.",
        *(VARIABLE, VARIABLE, setting, message.strip()[:2000]),
    )


def _compile_all(setting: str | None, kernels: list[HostKernel]) -> None:
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="mirrored-"))
        for kernel in kernels:
            kernel.function = _compiled(_command(setting), kernel.text, folder)
    except (CompilerError, OSError, AttributeError) as error:
        if not _state.ends:
            _give_up(setting, str(error))
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _compiled(command: list[str], text: str, folder: Path) -> Any:
    """Return the function of a text, out of the cache or compiled in a folder."""
    made_by = f"{command} {_FLAGS} {_facts(tuple(command))}"
    key = hashlib.sha256(os.fsencode(f"{made_by}\0{text}")).hexdigest()
    library, kept_in = folder / f"{key}.so", cache_folder()
    kept = None if kept_in is None else kept_in / library.name
    code = None if kept is None else read_kept(kept)
    if code is None:
        source = folder / f"{key}.c"
        source.write_text(text)
        _call([*command, *_FLAGS, "-o", str(library), str(source)], folder)
        if kept is not None:
            write_kept(kept, library.read_bytes())
    else:
        library.write_bytes(code)
    function = ctypes.CDLL(str(library)).fused
    function.restype = None
    return function


@cache
def _facts(command: tuple[str, ...]) -> str:
    """Return the macros of a compiler: its version, and what it uses of the processor."""
    folder = tempfile.mkdtemp(prefix="mirrored-")
    try:
        arguments = [*command, "-march=native", "-dM", "-E", "-x", "c", os.devnull]
        return f"{shutil.which(command[0])} {_call(arguments, Path(folder))}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _call(arguments: list[str], folder: Path) -> str:
    """Return what a program has printed; its files are in a folder, for others to remove."""
    path = folder / "output"
    with path.open("wb") as output:
        # In a session of its own Ctrl-C does not reach it, and its children end with it.
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"},
            start_new_session=True,
        )
    _state.running.append(process)
    try:
        if not _state.ends:
            process.wait(_LONGEST)
    except subprocess.TimeoutExpired:
        raise CompilerError(f"{arguments[0]} takes more than {_LONGEST:.0f} seconds") from None
    finally:
        _kill(process)
        process.wait()
        _state.running.remove(process)
    text = path.read_text(errors="replace")
    if process.returncode:
        reason = text or "it says nothing"
        raise CompilerError(f"{arguments[0]} ends with {process.returncode}: {reason}")
    return text


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
