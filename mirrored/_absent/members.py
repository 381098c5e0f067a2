"""What an attribute leads to that TensorFlow's object has and this library's has not.

It costs the attributes that are there nothing, or next to nothing where Python is asked first.
"""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

_Class = TypeVar("_Class", bound=type)


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
        name: it for each in reversed(type(value).__mro__) for name, it in vars(each).items()
    }
    return [name for name in object.__dir__(value) if not isinstance(members.get(name), _Refused)]


def absent_members(tensorflow: str) -> Callable[[_Class], _Class]:
    """Return a decorator of a class: what its objects have in TensorFlow alone leads to advice.

    Args:
        tensorflow: The class's name in TensorFlow, as in "tf.keras.Model".

    Example:
        >>> import mirrored as mr
        >>> mr.data.Dataset.range(3).window(2)
        Traceback (most recent call last):
        AttributeError: mirrored has no `tf.data.Dataset.window`: not provided here. Use `batch`...
    """

    def decorate(cls: _Class) -> _Class:
        # Type checkers do not follow this: they would take every attribute for one that exists.
        setattr(cls, "_in_tensorflow", tensorflow)  # noqa: B010
        # (`hasattr` would find that of the class's own type.)
        if not any("__getattr__" in vars(each) for each in cls.__mro__):
            setattr(cls, "__getattr__", missing_attribute)  # noqa: B010
        return cls

    return decorate


def missing_attribute(value: Any, name: str) -> Any:
    """Raise the AttributeError of an attribute that Python did not find.

    Args:
        value: An object of a class that is decorated with `absent_members`.
        name: The attribute's name.
    """
    if any(name in vars(each) for each in type(value).__mro__):
        # A property raised an AttributeError of its own: it raises that again.
        return object.__getattribute__(value, name)
    raise _absent(type(value)._in_tensorflow, value, name)


class MembersOfClass(type):
    """The type of a class whose own attributes lead to advice too, as in `Dataset.list_files`."""

    def __getattr__(cls, name: str) -> NoReturn:
        raise _absent(vars(cls).get("_in_tensorflow", ""), cls, name)


def _absent(tensorflow: str, value: Any, name: str) -> AttributeError:
    from mirrored._absent import advice_on

    # Python itself asks for names that begin so, and may do it often.
    advice = None if name.startswith("_") else advice_on(tensorflow, name)
    if advice is not None:
        text = f"mirrored has no `{tensorflow}.{name}`: not provided here. {advice}"
        # Without an object Python does not add "Did you mean", which would name another one.
        return AttributeError(text, name=name, obj=None)
    kind = f"type object {value.__name__!r}" if isinstance(value, type) else None
    whose = kind or f"{type(value).__name__!r} object"
    return AttributeError(f"{whose} has no attribute {name!r}", name=name, obj=value)
