"""Checks the numbers that users give as arguments, divides numbers, and writes them for users.

NumPy's numbers pass wherever Python's do, and booleans, which Python counts as integers, do not.
"""

import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np


def as_integer(value: Any) -> int | None:
    """Return `value` as a Python integer, or None where it is no integer of Python's or NumPy's.

    Booleans, which Python counts as integers, are none.

    Example:
        >>> import numpy as np
        >>> as_integer(np.int64(3)), as_integer(3.0), as_integer(True)
        (3, None, None)
    """
    if type(value) is int:
        return value
    try:
        return None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        return None


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural except after 1.

    Example:
        >>> counted(1, "epoch"), counted(2, "other variable")
        ('1 epoch', '2 other variables')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def in_units(nbytes: float, units: Sequence[str], least: float = 1.0) -> str | None:
    """Return a number of bytes in the first unit that it is large enough for; None: in none.

    Args:
        nbytes: The number.
        units: Of "GB", "MB" and "KB", the largest one first.
        least: The least number of a unit.

    Example:
        >>> in_units(3 << 19, ["GB", "MB"]), in_units(400, ["MB", "KB"], 0.1), in_units(4, ["KB"])
        ('1.5 MB', '0.4 KB', None)
    """
    for unit in units:
        size = 1 << 10 * " KMG".index(unit[0])
        if nbytes >= size * least:
            return f"{nbytes / size:.1f} {unit}"
    return None


def check_count(name: str, value: Any, *, least: int) -> int:
    """Return an argument that is a number of things.

    Args:
        name: What the error calls it.
        value: The argument.
        least: The least that it may be.

    Raises:
        ValueError: It is no integer, or less.

    Example:
        >>> check_count("epochs", 3, least=0)
        3
    """
    count = as_integer(value)
    if count is None or count < least:
        raise ValueError(
            f"`{name}` must be an integer of {least} or more. Received: {name}={value!r}"
        )
    return count


def as_real(value: object) -> float | None:
    """Return ``value`` as a float, or None when it is not a real number.

    Example:
        >>> as_real(3), as_real("3"), as_real(True)
        (3.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return float(value)


def from_0_to_1(name: str, value: object) -> float:
    """Return an argument that is a part of 1.

    Args:
        name: What the error calls it.
        value: The argument.

    Raises:
        ValueError: It is no number from 0 to 1.

    Example:
        >>> from_0_to_1("rate", 1)
        1.0
    """
    number = as_real(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(
            f"Invalid value received for argument `{name}`. Expected a float value between 0 and "
            f"1. Received: {name}={value!r}"
        )
    return number


def as_positive(argument: str, value: object) -> int:
    """Return ``value`` as a positive integer.

    Args:
        argument: The name of the argument that it was given for; the error gives it.
        value: An integer, NumPy's too.

    Raises:
        ValueError: It is not one.

    Example:
        >>> as_positive("units", 64)
        64
    """
    number = as_integer(value)
    if number is not None and number > 0:
        return number
    hint = ". Divide with `//` to get an integer." if isinstance(value, float | np.floating) else ""
    raise ValueError(
        f"Received an invalid value for `{argument}`, expected a positive integer. "
        f"Received: {argument}={value!r}{hint}"
    )


def even_sizes(total: int, count: int) -> list[int]:
    """Return the sizes of N parts of a whole: they differ by at most one, larger ones first.

    Example:
        >>> even_sizes(7, 3)
        [3, 2, 2]
    """
    share, rest = divmod(total, count)
    return [share + (number < rest) for number in range(count)]
