"""Activations by name: `get`, `serialize` and `deserialize`."""

from collections.abc import Callable, Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored._late import LISTS
from mirrored.layers import activations
from mirrored.layers.identifiers import resolve
from mirrored.layers.nonlinearities import linear
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import LateClasses, deserialized, serialized

Activation = Callable[[Tensor], Tensor]
_PACKAGE = activations.__name__
_NO_ACTIVATIONS = frozenset(("Activation", "deserialize", "get", "serialize"))
_NAMES = LateClasses(
    _PACKAGE, {name: name for name in LISTS[_PACKAGE] if name not in _NO_ACTIVATIONS}
)


@explained
def get(identifier: object) -> Activation:
    """Return the activation that ``identifier`` stands for.

    Args:
        identifier: A name, a function from a tensor to a tensor, or None for ``linear``.

    Raises:
        ValueError: There is no activation of that name.

    Example:
        >>> get("relu").__name__, get(None).__name__
        ('relu', 'linear')
    """
    if identifier is None:
        return linear
    if isinstance(identifier, dict):
        function = deserialized(identifier, None)
        identifier = function if callable(function) else str(identifier)
    activation: Activation = resolve("activation function", identifier, _NAMES)
    return activation


def serialize(activation: Any) -> Any:
    """Return the configuration of an activation: the name of one that there is.

    Args:
        activation: A function of a tensor.

    Example:
        >>> from mirrored.layers.activations import relu
        >>> serialize(relu)
        'relu'
    """
    return serialized(activation, is_activation=True)


@explained
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the activation that a configuration describes.

    Args:
        config: What `serialize` returned: a name, or the configuration of a function.
        custom_objects: Functions that it may name, by these names.

    Example:
        >>> from mirrored.layers.activations import relu
        >>> deserialize("relu") is relu
        True
    """
    return deserialized(config, _NAMES, custom_objects)
