"""Serializes objects to configurations, in Keras 3's format."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import EllipsisType, FunctionType
from typing import Any

import numpy as np

from mirrored._contexts import Within
from mirrored.graph import SymbolicTensor
from mirrored.ops.conversion import is_tensor
from mirrored.serialization.custom_objects import get_registered_name
from mirrored.serialization.public_names import name_of_class, public_function

_PLAIN = (str, int, float, bool, type(None))
# In a sharing scope each object that was written, with its configuration, by its id.
_shared: ContextVar[dict[int, tuple[Any, dict[str, Any]]] | None] = ContextVar(
    "mirrored_shared_written", default=None
)
# Within `kept_in_memory`, the users' classes that were met, by their names.
_in_memory: ContextVar[dict[str, type] | None] = ContextVar("mirrored_in_memory", default=None)


def sharing_what_is_written() -> AbstractContextManager[None]:
    """Return the context in which an object that is written twice is one when it is read."""
    return Within(_shared, {})


def kept_in_memory(classes: dict[str, type]) -> AbstractContextManager[None]:
    """Return the context in which what has no configuration stands in configurations itself.

    Args:
        classes: Where the users' classes that configurations name are entered.
    """
    return Within(_in_memory, classes)


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
        return _function(obj)
    return _object(obj)


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


_SLICE = ("start", "stop", "step")


def _special(kind: str, **config: Any) -> dict[str, Any]:
    return {"class_name": f"__{kind}__", "config": config}


def _function(function: FunctionType) -> Any:
    if in_memory():
        return function
    if function.__name__ == "<lambda>":
        raise ValueError(
            "A lambda has no name by which a configuration could find it again. Received: "
            f"{function!r}. Define it with `def`, under the decorator "
            "`mr.keras.utils.register_keras_serializable()`."
        )
    return {
        "module": "builtins",
        "class_name": "function",
        "config": get_registered_name(function),
        "registered_name": "function",
    }


def serialize_activation(activation: Any) -> Any:
    """Return the configuration of an activation: the name of one that there is.

    Args:
        activation: A function of a tensor.
    """
    if public_function(getattr(activation, "__name__", ""), "keras.activations") is activation:
        return activation.__name__
    return serialize_keras_object(activation)


def _object(obj: Any) -> Any:
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
    """Return what a configuration says of an object's class."""
    own: Mapping[str, Any] | None = getattr(obj, "_named_as", None)
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
    """Return what stands for a class, or for another thing that has a name."""
    kind = type(thing)
    return {
        "module": kind.__module__,
        "class_name": kind.__name__,
        "config": get_registered_name(thing),
        "registered_name": kind.__name__,
    }


def _note(obj: Any, written: dict[str, Any]) -> None:
    shared = _shared.get()
    if shared is None:
        return
    _, earlier = shared.setdefault(id(obj), (obj, written))
    if earlier is not written:
        earlier["shared_object_id"] = written["shared_object_id"] = id(obj)
