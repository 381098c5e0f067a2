"""Modules: objects that find the variables in their attributes, and in nested modules.

A layer has a life that Keras gives it; a module is any object whose variables are to be found.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mirrored import _nest
from mirrored._arguments import explained
from mirrored._naming import name_scope
from mirrored.variables.tracking import Watched
from mirrored.variables.variable import Variable

_Kind = TypeVar("_Kind")
_Method = TypeVar("_Method", bound=Callable[..., Any])


@explained
class Module(Watched):
    """An object with a name whose variables are found in its attributes.

    So are those of modules in them, and both also in lists, tuples and dicts at any depth. They
    come in the order of the attributes' names, a module's own before those of modules in it, each
    once. What a layer or a model in an attribute has is its own business, as in TensorFlow: add
    `layer.trainable_variables`. A subclass defines `__init__`, `__call__` or whatever it needs.

    Args:
        name: What it is called, a valid name of Python's; None: its class's, in snake case.

    Raises:
        ValueError: The name is none.
        TypeError: It is no string.

    Example:
        >>> import mirrored as mr
        >>> class Line(mr.Module):
        ...     def __init__(self, slope):
        ...         super().__init__()
        ...         self.slope = mr.Variable(slope, name="slope")
        ...         self.offset = mr.Variable(0.0, trainable=False, name="offset")
        ...
        ...     def __call__(self, x):
        ...         return x * self.slope + self.offset
        >>> line = Line(2.0)
        >>> float(line(3.0))
        6.0
        >>> [each.name for each in line.variables]
        ['offset:0', 'slope:0']
        >>> [each.name for each in line.trainable_variables]
        ['slope:0']
    """

    def __init__(self, name: str | None = None) -> None:
        name = _snake_case(type(self).__name__) if name is None else name
        if not re.fullmatch(r"[a-zA-Z_]\w*", name, re.ASCII):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid class name)."
            )
        self._name = name
        with name_scope(name) as whole:
            self._name_scope = name_scope(whole)

    @property
    def name(self) -> str:
        """The name: the constructor's argument, or the name of the class."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """A context in which the names of variables begin with the module's.

        And with those of the scopes in which that was made.
        """
        return self._name_scope

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the module and of modules in it, each once."""
        return tuple(_members(self, Variable, set()))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The trainable ones among `variables`."""
        return tuple(member for member in _members(self, Variable, set()) if member.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The ones among `variables` that are not trainable."""
        return tuple(member for member in _members(self, Variable, set()) if not member.trainable)

    @property
    def submodules(self) -> "tuple[Module, ...]":
        """The modules in this one, and those in them, each once."""
        return tuple(_members(self, Module, set()))

    @classmethod
    def with_name_scope(cls, method: _Method) -> _Method:
        """Return a method that runs within the module's `name_scope`; a decorator.

        Args:
            method: The method.

        Example:
            >>> import mirrored as mr
            >>> class Scale(mr.Module):
            ...     @mr.Module.with_name_scope
            ...     def __call__(self, x):
            ...         if not hasattr(self, "factor"):
            ...             self.factor = mr.Variable(3.0, name="factor")
            ...         return x * self.factor
            >>> scale = Scale()
            >>> float(scale(2.0)), scale.factor.name
            (6.0, 'scale/factor:0')
        """

        @functools.wraps(method)
        def within(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return within  # type: ignore[return-value]  # It is called as the method is.


def held_by(module: Module) -> Iterator[Any]:
    """Yield the values in a module's attributes, ordered by name.

    Lists, tuples and dicts are looked into; modules that it holds are not.

    Args:
        module: The module.
    """
    attributes = vars(module)
    for name in sorted(attributes):
        try:
            leaves = _nest.flatten(attributes[name])
        except Exception as error:
            error.add_note(f"Raised by the attribute {name!r} of {module!r}.")
            raise
        yield from leaves


def _members(module: Module, kind: type[_Kind], seen: set[int]) -> Iterator[_Kind]:
    """Yield the objects of a kind in a module and then in its submodules, every one once."""
    seen.add(id(module))
    inner: list[Module] = []
    wanted = (kind, Module)
    for member in held_by(module):
        if isinstance(member, wanted) and id(member) not in seen:
            seen.add(id(member))
            if isinstance(member, kind):
                yield member
            if isinstance(member, Module):
                inner.append(member)
    for member in inner:
        yield from _members(member, kind, seen)


def _snake_case(name: str) -> str:
    """Return a class's name in snake case, by TensorFlow's rules: `conv2_d`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()
