"""``python -m mirrored.run``: runs a program as one worker of several, which end together.

A launcher starts it: ``mpiexec -n 4 python -m mirrored.run train.py``. All workers are connected
before the program begins, so that one that fails ends the others, wherever they are.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

_USAGE = """\
usage: mpiexec -n WORKERS python -m mirrored.run FILE [ARGUMENT ...]
       mpiexec -n WORKERS python -m mirrored.run -m MODULE [ARGUMENT ...]

Run a program as one worker of several. An exception in one of them, or an exit with a status other
than 0, ends all; so does an end before the others are done with what they do together.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program that the arguments name, as `python` would.

    Args:
        arguments: The words after this one's name, None for those of the command line.

    Raises:
        SystemExit: The arguments name no program, or the program ends so.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    is_module = words[:1] == ["-m"]
    named = words[1:] if is_module else words
    if not named or named[0].startswith("-"):
        asked = named[:1] in (["-h"], ["--help"])
        (sys.stdout if asked else sys.stderr).write(_USAGE)
        sys.exit(0 if asked else 2)

    from mirrored.workers import connect

    workers = connect()
    try:
        if is_module:
            sys.argv[:] = named
            sys.path[0] = os.getcwd()
            runpy.run_module(named[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = named
            sys.path[0] = os.path.dirname(os.path.realpath(named[0]))
            runpy.run_path(named[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            workers.failed(end)
        raise
    except BaseException as error:
        workers.failed(error)
        raise


if __name__ == "__main__":
    main()
