"""Objects as configurations in Keras 3's format, and objects from configurations.

Configurations come from files, so they are checked: they name public classes of this library,
registered ones and those of the caller, and a module that they name is never imported.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import EllipsisType, FunctionType
from typing import Any, NoReturn

import numpy as np

from mirrored import ops
from mirrored._arguments import explained_only
from mirrored._contexts import Within
from mirrored.graph import SymbolicTensor
from mirrored.ops.conversion import is_tensor
from mirrored.serialization.class_names import (
    CustomObjectScope,
    custom_objects_with,
    get_registered_name,
    get_registered_object,
    in_safe_mode,
    name_of_class,
    public_class,
    public_function,
    safe_mode_scope,
    scope_of,
)

_PLAIN = (str, int, float, bool, type(None))
_SLICE = ("start", "stop", "step")
_MISSING = "Could not locate"
_DEEPEST = 200  # Levels of lists and dicts; a model within a model takes about four.
# In a sharing scope each object that was written, with its configuration, by its id.
_written_objects: ContextVar[dict[int, tuple[Any, dict[str, Any]]] | None] = ContextVar(
    "mirrored_shared_written", default=None
)
# Within `kept_in_memory`, the users' classes that were met, by their names.
_in_memory: ContextVar[dict[str, type] | None] = ContextVar("mirrored_in_memory", default=None)
# In a sharing scope what was made of configurations that have an id, by this.
_read_objects: ContextVar[dict[Any, Any] | None] = ContextVar("mirrored_shared_read", default=None)
_inside: ContextVar[bool] = ContextVar("mirrored_reading", default=False)


def sharing_what_is_written() -> AbstractContextManager[None]:
    """Return the context in which an object that is written twice is one when it is read."""
    return Within(_written_objects, {})


@contextmanager
def kept_in_memory() -> Iterator[None]:
    """Within this context, an object without a configuration is put into configurations itself.

    Users' classes that configurations name are known by these names.
    """
    classes: dict[str, type] = {}
    with Within(_in_memory, classes), scope_of(classes):
        yield


def in_memory() -> bool:
    """Return whether configurations are made for this process alone."""
    return _in_memory.get() is not None


def serialize_keras_object(obj: Any) -> Any:
    """Return the configuration of an object, from which `deserialize_keras_object` makes it again.

    Args:
        obj: A layer, a model, an optimizer or the like, a function with a name, a value, or a list,
            tuple or dict of such.

    Returns:
        A dict of plain values, as JSON has them, and of tuples; None, numbers and strings are what
        they are.

    Raises:
        TypeError: It has no `get_config`, or one that returns no dict.
        ValueError: It is a lambda, of which a configuration could hold bytecode only.
        NotImplementedError: A subclass does not say what it is made of.

    Example:
        >>> import mirrored as mr
        >>> config = mr.keras.utils.serialize_keras_object(mr.keras.initializers.Zeros())
        >>> config["module"], config["class_name"], config["config"]
        ('keras.initializers', 'Zeros', {})
    """
    if isinstance(obj, _PLAIN):
        return obj
    if isinstance(obj, list):
        return [serialize_keras_object(item) for item in obj]
    if isinstance(obj, tuple):
        return tuple([serialize_keras_object(item) for item in obj])
    if isinstance(obj, dict):
        return {key: serialize_keras_object(value) for key, value in obj.items()}
    value = _value(obj)
    if value is not None:
        return value
    if isinstance(obj, FunctionType):
        return _config_of_function(obj)
    return _config_of_object(obj)


def _value(obj: Any) -> Any:
    """Return the configuration of a value that is no object of a class with one; else None."""
    if isinstance(obj, bytes):
        return _special("bytes", value=obj.decode("utf-8"))
    if isinstance(obj, slice):
        parts = {name: serialize_keras_object(getattr(obj, name)) for name in _SLICE}
        return _special("slice", **parts)
    if isinstance(obj, EllipsisType):
        return _special("ellipsis")
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, np.ndarray):
        if obj.ndim == 0:
            return obj.item()
        return _special("numpy", value=obj.tolist(), dtype=obj.dtype.name)
    if isinstance(obj, np.dtype):
        return obj.name
    if is_tensor(obj) and not isinstance(obj, SymbolicTensor):
        array = obj.numpy()
        return _special("tensor", value=array.tolist(), dtype=array.dtype.name)
    return None


def _special(kind: str, **config: Any) -> dict[str, Any]:
    return {"class_name": f"__{kind}__", "config": config}


def _config_of_function(function: FunctionType) -> Any:
    if in_memory():
        return function
    if function.__name__ == "<lambda>":
        raise ValueError(
            "A lambda has no name by which a configuration could find it again. Received: "
            f"{function!r}. Define it with `def`, under the decorator "
            "`mr.keras.utils.register_keras_serializable()`."
        )
    return _named(function)


def serialize_activation(activation: Any) -> Any:
    """Return the configuration of an activation: the name of one that there is.

    Args:
        activation: A function of a tensor.
    """
    if public_function(getattr(activation, "__name__", ""), "keras.activations") is activation:
        return activation.__name__
    return serialize_keras_object(activation)


def _config_of_object(obj: Any) -> Any:
    if "_stands_for" in getattr(obj, "__dict__", {}):
        return serialize_keras_object(obj._stands_for)  # A function that Keras takes itself.
    get_config = getattr(obj, "get_config", None)
    if inspect.isclass(obj) or get_config is None:
        if in_memory():
            return obj
        if hasattr(obj, "__name__"):
            return _named(obj)
        raise TypeError(
            f"Cannot serialize object {obj} of type {type(obj)}. To be serializable, a class must "
            "implement the `get_config()` method."
        )
    config = get_config()
    if not isinstance(config, dict):
        raise TypeError(
            f"The `get_config()` method of {obj} should return a dict. It returned: {config}"
        )
    written = {**_name_of(obj), "config": serialize_keras_object(config)}
    written = {key: written[key] for key in ("module", "class_name", "config", "registered_name")}
    for kind in ("build_config", "compile_config"):
        more = getattr(obj, f"get_{kind}", lambda: None)()
        if more is not None:
            written[kind] = serialize_keras_object(more)
    own = getattr(obj, "_mirrored_config", None)
    if own is not None:  # Keras ignores it.
        written["mirrored_config"] = own
    _note(obj, written)
    return written


def _name_of(obj: Any) -> dict[str, Any]:
    """Return the entries of a configuration about an object's class."""
    own: Mapping[str, Any] | None = getattr(obj, "__named_as__", None)
    if own is not None:
        return dict(own)
    cls = type(obj)
    public = name_of_class(cls)
    if public is not None:
        return {"module": public[0], "class_name": public[1], "registered_name": None}
    module = None if cls.__module__ == "__main__" else cls.__module__
    name = get_registered_name(cls)
    classes = _in_memory.get()
    if classes is not None:
        classes[name] = cls
    return {"module": module, "class_name": cls.__name__, "registered_name": name}


