"""The classes and functions that configurations name: public ones, registered ones and scopes.

Registrations hold for all threads, a scope for the code within it. Public names are looked up when
a configuration is written or read, in public modules that are above this one.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import Any, Self, TypeVar

from mirrored._arguments import explained, explained_only
from mirrored._contexts import Within

_Object = TypeVar("_Object")

_registered: dict[str, Any] = {}
_names: dict[Any, str] = {}
_scope: ContextVar[Mapping[str, Any]] = ContextVar(
    "mirrored_custom_objects", default=MappingProxyType({})
)
_safe_mode: ContextVar[bool | None] = ContextVar("mirrored_safe_mode", default=None)


@explained
class CustomObjectScope:
    """The context in which configurations may name further classes and functions.

    Args:
        custom_objects: They, by their names; None: none. Those of a scope around it do not count.

    Example:
        >>> import mirrored as mr
        >>> class Doubled(mr.layers.Dense):
        ...     def call(self, inputs):
        ...         return 2.0 * super().call(inputs)
        >>> config = mr.keras.layers.serialize(Doubled(3))
        >>> with mr.keras.utils.custom_object_scope({"Doubled": Doubled}):
        ...     layer = mr.keras.layers.deserialize(config)
        >>> type(layer).__name__, layer.units
        ('Doubled', 3)
    """

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        self.custom_objects = dict(custom_objects or {})
        self._tokens: list[Token[Mapping[str, Any]]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_scope.set(dict(self.custom_objects)))
        return self

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._tokens.pop())


custom_object_scope = CustomObjectScope


def scope_of(classes: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return a context like `CustomObjectScope`, of a dict in which more may be entered later."""
    return Within(_scope, classes)


def get_custom_objects() -> dict[str, Any]:
    """Return what is registered, by name: the dict itself, which may be changed.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.get_custom_objects()["halved"] = lambda x: x / 2.0
        >>> mr.keras.utils.deserialize_keras_object("halved")(1.0)
        0.5
        >>> del mr.keras.utils.get_custom_objects()["halved"]
    """
    return _registered


@explained_only
def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[_Object], _Object]:
    """Return a decorator by which configurations may name a class or a function.

    Args:
        package: What its name begins with, and ">" after it.
        name: The rest of its name; None: its own.

    Example:
        >>> import mirrored as mr
        >>> @mr.keras.utils.register_keras_serializable("mine")
        ... def halved(x):
        ...     return x / 2.0
        >>> mr.layers.Dense(2, activation=halved).get_config()["activation"]["config"]
        'mine>halved'
        >>> del mr.keras.utils.get_custom_objects()["mine>halved"]
    """

    def register(thing: Any) -> Any:
        known = f"{package}>{thing.__name__ if name is None else name}"
        if inspect.isclass(thing) and not hasattr(thing, "get_config"):
            raise ValueError("Cannot register a class that does not have a get_config() method.")
        _registered[known] = thing
        _names[thing] = known
        return thing

    return register


def get_registered_name(obj: Any) -> str:
    """Return the name under which a class or function is registered, or else its own.

    Args:
        obj: The class or function.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.get_registered_name(mr.layers.Dense)
        'Dense'
    """
    return _names.get(obj) or str(obj.__name__)


@explained_only
def get_registered_object(
    name: str,
    custom_objects: Mapping[str, Any] | None = None,
    module_objects: Mapping[str, Any] | None = None,
) -> Any:
    """Return what a name stands for: in the scope, among what is registered, or in what is given.

    Args:
        name: The name.
        custom_objects: Classes and functions by name, which are looked at next.
        module_objects: Likewise, at last.

    Returns:
        The class or function; None: there is none of that name.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.get_registered_object("Mine", {"Mine": mr.layers.Dense}).__name__
        'Dense'
    """
    for known in (_scope.get(), _registered, custom_objects or {}, module_objects or {}):
        if name in known:
            return known[name]
    return None


