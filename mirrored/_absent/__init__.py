"""What a name leads to that TensorFlow has and this library has not: one sentence that says so.

The names and the advice stand in `names.toml`, which is read when the first such name is met: an
import costs nothing for it, and the names that are there cost next to nothing.
"""

import builtins
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.machinery import PathFinder
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn, TypeVar

from mirrored._late import LateNames
from mirrored._tracebacks import shorten, shortened

_Class = TypeVar("_Class", bound=type)

_homes: dict[str, str] = {}  # The names of public modules, with those of TensorFlow's.
# How much of two names is the same, of 1, where one is taken for a misspelling of the other.
_ALIKE, _VERY_ALIKE = 0.7, 0.85


class Row(NamedTuple):
    """One piece of advice.

    Attributes:
        homes: The modules or classes of TensorFlow's that it is about.
        names: The names in them.
        advice: What to use instead.
    """

    homes: list[str]
    names: list[str]
    advice: str


class Tables(NamedTuple):
    """What `names.toml` says.

    Attributes:
        absent: The advice on names of TensorFlow's.
        older: The advice on names that it has no more, or never had.
        general: What to do about every other name of a module or class.
        modules: All names of TensorFlow's modules.
        classes: All attributes of its classes.
    """

    absent: list[Row]
    older: list[Row]
    general: dict[str, str]
    modules: dict[str, list[str]]
    classes: dict[str, list[str]]


@functools.cache
def tables() -> Tables:
    """Return the tables of `names.toml`."""
    import tomllib  # Needed where something is wrong, and here only, as is pathlib.
    from pathlib import Path

    text = Path(__file__).with_name("names.toml").read_text("utf-8")

    table = tomllib.loads(text)
    absent, older = (
        [Row(homes.split(), names.split(), advice) for homes, names, advice in table[kind]]
        for kind in ("absent", "older")
    )
    modules, classes = (
        {home: names.split() for home, names in table[kind].items()}
        for kind in ("modules", "classes")
    )
    return Tables(absent, older, table["general"], modules, classes)


@functools.cache
def _advice() -> dict[str, dict[str, str]]:
    """Return the advice on each name, by the module or class that has it in TensorFlow."""
    table = tables()
    known = {**table.modules, **table.classes}
    by_home = {home: dict.fromkeys(names, table.general[home]) for home, names in known.items()}
    for row in (*table.absent, *table.older):
        for home in row.homes:
            by_home[home].update(dict.fromkeys(row.names, row.advice))
    return by_home


def _refusal(home: str, name: str) -> str | None:
    """Return what an error says of a name of TensorFlow's, or None where that has no such name."""
    # Python itself asks for names that begin so, and may do it often.
    advice = None if name.startswith("_") else _advice()[home].get(name)
    return f"mirrored has no `{home}.{name}`: not provided here. {advice}" if advice else None


