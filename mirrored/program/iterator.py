"""Iterators over datasets, from which recorded functions can take elements.

While a function is recorded, an element is looked at and not taken: what is recorded is that the
function asks for one of such shapes. Each run then takes its own.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn, Self

from mirrored._tracebacks import shorten
from mirrored.devices import hold_devices
from mirrored.errors import DevicesResetError, OutOfRangeError
from mirrored.ops.hooks import active_recorder

# What stands at the place of the first element that there is not.
END = object()


class PeekingIterator:
    """An iterator whose next elements can be looked at. A subclass makes them in `produce`.

    Args:
        origin: The dataset that it goes over. Where a function asked for the iterator while it was
            recorded, each run of the function goes over the dataset again.
    """

    def __init__(self, origin: Any = None) -> None:
        self.origin = origin if active_recorder() is not None else None
        self._ahead: deque[Any] = deque()
        self._lost = False
        hold_devices(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"An iterator over a dataset cannot be pickled or copied. Received: {self!r}. Iterate "
            "over the dataset again."
        )

    def produce(self) -> Sequence[Any]:
        """Return the next elements, at least one.

        Raises:
            StopIteration: There is none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `produce`.")

    def close(self) -> None:
        """End what gives the elements, and all that it runs in the background."""

    def lose_devices(self) -> None:
        """End the iterator: what it gives is on devices that are about to go."""
        self._lost = True
        self._ahead.clear()
        with suppress(ValueError):  # Another thread is in the middle of an element.
            self.close()

    def peek(self, place: int) -> Any:
        """Return an element that is still to come, or `END`.

        Args:
            place: How many come before it.
        """
        if self._lost:
            raise self._error_of_lost()
        while len(self._ahead) <= place:
            try:
                self._ahead += self.produce()
            except StopIteration:
                return END
        return self._ahead[place]

    def skip(self, count: int) -> None:
        """Skip N elements that were peeked at."""
        for _ in range(count):
            self._ahead.popleft()

    def get_next(self) -> Any:
        """Return the next element, as `next` does."""
        return next(self)

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
        if self._lost:
            raise self._error_of_lost()
        ahead = self._ahead
        if not ahead:
            try:
                ahead += self.produce()
            except StopIteration:
                raise OutOfRangeError("End of sequence") from None
            except Exception as error:
                shorten(error)
                raise
        return ahead.popleft()

    def _error_of_lost(self) -> DevicesResetError:
        return DevicesResetError(
            f"{self!r} was created before mr.config.experimental.reset_devices(), which ended it. "
            "Iterate over the dataset again."
        )
