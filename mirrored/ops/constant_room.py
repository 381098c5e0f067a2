"""How large the constants of a graph may be that is drawn as a file says.

Whoever made the file may have made up sizes, and constants are computed while the graph is drawn.
"""

import math
from collections.abc import Sequence

from mirrored._contexts import Within
from mirrored.ops.hooks import constant_rooms


def within_constant_room(size: int) -> Within:
    """Within this context the constants of graphs have together so much room.

    Args:
        size: Bytes.
    """
    left = size

    def take(shape: Sequence[int], itemsize: int) -> None:
        nonlocal left
        asked = math.prod(max(int(each), 0) for each in shape) * itemsize
        left -= asked
        if left < 0:
            raise ValueError(
                "A configuration asks for larger constants than a file may. Received: one of "
                f"shape {tuple(shape)}, of {asked} bytes. Restore the file from another copy."
            )

    return Within(constant_rooms, take)