def _named(thing: Any) -> dict[str, Any]:
    """Return the configuration of a function, a class, or another object with a name."""
    kind = type(thing)
    return {
        "module": kind.__module__,
        "class_name": kind.__name__,
        "config": get_registered_name(thing),
        "registered_name": kind.__name__,
    }


def _note(obj: Any, written: dict[str, Any]) -> None:
    shared = _written_objects.get()
    if shared is None:
        return
    _, earlier = shared.setdefault(id(obj), (obj, written))
    if earlier is not written:
        earlier["shared_object_id"] = written["shared_object_id"] = id(obj)


def sharing_what_is_read() -> AbstractContextManager[None]:
    """Return the context in which an object that was written twice becomes one object."""
    return Within(_read_objects, {})


@explained_only
def deserialize_keras_object(
    config: Mapping[str, Any],
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
    reader = _Reader(custom_objects_with(custom_objects), safe_mode if said is None else said)
    if _inside.get():
        return reader.read(config, module_objects)
    _check_depth(config)
    with Within(_inside, True):
        return reader.read(config, module_objects)


def _check_depth(config: Any) -> None:
    """Raise ValueError where a configuration is nested too deeply."""
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


class _Reader:
    """Makes objects of configurations; names of classes and functions are looked up here alone.

    Args:
        known: The caller's, the scope's and registered classes and functions, by name.
        safe_mode: Whether the caller asked for what is safe.
    """

    def __init__(self, known: Mapping[str, Any], safe_mode: bool) -> None:
        self._known = known
        self.safe_mode = safe_mode

    def read(self, config: Any, names: Mapping[str, Any] | None = None) -> Any:
        """Return the object that a configuration describes, or that a name among `names` means."""
        if config is None:
            return None
        if isinstance(config, str) and self._known.get(config) is not None:
            return self._known[config]
        if isinstance(config, list | tuple):
            return [self.read(part) for part in config]
        if names is not None:
            return self._among(names, config)
        if isinstance(config, _PLAIN):
            return config
        if not isinstance(config, dict):
            if in_memory():
                return config  # A function, or what else stands there itself.
            raise TypeError(f"Could not parse config: {config!r:.200}")
        if "class_name" not in config or "config" not in config:
            return {key: self.read(value) for key, value in config.items()}
        name, inner = config["class_name"], config["config"]
        if not isinstance(name, str):
            raise TypeError(f"`class_name` must be a string. Received: config={config!r:.200}")
        inner = {} if inner is None else inner
        if name in _SPECIAL:
            return _SPECIAL[name](inner, self)
        if name == "function":
            return self._function(inner, config)
        return self._object(config, name, inner)

    def _among(self, names: Mapping[str, Any], config: Any) -> Any:
        """Return the object of a name, or of a configuration with a class name, in `names`."""
        inner: Any = None
        name = config
        if isinstance(config, dict):
            if "class_name" not in config:
                raise ValueError(f"Unknown `config` as a `dict`, config={config!r:.200}")
            name, inner = config["class_name"], config.get("config")
            registered = config.get("registered_name")
            texts = [text for text in (name, registered, inner) if isinstance(text, str)]
            if any(text in self._known for text in texts):
                return self.read(config)
            if name == "function":
                name = registered if config.get("module") != "builtins" else inner
            elif config.get("module", "") is None:
                raise TypeError(
                    f"Cannot deserialize object of type `{name}`. If `{name}` is a custom class, "
                    "please register it using the `@keras.saving.register_keras_serializable()` "
                    "decorator."
                )
        if not isinstance(name, str) or name not in names:
            return name
        value = names[name]
        if not inspect.isclass(value):
            return value
        return self._instance(value, {} if inner is None else inner, config)

    def _function(self, name: Any, config: Mapping[str, Any]) -> Any:
        if not isinstance(name, str):
            raise TypeError(
                "Expected 'config' to be a non-null str for a function classname, instead got "
                f"{type(name)}. Full config: {config!r:.200}"
            )
        module = config.get("module")
        value = get_registered_object(name, custom_objects=self._known)
        if value is None:
            value = public_function(name, None if module == "builtins" else str(module))
        if value is None and module == "builtins" and ">" not in name:
            # As files of Keras 3.6 and before have them.
            known = self._known.items()
            value = next((entry for key, entry in known if key.endswith(f">{name}")), None)
        return _missing("function", name, config) if value is None else value

    def _object(self, config: Mapping[str, Any], name: str, inner: Any) -> Any:
        if not isinstance(inner, dict):
            raise TypeError(
                f"Expected 'config' to be a dict for {name}, instead got {type(inner)}. Full "
                f"config: {config!r:.200}"
            )
        number = config.get("shared_object_id")
        shared = _read_objects.get() if isinstance(number, int) else None
        if shared is not None and number in shared:
            return shared[number]
        instance = self._instance(self._class(config, name), inner, config)
        if shared is not None:
            shared[number] = instance
        return instance

    def _class(self, config: Mapping[str, Any], name: str) -> Any:
        registered = config.get("registered_name", name)
        result = None
        if isinstance(registered, str):
            result = get_registered_object(registered, custom_objects=self._known)
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

    def _instance(self, cls: Any, inner: Any, config: Any) -> Any:
        """Return an object of a class, made of its configuration, then built and compiled."""
        if isinstance(cls, FunctionType):
            return cls
        if not hasattr(cls, "from_config"):
            raise TypeError(
                f"Unable to reconstruct an instance of '{getattr(cls, '__name__', cls)}' because "
                "the class is missing a `from_config()` method. Full object config: "
                f"{config!r:.200}"
            )
        said: Mapping[str, Any] = config if isinstance(config, dict) else {}
        scope, mode = CustomObjectScope(self._known), safe_mode_scope(self.safe_mode)
        with scope, mode, failures_are_errors(config):
            try:
                inner = dict(inner)
                if hasattr(cls, "_config_read"):
                    inner = cls._config_read(inner, said.get("mirrored_config"))
                instance = cls.from_config(inner)
            except TypeError as error:
                if str(error).startswith(_MISSING):
                    raise  # It says what to do, and what it is part of can do nothing.
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


def _missing(kind: str, name: str, config: Any) -> NoReturn:
    raise TypeError(
        f"{_MISSING} {kind} '{name}'. Make sure custom classes and functions are decorated "
        "with `@keras.saving.register_keras_serializable()`. If they are already decorated, make "
        "sure they are all imported so that the decorator is run before trying to load them. "
        f"Or pass `custom_objects={{'{name}': {name}}}`. Full object config: {config!r:.200}"
    )


# Values that are no objects of a class with a configuration.


def _array(inner: Any, _: _Reader) -> Any:
    value, dtype = _fields(inner, "value", "dtype")
    try:
        return np.array(value, dtype=ops.as_dtype(dtype))
    except (OverflowError, ValueError, TypeError) as error:
        raise ValueError(f"No array of {dtype!r}: {error}. Received: {inner!r:.200}") from None


def _bytes(inner: Any, _: _Reader) -> bytes:
    (value,) = _fields(inner, "value")
    if not isinstance(value, str):
        raise TypeError(f"The value of bytes must be a string. Received: {inner!r:.200}")
    return value.encode("utf-8")


def _placeholder(inner: Any, _: _Reader) -> NoReturn:
    raise ValueError(
        f"A placeholder is allowed only in the configuration of a model. Received: {inner!r:.200}"
    )


def _lambda(_: Any, reader: _Reader) -> NoReturn:
    if reader.safe_mode is not False:
        raise ValueError(
            "Requested the deserialization of a Python lambda. This carries a potential risk of "
            "arbitrary code execution and thus it is disallowed. Define the function under "
            "`@mr.keras.utils.register_keras_serializable()` and pass it in `custom_objects`."
        )
    raise ValueError(
        "A Python lambda in a configuration is bytecode, which is never run here, whatever "
        "`safe_mode` says. Define the function under "
        "`@mr.keras.utils.register_keras_serializable()`, and create the object with it."
    )


def _fields(inner: Any, *names: str) -> list[Any]:
    if not isinstance(inner, dict) or not all(name in inner for name in names):
        raise TypeError(f"Expected a `config` with {', '.join(names)}. Received: {inner!r:.200}")
    return [inner[name] for name in names]


_SPECIAL: dict[str, Callable[[Any, _Reader], Any]] = {
    "__numpy__": _array,
    "__tensor__": lambda inner, reader: ops.convert_to_tensor(_array(inner, reader)),
    "__bytes__": _bytes,
    "__slice__": lambda inner, reader: slice(*map(reader.read, _fields(inner, *_SLICE))),
    "__ellipsis__": lambda *_: ...,
    "__keras_tensor__": _placeholder,
    "__lambda__": _lambda,
}


@contextmanager
def failures_are_errors(config: Any) -> Iterator[None]:
    """Within this context, wrong values in a configuration raise ValueError.

    Args:
        config: The configuration.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        raise ValueError(
            f"The configuration is not valid: {error}. Received: config={config!r:.200}"
        ) from error
