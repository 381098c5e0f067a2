"""Arguments of Keras' layers that have one value here: what configurations say, and no more."""

from typing import Any, TypeVar

_Value = TypeVar("_Value")


def only(name: str, value: Any, kept: _Value, advice: str) -> _Value:
    """Return the one value that an argument of Keras' has here.

    Args:
        name: The argument's name.
        value: What was given.
        kept: The value.
        advice: What the error says to do.

    Raises:
        ValueError: Another value was given.
    """
    if value is not kept and (type(value) is not type(kept) or value != kept):
        raise ValueError(
            f"`{name}` is not provided here: it is {kept!r}. {advice} Received: {name}={value!r}"
        )
    return kept
