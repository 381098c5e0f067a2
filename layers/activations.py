"""The functions that a layer may apply to its outputs, by the names that Keras gives them.

They have their own names so that ``activation="relu"`` can be looked up.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explained
from mirrored.layers.identifiers import resolve
from mirrored.layers.nonlinearities import along_axes as _along_axes
from mirrored.layers.nonlinearities import celu as celu
from mirrored.layers.nonlinearities import elu as elu
from mirrored.layers.nonlinearities import exponential as exponential
from mirrored.layers.nonlinearities import gelu as gelu
from mirrored.layers.nonlinearities import hard_sigmoid as hard_sigmoid
from mirrored.layers.nonlinearities import hard_silu as hard_silu
from mirrored.layers.nonlinearities import hard_swish as hard_swish
from mirrored.layers.nonlinearities import hard_tanh as hard_tanh
from mirrored.layers.nonlinearities import leaky_relu as leaky_relu
from mirrored.layers.nonlinearities import log_sigmoid as log_sigmoid
from mirrored.layers.nonlinearities import log_softmax as log_softmax
from mirrored.layers.nonlinearities import mish as mish
from mirrored.layers.nonlinearities import relu as relu
from mirrored.layers.nonlinearities import relu6 as relu6
from mirrored.layers.nonlinearities import selu as selu
from mirrored.layers.nonlinearities import silu as silu
from mirrored.layers.nonlinearities import softplus as softplus
from mirrored.layers.nonlinearities import softsign as softsign
from mirrored.layers.nonlinearities import swish as swish
from mirrored.layers.sparse_nonlinearities import glu as glu
from mirrored.layers.sparse_nonlinearities import hard_shrink as hard_shrink
from mirrored.layers.sparse_nonlinearities import soft_shrink as soft_shrink
from mirrored.layers.sparse_nonlinearities import sparse_plus as sparse_plus
from mirrored.layers.sparse_nonlinearities import sparse_sigmoid as sparse_sigmoid
from mirrored.layers.sparse_nonlinearities import sparsemax as sparsemax
from mirrored.layers.sparse_nonlinearities import squareplus as squareplus
from mirrored.layers.sparse_nonlinearities import tanh_shrink as tanh_shrink
from mirrored.layers.sparse_nonlinearities import threshold as threshold
from mirrored.ops import Tensor
from mirrored.ops.activations import ANY_ENTROPY as _ANY_ENTROPY
from mirrored.ops.activations import remember as _remember
from mirrored.serialization.configured import deserialized, serialized

__all__ = [
    "Activation",
    "celu",
    "deserialize",
    "elu",
    "exponential",
    "gelu",
    "get",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "serialize",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
]

_public_module("tf.keras.activations", __name__)

Activation = Callable[[Tensor], Tensor]


def linear(x: Tensor) -> Tensor:
    """Return ``x`` itself.

    Args:
        x: Any tensor.

    Example:
        >>> from mirrored import ops
        >>> linear(ops.constant([-1.0, 2.0])).numpy().tolist()
        [-1.0, 2.0]
    """
    return x


@explained
def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> from mirrored import ops
        >>> sigmoid(ops.constant([0.0])).numpy().tolist()
        [0.5]
    """
    x = ops.convert_to_tensor(x)
    return _remember(ops.sigmoid(x), _ANY_ENTROPY, x)


def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent of ``x``, elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> from mirrored import ops
        >>> tanh(ops.constant([0.0])).numpy().tolist()
        [0.0]
    """
    return ops.tanh(x)


@explained
def softmax(x: Tensor, axis: int | tuple[int, ...] = -1) -> Tensor:
    """Return exp(x) / sum(exp(x)), the sum running along ``axis``.

    Args:
        x: A floating-point tensor of rank 1 or more.
        axis: The axis of the classes, or several of them.

    Raises:
        ValueError: There is no such axis, or one is given twice.

    Example:
        >>> from mirrored import ops
        >>> softmax(ops.constant([[3.0, 3.0]])).numpy().tolist()
        [[0.5, 0.5]]
    """
    x = ops.convert_to_tensor(x)
    if isinstance(axis, tuple | list):
        probabilities = _along_axes(ops.softmax, x, tuple(axis))
    else:
        if -x.ndim <= axis < x.ndim and x.shape[axis] == 1:
            warnings.warn(
                f"You are using a softmax over axis {axis} of a tensor of shape {x.shape}. This "
                "axis has size 1. The softmax operation will always return the value 1, which is "
                "likely not what you intended. Did you mean to use a sigmoid instead?",
                stacklevel=3,
            )
        probabilities = ops.softmax(x, axis=axis)
    return _remember(probabilities, _ANY_ENTROPY, x)


_NO_ACTIVATIONS = frozenset(("Activation", "deserialize", "get", "serialize"))
_NAMES: dict[str, Activation] = {
    name: globals()[name] for name in __all__ if name not in _NO_ACTIVATIONS
}


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
        found = deserialized(identifier, None)
        identifier = found if callable(found) else str(identifier)
    activation: Activation = resolve("activation function", identifier, _NAMES)
    return activation


def serialize(activation: Any) -> Any:
    """Return the configuration of an activation: the name of one that there is.

    Args:
        activation: A function of a tensor.

    Example:
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
        >>> deserialize("relu") is relu
        True
    """
    return deserialized(config, _NAMES, custom_objects)
