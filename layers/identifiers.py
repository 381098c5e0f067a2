"""Turns what users write for an initializer, a regularizer, a loss and so on into the thing itself.

A name, a class, a function or the thing itself will do for all of them.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from mirrored._naming import snake_case
from mirrored.serialization.constructor_arguments import deserialized

_Thing = TypeVar("_Thing")


def resolve(kind: str, identifier: Any, names: Mapping[str, Any]) -> Any:
    """Return the callable that ``identifier`` is, names or describes; of a class one is made.

    Args:
        kind: What the error calls it.
        identifier: What a user gave.
        names: Classes and functions, by all their names.

    Raises:
        ValueError: It is, names and describes none; the names there are follow.
    """
    resolved = identifier
    if isinstance(identifier, dict):
        resolved = deserialized(identifier, names)
    elif isinstance(identifier, str) and identifier in names:
        resolved = names[identifier]
    if callable(resolved):
        return resolved() if inspect.isclass(resolved) else resolved
    raise ValueError(
        f"Could not interpret {kind} identifier: {identifier}. Pass a callable or one of these "
        f"names: {', '.join(sorted(names))}."
    )


def spelt(names: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return names of classes by these, by these in snake case, and by further ones of each.

    Args:
        names: The further ones by each class's name.
    """
    return {form: name for name, more in names.items() for form in (name, snake_case(name), *more)}


def find(
    plural: str,
    identifier: Any,
    kind: type[_Thing],
    names: Mapping[str, Callable[[], _Thing]],
    of_function: Callable[[Any], _Thing],
    further: Iterable[str] = (),
) -> _Thing:
    """Return the loss, or the metric, that ``identifier`` is, names or makes.

    Args:
        plural: What errors call all of them.
        identifier: What a user gave.
        kind: The class of what is returned.
        names: What makes each, by name.
        of_function: From a user's function to what it makes.
        further: Names that the caller knows.

    Raises:
        ValueError: It is, names and makes none.
    """
    if isinstance(identifier, kind):
        return identifier
    if isinstance(identifier, str) and identifier in names:
        return names[identifier]()
    if inspect.isclass(identifier):
        if issubclass(identifier, kind):
            return identifier()
    elif callable(identifier):
        return of_function(identifier)
    noun = kind.__name__
    raise ValueError(
        f"Could not interpret {noun.lower()} identifier: {identifier}. The {plural} there are: "
        f"{', '.join(sorted({*names, *further}))}; or pass a `{noun}` or a function."
    )
