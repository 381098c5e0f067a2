"""Pooling over all steps of a sequence: one vector an example.

The steps may be any number; the features stay.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, as_data_format, require_rank
from mirrored.ops import Tensor


class GlobalPooling1D(Layer):
    """What both have in common: a subclass reduces the steps in `_reduced`."""

    _built_from_start = True

    def __init__(
        self,
        data_format: str | None = None,
        keepdims: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)
        self.keepdims = bool(keepdims)
        self._axis = 1 if self.data_format == "channels_last" else 2

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless each example is a sequence of vectors."""
        require_rank(self.name, input_shape, 3, exactly=3)

    def call(self, inputs: Tensor) -> Tensor:
        """Return one vector an example.

        Args:
            inputs: Shape (batch, steps, features), or (batch, features, steps) where these come
                first.
        """
        return self._reduced(inputs)

    def _reduced(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape without the steps, or with 1 in their place."""
        sizes: list[Any] = list(input_shape)
        sizes[self._axis : self._axis + 1] = [1] if self.keepdims else []
        return tuple(sizes)


class GlobalAveragePooling1D(GlobalPooling1D):
    """Takes the mean over the steps of each sequence.

    Args:
        data_format: "channels_last", the default: the features' axis is the last one; or
            "channels_first": the steps' is.
        keepdims: Whether the steps' axis stays, with size 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> GlobalAveragePooling1D()([[[1.0, 2.0], [3.0, 6.0]]]).numpy().tolist()
        [[2.0, 4.0]]
    """

    _makes_masks = False

    def call(self, inputs: Tensor, mask: TensorLike | None = None) -> Tensor:
        """Return one vector an example.

        Args:
            inputs: Shape (batch, steps, features), or (batch, features, steps) where these come
                first.
            mask: Which steps the mean is over, of shape (batch, steps); None: over all.
        """
        if mask is None:
            return self._reduced(inputs)
        counts = ops.expand_dims(ops.cast(mask, ops.bool_), 3 - self._axis)
        values = ops.where(counts, inputs, ops.zeros((), inputs.dtype))
        total = ops.reduce_sum(values, self._axis, keepdims=self.keepdims)
        steps = ops.cast(counts, inputs.dtype)
        return total / ops.reduce_sum(steps, self._axis, keepdims=self.keepdims)

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> None:
        """Return None: there are no steps any more.

        Args:
            inputs: The inputs.
            mask: Their mask.
        """

    def _reduced(self, inputs: Tensor) -> Tensor:
        return ops.reduce_mean(inputs, self._axis, keepdims=self.keepdims)


class GlobalMaxPooling1D(GlobalPooling1D):
    """Takes the largest value over the steps of each sequence.

    Args:
        data_format: "channels_last", the default: the features' axis is the last one; or
            "channels_first": the steps' is.
        keepdims: Whether the steps' axis stays, with size 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> GlobalMaxPooling1D()([[[1.0, 7.0], [3.0, 6.0]]]).numpy().tolist()
        [[3.0, 7.0]]
    """

    def _reduced(self, inputs: Tensor) -> Tensor:
        return ops.reduce_max(inputs, self._axis, keepdims=self.keepdims)


GlobalAvgPool1D = GlobalAveragePooling1D
GlobalMaxPool1D = GlobalMaxPooling1D
