"""Deserializes configurations, which are checked since they come from files.

It names public classes of this library, registered ones, and those that the caller gives; a module
that it names is never imported.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from mirrored import ops
from mirrored._arguments import explained_only
from mirrored._contexts import Within
from mirrored.serialization.custom_objects import (
    CustomObjectScope,
    custom_objects_with,
    get_registered_object,
    in_safe_mode,
    safe_mode_scope,
)
from mirrored.serialization.public_names import public_class, public_function
from mirrored.serialization.writing import in_memory

_PLAIN = (str, int, float, bool)
_DEEPEST = 200  # Levels of lists and dicts; a model within a model takes about four.
# In a sharing scope what was made of configurations that have an id, by this.
_shared: ContextVar[dict[Any, Any] | None] = ContextVar("mirrored_shared_read", default=None)
_inside: ContextVar[bool] = ContextVar("mirrored_reading", default=False)


def sharing_what_is_read() -> AbstractContextManager[None]:
    """Return the context in which what was one object when it was written becomes one."""
    return Within(_shared, {})


@explained_only
def deserialize_keras_object(
    config: Any,
    custom_objects: Mapping[str, Any] | None = None,
    safe_mode: bool = True,
    **kwargs: Any,
) -> Any:
    """Return the object that a configuration describes.

    Args:
        config: What `serialize_keras_object` returned, here or in Keras, also out of JSON.
        custom_objects: Classes and functions of the caller's own, by the names that it says.
        safe_mode: Accepted for compatibility: code in configurations is refused in any case.
        **kwargs: `module_objects`, what names alone may stand for.

    Raises:
        TypeError: It is no configuration, names a class that there is not, or one that does not
            take these arguments.
        ValueError: Arguments are wrong, it holds code, or is nested too deeply.

    Example:
        >>> import mirrored as mr
        >>> config = mr.keras.utils.serialize_keras_object(mr.layers.Dense(3))
        >>> mr.keras.utils.deserialize_keras_object(config).units
        3
    """
    module_objects = kwargs.pop("module_objects", None)
    if kwargs:
        raise TypeError(
            f"deserialize_keras_object() got an unexpected keyword argument {next(iter(kwargs))!r}"
        )
    said = in_safe_mode()
    safe_mode = safe_mode if said is None else said
    if _inside.get():
        return _decode(config, custom_objects_with(custom_objects), safe_mode, module_objects)
    check_depth(config)
    with Within(_inside, True):
        return _decode(config, custom_objects_with(custom_objects), safe_mode, module_objects)


def check_depth(config: Any) -> None:
    """Raise ValueError where a configuration is nested too deeply.

    Args:
        config: What was read.
    """
    level = [config]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list | tuple):
                inner += value
        if not inner:
            return
        level = inner
    raise ValueError(f"The configuration is nested more than {_DEEPEST} levels deep.")


def _decode(
    config: Any,
    known: Mapping[str, Any],
    safe_mode: bool,
    module_objects: Mapping[str, Any] | None = None,
) -> Any:
    if config is None:
        return None
    if isinstance(config, str) and known.get(config) is not None:
        return known[config]
    if isinstance(config, list | tuple):
        return [_decode(part, known, safe_mode) for part in config]
    if module_objects is not None:
        return _among(module_objects, config, known, safe_mode)
    if isinstance(config, _PLAIN):
        return config
    if not isinstance(config, dict):
        if in_memory():
            return config  # A function, or what else stands there itself.
        raise TypeError(f"Could not parse config: {config!r:.200}")
    if "class_name" not in config or "config" not in config:
        return {key: _decode(value, known, safe_mode) for key, value in config.items()}
    name, inner = config["class_name"], config["config"]
    if not isinstance(name, str):
        raise TypeError(f"`class_name` is a string. Received: config={config!r:.200}")
    inner = {} if inner is None else inner
    if name in _SPECIAL:
        return _SPECIAL[name](inner, lambda part: _decode(part, known, safe_mode), safe_mode)
    if name == "function":
        return _function(inner, config, known)
    return _object(config, name, inner, known, safe_mode)


def _among(
    module_objects: Mapping[str, Any], config: Any, known: Mapping[str, Any], safe_mode: bool
) -> Any:
    """Return what a name, or a configuration by its name alone, is among things of one kind."""
    inner: Any = None
    name = config
    if isinstance(config, dict):
        if "class_name" not in config:
            raise ValueError(f"Unknown `config` as a `dict`, config={config!r:.200}")
        inner = config.get("config")
        registered = config.get("registered_name")
        if any(_names(text, known) for text in (config["class_name"], registered, inner)):
            return _decode(config, known, safe_mode)
        name = config["class_name"]
        if name == "function":
            whole = config.get("module") != "builtins"
            name = config.get("registered_name") if whole else inner
        elif config.get("module", "") is None:
            raise TypeError(
                f"Cannot deserialize object of type `{name}`. If `{name}` is a custom class, "
                "please register it using the `@keras.saving.register_keras_serializable()` "
                "decorator."
            )
    if not isinstance(name, str) or name not in module_objects:
        return name
    value = module_objects[name]
    if not inspect.isclass(value):
        return value
    return _instance(value, {} if inner is None else inner, config, known, safe_mode)


def _names(name: Any, known: Mapping[str, Any]) -> bool:
    return isinstance(name, str) and name in known


# Values that are no objects of a class with a configuration.

_Part = Callable[[Any], Any]


def _array(inner: Any, _: _Part, __: bool) -> Any:
    value, dtype = _fields(inner, "value", "dtype")
    try:
        return np.array(value, dtype=ops.as_dtype(dtype))
    except (OverflowError, ValueError, TypeError) as error:
        raise ValueError(f"No array of {dtype!r}: {error}. Received: {inner!r:.200}") from None


def _tensor(inner: Any, part: _Part, safe_mode: bool) -> Any:
    return ops.convert_to_tensor(_array(inner, part, safe_mode))


def _bytes(inner: Any, _: _Part, __: bool) -> bytes:
    (value,) = _fields(inner, "value")
    if not isinstance(value, str):
        raise TypeError(f"The value of bytes is a string. Received: {inner!r:.200}")
    return value.encode("utf-8")


def _slice(inner: Any, part: _Part, _: bool) -> slice:
    return slice(*(part(field) for field in _fields(inner, "start", "stop", "step")))


def _placeholder(inner: Any, _: _Part, __: bool) -> NoReturn:
    raise ValueError(
        f"A placeholder stands in the configuration of a model alone. Received: {inner!r:.200}"
    )


def _lambda(_: Any, __: _Part, safe_mode: bool) -> NoReturn:
    refuse_lambda(safe_mode)


def refuse_lambda(safe_mode: bool | None) -> NoReturn:
    """Raise ValueError: a configuration holds a Python lambda.

    Args:
        safe_mode: Whether the caller asked for what is safe.
    """
    if safe_mode is not False:
        raise ValueError(
            "Requested the deserialization of a Python lambda. This carries a potential risk of "
            "arbitrary code execution and thus it is disallowed. Define the function under "
            "`@mr.keras.utils.register_keras_serializable()` and give it in `custom_objects`."
        )
    raise ValueError(
        "A Python lambda in a configuration is bytecode, which is never run here, whatever "
        "`safe_mode` says. Define the function under "
        "`@mr.keras.utils.register_keras_serializable()`, and make the object with it."
    )


_SPECIAL: dict[str, Callable[[Any, _Part, bool], Any]] = {
    "__numpy__": _array,
    "__tensor__": _tensor,
    "__bytes__": _bytes,
    "__slice__": _slice,
    "__ellipsis__": lambda *_: ...,
    "__keras_tensor__": _placeholder,
    "__lambda__": _lambda,
}


def _fields(inner: Any, *names: str) -> list[Any]:
    if not isinstance(inner, dict) or not all(name in inner for name in names):
        raise TypeError(f"Expected a `config` with {', '.join(names)}. Received: {inner!r:.200}")
    return [inner[name] for name in names]


# Functions and classes.


def _function(name: Any, config: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if not isinstance(name, str):
        raise TypeError(
            "Expected 'config' to be a non-null str for a function classname, instead got "
            f"{type(name)}. Full config: {config!r:.200}"
        )
    value = get_registered_object(name, custom_objects=known)
    if value is not None:
        return value
    module = config.get("module")
    value = public_function(name, None if module == "builtins" else str(module))
    if value is not None:
        return value
    if module == "builtins" and ">" not in name:  # As files of Keras 3.6 and before have them.
        ending = f">{name}"
        value = next((entry for key, entry in known.items() if key.endswith(ending)), None)
    return _missing("function", name, config) if value is None else value


def _object(
    config: Mapping[str, Any], name: str, inner: Any, known: Mapping[str, Any], safe_mode: bool
) -> Any:
    if not isinstance(inner, dict):
        raise TypeError(
            f"Expected 'config' to be a dict for {name}, instead got {type(inner)}. Full config: "
            f"{config!r:.200}"
        )
    shared = _shared.get()
    number = config.get("shared_object_id")
    if shared is not None and isinstance(number, int) and number in shared:
        return shared[number]
    instance = _instance(_class(config, name, known), inner, config, known, safe_mode)
    if shared is not None and isinstance(number, int):
        shared[number] = instance
    return instance


def _class(config: Mapping[str, Any], name: str, known: Mapping[str, Any]) -> Any:
    registered = config.get("registered_name", name)
    result = None
    if isinstance(registered, str):
        result = get_registered_object(registered, custom_objects=known)
    module = config.get("module")
    if result is None and isinstance(module, str):
        result = public_class(module, name)
        if result is not None and registered not in (None, "", name):
            raise ValueError(
                f"`registered_name={registered!r}` was provided in the config, but "
                f"'{module}.{name}' is built in and does not use registered names. Full object "
                f"config: {config!r:.200}"
            )
    return _missing("class", name, config) if result is None else result


def _missing(kind: str, name: str, config: Any) -> NoReturn:
    raise TypeError(
        f"Could not locate {kind} '{name}'. Make sure custom classes and functions are decorated "
        "with `@keras.saving.register_keras_serializable()`. If they are already decorated, make "
        "sure they are all imported so that the decorator is run before trying to load them. "
        f"Full object config: {config!r:.200}"
    )


def _instance(cls: Any, inner: Any, config: Any, known: Mapping[str, Any], safe_mode: bool) -> Any:
    """Return an object of a class, made of its configuration, then built and compiled."""
    if isinstance(cls, FunctionType):
        return cls
    if not hasattr(cls, "from_config"):
        raise TypeError(
            f"Unable to reconstruct an instance of '{getattr(cls, '__name__', cls)}' because the "
            "class is missing a `from_config()` method. Full object config: "
            f"{config!r:.200}"
        )
    said: Mapping[str, Any] = config if isinstance(config, dict) else {}
    with CustomObjectScope(known), safe_mode_scope(safe_mode), failures_are_errors(config):
        try:
            inner = dict(inner)
            if hasattr(cls, "_config_read"):
                inner = cls._config_read(inner, said.get("mirrored_config"))
            instance = cls.from_config(inner)
        except TypeError as error:
            raise TypeError(
                f"{cls} could not be deserialized properly. Please ensure that components that "
                "are Python object instances (layers, models, etc.) returned by `get_config()` "
                "are explicitly deserialized in the model's `from_config()` method. "
                f"config={config!r:.200}. Exception encountered: {error}"
            ) from error
        if said.get("build_config") and not instance.built:
            instance.build_from_config(said["build_config"])
        if said.get("compile_config"):
            instance.compile_from_config(said["compile_config"])
    return instance


@contextmanager
def failures_are_errors(config: Any) -> Iterator[None]:
    """Within this context what fails because of wrong values in a configuration is a ValueError.

    Args:
        config: The configuration.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        raise ValueError(
            f"The configuration says what cannot be: {error}. Received: config={config!r:.200}"
        ) from error
