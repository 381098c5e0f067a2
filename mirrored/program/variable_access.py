"""The locks and counters that all readers and writers of variables share."""

import threading

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
