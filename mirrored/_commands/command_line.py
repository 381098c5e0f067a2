"""The program ``mirrored``: its table of commands, its options, its errors and its JSON."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from mirrored._logging import check_level
from mirrored.errors import (
    CollectiveError,
    DeviceLostError,
    DeviceUnavailableError,
    FailedPreconditionError,
    ResourceExhaustedError,
    WorkerError,
)
from mirrored.version import VERSION

_COLUMNS = 80
_DASHES = "\0--"  # Stands for "--": some versions of argparse remove that word.


class Command(NamedTuple):
    """A command of the program.

    Attributes:
        module: A module of this package with `add_arguments(parser)` and `execute(options, say)`,
            which returns a `Result`. It is imported when the command is used.
        summary: What the command does, for the list of commands.
        examples: Command lines, each with its meaning.
    """

    module: str
    summary: str
    examples: dict[str, str]


COMMANDS = {
    "devices": Command(
        "show_devices",
        "list devices, memory limits and libraries",
        {
            "mirrored devices": "list the devices of this machine",
            "mirrored devices --json": "the same, for programs",
            "mpiexec -n 4 mirrored devices": "list the devices of each worker",
        },
    ),
    "fingerprint": Command(
        "show_fingerprint",
        "print what the bits of results depend on",
        {
            "mirrored fingerprint": "libraries, processor and cards",
            "mirrored fingerprint --json": "the same, for programs",
            "mpiexec -n 4 mirrored fingerprint": "the same of each worker",
        },
    ),
    "selftest": Command(
        "check_sums",
        "check and time the sums between devices",
        {
            "mirrored selftest": "three sizes, some seconds",
            "mirrored selftest --full": "1 KB to 1 GB, some minutes",
            "mirrored selftest --sizes 1K 4M": "these sizes",
            "mpiexec -n 4 mirrored selftest": "sum between four workers",
        },
    ),
    "run": Command(
        "start_program",
        "run a Python program as one of several workers",
        {
            "mpiexec -n 4 mirrored run train.py": "four workers on this host",
            "mpiexec -n 4 mirrored run -m package.train": "a module",
            "mirrored run train.py": "one worker",
        },
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of the program ``mirrored``.

    Args:
        arguments: The words after the program's name, None for those of the command line.

    Returns:
        The exit status.

    Raises:
        SystemExit: The program of `run` raised it, or `--help` was printed.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in words if word in COMMANDS), None)
    options = argparse.Namespace(command=command, json="--json" in words)
    try:
        with command_errors():
            options = _parse(words)
            result = _execute(options)
            if options.json and result.report is not None:
                _print_json(options.command, result.status, result.report)
        if result.program is not None:
            result.program()
    except CommandError as error:
        _print_error(options, error)
        return error.status
    return result.status


def _execute(options: argparse.Namespace) -> Result:
    if options.command is None:
        if not options.json:
            _say(f"mirrored {VERSION}")
        return Result(report={})
    check_level()
    say = say_nothing if options.json else _say
    result: Result = _module(options.command).execute(options, say)
    return result


def _module(command: str) -> Any:
    return importlib.import_module(f"mirrored._commands.{COMMANDS[command].module}")


def _print_json(command: str | None, status: int, report: dict[str, Any]) -> None:
    head = {"command": command, "version": VERSION, "status": status}
    _write(json.dumps(head | report, indent=2) + "\n")


def _print_error(options: argparse.Namespace, error: CommandError) -> None:
    """Print an error as JSON, or as text where that is not asked for or cannot be written."""
    if options.json and not isinstance(error, _OutputError):
        with contextlib.suppress(_OutputError):
            return _print_json(options.command, error.status, {"error": str(error)})
    with contextlib.suppress(AttributeError, OSError):  # Standard error may be closed too.
        sys.stderr.write(f"{error.usage}mirrored: {error}\n")


# ---------------------------------------------------------------------- text


def _write(text: str) -> None:
    """Write to standard output at once: the work that follows may take long, or crash."""
    if sys.stdout is None:
        raise _OutputError(FAILED, "Standard output is closed.")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes standard output at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # As after ``mirrored devices | head``.
            raise SystemExit(FAILED) from error
        text = f"Standard output cannot be written: {error.strerror}."
        raise _OutputError(FAILED, text) from error


def _say(text: str) -> None:
    """Print lines; those that are too long go on below, further to the right."""
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        parts = (
            [line]
            if len(line) <= _COLUMNS
            else textwrap.wrap(
                line,
                _COLUMNS,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        _write("\n".join(parts) + "\n")


# ---------------------------------------------------------------------- arguments


class _Parser(argparse.ArgumentParser):
    """A parser whose errors can be printed as JSON, and whose help fits the columns."""

    def __init__(self, *, examples: dict[str, str], epilog: str = "", **options: Any) -> None:
        width = max(map(len, examples))
        lines = [f"  {line:<{width}}  {meaning}" for line, meaning in examples.items()]
        super().__init__(
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                prog, width=min(_COLUMNS, shutil.get_terminal_size().columns) - 2
            ),
            epilog="\n".join(["examples:", *lines, epilog]),
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        raise CommandError(WRONG_USE, message, self.format_usage())


def _parse(words: list[str]) -> argparse.Namespace:
    statuses = [f"  {status:>3}  {meaning}" for status, meaning in EXIT_STATUSES.items()]
    statuses.append("  `run` returns the exit status of its program.")
    parser = _Parser(
        prog="mirrored",
        description="Data-parallel training on several devices.",
        examples={
            line: meaning
            for command in COMMANDS.values()
            for line, meaning in list(command.examples.items())[:1]
        },
        epilog="\n".join(["\nexit statuses:", *statuses]),
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    _add_json(parser, default=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        summary = command.summary
        text = f"{summary[0].upper()}{summary[1:]}."
        parser_of_command = commands.add_parser(
            name, help=summary, description=text, examples=command.examples
        )
        _add_json(parser_of_command, default=argparse.SUPPRESS)
        if name in words:
            _module(name).add_arguments(parser_of_command)
    options = parser.parse_args([_DASHES if word == "--" else word for word in words])
    if options.command is None and not options.version:
        raise CommandError(WRONG_USE, "a command is missing", parser.format_help() + "\n")
    if hasattr(options, "arguments"):
        options.arguments = ["--" if word == _DASHES else word for word in options.arguments]
        if options.program == _DASHES and options.arguments:
            options.program, *options.arguments = options.arguments
    return options


def _add_json(parser: argparse.ArgumentParser, default: Any) -> None:
    parser.add_argument(
        "--json", action="store_true", default=default, help="print one JSON object, errors too"
    )


SUCCESS, FAILED, WRONG_USE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130
# docs/reference/command-line.md has the same table.
EXIT_STATUSES = {
    SUCCESS: "The command succeeded.",
    FAILED: "`selftest`, the program of `run`, or writing the output failed.",
    WRONG_USE: "A wrong command line or environment variable, or a missing file.",
    UNAVAILABLE: "A device, a package or another worker is not available.",
    INTERRUPTED: "Ctrl-C interrupted the command.",
}
# Prints a line of text. It prints nothing where the result is printed as JSON.
Say = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Print nothing."""


