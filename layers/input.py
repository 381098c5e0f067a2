"""Where a functional model begins: the shape and dtype of one batch of examples.

``Input`` returns the placeholder; ``InputLayer`` is the layer that stands for it in a summary.
"""

from typing import Any

from mirrored._arguments import explained
from mirrored.layers.layer import Layer
from mirrored.layers.shapes import Shape, as_shape, check_matches
from mirrored.layers.symbolic import SymbolicTensor
from mirrored.ops import Tensor


@explained
class InputLayer(Layer):
    """Returns what it is called on; its ``output`` begins a functional model.

    Args:
        shape: The shape of one example, without the batch axis.
        batch_size: The size of the batch axis, None for any.
        dtype: The dtype of the values; the default float for None.
        name: Its name; ``input_layer``, ``input_layer_1``, ... for None.

    Raises:
        ValueError: ``shape`` or ``batch_size`` cannot be one.

    Example:
        >>> InputLayer(shape=(28, 28)).output.shape
        (None, 28, 28)
    """

    def __init__(
        self,
        shape: object,
        batch_size: int | None = None,
        dtype: Any = None,
        *,
        name: str | None = None,
    ) -> None:
        batch_shape = as_shape((batch_size, *as_shape(shape)))
        super().__init__(name=name, dtype=dtype)
        self.batch_shape = batch_shape
        self.build(batch_shape)
        self._output_shape = batch_shape
        self.output = SymbolicTensor(batch_shape, self.dtype, self.name, (self, None))

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has the shape that was announced."""
        check_matches(self.name, self.batch_shape, input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``."""
        return inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape``."""
        return input_shape


@explained
def Input(
    shape: object = None,
    batch_size: int | None = None,
    dtype: Any = None,
    *,
    name: str | None = None,
) -> SymbolicTensor:
    """Return the placeholder that a functional model begins with.

    Args:
        shape: The shape of one example, without the batch axis, as in ``(64,)``.
        batch_size: The size of the batch axis, None for any.
        dtype: The dtype of the values; the default float for None.
        name: The input's name.

    Raises:
        ValueError: ``shape`` is missing, or it or ``batch_size`` cannot be one.

    Example:
        >>> Input(shape=(64,)).shape
        (None, 64)
    """
    if shape is None:
        raise ValueError("You must pass a `shape` argument. For 64 numbers: `Input(shape=(64,))`.")
    return InputLayer(shape, batch_size, dtype, name=name).output
