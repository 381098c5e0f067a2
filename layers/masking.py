"""Masks steps of sequences that only fill up a batch: those whose features are all one value."""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.layers.layer import LayerOptions, SameShape
from mirrored.ops import Tensor
from mirrored.ops.masks import masked
from mirrored.ops.spec import FLOATS


@explained
class Masking(SameShape):
    """Masks each step whose features are all one value: later layers and the loss leave it out.

    Its features become 0, and the outputs carry the mask, of the inputs' shape without its last
    axis, False where a step is masked.

    Args:
        mask_value: The value.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Example:
        >>> outputs = Masking(-1.0)([[[2.0, -1.0], [-1.0, -1.0]]])
        >>> outputs.numpy().tolist()
        [[[2.0, -1.0], [0.0, 0.0]]]
        >>> Masking().compute_mask(outputs).numpy().tolist()
        [[True, False]]
    """

    _keeps_integers = True

    def __init__(self, mask_value: Any = 0.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.mask_value = mask_value

    def call(self, inputs: Tensor) -> Tensor:
        """Return the inputs, 0 where they are masked.

        Args:
            inputs: Shape (batch, ..., features).
        """
        mask = self.compute_mask(inputs)
        outputs = ops.where(ops.expand_dims(mask, -1), inputs, ops.zeros((), inputs.dtype))
        return masked(outputs, mask)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return where a feature is another than the value.

        Args:
            inputs: Shape (batch, ..., features).
            mask: A mask that they have already, which does not matter.
        """
        if not hasattr(inputs, "dtype"):
            inputs = ops.convert_to_tensor(inputs)
        if inputs.dtype not in FLOATS:  # The value may be none of theirs.
            inputs = ops.cast(inputs, ops.floatx())
        return ops.reduce_any(ops.not_equal(inputs, self.mask_value), axis=-1)
