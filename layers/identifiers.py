"""Turns what users write for an initializer, a regularizer, a loss and so on into the thing itself.

A name, a class, a function or the thing itself will do for all of them.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mirrored._naming import snake_case

_Thing = TypeVar("_Thing")


class LateClasses(Mapping[str, Any]):
    """Classes by all their names; those that their module loads late are loaded when one asks.

    Args:
        module: The name of the module that has the classes.
        names: The name of the class that each name stands for, as `spelt` returns them.
    """

    def __init__(self, module: str, names: Mapping[str, str]) -> None:
        self._module = module
        self._names = names

    def __getitem__(self, name: str) -> Any:
        return getattr(sys.modules[self._module], self._names[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def resolve(kind: str, identifier: Any, names: Mapping[str, Any]) -> Any:
    """Return the callable that ``identifier`` is, names or describes; of a class one is made.

    Args:
        kind: What the error calls it.
        identifier: What a user gave.
        names: Classes and functions, by all their names.

    Raises:
        ValueError: It is, names and describes none; the names there are follow.
    """
    found = identifier
    if isinstance(identifier, dict):
        found = deserialized(identifier, names)
    elif isinstance(identifier, str) and identifier in names:
        found = names[identifier]
    if callable(found):
        return found() if inspect.isclass(found) else found
    raise ValueError(
        f"Could not interpret {kind} identifier: {identifier}. Pass a callable or one of these "
        f"names: {', '.join(sorted(names))}."
    )


def deserialized(
    config: Any, names: Mapping[str, Any] | None, custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Return what a configuration, or a name, stands for among things of one kind.

    Args:
        config: The configuration: with the name of a class, which may be one of Keras' other names.
        names: Classes and functions by all their names; None: those of every kind.
        custom_objects: Further ones, by name.

    Returns:
        The thing; a name that nothing has is returned as it is.
    """
    from mirrored.serialization.reading import deserialize_keras_object  # Few programs need it.

    return deserialize_keras_object(config, custom_objects, module_objects=names)


def serialized(obj: Any, *, is_activation: bool = False) -> Any:
    """Return the configuration of an object.

    Args:
        obj: The object.
        is_activation: Whether it is a function that may be an activation, which is its name.
    """
    from mirrored.serialization import writing  # Few programs need it.

    return (writing.serialize_activation if is_activation else writing.serialize_keras_object)(obj)


def spelt(names: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return names of classes by these, by these in snake case, and by further ones of each.

    Args:
        names: The further ones by each class's name.
    """
    return {each: name for name, more in names.items() for each in (name, snake_case(name), *more)}


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
