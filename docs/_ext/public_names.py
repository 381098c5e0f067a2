"""Collects the public names of the library, and says where the reference describes each.

An object with several names is described once: in the module with the fewest dots, in `keras` only
if no other module has it. All other names lead there.
"""

import importlib
import inspect
import re
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import mirrored
from mirrored._absent import _homes as tables  # The modules that have a table of public names.

# Constants, types and messages have no docstring of their own.
CONSTANTS = {
    "AUTOTUNE": "For `num_parallel_calls` and `prefetch`: the library chooses.",
    "AUTO_REUSE": "For `variable_scope(reuse=)`: create variables that are missing.",
    "Activation": "The type of an activation: a function from a tensor to a tensor.",
    "BytesList": "A list of bytes in a `Feature` (extra `tfrecords`).",
    "Example": "A record of features, as TFRecord files contain them (extra `tfrecords`).",
    "Feature": "One list of bytes, floats or integers (extra `tfrecords`).",
    "Features": "The features of an `Example`, by name (extra `tfrecords`).",
    "Filling": "The type of an initializer: a function from a shape to a tensor.",
    "FloatList": "A list of floats in a `Feature` (extra `tfrecords`).",
    "INFINITE_CARDINALITY": "The cardinality of a dataset without end.",
    "Int64List": "A list of integers in a `Feature` (extra `tfrecords`).",
    "Penalty": "The type of a regularizer: a function from a weight to a scalar tensor.",
    "Projection": "The type of a constraint: a function from a weight to the nearest allowed one.",
    "UNKNOWN_CARDINALITY": "The cardinality of a dataset whose length is unknown.",
    "VERSION": "The version of the library.",
    "bfloat16": "The dtype of 16-bit floats with the exponent of float32 (extra `bfloat16`).",
    "e": "Euler's number.",
    "inf": "Infinity.",
    "newaxis": "None: in an index, a new axis of size 1.",
    "pi": "The ratio of a circle's circumference to its diameter.",
}
GRAPHS = "mirrored.compat.v1"  # TensorFlow 1's names: no other module has an attribute for it.


class Undocumented(Exception):
    """Public names are missing or have no docstring."""


class Entry(NamedTuple):
    """A public name.

    Attributes:
        name: The whole name, as in "mirrored.layers.Dense".
        value: The object.
        home: The name that the object is described under.
    """

    name: str
    value: Any
    home: str

    @property
    def short(self) -> str:
        """Return the name without its module."""
        return self.name.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """Return the first paragraph of the docstring."""
        return summary_of(documentation(self.name, self.value))


def summary_of(text: str) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def has_docstring(value: Any) -> bool:
    """Return whether objects like this one have a docstring: classes and functions."""
    return isinstance(value, type) or (
        callable(value) and type(value).__module__ not in ("collections.abc", "typing")
    )


def documentation(name: str, value: Any) -> str:
    """Return the docstring of a public object, which is empty if there is none."""
    text = None
    if type(value).__module__ == "typing":
        text = described_in(mirrored.types, name.rpartition(".")[2])
    elif has_docstring(value):
        text = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    elif type(value).__module__ == "numpy.dtypes":
        text = f"NumPy's dtype `{value}`."
    return inspect.cleandoc(text or CONSTANTS.get(name.rpartition(".")[2], ""))


def described_in(module: ModuleType, name: str) -> str | None:
    """Return what the list in a module's docstring says of a name."""
    pattern = rf"^- `{name}\b[^`]*`: (.*?)(?=\n- |\n\n)"
    match = re.search(pattern, module.__doc__ or "", re.DOTALL | re.MULTILINE)
    return match and match[1].replace("\n  ", "\n")


def identity(value: Any) -> tuple[bool, int]:
    """Return what an object shares with others that are described with it.

    TensorFlow 1's modules have functions of their own that wrap the same operation.
    """
    is_wrapper = has_docstring(value) and hasattr(value, "__wrapped__")
    return is_wrapper, id(value.__wrapped__ if is_wrapper else value)


