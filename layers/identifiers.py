"""Turns what users write for an initializer, a regularizer, a loss and so on into the thing itself.

A name, a class, a function or the thing itself will do for all of them.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from mirrored._naming import snake_case

_Thing = TypeVar("_Thing")
_Class = TypeVar("_Class", bound=Callable[[], Any])


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


class Configured:
    """What keeps its arguments in attributes of the same names, and can be made of these again."""

    _arguments: ClassVar[str] = ""  # Their names, between spaces.

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name."""
        return {name: getattr(self, name) for name in self._arguments.split()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return one that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
        """
        return cls(**config)


def configured(identifier: Any, names: Mapping[str, Callable[[], _Thing]]) -> _Thing | None:
    """Return what ``{"class_name": ..., "config": ...}`` makes; None: it is no such dict.

    Args:
        identifier: What a user gave.
        names: What makes each thing without arguments, by name.
    """
    if not isinstance(identifier, dict) or identifier.get("class_name") not in names:
        return None
    kind: Any = type(names[identifier["class_name"]]())
    made: _Thing = kind.from_config(identifier.get("config", {}))
    return made


def by_name(classes: Iterable[tuple[_Class, tuple[str, ...]]]) -> dict[str, _Class]:
    """Return classes by their names, by these in snake case, and by further ones of each."""
    named: dict[str, _Class] = {}
    for each, more in classes:
        own: str = getattr(each, "__name__", "")
        named |= dict.fromkeys((own, snake_case(own), *more), each)
    return named


def spelt(names: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return names of classes by these, by these in snake case, and by further ones of each.

    Args:
        names: The further ones by each class's name.
    """
    return {each: name for name, more in names.items() for each in (name, snake_case(name), *more)}


def late_makers(module: str, names: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    """Return by the same names what makes one of the class that each stands for.

    Args:
        module: The name of the module that has the classes, and loads some when they are asked for.
        names: As `spelt` returns them.
    """

    def make(name: str) -> Any:
        return getattr(sys.modules[module], name)()

    return {each: functools.partial(make, name) for each, name in names.items()}


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
