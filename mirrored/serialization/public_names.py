"""The public classes and functions that configurations name, by their names in Keras.

What stands below the public modules finds them here, when a configuration is written or read.
"""

import functools
import inspect
from importlib import import_module
from types import FunctionType
from typing import Any

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
    """Return what a public module has under a name, or None."""
    module = import_module(f"{__name__.partition('.')[0]}.{home}")
    return getattr(module, name) if name in dir(module) else None


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
    value = _lookup("keras.ops", name)
    return value if isinstance(value, FunctionType) else None


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
    names: tuple[str, str] | None = _name_of(cls)
    return names


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
