"""Runs programs of Python in processes that have imported NumPy and the library beforehand.

Importing takes longer than what most programs of tests do. One process imports, and runs nothing;
each program is a copy of it, with arguments, variables, a folder and files for output of its own.

As a program this is that process: for each line on standard input, which says what to run, it
writes a line with the exit status.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import logging
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# What most programs import, with the files that any training needs. A package that is not installed
# is left out.
_IMPORTED = (
    "mirrored.distribute.mirrored_strategy",
    "mirrored.layers.dense",
    "mirrored.training.model",
    "mirrored.training.recorded_steps",
    "pytest",
)
_SELDOM = "sklearn"  # Its import takes a second: it waits for the first program that names it.


def run_program(
    path: Path,
    arguments: Sequence[object] = (),
    *,
    folder: Path,
    environment: Mapping[str, str],
    strict: bool = False,
    torn_down: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program, as ``python path *arguments`` would.

    Args:
        path: The program.
        arguments: What follows on the command line.
        folder: Where it runs.
        environment: All its variables; those that Python itself reads have no effect.
        strict: Whether warnings are errors, as with ``-W error``.
        torn_down: Whether all modules are taken apart when it has ended well, which takes longer
            than most programs do, and copies most memory; threads are waited for, and what is to
            run at the exit does, in either case.
    """
    with tempfile.TemporaryDirectory() as outputs:
        files = [os.path.join(outputs, name) for name in ("out", "err")]
        asked = {
            "argv": [str(path), *map(str, arguments)],
            "folder": str(folder),
            "environment": dict(environment),
            "files": files,
            "strict": strict,
            "torn_down": torn_down,
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        status = json.loads(server.stdout.readline())
        out, err = (Path(each).read_text() for each in files)
    return subprocess.CompletedProcess(asked["argv"], status, out, err)


@functools.cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)  # It ends where there is nothing more to read.
    return server


def _serve() -> dict[str, Any]:
    """Answer until there is nothing more to run; return, in a copy, what it is to run."""
    for name in _IMPORTED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # A collection in a copy would look through all of it, and so copy all memory.
    for line in sys.stdin:
        asked = json.loads(line)
        if _SELDOM not in sys.modules and _SELDOM in Path(asked["argv"][0]).read_text():
            with suppress(ImportError):
                importlib.import_module(_SELDOM)
        copy = os.fork()
        if not copy:
            return dict(asked)
        status = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        print(status, flush=True)
    sys.exit()


def _become(asked: dict[str, Any]) -> None:
    """Run a program, whose end is that of the process."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(asked["files"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if "mirrored" in sys.modules and "MIRRORED_LOG_LEVEL" in os.environ:  # Read by its import.
        logging.getLogger("mirrored").setLevel(os.environ["MIRRORED_LOG_LEVEL"])
    if asked["strict"]:
        warnings.resetwarnings()
        warnings.simplefilter("error")
    sys.argv[:] = asked["argv"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    status: Any = None
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        status = end.code
    if asked["torn_down"] or isinstance(status, str):
        sys.exit(status)
    threading._shutdown()  # type: ignore[attr-defined]  # As Python does, and in this order.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    _become(_serve())
