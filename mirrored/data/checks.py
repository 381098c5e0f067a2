"""Checks of the arguments of a dataset's methods, in one wording.

They are made when a method is called, since a pipeline runs much later and elsewhere.
"""

from typing import Any

from mirrored._numbers import as_integer
from mirrored.errors import InvalidArgumentError


def integer(name: str, value: Any) -> int:
    """Return an argument that is an integer.

    Args:
        name: What the error calls it.
        value: The argument.

    Raises:
        TypeError: It is none.

    Example:
        >>> from mirrored.data.checks import integer
        >>> integer("start", 3)
        3
    """
    number = as_integer(value)
    if number is None:
        raise TypeError(f"`{name}` is an integer. Received: {name}={value!r:.200}.")
    return number


def count(name: str, value: Any, *, least: int) -> int:
    """Return an argument that is a number of things.

    Args:
        name: What the error calls it.
        value: The argument.
        least: The least that it may be.

    Raises:
        TypeError: It is no integer.
        InvalidArgumentError: It is less.

    Example:
        >>> from mirrored.data.checks import count
        >>> count("batch_size", 3, least=1)
        3
    """
    number = integer(name, value)
    if number < least:
        kind = "greater than zero" if least == 1 else f"{least} or more"
        raise InvalidArgumentError(f"`{name}` must be {kind}. Received: {name}={number}.")
    return number


def check_callable(name: str, value: Any) -> None:
    """Raise ValueError unless an argument can be called.

    Args:
        name: What the error calls it.
        value: The argument.

    Example:
        >>> from mirrored.data.checks import check_callable
        >>> check_callable("map_func", abs)
    """
    if not callable(value):
        raise ValueError(
            f"Argument `{name}` must be a callable. Received {name}={value!r:.200} "
            f"(of type {type(value)})."
        )
