"""When variables may be made: by a recorded function in its first call, and never again.

What makes one in every call makes another one each time in Python, and would keep the first here.
"""

from collections.abc import Callable
from contextvars import ContextVar

from mirrored._contexts import Within

# Asked before a variable is made, with its name; what raises refuses it.
Rule = Callable[[str], object]

_rule: ContextVar[Rule | None] = ContextVar("mirrored_variable_rule", default=None)


def ruled_by(rule: Rule | None) -> Within:
    """Within this context ask `rule` before a variable is made; None: all may be made.

    Args:
        rule: Called with the name of each.
    """
    return Within(_rule, rule)


def is_ruled() -> bool:
    """Return whether somebody is asked before variables are made."""
    return _rule.get() is not None


def ask(name: str) -> None:
    """Ask whether a variable may be made now.

    Args:
        name: What it is to be called.

    Raises:
        ValueError: It may not.
    """
    rule = _rule.get()
    if rule is not None:
        rule(name)


def refuse(name: str) -> None:
    """Refuse a variable.

    Raises:
        ValueError: Always; it says what to do.
    """
    raise ValueError(
        "mr.function only supports singleton mr.Variables created on the first call. Make sure the "
        "mr.Variable is only created once or created outside mr.function. Received: the variable "
        f"{name!r}, made again, or in a later call. Make it where there is none yet, as in `if "
        "self.v is None: self.v = mr.Variable(1.0)`, and layers, metrics and optimizers likewise."
    )


# How many bytes of weights may still be made, where that is bounded.
_room: ContextVar[list[int] | None] = ContextVar("mirrored_variable_room", default=None)


def within_room(size: int) -> Within:
    """Within this context weights have so much room, as those of a model in a file have.

    Args:
        size: Bytes.
    """
    return Within(_room, [size])


def take_room(name: str, size: int) -> None:
    """Take the room of a weight that is to be made.

    Args:
        name: What it is to be called.
        size: Its bytes.

    Raises:
        ValueError: There is not so much.
    """
    room = _room.get()
    if room is None:
        return
    room[0] -= size
    if room[0] < 0:
        raise ValueError(
            f"A configuration asks for larger weights than its file has. Received: {name!r}, of "
            f"{size} bytes. Restore the file from another copy."
        )
