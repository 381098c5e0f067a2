"""Lists of public names: an import loads nothing, and a name is loaded at its first use.

A module of public names has one table, which says where each name is defined. Type checkers read
the stub next to it, which `python tests/support/stubs.py` writes from the table.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Self, TypeVar

_Value = TypeVar("_Value")

LISTS: "dict[str, LateNames]" = {}  # Those of the modules that are loaded, by the modules' names.


class LateNames:
    """The public names of a module that are not loaded yet.

    Args:
        module: The module's name.
        homes: The modules that define the names, each with its names, separated by spaces.
            "new=old" is the name "old" of that module, under the name "new". A name of the module
            itself is that of a module inside it. "*" stands for all public names of that module,
            which is loaded at once, except for those with a "-" before them.
    """

    def __init__(self, module: str, homes: Mapping[str, str]) -> None:
        self._module = module
        self._homes = {
            new: (home, old or new)
            for home, names in homes.items()
            for new, _, old in (name.partition("=") for name in _listed(home, names.split()))
        }
        LISTS[module] = self

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def home(self, name: str) -> tuple[str, str]:
        """Return the module that defines one of the names, and the name there."""
        return self._homes[name]

    def load(self, name: str) -> Any:
        """Load one of the names, set it in the module, and return it.

        Threads that ask at the same time get the same: Python loads a module once.
        """
        home, old = self._homes[name]
        inside = home == self._module
        value = import_module(f"{home}.{old}") if inside else getattr(import_module(home), old)
        # What somebody put there meanwhile, such as a test's own, stays.
        return vars(sys.modules[self._module]).setdefault(name, value)


def _listed(home: str, names: list[str]) -> list[str]:
    """Return the names in a row of a table, with those that "*" stands for."""
    if "*" not in names:
        return names
    return [name for name in import_module(home).__all__ if f"-{name}" not in names]


def late_module(
    module: str, homes: Mapping[str, str], absent: Callable[[str], str] | None = None
) -> None:
    """Give a module names that are loaded at their first use.

    Args:
        module: The module's name.
        homes: As `LateNames` has it.
        absent: Returns the error text for a name that the module does not have; None: Python's
            text for all.
    """
    there = vars(sys.modules[module])
    late = LateNames(module, homes)

    def load(name: str) -> Any:
        if name in late:
            return late.load(name)
        text = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(absent(name) if absent else text)

    # Type checkers do not follow this: they would take every name for one that exists.
    there.setdefault("__all__", sorted(late))
    there.update(__dir__=lambda: sorted({*there, *late}), __getattr__=load)


class FilledByFiles(dict[str, _Value]):
    """A table whose entries are registered by the files of a package.

    The files are all loaded where somebody goes over the table, or asks it for what is not there.

    Args:
        package: The package's name.
    """

    def __init__(self, package: str) -> None:
        super().__init__()
        self._package = package

    def __missing__(self, name: str) -> _Value:
        if name in self:
            return self[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super(FilledByFiles, self._filled()).__contains__(name)

    def __iter__(self) -> Iterator[str]:
        return super(FilledByFiles, self._filled()).__iter__()

    def __len__(self) -> int:
        return super(FilledByFiles, self._filled()).__len__()

    # (A type of their own, which nobody can name, is what these return.)

    def keys(self) -> Any:
        """Return all names."""
        return super(FilledByFiles, self._filled()).keys()

    def values(self) -> Any:
        """Return all that was entered."""
        return super(FilledByFiles, self._filled()).values()

    def items(self) -> Any:
        """Return all that was entered, with its name."""
        return super(FilledByFiles, self._filled()).items()

    def _filled(self) -> Self:
        from pkgutil import iter_modules  # Needed here only.

        for file in iter_modules(sys.modules[self._package].__path__):
            import_module(f"{self._package}.{file.name}")
        return self
