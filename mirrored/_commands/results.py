"""What a command returns, and the exit statuses of the program ``mirrored``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mirrored.errors import (
    CollectiveError,
    DeviceLostError,
    DeviceUnavailableError,
    FailedPreconditionError,
    ResourceExhaustedError,
    WorkerError,
)

SUCCESS, FAILED, WRONG_USE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130
# docs/reference/command-line.md has the same table.
EXIT_STATUSES = {
    SUCCESS: "The command succeeded.",
    FAILED: "`selftest` failed, or the program of `run` raised an exception.",
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


@contextlib.contextmanager
def command_errors() -> Iterator[None]:
    """Raise the errors that a command expects as `CommandError`.

    Raises:
        CommandError: One of these errors was raised.
        SystemExit: Nothing reads standard output any more, as after ``mirrored devices | head``.

    Example:
        >>> with command_errors():
        ...     raise ValueError("MIRRORED_SIMULATED_GPUS must be a number.")
        Traceback (most recent call last):
        mirrored._commands.results.CommandError: MIRRORED_SIMULATED_GPUS must be a number.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise CommandError(INTERRUPTED, "Interrupted.") from error
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes standard output at its end.
        raise SystemExit(FAILED) from error
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
