"""How large the constants of a graph may be that is drawn as a file says.

Whoever made the file may have made up sizes, and constants are computed while the graph is drawn.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_room: ContextVar[list[int] | None] = ContextVar("mirrored_constant_room", default=None)


@contextmanager
def within_constant_room(size: int) -> Iterator[None]:
    """Within this context the constants of graphs have together so much room.

    Args:
        size: Bytes.
    """
    token = _room.set([size])
    try:
        yield
    finally:
        _room.reset(token)


def take_constant_room(shape: Sequence[int], itemsize: int) -> None:
    """Take the room of a constant that is to be computed.

    Args:
        shape: Its shape.
        itemsize: The bytes of an element.

    Raises:
        ValueError: There is not so much.
    """
    room = _room.get()
    if room is None:
        return
    size = math.prod(max(int(each), 0) for each in shape) * itemsize
    room[0] -= size
    if room[0] < 0:
        raise ValueError(
            "A configuration asks for larger constants than a file may. Received: one of shape "
            f"{tuple(shape)}, of {size} bytes. Restore the file from another copy."
        )
