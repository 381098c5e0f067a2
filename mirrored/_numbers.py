"""Telling whole numbers from everything else that users pass in their place.

What is wrong with the rest, and in which words, is for most callers to say.
"""

import operator
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
    try:
        return None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
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
        raise ValueError(f"`{name}` is an integer of {least} or more. Received: {name}={value!r}")
    return count
