"""How classes say of what objects like theirs are made: by the signatures of their constructors.

Each argument is kept in an attribute of its name. Who does otherwise overrides `get_config`.
"""

import inspect
from collections.abc import Collection, Mapping
from typing import Any, Self


class Configured:
    """What keeps its arguments in attributes of the same names, and can be made of these again."""

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name, as plain values."""
        return arguments_of(self)

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
    from mirrored.serialization.public_names import public_base
    from mirrored.serialization.writing import serialize_activation, serialize_keras_object

    owner = public_base(type(thing))
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    signature = inspect.signature(getattr(owner, "__init__", object.__init__))
    names = [each.name for each in signature.parameters.values() if each.kind in named]
    return {
        name: (serialize_activation if name == "activation" else serialize_keras_object)(
            getattr(thing, name)
        )
        for name in names
        if name != "self" and name not in without
    }
