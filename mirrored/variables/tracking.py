"""The order in which objects get their parts: attributes, and items of lists and dicts in them.

Keras lists weights in this order. It is kept beside the attributes, which say what the parts are.
"""

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from mirrored.ops.random import SeedGenerator
from mirrored.variables.variable import Variable

_Part = TypeVar("_Part")


_LEAVES = frozenset((str, int, float, bool, type(None)))


class Tracker:
    """The order in which one object got its parts.

    Attributes:
        notify: Called after the object has got another part; None: nobody is.
    """

    def __init__(self) -> None:
        self.notify: Callable[[], None] | None = None
        self._parts: dict[int, weakref.ref[Any]] = {}

    def __getstate__(self) -> list[Any]:
        return [part for reference in self._parts.values() if (part := reference()) is not None]

    def __setstate__(self, parts: list[Any]) -> None:
        self.notify, self._parts = None, {}
        for part in parts:
            self.track(part)

    def track(self, value: Any) -> Any:
        """Note a value and return it; lists and dicts become ones that note later items.

        Args:
            value: What is assigned to an attribute, or added to a list or dict.
        """
        kind = type(value)
        if kind in _LEAVES:
            return value
        if isinstance(value, _PARTS):
            parts, key = self._parts, id(value)
            if key not in parts:
                parts[key] = weakref.ref(value, lambda _: parts.pop(key, None))
            return value
        if kind is tuple:
            return tuple([self.track(item) for item in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*[self.track(item) for item in value])
        if kind is list or (kind is TrackedList and value._tracker is not self):
            return TrackedList(value, self)
        if kind is dict or (kind is TrackedDict and value._tracker is not self):
            return TrackedDict(value, self)
        return value

    def untrack(self, value: Any) -> None:
        """Forget a value: if it is added again, it is the last one.

        Args:
            value: What is taken out of a list or dict.
        """
        self._parts.pop(id(value), None)

    def in_order(self, parts: list[_Part]) -> list[_Part]:
        """Return parts in the order in which the object got them; others are last.

        Args:
            parts: The parts, each once.
        """
        left = dict(zip(map(id, parts), parts, strict=True))
        known: list[_Part] = []
        for key in self._parts:  # Each `fit` asks: a comprehension would be a call.
            if key in left:
                known.append(left.pop(key))
        return [*known, *left.values()]


class Part:
    """Base of classes whose instances are parts of other objects, and note the order of their own.

    `Subclassable.__setattr__` gives a tracker what is assigned to attributes.
    """

    __slots__ = ()

    @functools.cached_property
    def __tracker__(self) -> Any:
        return Tracker()


_PARTS = (Variable, SeedGenerator, Part)


class Seeds(Part):
    """Base of streams of random numbers whose state is a variable among those of a layer."""

    state: Variable


class Watched(Part):
    """Base of classes whose instances notify somebody of new parts, once they have a tracker."""

    __tracker__: Tracker | None = None

    if not TYPE_CHECKING:  # It would tell type checkers that every attribute can be set.

        def __setattr__(self, name: str, value: Any) -> None:
            tracker = self.__tracker__
            if tracker is None:
                super().__setattr__(name, value)
                return
            super().__setattr__(name, tracker.track(value))
            if tracker.notify is not None:
                tracker.notify()


class _Tracked:
    """A list or dict in an attribute, which notifies the tracker of the object."""

    _tracker: Tracker | None = None  # While it is unpickled.

    def _added(self, values: Iterable[Any]) -> None:
        if self._tracker is not None:
            for value in values:
                self._tracker.track(value)
            if self._tracker.notify is not None:
                self._tracker.notify()

    def _removed(self, values: Iterable[Any]) -> None:
        if self._tracker is not None:
            for value in values:
                self._tracker.untrack(value)


class TrackedList(_Tracked, list[Any]):
    """A list in an attribute, whose items are parts of the object.

    Args:
        values: The items.
        tracker: That of the object.
    """

    def __init__(self, values: Iterable[Any], tracker: Tracker) -> None:
        self._tracker = tracker
        super().__init__([tracker.track(value) for value in values])

    def append(self, value: Any) -> None:
        """Add an item at the end."""
        super().append(value)
        self._added((value,))

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Add an item before another one."""
        super().insert(index, value)
        self._added((value,))

    def extend(self, values: Iterable[Any]) -> None:
        """Add items at the end."""
        added = list(values)
        super().extend(added)
        self._added(added)

    def __iadd__(self, values: Iterable[Any]) -> "TrackedList":  # type: ignore[misc]
        self.extend(values)
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        values = list(value) if isinstance(index, slice) else value
        super().__setitem__(index, values)
        self._added(values if isinstance(index, slice) else (values,))

    def __delitem__(self, index: Any) -> None:
        removed = self[index]
        super().__delitem__(index)
        self._removed(removed if isinstance(index, slice) else (removed,))

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Remove an item and return it."""
        value = super().pop(index)
        self._removed((value,))
        return value

    def remove(self, value: Any) -> None:
        """Remove the first item that is equal to a value."""
        del self[self.index(value)]

    def clear(self) -> None:
        """Remove all items."""
        del self[:]


class TrackedDict(_Tracked, dict[Any, Any]):
    """A dict in an attribute, whose values are parts of the object.

    Args:
        values: The items.
        tracker: That of the object.
    """

    def __init__(self, values: Mapping[Any, Any], tracker: Tracker | None = None) -> None:
        self._tracker = tracker
        if tracker is not None:
            values = {key: tracker.track(value) for key, value in values.items()}
        super().__init__(values)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._added((value,))

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set items."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, values: Any) -> "TrackedDict":  # type: ignore[misc]
        self.update(values)
        return self

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return an item; set it first if it is absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove an item and return its value."""
        value = super().pop(key, *default)
        self._removed((value,))
        return value
