"""``mirrored run``: runs a program as one worker of several, which end together.

All workers are connected before the program begins, so that one that fails ends the others,
wherever they are.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys

from mirrored._commands.command_line import WRONG_USE, CommandError, Result, Say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is a module")
    parser.add_argument("program", metavar="PROGRAM", help="a file, or with -m a module")
    rest = parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the program"
    )
    rest.required = False  # For the text of an error.


def execute(options: argparse.Namespace, say: Say) -> Result:
    """Connect the workers; the program of the result runs as `python` would run it.

    Args:
        options: The parsed arguments.
        say: Unused: the program alone prints.
    """
    from mirrored.workers import connect

    workers = connect()

    def program() -> None:
        try:
            _run(options.program, options.is_module, options.arguments)
        except SystemExit as end:
            if end.code not in (None, 0):
                workers.failed(end)
            raise
        except BaseException as error:
            workers.failed(error)
            raise

    return Result(program=program)


def _run(program: str, is_module: bool, arguments: list[str]) -> None:
    before = sys.path[0]
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(program))
    if problem := _problem(program, is_module):
        sys.path[0] = before
        raise CommandError(WRONG_USE, problem)
    sys.argv[:] = [program, *arguments]
    if is_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")


def _problem(program: str, is_module: bool) -> str:
    """Return why there is no such program, or an empty text."""
    if is_module:
        package = program.partition(".")[0]
        if not package or importlib.util.find_spec(package) is None:
            return f"There is no module {program!r}."
    elif not any(map(os.path.isfile, (program, os.path.join(program, "__main__.py")))):
        return f"There is no file {program!r}. The current folder is {os.getcwd()!r}."
    return ""
