"""Elements that could not be made. They travel as items, so that the elements after them come.

A generator function that raises has ended, so transforms yield a `Failure` and go on; whoever
takes an element from an iterator gets its error.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self


class Failure:
    """What stands for an element that could not be made.

    Args:
        error: Why.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, or a `Failure` that holds what it raised.

    A generator calls this instead of catching the error: its own frame is then not in the
    traceback, which would keep it and its arrays alive.
    """
    try:
        return function(*arguments)
    except Exception as error:
        return Failure(error)


def succeeded(item: Any) -> Any:
    """Return an element; raise the error of a `Failure`."""
    if type(item) is not Failure:
        return item
    error = item.error
    try:
        if isinstance(error, StopIteration):  # It would look like the end.
            raise RuntimeError("A function of a dataset raised StopIteration.") from error
        raise error
    finally:
        del error, item  # Its traceback leads here: a cycle would keep the arrays.


class Succeeding(Iterator[Any]):
    """Goes over elements, and raises the error of those that could not be made.

    Args:
        items: The elements, to be closed.
    """

    def __init__(self, items: Any) -> None:
        self._items = items

    def __iter__(self) -> Self:
        """Return the iterator."""
        return self

    def __next__(self) -> Any:
        """Return the next element, or raise its error."""
        return succeeded(next(self._items))

    def close(self) -> None:
        """End all that works for the elements."""
        self._items.close()