class Result(NamedTuple):
    """The result of a command.

    Attributes:
        status: The exit status.
        report: The fields of the JSON object. None prints no object.
        program: A program to call next, whose exceptions are not those of the command.
    """

    status: int = SUCCESS
    report: dict[str, Any] | None = None
    program: Callable[[], None] | None = None


class CommandError(Exception):
    """An error of a command, which is printed without a traceback.

    Args:
        status: The exit status.
        message: What is wrong.
        usage: Lines to print before the message.
    """

    def __init__(self, status: int, message: str, usage: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.usage = usage


class _OutputError(CommandError):
    """Standard output cannot be written."""


@contextlib.contextmanager
def command_errors() -> Iterator[None]:
    """Raise the errors that a command expects as `CommandError`.

    Raises:
        CommandError: One of these errors was raised.

    Example:
        >>> with command_errors():
        ...     raise ValueError("MIRRORED_SIMULATED_GPUS must be a number.")
        Traceback (most recent call last):
        mirrored._commands.command_line.CommandError: MIRRORED_SIMULATED_GPUS must be a number.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise CommandError(INTERRUPTED, "Interrupted.") from error
    except ValueError as error:  # The environment asks for something impossible.
        raise CommandError(WRONG_USE, str(error)) from error
    except (
        CollectiveError,
        DeviceLostError,
        DeviceUnavailableError,
        FailedPreconditionError,
        ImportError,
        ResourceExhaustedError,
        WorkerError,
    ) as error:
        raise CommandError(UNAVAILABLE, str(error)) from error
