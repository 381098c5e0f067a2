"""Activations as layers: any function by its name, and those with settings or weights."""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import takes_older
from mirrored._numbers import as_real
from mirrored._types import AxisLike, Identifier
from mirrored.layers import activations, constraints, initializers, regularizers
from mirrored.layers.layer import LayerOptions, SameShape
from mirrored.layers.layer_normalization import as_axes
from mirrored.layers.shapes import Shape
from mirrored.layers.weights import add_configured
from mirrored.ops import Tensor
from mirrored.variables import Variable


class Activation(SameShape):
    """Applies an activation function.

    Args:
        activation: A name, a function from a tensor to a tensor, or None for the identity.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no activation of that name.

    Example:
        >>> Activation("relu")([[-1.0, 2.0]]).numpy().tolist()
        [[0.0, 2.0]]
    """

    _keeps_integers = True

    def __init__(self, activation: Identifier, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.activation = activations.get(activation)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of ``inputs``, of any shape that it accepts."""
        return self.activation(inputs)


class ReLU(SameShape):
    """Computes max(inputs, 0), or what its settings make of that.

    From ``threshold`` on the inputs pass, up to ``max_value``; below it they become
    negative_slope * (inputs - threshold).

    Args:
        max_value: The largest output; None: any.
        negative_slope: The slope below the threshold, 0 or more.
        threshold: Where inputs begin to pass, 0 or more.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative.

    Example:
        >>> ReLU(max_value=2.0, negative_slope=0.5)([[-1.0, 1.0, 3.0]]).numpy().tolist()
        [[-0.5, 1.0, 2.0]]
    """

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.max_value = None
        if max_value is not None:
            self.max_value = _not_negative("max_value", "ReLU", max_value)
        self.negative_slope = _not_negative("negative_slope", "ReLU", negative_slope)
        self.threshold = _not_negative("threshold", "ReLU", threshold)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of ``inputs``, of any shape."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


@takes_older({"alpha": "negative_slope"})
class LeakyReLU(SameShape):
    """Computes inputs where they are positive, and negative_slope * inputs elsewhere.

    Args:
        negative_slope: The slope below 0, 0 or more.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``negative_slope`` is negative.

    Example:
        >>> LeakyReLU(0.5)([[-2.0, 2.0]]).numpy().tolist()
        [[-1.0, 2.0]]
    """

    def __init__(self, negative_slope: float = 0.3, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.negative_slope = _not_negative("negative_slope", "Leaky ReLU", negative_slope)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of ``inputs``, of any shape."""
        return activations.leaky_relu(inputs, self.negative_slope)


class ELU(SameShape):
    """Computes inputs where they are positive, and alpha * (exp(inputs) - 1) elsewhere.

    Clevert, Unterthiner and Hochreiter, 2015: https://arxiv.org/abs/1511.07289

    Args:
        alpha: How far negative outputs go.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Example:
        >>> ELU(2.0)([[-100.0, 2.0]]).numpy().tolist()
        [[-2.0, 2.0]]
    """

    _automatic = True

    def __init__(self, alpha: float = 1.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of ``inputs``, of any shape."""
        return activations.elu(inputs, self.alpha)


class PReLU(SameShape):
    """Computes inputs where they are positive, and alpha * inputs elsewhere: ``alpha`` is learnt.

    He et al., Delving Deep into Rectifiers, 2015: https://arxiv.org/abs/1502.01852

    Args:
        alpha_initializer: What ``alpha`` starts as.
        alpha_regularizer: The penalty on ``alpha``, if any.
        alpha_constraint: What optimizers bring ``alpha`` back to after a step, if anything.
        shared_axes: The axes along which ``alpha`` is the same, from 1; None: none, so that it has
            the shape of an example.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``shared_axes`` is no integer and no list of them.
        ValueError: A name is unknown.

    Example:
        >>> PReLU(alpha_initializer="ones")([[-2.0, 2.0]]).numpy().tolist()
        [[-2.0, 2.0]]
    """

    alpha: Variable

    def __init__(
        self,
        alpha_initializer: Identifier = "Zeros",
        alpha_regularizer: Identifier | None = None,
        alpha_constraint: Identifier | None = None,
        shared_axes: AxisLike | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.alpha_initializer = initializers.get(alpha_initializer)
        self.alpha_regularizer = regularizers.get(alpha_regularizer)
        self.alpha_constraint = constraints.get(alpha_constraint)
        self.shared_axes: list[int] | None = None
        if shared_axes is not None:
            axes = as_axes(shared_axes)
            self.shared_axes = axes if isinstance(axes, list) else [axes]

    def build(self, input_shape: Shape) -> None:
        """Create alpha."""
        shape = list(input_shape[1:])
        for axis in self.shared_axes or ():
            shape[axis - 1] = 1
        self.alpha = add_configured(self, "alpha", tuple(shape))

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of ``inputs``, of shape (batch, ...)."""
        return ops.relu(inputs) - self.alpha * ops.relu(-inputs)


class Softmax(SameShape):
    """Makes probabilities of inputs: exp(inputs), divided by their sum over axes.

    Args:
        axis: The axis, or several in a list.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``axis`` is no integer and no list of them.

    Example:
        >>> Softmax()([[0.0, 0.0]]).numpy().tolist()
        [[0.5, 0.5]]
    """

    def __init__(self, axis: AxisLike = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = as_axes(axis)

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the probabilities.

        Args:
            inputs: Of a shape that has the axes.
            mask: Which of the inputs count, of a shape that broadcasts to theirs: the others get
                the probability 0. None: all count.

        Raises:
            ValueError: The mask does not broadcast to the inputs.
        """
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        if mask is None:
            return activations.softmax(inputs, axis)
        _check_broadcasts(mask, inputs)
        counts = mask if mask.dtype == ops.bool_ else ops.greater(mask, 0.5)
        low = ops.constant(-1e9, inputs.dtype)
        outputs = activations.softmax(ops.where(counts, inputs, low), axis)
        return ops.where(counts, outputs, ops.zeros((), outputs.dtype))


def _check_broadcasts(mask: Tensor, inputs: Tensor) -> None:
    pairs = zip(mask.shape[::-1], inputs.shape[::-1], strict=False)
    if mask.ndim > inputs.ndim or any(size not in (1, other) for size, other in pairs):
        raise ValueError(
            "The `mask` must be broadcastable to `inputs`: each size must be 1 or the size of "
            f"the inputs, without more axes. Received: inputs.shape={inputs.shape}, "
            f"mask.shape={mask.shape}"
        )


def _not_negative(name: str, layer: str, value: Any) -> float:
    number = as_real(value)
    if number is None or not number >= 0:
        raise ValueError(
            f"{name} of a {layer} layer cannot be None or a negative value. Received: "
            f"{name}={value!r}"
        )
    return number