def custom_objects_with(custom_objects: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return custom objects: the caller's, the scope's, registered ones; later ones win.

    Args:
        custom_objects: The caller's own classes and functions by name.
    """
    return {**(custom_objects or {}), **_scope.get(), **_registered}


def safe_mode_scope(safe_mode: bool | None) -> AbstractContextManager[None]:
    """Return the context in which objects are created from configurations in a safe mode.

    Args:
        safe_mode: Whether code in configurations is refused; None: as if no scope were there.
    """
    return Within(_safe_mode, safe_mode)


def in_safe_mode() -> bool | None:
    """Return what the scope says about code in configurations; None where there is no scope."""
    return _safe_mode.get()


# Keras' modules of what has configurations: those of the same names here, in the order in which a
# class is looked for.
_HOMES = (
    "keras",
    "keras.layers",
    "keras.initializers",
    "keras.regularizers",
    "keras.constraints",
    "keras.losses",
    "keras.metrics",
    "keras.optimizers",
    "keras.optimizers.schedules",
    "keras.random",
)
_OF_FUNCTIONS = ("keras.activations", "keras.losses", "keras.metrics")
# Other names of modules that classes are in.
_ALIASES = {"keras.models": "keras"}
# Names that Keras' files have for public classes.
_FURTHER = {("keras.src.models.functional", "Functional"): ("keras", "Model")}


def _lookup(home: str, name: str) -> Any:
    """Return the attribute of a public module, or None."""
    module = import_module(f"{__name__.partition('.')[0]}.{home}")
    # To make the list of `dir` takes a hundred times as long as to look into the other one.
    return getattr(module, name) if name in module.__all__ or name in dir(module) else None


def public_class(module: str, name: str) -> type | None:
    """Return the class that a name in one of Keras' modules stands for; None: there is none.

    Args:
        module: The module, as in "keras.layers".
        name: The class's name.

    Example:
        >>> public_class("keras.layers", "Dense").__name__
        'Dense'
    """
    module, name = _FURTHER.get((module, name), (module, name))
    home = _ALIASES.get(module, module)
    value = _lookup(home, name) if home in _HOMES else None
    return value if inspect.isclass(value) else None


def public_function(name: str, module: str | None = None) -> Any:
    """Return the activation, loss or metric of a name that is a function; None: there is none.

    Args:
        name: The function's name.
        module: The module, as in "keras.losses"; None: any.
    """
    for home in _OF_FUNCTIONS:
        if module in (None, home):
            value = _lookup(home, name)
            if isinstance(value, FunctionType):
                return value
    return None


def public_operation(name: str) -> Any:
    """Return the function of `keras.ops` of a name; None: there is none.

    Args:
        name: The function's name.
    """
    values = (_lookup(home, name) for home in ("keras.ops", "keras.ops.image"))
    return next((value for value in values if isinstance(value, FunctionType)), None)


@functools.lru_cache(maxsize=512)
def _name_of(cls: Any) -> tuple[str, str] | None:
    name = vars(cls).get("_public_name", cls.__name__)
    home = next((home for home in _HOMES if _lookup(home, name) is cls), None)
    return None if home is None else (home, name)


def name_of_class(cls: type) -> tuple[str, str] | None:
    """Return the module and the name by which Keras knows a class of this library; None: neither.

    Args:
        cls: The class.

    Example:
        >>> import mirrored as mr
        >>> name_of_class(mr.layers.Dense), name_of_class(mr.Sequential), name_of_class(int)
        (('keras.layers', 'Dense'), ('keras', 'Sequential'), None)
    """
    return _name_of(cls)


def public_base(cls: type) -> Any:
    """Return the class of this library that a class is, or is made from; None: there is none.

    Args:
        cls: The class.

    Example:
        >>> import mirrored as mr
        >>> class Mine(mr.layers.Dense):
        ...     pass
        >>> public_base(Mine).__name__
        'Dense'
    """
    return next((base for base in cls.__mro__ if name_of_class(base)), None)
