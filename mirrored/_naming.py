"""Gives every layer that was not named a name of its own: dense, dense_1, dense_2.

The counters are the process's, so that two models never share an automatic name.
"""

import itertools
import re
from collections.abc import Iterator

_counters: dict[str, Iterator[int]] = {}


def snake_case(class_name: str) -> str:
    """Return a class's name in lower case, its words joined by underscores."""
    return file_case(re.sub(r"\W+", "", class_name).lstrip("_"))


def file_case(class_name: str) -> str:
    """Return a class's name as it is in the paths of Keras' files; private ones keep their mark."""
    name = re.sub(r"\W+", "", class_name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def unique_name(prefix: str) -> str:
    """Return ``prefix`` the first time it is asked for, then ``prefix_1``, ``prefix_2``."""
    count = next(_counters.setdefault(prefix, itertools.count()))
    return prefix if count == 0 else f"{prefix}_{count}"


def one_line(name: str) -> str:
    r"""Return a name with escapes for what is not printable, such as line breaks.

    Args:
        name: The name.

    Example:
        >>> one_line("a\nb")
        'a\\nb'
    """
    if name.isprintable():
        return name
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)


def check_name(name: object) -> str:
    """Return ``name`` when it can name a layer: a string without the separator ``/``.

    Raises:
        ValueError: It cannot.
    """
    if not isinstance(name, str) or "/" in name:
        raise ValueError(
            "Argument `name` must be a string and cannot contain character `/`. "
            f"Received: name={name} (of type {type(name)})"
        )
    return name


def reset_names() -> None:
    """Start the automatic names again, as in a fresh process; for tests.

    Example:
        >>> reset_names()
        >>> unique_name("dense")
        'dense'
    """
    _counters.clear()
