"""The open connections, which are closed when the process ends.

To disconnect devices may wait for them, which the garbage collector must not, nor the end of the
process for long.
"""

import atexit
import functools
import math
import os
from collections.abc import Sequence
from typing import Protocol

from mirrored._logging import logger
from mirrored.backends.communication.futures import RESERVE, Future
from mirrored.backends.communication.handle import Handle
from mirrored.backends.communication.watch import Watch

# Seconds that what is in flight has when the process ends: nobody will use it any more.
AT_EXIT = 5.0
# Threads that closing takes then beside one for each connection: it itself, one that closes, one
# that ends everything, and what stops writes.
_AT_EXIT_THREADS = 4


class Open(Protocol):
    """What is open; `Connection` is the class of them."""

    @property
    def watch(self) -> Watch:
        """What looks after its collectives."""

    def close_now(self) -> None:
        """Close it without waiting for anybody for long, and log what goes wrong."""


OPEN: dict[Open, Handle] = {}  # In the order of opening.


def keep(connection: Open, link: Handle) -> None:
    """Keep one that was opened, until it is forgotten or the process ends."""
    OPEN[connection] = link
    RESERVE.fill(_AT_EXIT_THREADS + len(OPEN))
    _close_at_exit()


def forget(connection: Open) -> None:
    """Keep one no longer, if it is kept."""
    OPEN.pop(connection, None)


@functools.cache
def _close_at_exit() -> None:
    # At the first connection: what the devices' libraries register before it runs after it.
    atexit.register(close_all)


def close_all() -> None:
    """Close all connections that are open, the last one first; what goes wrong is logged.

    It is called at exit, and may be before. All that is in flight has a few seconds together, and
    is aborted then. Where no thread can be had the devices stay connected: a call without a
    deadline could keep the process from ending.
    """
    # A forked process cannot use what it has a copy of.
    own = [connection for connection, link in reversed(OPEN.items()) if link.process == os.getpid()]
    if not own:
        return
    watches = {connection.watch for connection in own}
    for watch in watches:
        watch.hurry(AT_EXIT)
    try:
        with RESERVE.lent():
            call = Future("mirrored-close-at-exit", lambda: _close_now(own))
            if call.begun:
                longest = max(watch.stop_seconds + 2 * watch.abort_seconds for watch in watches)
                call.thread.join(AT_EXIT + longest)
                if not call.is_over:
                    logger.warning("Devices were not disconnected at exit, since that hangs.")
    finally:
        for watch in watches:
            watch.hurry(math.inf)


def _close_now(connections: Sequence[Open]) -> None:
    for connection in connections:
        connection.close_now()
