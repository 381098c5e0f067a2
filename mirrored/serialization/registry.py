"""A registry per kind of object: what names, classes, functions and configurations stand for."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from mirrored._naming import snake_case
from mirrored.serialization.constructor_arguments import deserialized

_Thing = TypeVar("_Thing")


def spelt(names: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return names of classes by these, by these in snake case, and by further ones of each.

    Args:
        names: The further ones by each class's name.
    """
    return {form: name for name, more in names.items() for form in (name, snake_case(name), *more)}


def meant(identifier: Any, names: Iterable[str]) -> str:
    """Return a sentence that names what a text is a misspelling of, or nothing.

    Args:
        identifier: What a user gave.
        names: What there is.
    """
    from mirrored._absent import nearest  # Needed where something is wrong, and here only.

    name = nearest(identifier, names) if isinstance(identifier, str) else None
    return f" Did you mean {name!r}?" if name else ""


class Registry(Mapping[str, Any], Generic[_Thing]):
    """Classes and functions of one kind by all their names; one is loaded when somebody asks.

    Args:
        noun: What errors call one of them.
        module: The name of the module that has them.
        names: The name in that module for each of their names.
    """

    def __init__(self, noun: str, module: str, names: Mapping[str, str]) -> None:
        self._noun = noun
        self._module = module
        self._names = names

    def __getitem__(self, name: str) -> Any:
        return getattr(import_module(self._module), self._names[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def resolve(self, identifier: Any) -> _Thing:
        """Return the callable that `identifier` is, names or describes; of a class one is made.

        Args:
            identifier: What a user gave.

        Raises:
            ValueError: It is, names and describes none; the names there are follow.
        """
        resolved: Any = identifier
        if isinstance(identifier, dict):
            resolved = self.deserialize(identifier)
        elif isinstance(identifier, str) and identifier in self:
            resolved = self[identifier]
        if callable(resolved):
            return cast(_Thing, resolved() if inspect.isclass(resolved) else resolved)
        raise ValueError(
            f"Could not interpret {self._noun} identifier: {identifier}.{meant(identifier, self)} "
            f"Pass a callable or one of these names: {', '.join(sorted(self))}."
        )

    def create(
        self,
        identifier: Any,
        kind: type[_Thing],
        of_function: Callable[[Any], _Thing],
        further: Iterable[str] = (),
    ) -> _Thing:
        """Return the object of a class that `identifier` is, names or makes.

        Args:
            identifier: What a user gave.
            kind: The class of what is returned.
            of_function: From a user's function to what it makes.
            further: Names that the caller knows.

        Raises:
            ValueError: It is, names and makes none.
        """
        if isinstance(identifier, kind):
            return identifier
        if isinstance(identifier, str) and identifier in self:
            return cast(_Thing, self[identifier]())
        if inspect.isclass(identifier):
            if issubclass(identifier, kind):
                return identifier()
        elif callable(identifier):
            return of_function(identifier)
        name, known = kind.__name__, sorted({*self, *further})
        raise ValueError(
            f"Could not interpret {name.lower()} identifier: {identifier}."
            f"{meant(identifier, known)} Known {self._noun}: {', '.join(known)}; or pass a "
            f"`{name}` or a function."
        )

    def deserialize(self, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """Return what a configuration, or a name, stands for among things of this kind.

        Args:
            config: The configuration.
            custom_objects: Further classes and functions, by name.
        """
        return deserialized(config, self, custom_objects)
