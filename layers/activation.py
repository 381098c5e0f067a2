"""An activation function as a layer of its own.

For models that name it apart from the layer whose outputs it is applied to.
"""

from typing import Any, Unpack

from mirrored._arguments import explained
from mirrored.layers import activations
from mirrored.layers.layer import LayerOptions, SameShape
from mirrored.ops import Tensor


@explained
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

    _supports_masking = True
    _keeps_integers = True

    def __init__(self, activation: Any, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.activation = activations.get(activation)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of ``inputs``, of any shape that it accepts."""
        return self.activation(inputs)
