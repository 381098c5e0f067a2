"""Iterators over datasets that recorded functions may ask for their next element.

While a function is recorded, an element is looked at and not taken: what is recorded is that the
function asks for one of such shapes. Each run then takes its own.
"""

from collections import deque
from typing import Any, Self

from mirrored.errors import OutOfRangeError
from mirrored.ops.recording import active_recorder

# What stands at the place of the first element that there is not.
END = object()


class Stream:
    """An iterator whose next elements can be looked at. A subclass gives them in `produce`.

    Args:
        origin: The dataset that it goes over, where a function that is recorded asked for it: each
            run of the function goes over it anew.
    """

    def __init__(self, origin: Any = None) -> None:
        self.origin = origin
        self._ahead: deque[Any] = deque()

    def produce(self) -> Any:
        """Return the next element.

        Raises:
            StopIteration: There is none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `produce`.")

    def peek(self, place: int) -> Any:
        """Return an element that is still to come, or `END`.

        Args:
            place: How many come before it.
        """
        while len(self._ahead) <= place:
            try:
                self._ahead.append(self.produce())
            except StopIteration:
                return END
        return self._ahead[place]

    def skip(self, count: int) -> None:
        """Take so many elements that were looked at.

        Args:
            count: How many.
        """
        for _ in range(count):
            self._ahead.popleft()

    def __iter__(self) -> Self:
        """Return the iterator."""
        return self

    def __next__(self) -> Any:
        """Return the next element; in a function that is recorded, what stands for it.

        Raises:
            OutOfRangeError: There is none. It is a StopIteration.
        """
        recorder = active_recorder()
        if recorder is not None:
            return recorder.pull(self)
        element = self.peek(0)
        if element is END:
            raise OutOfRangeError("End of sequence")
        self.skip(1)
        return element
