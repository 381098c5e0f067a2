"""Activations: functions that a layer may apply to its outputs, by Keras' names."""

from collections.abc import Callable, Mapping
from typing import Any

from mirrored._absent import public_module as _public_module
from mirrored._arguments import explain_functions
from mirrored._late import LISTS
from mirrored.layers.activation_functions import linear as _linear
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.serialization.registry import Registry

Activation = Callable[[Tensor], Tensor]


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
        return _linear
    if isinstance(identifier, dict):
        function = deserialized(identifier, None)
        identifier = function if callable(function) else str(identifier)
    return _REGISTRY.resolve(identifier)


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


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the activation that a configuration describes.

    Args:
        config: What `serialize` returned: a name, or the configuration of a function.
        custom_objects: Functions that it may name, by these names.

    Example:
        >>> from mirrored.layers.activations import relu
        >>> deserialize("relu") is relu
        True
    """
    return _REGISTRY.deserialize(config, custom_objects)


_public_module(
    "tf.keras.activations",
    __name__,
    {
        "mirrored.layers.activation_functions": """
            celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish
            hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu
            sigmoid silu soft_shrink softmax softplus softsign sparse_plus
            sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold
        """,
    },
    constants=("Activation",),
)
_REGISTRY: Registry[Activation] = Registry(
    "activation function", __name__, {name: name for name in LISTS[__name__]}
)


explain_functions(__name__, all_but="serialize")
