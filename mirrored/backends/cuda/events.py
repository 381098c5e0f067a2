"""CUDA events: a pool of them, and the driver's query through ctypes, which releases the GIL.

To create one takes longer than to record it, and a step records several. CuPy holds the GIL while
it asks for an event. Where the driver keeps one thread waiting, and with it all that ask it, the
others have to go on in Python: they see to deadlines.
"""

import ctypes
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

from mirrored.backends.cuda import nvml

DONE, NOT_READY = 0, 600  # Of a query. What is neither is an error, numbered as the runtime's are.


@cache
def load_driver() -> Any:
    """Return the driver's library, which is loaded in any process that uses a card."""
    return ctypes.CDLL(nvml.DRIVER)


def query(event: int) -> int:
    """Return what the driver says of an event, given by its handle."""
    return int(load_driver().cuEventQuery(ctypes.c_void_p(event)))


# Events that nobody refers to, kept for the next ones, at most.
_MOST_FREE = 256


class Event:
    """A recorded event of CuPy's, which is free for others once nobody refers to this any more.

    A stream that was told to wait for it waits for what it stood for then, so it need not be kept
    for that.

    Attributes:
        ptr: Its handle.
    """

    __slots__ = ("_event", "_free", "ptr")

    def __init__(self, event: Any, free: deque[Any]) -> None:
        self._event = event
        self._free = free
        self.ptr = event.ptr

    def __del__(self) -> None:
        self._free.append(self._event)

    def synchronize(self) -> None:
        """Let the host wait for it."""
        self._event.synchronize()


class Events:
    """The events of one device.

    Args:
        make: Makes one of CuPy's, of the card that is current, without a clock.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._free: deque[Any] = deque()
        # All that there are. What only an `Event` kept, the garbage collector would let CuPy
        # destroy together with that, which then gives it back.
        self._events: set[Any] = set()

    def recorded(self, stream: Any) -> Event:
        """Return an event at the end of a stream's work so far; its card is the current one."""
        try:
            while len(self._free) > _MOST_FREE:
                self._events.discard(self._free.popleft())
            event = self._free.popleft()
        except IndexError:  # Other threads take some too.
            event = self._make()
            self._events.add(event)
        event.record(stream)
        return Event(event, self._free)