def public_attributes(module: ModuleType) -> dict[str, Any]:
    """Return what a module lists as public, or else what it defines, by name."""
    if hasattr(module, "__all__"):
        names = sorted({*dir(module), *module.__all__})
        return {name: getattr(module, name) for name in names if name[0] != "_"}
    return {
        name: value
        for name, value in sorted(vars(module).items())
        if name[0] != "_" and getattr(value, "__module__", "") == module.__name__
    }


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module, without those of modules."""
    attributes = public_attributes(module).items()
    return [name for name, value in attributes if not isinstance(value, ModuleType)]


def rank(module: str) -> tuple[bool, int, bool, str]:
    """Return where a module is in the order in which objects choose their home."""
    return module.startswith(GRAPHS), module.count("."), "keras" in module, module


class PublicNames:
    """All public names, by module."""

    @cached_property
    def modules(self) -> dict[str, ModuleType]:
        """Return the public modules, in the order of the reference."""
        modules: dict[str, ModuleType] = {}
        waiting: list[ModuleType] = [mirrored, importlib.import_module(GRAPHS)]
        while waiting:
            module = waiting.pop()
            if module.__name__ not in modules:
                modules[module.__name__] = module
                members = public_attributes(module).values()
                waiting += [member for member in members if isinstance(member, ModuleType)]
        return dict(sorted(modules.items()))

    @cached_property
    def other_names(self) -> dict[str, list[str]]:
        """Return further names of modules, as `mirrored.losses` of `mirrored.keras.losses`."""
        names: dict[str, list[str]] = {}
        for owner, module in self.modules.items():
            for name, value in public_attributes(module).items():
                if isinstance(value, ModuleType) and value.__name__ != f"{owner}.{name}":
                    names.setdefault(value.__name__, []).append(f"{owner}.{name}")
        return names

    @cached_property
    def homes(self) -> dict[tuple[bool, int], str]:
        """Return the names that objects are described under, by the objects' identities."""
        homes: dict[tuple[bool, int], str] = {}
        for module in sorted(self.modules, key=rank):
            names = names_of(self.modules[module])
            values = {name: getattr(self.modules[module], name) for name in names}
            # An object's own name comes first: `mean_squared_error` before `mse`.
            own = [n for n in names if getattr(values[n], "__name__", None) == n]
            for name in (*own, *names):
                if has_docstring(values[name]):
                    homes.setdefault(identity(values[name]), f"{module}.{name}")
        return homes

    @cached_property
    def constants(self) -> dict[str, str]:
        """Return the names that constants are described under, by their last part."""
        homes: dict[str, str] = {}
        for module in sorted(self.modules, key=rank):
            for name in names_of(self.modules[module]):
                if not has_docstring(getattr(self.modules[module], name)):
                    homes.setdefault(name, f"{module}.{name}")
        return homes

    def home(self, name: str, value: Any) -> str:
        """Return the name that the object with a public name is described under."""
        if has_docstring(value):
            return self.homes.get(identity(value), "")
        return self.constants.get(name.rpartition(".")[2], "")

    def entries(self, module: str) -> list[Entry]:
        """Return the public names of a module."""
        values = {
            f"{module}.{name}": getattr(self.modules[module], name)
            for name in names_of(self.modules[module])
        }
        return [Entry(name, value, self.home(name, value)) for name, value in values.items()]

    @cached_property
    def all(self) -> dict[str, Entry]:
        """Return all names."""
        return {entry.name: entry for module in self.modules for entry in self.entries(module)}

    @cached_property
    def canonical(self) -> dict[str, str]:
        """Return the names that objects are described under, by where they are defined."""
        return {
            f"{entry.value.__module__}.{entry.value.__qualname__}": entry.home
            for entry in self.all.values()
            if isinstance(entry.value, type)
        }

    def members(self, cls: type) -> dict[str, Any]:
        """Return the members that a class has beside those of its public base classes."""
        inherited = {name for base in self.bases(cls) for name in dir(base)}
        members: dict[str, Any] = {}
        for base in cls.__mro__:
            if str(base.__module__).partition(".")[0] == "mirrored":
                for name, member in vars(base).items():
                    if name[0] != "_" and name not in inherited and is_member(member):
                        members.setdefault(name, member)
        return members

    def bases(self, cls: type) -> list[type]:
        """Return the nearest public base class of a class, if any."""
        public = [
            base for base in cls.__mro__[1:] if identity(base) in self.homes and base is not object
        ]
        return public[:1]

    def check(self) -> None:
        """Raise Undocumented for every name that the reference cannot describe."""
        wrong = [f"{name} has a table, and no page" for name in {*tables} - {*self.modules}]
        for entry in self.all.values():
            if not documentation(entry.name, entry.value):
                wrong.append(f"{entry.name} has no docstring")
        for entry in self.all.values():
            if isinstance(entry.value, type) and entry.name == entry.home:
                for name, member in self.members(entry.value).items():
                    if not inspect.getdoc(unwrapped(member)):
                        wrong.append(f"{entry.name}.{name} has no docstring")
        if wrong:
            raise Undocumented("\n".join(sorted(wrong)))


def unwrapped(member: Any) -> Any:
    """Return the function of a static method, a class method or a property."""
    return getattr(member, "__func__", member)


def is_member(member: Any) -> bool:
    """Return whether an attribute of a class is a method or a property."""
    kinds = (staticmethod, classmethod, property)
    return isinstance(member, kinds) or inspect.isfunction(member)
