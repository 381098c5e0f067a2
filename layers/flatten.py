"""Makes a vector of every example, as a dense layer wants it.

The batch axis stays, whatever its size: an empty shard has no examples to infer one from.
"""

import math

from mirrored import ops
from mirrored.layers.layer import Layer
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor


class Flatten(Layer):
    """Joins all axes but the first into one.

    Args:
        name, trainable, dtype, input_shape: As for every layer.

    Example:
        >>> import numpy as np
        >>> Flatten()(np.ones((32, 8, 8))).shape
        (32, 64)
    """

    _keeps_integers = True

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is a batch axis."""
        self._require_rank(input_shape, 1)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), as (batch, product of the other sizes)."""
        return ops.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch's size, and the product of the others: None where one is None."""
        known = [size for size in input_shape[1:] if size is not None]
        unknown = len(known) < len(input_shape) - 1
        return (input_shape[0], None if unknown else math.prod(known))
