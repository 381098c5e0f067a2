"""Makes a vector of every example, as a dense layer wants it.

The batch axis stays, whatever its size: an empty shard has no examples to infer one from.
"""

import math
from typing import Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, as_data_format
from mirrored.ops import Tensor


@explained
class Flatten(Layer):
    """Joins all axes but the first into one.

    Args:
        data_format: "channels_last", the default; or "channels_first": axis 1 becomes the last one
            before, so that the vector is that of the other order.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> Flatten()(np.ones((32, 8, 8))).shape
        (32, 64)
    """

    _keeps_integers = True

    def __init__(self, data_format: str | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is a batch axis."""
        self._require_rank(input_shape, 1)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), as (batch, product of the other sizes)."""
        if self.data_format == "channels_first" and inputs.ndim > 2:
            inputs = ops.transpose(inputs, (0, *range(2, inputs.ndim), 1))
        return ops.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch's size, and the product of the others: None where one is None."""
        known = [size for size in input_shape[1:] if size is not None]
        unknown = len(known) < len(input_shape) - 1
        return (input_shape[0], None if unknown else math.prod(known))
