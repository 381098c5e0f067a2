"""Removes frames of this library from tracebacks, which then end at a line of the user's.

Functions that users call pass what they raise to `shorten`, and raise it again by a bare `raise`,
which adds no frame. Where nothing is raised this costs nothing.
"""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

LIBRARY = os.path.dirname(os.path.abspath(__file__)) + os.sep
_Class = TypeVar("_Class")
_Function = TypeVar("_Function", bound=Callable[..., Any])

# Frames that belong to the library where it calls them: generated code, imports, Python's own
# modules, and NumPy.
GENERATED = "<mirrored>"
_STANDARD = os.path.dirname(contextlib.__file__) + os.sep
_BENEATH = (GENERATED, os.path.dirname(np.__file__) + os.sep)
_INSTALLED = f"{os.sep}site-packages{os.sep}"

_enabled = True


def enable_traceback_filtering() -> None:
    """Remove frames of the library from tracebacks, which is the default.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.enable_traceback_filtering()
        >>> mr.debugging.is_traceback_filtering_enabled()
        True
    """
    global _enabled
    _enabled = True


def disable_traceback_filtering() -> None:
    """Show all frames in tracebacks, to find an error in the library itself.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.disable_traceback_filtering()
        >>> mr.debugging.is_traceback_filtering_enabled()
        False
        >>> mr.debugging.enable_traceback_filtering()
    """
    global _enabled
    _enabled = False


def is_traceback_filtering_enabled() -> bool:
    """Return whether frames of the library are removed from tracebacks.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.enable_traceback_filtering()
        >>> mr.debugging.is_traceback_filtering_enabled()
        True
    """
    return _enabled


def shorten(error: BaseException) -> None:
    """Remove the library's frames from the traceback of an error, if that is enabled.

    Errors that it was raised from, or while they were handled, keep theirs.

    Args:
        error: The error, which the caller raises again by a bare `raise`.
    """
    if not _enabled:
        return
    kept: list[TracebackType] = []
    inside, at = False, error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        # Constructors of dataclasses have no file, and the module of their class.
        name = str(at.tb_frame.f_globals.get("__name__"))
        inside = (
            code.co_filename.startswith(LIBRARY)
            or name.startswith("mirrored.")
            or (inside and _is_beneath(code.co_filename))
        )
        if not inside:
            kept.append(at)
        at = at.tb_next
    shortened = None
    for entry in reversed(kept):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = shortened


def shortened(function: _Function) -> _Function:
    """Return a function whose errors end at the user's line; it costs a call more.

    Args:
        function: A function that no step calls; others catch errors themselves.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return call  # type: ignore[return-value]


def shortened_methods(cls: type[_Class]) -> type[_Class]:
    """Return a class whose public methods are `shortened`, but for those that are wrapped already.

    Args:
        cls: The class, whose methods no step calls; it is changed.
    """
    for name, member in list(vars(cls).items()):
        function = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if not hasattr(function, "__wrapped__"):
            wrapper = shortened(function)
            setattr(cls, name, wrapper if function is member else type(member)(wrapper))
    return cls


def is_pythons(file: str) -> bool:
    """Return whether a file of code is one of Python's own modules.

    Args:
        file: Its path, or what stands for it in frames.
    """
    return file.startswith("<frozen ") or (file.startswith(_STANDARD) and _INSTALLED not in file)


def _is_beneath(file: str) -> bool:
    return file.startswith(_BENEATH) or is_pythons(file)
