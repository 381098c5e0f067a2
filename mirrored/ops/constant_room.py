"""How large the constants of a graph may be that is drawn as a file says.

Whoever made the file may have made up sizes, and constants are computed while the graph is drawn.
"""

import math
from collections.abc import Sequence

from mirrored._contexts import Within
from mirrored.ops.hooks import constant_rooms

_OF_ALL = 1 << 26  # Bytes.
_OF_A_LETTER = 1 << 14


def within_constant_room(letters: int) -> Within:
    """Within this context the constants of graphs have the room that a configuration has.

    Args:
        letters: The length of the configuration's text.
    """
    left = _OF_ALL + _OF_A_LETTER * letters

    def take(shape: Sequence[int], itemsize: int) -> None:
        nonlocal left
        asked = math.prod(max(int(size), 0) for size in shape) * itemsize
        left -= asked
        if left < 0:
            raise ValueError(
                "A configuration asks for larger constants than its text has room for. Received: "
                f"one of shape {tuple(shape)}, of {asked} bytes. Restore it from another copy."
            )

    return Within(constant_rooms, take)
