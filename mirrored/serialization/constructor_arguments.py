"""Configurations by the signatures of constructors.

Each argument is kept in an attribute of its name. Who does otherwise overrides `get_config`.
"""

import inspect
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from mirrored._arguments import Explained
from mirrored._reprs import made_with

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Configured(Explained):
    """What keeps its arguments in attributes of the same names, and can be made of these again."""

    # Arguments that Keras' configurations leave out, and these where they are not the defaults.
    _if_changed: ClassVar[Collection[str]] = ()

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name, as plain values."""
        return arguments_of(self)

    def __repr__(self) -> str:
        return made_with(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return one that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
        """
        return cls(**config)


def arguments_of(thing: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Return what the attributes are of which the constructor of this library's class has names.

    A subclass of a user's own says of further ones in its `get_config`, as in Keras.

    Args:
        thing: An object of a class of this library, or of a subclass of one.
        without: Names that are left out.

    Example:
        >>> import mirrored as mr
        >>> arguments_of(mr.keras.initializers.Constant(2.0))
        {'value': 2.0}
    """
    from mirrored.serialization.class_names import public_base

    owner = public_base(type(thing))
    signature = inspect.signature(getattr(owner, "__init__", object.__init__))
    unsaid: Collection[str] = getattr(thing, "_if_changed", ())
    arguments = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind in _NAMED and name != "self" and name not in without:
            value = getattr(thing, name)
            if name not in unsaid or value != parameter.default:
                arguments[name] = serialized(value, is_activation=name == "activation")
    return arguments


def made_like(thing: Any) -> Any:
    """Return an object that is made of the configuration of another one, in this process.

    What has no configuration of its own, such as a lambda, is that of the other.

    Args:
        thing: The other object.

    Raises:
        NotImplementedError: It does not say what it is made of.

    Example:
        >>> import mirrored as mr
        >>> made_like(mr.layers.Dense(3, activation=lambda x: -x)).units
        3
    """
    from mirrored.serialization.configs import kept_in_memory  # Few programs need it.

    with kept_in_memory():
        return type(thing).from_config(thing.get_config())


def serialized(obj: Any, *, is_activation: bool = False) -> Any:
    """Return the configuration of an object.

    Args:
        obj: The object.
        is_activation: Whether it is a function that may be an activation, which is its name.
    """
    from mirrored.serialization import configs  # Few programs need it.

    return (configs.serialize_activation if is_activation else configs.serialize_keras_object)(obj)


def deserialized(
    config: Any, names: Mapping[str, Any] | None, custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Return what a configuration, or a name, stands for among things of one kind.

    Args:
        config: The configuration: with the name of a class, which may be one of Keras' other names.
        names: Classes and functions by all their names; None: those of every kind.
        custom_objects: Further ones, by name.

    Returns:
        The thing; a name that nothing has is returned as it is.
    """
    from mirrored.serialization import configs  # Few programs need it.

    return configs.deserialize_keras_object(config, custom_objects, module_objects=names)
