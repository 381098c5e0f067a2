"""The functions that a layer may apply to its outputs, by the names that Keras gives them.

Each is one op; they have their own names so that ``activation="relu"`` can be looked up.
"""

from collections.abc import Callable

from mirrored import ops
from mirrored.layers.identifiers import resolve
from mirrored.ops import Tensor

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


def relu(x: Tensor) -> Tensor:
    """Return max(x, 0), elementwise.

    Args:
        x: A tensor of numbers, any shape.

    Example:
        >>> from mirrored import ops
        >>> relu(ops.constant([-1.0, 2.0])).numpy().tolist()
        [0.0, 2.0]
    """
    return ops.relu(x)


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> from mirrored import ops
        >>> sigmoid(ops.constant([0.0])).numpy().tolist()
        [0.5]
    """
    return ops.sigmoid(x)


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


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Return exp(x) / sum(exp(x)), the sum running along ``axis``.

    Args:
        x: A floating-point tensor of rank 1 or more.
        axis: The axis of the classes.

    Example:
        >>> from mirrored import ops
        >>> softmax(ops.constant([[3.0, 3.0]])).numpy().tolist()
        [[0.5, 0.5]]
    """
    return ops.softmax(x, axis=axis)


_NAMES: dict[str, Activation] = {
    "linear": linear,
    "relu": relu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "softmax": softmax,
}


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
    return resolve("activation function", identifier, _NAMES)
