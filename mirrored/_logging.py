"""The logger ``mirrored``, whose INFO lines users see without configuring anything.

It stays out of the way of an application that configures logging itself.
"""

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TextIO

_VARIABLE = "MIRRORED_LOG_LEVEL"
_LIBRARY = os.path.dirname(os.path.abspath(__file__)) + os.sep


class _Logger(logging.Logger):
    """Shows INFO until the application configures logging, and has its level from then on."""

    def getEffectiveLevel(self) -> int:
        """Return its own level if it has one, else that of the application, by default INFO."""
        root = logging.getLogger()
        untouched = not root.handlers and root.level == logging.WARNING  # As Python makes it.
        if self.level == logging.NOTSET and untouched:
            return logging.INFO
        return super().getEffectiveLevel()

    def isEnabledFor(self, level: int) -> bool:
        """Return whether lines of a level are written; not cached, since handlers change."""
        off = self.disabled or level <= self.manager.disable
        return not off and level >= self.getEffectiveLevel()


class _StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error unless the application has given the root logger a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers:
            return  # The record propagates to the application's own handlers.
        self.stream = sys.stderr  # Looked up now: tests and notebooks replace it.
        with room_for_a_line():
            super().emit(record)


def room_for_a_line() -> AbstractContextManager[Any]:
    """Return the context to write a line in: progress bars go before it, and come back below it."""
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if tqdm is None or not getattr(tqdm, "_instances", None):
        return nullcontext()
    room: AbstractContextManager[Any] = tqdm.external_write_mode(file=sys.stderr)
    return room


class _BesideBars:
    """A terminal on which each line finds room beside progress bars.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a line."""
        with room_for_a_line():
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def beside_bars() -> Iterator[None]:
    """Until the end of this context let the application's own handlers make room for their lines.

    This logger's own handler always does. (`tqdm.contrib.logging` would put a handler in the place
    of each that has neither its level nor its class.)
    """
    streams: list[tuple[logging.StreamHandler[Any], Any, Any]] = []
    for handler in (*logging.getLogger().handlers, *logger.handlers):
        own = isinstance(handler, _StandardErrorHandler)
        if isinstance(handler, logging.StreamHandler) and not own and _is_terminal(handler.stream):
            through: Any = _BesideBars(handler.stream)
            streams.append((handler, handler.stream, through))
            handler.setStream(through)
    try:
        yield
    finally:
        for handler, stream, through in streams:
            if handler.stream is through:  # Nobody gave it another one meanwhile.
                handler.setStream(stream)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # It writes elsewhere; it is closed.
        return False


def check_level() -> int:
    """Return the level that the environment asks for; NOTSET if it asks for none.

    Raises:
        ValueError: It is no level.
    """
    text = os.environ.get(_VARIABLE, "").strip()
    if text.isdecimal():
        return int(text)
    levels = {"": logging.NOTSET, **logging.getLevelNamesMapping()}
    if text.upper() not in levels:
        raise ValueError(
            f"The environment variable {_VARIABLE} must be a level of Python's logging: a number, "
            f"or one of {', '.join(filter(None, levels))}. Received: {text!r:.80}. Set it as in "
            f"{_VARIABLE}=INFO, or unset it."
        )
    return levels[text.upper()]


def _make_logger(name: str) -> logging.Logger:
    new = logging.getLogger(name)
    if type(new) is logging.Logger:  # The application's own class of loggers stays.
        new.__class__ = _Logger
    if not new.handlers:
        new.addHandler(_StandardErrorHandler())
    with suppress(ValueError):  # The first look at the devices raises it, where it can be caught.
        if level := check_level():
            new.setLevel(level)
    return new


logger = _make_logger("mirrored")


def get_logger() -> logging.Logger:
    """Return the logger of the library's own lines, `logging.getLogger("mirrored")`.

    Example:
        >>> import mirrored as mr
        >>> mr.get_logger().name
        'mirrored'
    """
    return logger


def warn_caller(text: str) -> None:
    """Warn at the line that called this library, however deep within it the caller is.

    Args:
        text: The warning.
    """
    files = [entry.filename for entry in reversed(traceback.extract_stack())]
    level = next((i for i, file in enumerate(files) if not file.startswith(_LIBRARY)), 0)
    warnings.warn(text, stacklevel=level + 1)
