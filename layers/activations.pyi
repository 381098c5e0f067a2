# Written by tests/support/stubs.py from the table in activations.py; do not edit it.
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
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None=None) -> Any:
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
_REGISTRY: Registry[Activation] = Registry('activation function', __name__, {name: name for name in LISTS[__name__]})
explain_functions(__name__, all_but='serialize')
from mirrored.layers.activation_functions import celu as celu
from mirrored.layers.activation_functions import elu as elu
from mirrored.layers.activation_functions import exponential as exponential
from mirrored.layers.activation_functions import gelu as gelu
from mirrored.layers.activation_functions import glu as glu
from mirrored.layers.activation_functions import hard_shrink as hard_shrink
from mirrored.layers.activation_functions import hard_sigmoid as hard_sigmoid
from mirrored.layers.activation_functions import hard_silu as hard_silu
from mirrored.layers.activation_functions import hard_swish as hard_swish
from mirrored.layers.activation_functions import hard_tanh as hard_tanh
from mirrored.layers.activation_functions import leaky_relu as leaky_relu
from mirrored.layers.activation_functions import linear as linear
from mirrored.layers.activation_functions import log_sigmoid as log_sigmoid
from mirrored.layers.activation_functions import log_softmax as log_softmax
from mirrored.layers.activation_functions import mish as mish
from mirrored.layers.activation_functions import relu as relu
from mirrored.layers.activation_functions import relu6 as relu6
from mirrored.layers.activation_functions import selu as selu
from mirrored.layers.activation_functions import sigmoid as sigmoid
from mirrored.layers.activation_functions import silu as silu
from mirrored.layers.activation_functions import soft_shrink as soft_shrink
from mirrored.layers.activation_functions import softmax as softmax
from mirrored.layers.activation_functions import softplus as softplus
from mirrored.layers.activation_functions import softsign as softsign
from mirrored.layers.activation_functions import sparse_plus as sparse_plus
from mirrored.layers.activation_functions import sparse_sigmoid as sparse_sigmoid
from mirrored.layers.activation_functions import sparsemax as sparsemax
from mirrored.layers.activation_functions import squareplus as squareplus
from mirrored.layers.activation_functions import swish as swish
from mirrored.layers.activation_functions import tanh as tanh
from mirrored.layers.activation_functions import tanh_shrink as tanh_shrink
from mirrored.layers.activation_functions import threshold as threshold
