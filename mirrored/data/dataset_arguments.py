"""Numbers that methods of datasets take, checked when the method is called."""

from typing import Any

from mirrored._numbers import as_integer
from mirrored.errors import InvalidArgumentError

AUTOTUNE = -1


def as_whole(name: str, value: Any) -> int:
    """Return an argument that is an integer; raises TypeError where it is none."""
    number = as_integer(value)
    if number is None:
        raise TypeError(f"`{name}` is an integer. Received: {name}={value!r:.200}.")
    return number


def as_count(name: str, value: Any, *, least: int) -> int:
    """Return an argument that is a number of things, in one wording for all methods."""
    number = as_whole(name, value)
    if number < least:
        kind = "greater than zero" if least == 1 else f"{least} or more"
        raise InvalidArgumentError(f"`{name}` must be {kind}. Received: {name}={number}.")
    return number


def check_parallel_calls(value: Any, synchronous: Any = None) -> None:
    """Raise where a number of parallel calls is neither None nor AUTOTUNE nor positive."""
    if synchronous and value is not None:
        raise ValueError(
            "`synchronous` is not supported with `num_parallel_calls`, but `num_parallel_calls` "
            f"was set to {value}. Leave out one of them."
        )
    if value is not None and value != AUTOTUNE:
        as_count("num_parallel_calls", value, least=1)
