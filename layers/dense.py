"""The fully connected layer: every output is a weighted sum of all inputs.

Its maths is one matrix product; further leading axes are folded into the batch and back.
"""

import math
from typing import Unpack

from mirrored import ops
from mirrored._numbers import as_positive
from mirrored._types import Identifier
from mirrored.layers import activations, constraints, initializers, regularizers
from mirrored.layers.layer import Layer, PlainOptions
from mirrored.layers.shapes import Shape, require_rank
from mirrored.layers.weights import add_configured, not_quantized, overridable
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS
from mirrored.variables import Variable


class Dense(Layer):
    """Computes activation(inputs @ kernel + bias) over the last axis.

    Args:
        units: The size of the output's last axis.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel, of shape (inputs, units), starts as; None is
            "glorot_uniform", as in ``add_weight``.
        bias_initializer: What the bias, of shape (units,), starts as; None likewise.
        kernel_regularizer: The penalty on the kernel, if any.
        bias_regularizer: The penalty on the bias, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring the kernel back to after a step, if anything.
        bias_constraint: What they bring the bias back to.
        quantization_config: None, as Keras' configurations say: weights are not quantized.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``units`` is not a positive integer, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> layer = Dense(10, activation="softmax")
        >>> layer(np.ones((32, 64))).shape
        (32, 10)
        >>> [weight.shape for weight in layer.weights]
        [(64, 10), (10,)]
    """

    _supports_masking = True

    kernel: Variable = overridable()
    bias: Variable | None

    def __init__(
        self,
        units: int,
        activation: Identifier | None = None,
        use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        kernel_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        *,
        quantization_config: None = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.units = as_positive("units", units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.quantization_config = not_quantized(quantization_config)

    def build(self, input_shape: Shape) -> None:
        """Create the kernel, and the bias where there is one."""
        add_configured(self, "kernel", (input_shape[-1], self.units))
        self.bias = add_configured(self, "bias", (self.units,)) if self.use_bias else None

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has two axes or more, the last as the kernel's."""
        require_rank(self.name, input_shape, 2)
        if self.built and input_shape[-1] != self.kernel.shape[0]:
            raise ValueError(
                f'Input 0 of layer "{self.name}" is incompatible with the layer: expected axis '
                f"-1 of input shape to have value {self.kernel.shape[0]}, but received input "
                f"with shape {input_shape}"
            )

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activations.

        Args:
            inputs: Shape (batch, ..., inputs).

        Returns:
            Shape (batch, ..., units).
        """
        *leading, features = inputs.shape
        folded = inputs if inputs.dtype in FLOATS else ops.cast(inputs, self.compute_dtype)
        if len(leading) > 1:
            folded = ops.reshape(folded, (math.prod(leading), features))
        outputs = ops.matmul(folded, self.kernel)
        if self.bias is not None:
            outputs = ops.bias_add(outputs, self.bias)
        if len(leading) > 1:
            outputs = ops.reshape(outputs, (*leading, self.units))
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape`` with the last axis of size ``units``."""
        return (*input_shape[:-1], self.units)
