"""The locks and counters that readers and writers of variables share, and who may create some.

A variable is created only in the first call of a recorded function: what makes one in every call
makes another one each time in Python, and would keep the first here.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mirrored._contexts import Within

# Threads of the user's own that write to one variable wait for each other: every copy gets every
# write, and what adds to a value adds to what the write before it left.
variable_writes = threading.RLock()


class Moves:
    """How often a variable was brought to another place: programs find theirs by it quickly.

    Attributes:
        count: That number.
    """

    count = 0


class Writes:
    """How often variables were written where recorded programs find them.

    What keeps something computed from them sees by it whether that is still true.

    Attributes:
        count: That number.
    """

    count = 0


_commits: ContextVar[list[str] | None] = ContextVar("mirrored_commits", default=None)


@contextmanager
def noting_commits() -> Iterator[list[str]]:
    """Within this context note the names of the programs that write variables."""
    names: list[str] = []
    with Within(_commits, names):
        yield names


def note_commit(name: str) -> None:
    """Note that a program has written variables."""
    names = _commits.get()
    if names is not None:
        names.append(name)


# Asked before a variable is made, with its name; what raises refuses it.
Rule = Callable[[str], object]

_rule: ContextVar[Rule | None] = ContextVar("mirrored_variable_rule", default=None)


def ruled_by(rule: Rule | None) -> Within:
    """Within this context ask `rule` before a variable is made; None: all may be made.

    Args:
        rule: Called with the name of each.
    """
    return Within(_rule, rule)


# Returns what is called before variables are created; None: they may be created.
rule_in_force: Callable[[], Rule | None] = _rule.get


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
        "mr.function only supports singleton mr.Variables created on the first call. Make sure "
        "the mr.Variable is only created once or created outside mr.function. Received: the "
        f"variable {name!r}, created again, or in a later call. Create it only once, as in `if "
        "self.v is None: self.v = mr.Variable(1.0)`. The same is true of layers, metrics and "
        "optimizers."
    )


# A variable, and what sets it to its initial value.
Late = tuple[object, Callable[[], object]]


class Room:
    """How many bytes of variables may be made of a configuration, as of a model in a file.

    Args:
        weights: Bytes of weights.
        metrics: Bytes of metrics' variables.

    Attributes:
        late: Variables whose initial values take long, each with what sets it to its own: until
            then they are zeros, since the file has their values.
    """

    def __init__(self, weights: int, metrics: int) -> None:
        self.late: list[Late] = []
        self._left = {"weights": weights, "metrics": metrics}

    def take(self, name: str, size: int, kind: str) -> None:
        """Take the room of a variable that is to be made.

        Args:
            name: What it is to be called.
            size: Its bytes.
            kind: "weights" or "metrics".

        Raises:
            ValueError: There is not so much.
        """
        self._left[kind] -= size
        if self._left[kind] < 0:
            raise ValueError(
                f"A configuration needs larger {kind} than its file allows. Received: {name!r}, "
                f"of {size} bytes. Restore the file from another copy."
            )


_room: ContextVar[Room | None] = ContextVar("mirrored_variable_room", default=None)

# Returns the room that variables have in this context; None: any.
room_in_force: Callable[[], Room | None] = _room.get


def within_room(room: Room) -> Within:
    """Within this context variables have so much room.

    Args:
        room: The room.
    """
    return Within(_room, room)
