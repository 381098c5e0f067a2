"""Finds the layers and variables that a layer holds in its attributes.

It looks when asked rather than when they are assigned, so a list may grow at any time.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def find(values: Iterable[object], kind: type[T]) -> list[T]:
    """Return the instances of ``kind`` among ``values``, each once, in order.

    Args:
        values: What to look through. Lists, tuples and the values of dicts are looked into at
            any depth; other objects are not.
        kind: The class to look for.

    Raises:
        ValueError: One of them is in a set.

    Example:
        >>> find([1, "a", [2, {"x": (3, 1)}]], int)
        [1, 2, 3]
    """
    unique: dict[int, T] = {}
    for item in _inside(values, kind, set()):
        unique.setdefault(id(item), item)
    return list(unique.values())


def _inside(values: Iterable[object], kind: type[T], open_containers: set[int]) -> Iterator[T]:
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, list | tuple | dict) and id(value) not in open_containers:
            open_containers.add(id(value))  # A container may hold itself.
            inner = value.values() if isinstance(value, dict) else value
            yield from _inside(inner, kind, open_containers)
        elif isinstance(value, set | frozenset):
            for item in value:
                if isinstance(item, kind):
                    raise ValueError(
                        "A set has no order by which weights could be listed and saved. Received: "
                        f"a set that holds {item!r}. Use a list or a dict."
                    )
