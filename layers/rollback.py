"""Undoes a build that fails half way, so that the layers are as they were before.

A weight that does not fit in memory must leave none of those behind that were made before it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mirrored.layers.weights import WeightOwner


@contextmanager
def undone_on_failure(root: WeightOwner) -> Iterator[None]:
    """Within this context, an exception leaves ``root`` and what it holds as they are now.

    That is, their attributes and what is in lists and dicts among these. What is built already
    does not change by building, so it is left alone.

    Args:
        root: The layer that is about to be built.

    Example:
        >>> import mirrored as mr
        >>> layer = mr.layers.Dense(3)
        >>> try:
        ...     with undone_on_failure(layer):
        ...         layer.build((None, 2))
        ...         raise MemoryError
        ... except MemoryError:
        ...     layer.built, layer.weights
        (False, [])
    """
    before = [(owner, _copied(vars(owner))) for owner in root._walk() if not owner.built]
    try:
        yield
    except BaseException:
        for owner, attributes in before:
            vars(owner).clear()
            for name, (value, content) in attributes.items():
                if isinstance(value, list):
                    value[:] = content
                elif isinstance(value, dict):
                    value.clear()
                    value.update(content)
                vars(owner)[name] = value
        raise


def _copied(attributes: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the attributes, each with a copy of what is in it if it is a list or a dict."""
    return {
        name: (value, value.copy() if isinstance(value, list | dict) else None)
        for name, value in attributes.items()
    }
