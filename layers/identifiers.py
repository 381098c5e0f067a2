"""Turns what users write for an initializer, a regularizer or an activation into the thing itself.

All three accept a name, a class or a callable, and refuse anything else in the same words.
"""

from collections.abc import Callable, Mapping
from typing import Any


def resolve(
    kind: str, identifier: object, names: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """Return the callable that ``identifier`` stands for.

    Raises:
        ValueError: ``identifier`` is neither; the names there are follow.
    """
    if isinstance(identifier, str) and identifier in names:
        return names[identifier]
    if callable(identifier):
        return identifier
    raise ValueError(
        f"Could not interpret {kind} identifier: {identifier}. Pass a callable or one of these "
        f"names: {', '.join(sorted(names))}."
    )
