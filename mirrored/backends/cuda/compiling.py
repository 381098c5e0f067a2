"""Compiles kernels with NVRTC, and caches them on disk.

CuPy's own way, `RawModule`, adds an option that lets float32 numbers below the normal ones be 0.
"""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from mirrored._logging import logger
from mirrored.backends.cuda.source import OPTIONS, Source

# The environment variable with the folder of compiled kernels; empty for none.
FOLDER = "MIRRORED_KERNEL_CACHE"

_DIGEST = hashlib.sha256().digest_size

# What this process has compiled or read, for the other streams and logical devices of a card.
_compiled: dict[str, bytes] = {}


class Modules:
    """The kernels of one stream of a card, each compiled and loaded when it is first asked for.

    The card must be current when one is.

    Args:
        cupy: What `toolkit` returns.
        capability: The card's compute capability.
    """

    def __init__(self, cupy: Any, capability: tuple[int, int]) -> None:
        self._cupy = cupy
        self._made_by = f"{cupy.__version__} {cupy.cuda.nvrtc.getVersion()} {capability} {OPTIONS}"
        self._modules: dict[Source, Any] = {}
        self._kernels: dict[tuple[Source, str], Any] = {}

    def kernel(self, source: Source, name: str) -> Any:
        """Return a kernel of a text, loaded."""
        key = source, name
        kernel = self._kernels.get(key)
        if kernel is None:
            module = self._modules.get(source)
            if module is None:
                module = self._cupy.cuda.function.Module()
                module.load(self._code_for_the_card(source.code))
                self._modules[source] = module
            kernel = self._kernels[key] = module.get_function(name)
        return kernel

    def _code_for_the_card(self, text: str) -> bytes:
        key = hashlib.sha256(f"{self._made_by}\0{text}".encode()).hexdigest()
        if key not in _compiled:
            folder = _folder()
            path = None if folder is None else folder / f"{key}.cubin"
            code = None if path is None else _read(path)
            if code is None:
                compiler = self._cupy.cuda.compiler
                code, _ = compiler.compile_using_nvrtc(text, OPTIONS, cache_in_memory=True)
                if path is not None:
                    _write(path, code)
            _compiled[key] = code
        return _compiled[key]


def _folder() -> Path | None:
    """Return where compiled kernels are kept; None: nowhere."""
    folder = os.environ.get(FOLDER)
    if folder is not None:
        return Path(folder) if folder else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "mirrored" / "kernels"
    except RuntimeError:  # The user has no home.
        return None


def _read(path: Path) -> bytes | None:
    """Return what a file was written with; None where there is none that is whole."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, code = stored[:_DIGEST], stored[_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Write a file, which is there at once or not at all: other processes may read it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        logger.debug("A compiled kernel was not kept for the next process: %s", str(error))
