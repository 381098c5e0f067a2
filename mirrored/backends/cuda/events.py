"""A pool of CUDA events.

To make one takes longer than to record it, and a step records several.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

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