def public_module(
    tensorflow: str,
    module: str,
    late: Mapping[str, str] | None = None,
    unlisted: Collection[str] = (),
    constants: Collection[str] = (),
    **makers: Callable[[], Any],
) -> None:
    """Let a module show what is public in it, and say of other names what to use instead.

    It shows what its `__all__` lists, and names such as `abs`: `from mirrored import *` leaves them
    out, since they would hide Python's own. Where the module has no `__all__`, it is made of the
    late names, the constants, and the classes and functions that the module defines without a
    leading underscore.

    Args:
        tensorflow: The module's name in TensorFlow, as in "tf.keras.layers".
        module: Its name here.
        late: Names that are loaded when they are first asked for, as `LateNames` has them.
        unlisted: Public names that `dir` leaves out.
        constants: Public names of the module that are no classes or functions.
        **makers: Names that are not shown, and what makes each.

    Example:
        >>> import mirrored as mr
        >>> [name for name in dir(mr.linalg) if not name.startswith("_")][0]
        'adjoint'
        >>> mr.math.igamma
        Traceback (most recent call last):
        AttributeError: mirrored has no `tf.math.igamma`: not provided here. ...
    """
    home = sys.modules[module]
    names = LateNames(module, late or {})
    there = [
        name
        for name, value in vars(home).items()
        if isinstance(value, type | FunctionType)
        and (value.__module__, value.__qualname__) == (module, name)
    ]
    seen = {
        name
        for name in (*there, *names, *constants)
        if name[0] != "_" and not hasattr(builtins, name)
    }
    # pytest rewrites the modules of a package that comes with a plugin, and imports into them what
    # it needs under names such as "@pytest_ar", which no program can write.
    vars(home).setdefault("__all__", sorted(filter(str.isidentifier, seen)))

    def listed() -> list[str]:
        there = vars(home)
        known = (*there, *names)
        others = (name for name in known if name[:2] == "__" or hasattr(builtins, name))
        # A file called `input.py` would be among them.
        shown = (name for name in others if not isinstance(there.get(name), ModuleType))
        return sorted({*there["__all__"], *shown}.difference(unlisted))

    def refuse(name: str) -> Any:
        if name in names:
            return names.load(name)
        if name in makers:
            return makers[name]()
        try:
            # Python asks so for modules of the package that it is about to import.
            own = name[0] == "_" or PathFinder.find_spec(f"{module}.{name}", vars(home)["__path__"])
            text = None if own else _said_of(tensorflow, module, name)
            # Without an object Python adds no "Did you mean", which would name another function.
            text = text or f"module {module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=None)
        except Exception as error:
            shorten(error)
            raise

    # Type checkers do not follow this: they would take every name for one that exists.
    vars(home).update(__dir__=listed, __getattr__=refuse)
    # From a package Python imports names that are not there as modules, and so asks finders.
    vars(home).setdefault("__path__", [])
    _homes[module] = tensorflow


class _AbsentModules:
    """The last finder of imports: its error says what to use instead of an absent name.

    Python asks finders for `import mirrored.name`, and for `from mirrored import name` too where
    the package has no such attribute. There it drops a ModuleNotFoundError about `mirrored.name`,
    so the error is about the package.
    """

    @staticmethod
    @shortened
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Raise ModuleNotFoundError with advice, if there is any; no module is found here.

        Args:
            name: The whole name of the module.
            path: Where its package is.
            target: The module, where it is loaded again.
        """
        package, _, last = name.rpartition(".")
        text = _said_of(_homes[package], package, last) if package in _homes else None
        if text:
            raise ModuleNotFoundError(
                f"cannot import name {last!r} from {package!r}: {text}",
                name=package,
                path=sys.modules[package].__file__,
            )


if not any(type(finder).__name__ == "_AbsentModules" for finder in sys.meta_path):
    sys.meta_path.append(_AbsentModules())


def part_of(whole: str, tensorflow: str, module: str) -> None:
    """Let a module show those names of another one that TensorFlow has in it.

    Args:
        whole: The other module's name here.
        tensorflow: The module's name in TensorFlow, as in "tf.keras.ops.nn".
        module: Its name here.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nn.relu is mr.keras.ops.relu
        True
    """
    there = dir(sys.modules[whole])
    names = [name for name in tables().modules[tensorflow] if name in there]
    public_module(tensorflow, module, {whole: " ".join(names)})


def _said_of(tensorflow: str, module: str, name: str) -> str | None:
    """Return what an error says of a name that a module has not; None: nothing of its own."""
    text = _refusal(tensorflow, name)
    if text is not None:
        return text
    there = dir(sys.modules[module])
    # Of the many that are not there, one that is a little like it is none.
    similar = nearest(name, there), nearest(name, _advice()[tensorflow], alike=_VERY_ALIKE)
    meant = nearest(name, [other for other in similar if other is not None])
    if meant is None:
        return None
    text = f"module {module!r} has no attribute {name!r}. Did you mean: {meant!r}?"
    advice = None if meant in there else _advice()[tensorflow].get(meant)
    return f"{text} It is not provided here. {advice}" if advice else text


def nearest(name: str, names: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Return which of some names another is a misspelling of, or None.

    Args:
        name: What was written.
        names: What there is.
        alike: How much of the two is to be the same, of 1.

    Example:
        >>> nearest("actvation", ["activation", "units"])
        'activation'
    """
    import difflib  # Needed where something is wrong, and here only.

    def likeness(there: str) -> tuple[float, float]:
        # With other capitals or underscores it is the same name, as others write it.
        pairs = [(name.replace("_", "").lower(), there.replace("_", "").lower()), (name, there)]
        plain, exact = (difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)
        return plain, exact

    ranked = [(likeness(other), other) for other in names if not other.startswith("_")]
    (same, _), best = max(ranked, key=lambda pair: pair[0], default=((0.0, 0.0), ""))
    return best if same >= alike else None


