"""The `repr` of objects: their class and constructor arguments, without addresses."""

import inspect
from collections.abc import Collection, Mapping
from typing import Any

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLAIN = (bool, int, str, bytes, type(None))
_SIMPLE = (*_PLAIN, float, list, tuple, dict)
_MISSING = object()
_LONGEST = 8  # Items of a list or dict that are shown.


def made_with(
    thing: Any,
    values: Mapping[str, Any] | None = None,
    *,
    always: Collection[str] = (),
    never: Collection[str] = ("name",),
) -> str:
    """Return an object's class with the constructor arguments that are not the defaults.

    Args:
        thing: The object.
        values: Its arguments by name; None: they are in attributes of their names, which may begin
            with an underscore.
        always: Names that are shown where they are the defaults too.
        never: Names that are not shown.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.losses.Huber(delta=0.5), mr.optim.SGD(0.1, momentum=0.9)
        (Huber(delta=0.5), SGD(learning_rate=0.1, momentum=0.9))
    """
    shown = []
    for name, default in _defaults(type(thing)).items():
        value = _kept(thing, name) if values is None else values.get(name, _MISSING)
        same = value is default or (isinstance(value, _SIMPLE) and value == default)
        if value is not _MISSING and name not in never and (name in always or not same):
            shown.append(f"{name}={text_of(value)}")
    return f"{type(thing).__name__}({', '.join(shown)})"


def text_of(value: Any) -> str:
    """Return a value as text, of which numbers have seven digits and functions are their names."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, float):
        return repr(float(f"{value:.7g}"))
    if isinstance(value, Mapping):
        items = [f"{text_of(k)}: {text_of(item)}" for k, item in [*value.items()][:_LONGEST]]
        return f"{{{_joined(items, len(value))}}}"
    if isinstance(value, list | tuple):
        text = _joined([text_of(item) for item in value[:_LONGEST]], len(value))
        return f"[{text}]" if isinstance(value, list) else f"({text})"
    shape = getattr(value, "shape", None)
    if shape is not None:
        return _number(value) if shape == () else f"<{type(value).__name__} of shape {shape}>"
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):  # A function, a method or a class.
        return name.rpartition("<locals>.")[2]
    silent = "__repr__" not in {key for base in type(value).__mro__[:-1] for key in vars(base)}
    return f"<{type(value).__name__}>" if silent else repr(value)


def _joined(items: list[str], count: int) -> str:
    return ", ".join([*items, "..."] if count > _LONGEST else items)


def _number(value: Any) -> str:
    """Return a number that a tensor, a variable or a scalar of NumPy's holds."""
    try:
        number = value.numpy() if hasattr(value, "numpy") else value
        return text_of(number.item())
    except Exception:  # A tensor of a function that is recorded, for example, holds none.
        return f"<{type(value).__name__}>"


def _defaults(cls: type) -> dict[str, Any]:
    """Return the arguments of a constructor with their defaults, with those that it passes on."""
    defaults: dict[str, Any] = {}
    for owner in cls.__mro__:
        if "__init__" in vars(owner) and owner is not object:
            parameters = inspect.signature(vars(owner)["__init__"]).parameters.values()
            for parameter in list(parameters)[1:]:
                if parameter.kind in _NAMED:
                    defaults.setdefault(parameter.name, parameter.default)
            if all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in parameters):
                break
    return defaults


def _kept(thing: Any, name: str) -> Any:
    """Return the attribute of an argument's name, if it is no method."""
    own = vars(thing)
    for key in (name, f"_{name}"):
        if key in own:
            return own[key]
    is_method = inspect.isfunction(inspect.getattr_static(thing, name, None))
    return _MISSING if is_method else getattr(thing, name, _MISSING)