class _Refused:
    """An attribute that is not there, in a class whose attributes are read all the time.

    A `__getattr__` would make each of them slower, also where it is never called.
    """

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: str, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise _absent(self._owner, owner, self._name)


def refused_members(tensorflow: str, names: str) -> Callable[[_Class], _Class]:
    """Return a decorator of a class that is used in every step: these names lead to advice.

    Args:
        tensorflow: The class's name in TensorFlow, as in "tf.Tensor".
        names: What it has there and not here.

    Example:
        >>> import mirrored as mr
        >>> mr.constant(1.0).eval()
        Traceback (most recent call last):
        AttributeError: mirrored has no `tf.Tensor.eval`: not provided here. Use `x.numpy()`: ...
    """

    def decorate(cls: _Class) -> _Class:
        for name in names.split():
            setattr(cls, name, _Refused(tensorflow, name))
        setattr(cls, "__dir__", _what_is_there)  # noqa: B010 - not the type's own.
        return cls

    return decorate


def _what_is_there(value: Any) -> list[str]:
    """Return the `dir` of an object, as tab completion shows it: without what is refused."""
    members = {
        name: member
        for base in reversed(type(value).__mro__)
        for name, member in vars(base).items()
    }
    return [name for name in object.__dir__(value) if not isinstance(members.get(name), _Refused)]


def absent_members(tensorflow: str) -> Callable[[_Class], _Class]:
    """Return a decorator of a class: what its objects have in TensorFlow alone leads to advice.

    Args:
        tensorflow: The class's name in TensorFlow, as in "tf.keras.Model".

    Example:
        >>> import mirrored as mr
        >>> mr.data.Dataset.ragged_batch
        Traceback (most recent call last):
        AttributeError: mirrored has no `tf.data.Dataset.ragged_batch`: not provided here. Use ...
    """

    def decorate(cls: _Class) -> _Class:
        # Type checkers do not follow this: they would take every attribute for one that exists.
        setattr(cls, "_in_tensorflow", tensorflow)  # noqa: B010
        # (`hasattr` would find that of the class's own type.)
        if not any("__getattr__" in vars(base) for base in cls.__mro__):
            setattr(cls, "__getattr__", missing_attribute)  # noqa: B010
        return cls

    return decorate


def missing_attribute(value: Any, name: str) -> Any:
    """Raise the AttributeError of an attribute that Python did not find.

    Args:
        value: An object of a class that is decorated with `absent_members`.
        name: The attribute's name.
    """
    if any(name in vars(base) for base in type(value).__mro__):
        # A property raised an AttributeError of its own: it raises that again.
        return object.__getattribute__(value, name)
    raise _absent(type(value)._in_tensorflow, value, name)


class MembersOfClass(type):
    """The type of a class whose own attributes lead to advice too, as in `Dataset.list_files`."""

    def __getattr__(cls, name: str) -> NoReturn:
        raise _absent(vars(cls).get("_in_tensorflow", ""), cls, name)


def _absent(tensorflow: str, value: Any, name: str) -> AttributeError:
    """Return the error of an attribute that a value has not."""
    # A new class has no name in TensorFlow until it is decorated.
    text = _refusal(tensorflow, name) if tensorflow else None
    if text is not None:
        # Without an object Python does not add "Did you mean", which would name another one.
        return AttributeError(text, name=name, obj=None)
    kind = f"type object {value.__name__!r}" if isinstance(value, type) else None
    whose = kind or f"{type(value).__name__!r} object"
    return AttributeError(f"{whose} has no attribute {name!r}", name=name, obj=value)
