"""Pooling over all spatial axes: one vector per example, of a value per channel.

The spatial axes may have any size; the channels stay.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.layers.layer import LayerOptions
from mirrored.layers.shapes import Shape, as_data_format
from mirrored.layers.spatial import SpatialLayer
from mirrored.ops import Tensor


class GlobalPooling(SpatialLayer):
    """A layer that reduces the spatial axes, as a subclass does in `call`."""

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

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape without the spatial axes, or with 1 in their place."""
        before, sizes, behind = self._around(input_shape)
        return (*before, *((1,) * len(sizes) if self.keepdims else ()), *behind)


class GlobalAveragePooling(GlobalPooling):
    """Takes the mean of each channel: of integers, too, a float."""

    def call(self, inputs: Tensor) -> Tensor:
        """Return one vector per example.

        Args:
            inputs: Shape (batch, spatial axes, channels), or (batch, channels, spatial axes) with
                "channels_first".
        """
        values = ops.cast(inputs, self.compute_dtype)
        return ops.reduce_mean(values, self._spatial_axes, keepdims=self.keepdims)


class GlobalMaxPooling(GlobalPooling):
    """Takes the largest value of each channel."""

    _keeps_integers = True

    def call(self, inputs: Tensor) -> Tensor:
        """Return one vector per example.

        Args:
            inputs: Shape (batch, spatial axes, channels), or (batch, channels, spatial axes) with
                "channels_first".
        """
        return ops.reduce_max(inputs, self._spatial_axes, keepdims=self.keepdims)


class GlobalAveragePooling1D(GlobalAveragePooling):
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

    _rank = 1
    _makes_masks = False

    def call(self, inputs: Tensor, mask: TensorLike | None = None) -> Tensor:
        """Return one vector an example.

        Args:
            inputs: Shape (batch, steps, features), or (batch, features, steps) where these come
                first.
            mask: Which steps the mean is over, of shape (batch, steps); None: over all.
        """
        if mask is None:
            return super().call(inputs)
        (axis,) = self._spatial_axes
        inputs = ops.cast(inputs, self.compute_dtype)
        counts = ops.expand_dims(ops.cast(mask, ops.bool_), 3 - axis)
        values = ops.where(counts, inputs, ops.zeros((), inputs.dtype))
        total = ops.reduce_sum(values, axis, keepdims=self.keepdims)
        steps = ops.cast(counts, inputs.dtype)
        return total / ops.reduce_sum(steps, axis, keepdims=self.keepdims)

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> None:
        """Return None: there are no steps any more.

        Args:
            inputs: The inputs.
            mask: Their mask.
        """


class GlobalAveragePooling2D(GlobalAveragePooling):
    """Takes the mean over all rows and columns of each image.

    Args:
        data_format: "channels_last", the default: inputs of shape (batch, rows, columns, channels);
            or "channels_first": (batch, channels, rows, columns).
        keepdims: Whether the spatial axes stay, with size 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> GlobalAveragePooling2D()([[[[1.0, 2.0], [3.0, 6.0]]]]).numpy().tolist()
        [[2.0, 4.0]]
    """

    _rank = 2


class GlobalAveragePooling3D(GlobalAveragePooling):
    """Takes the mean over the spatial axes of each volume.

    Args:
        data_format: "channels_last", the default: the channels' axis is the last one; or
            "channels_first": it is the one behind the batch's.
        keepdims: Whether the spatial axes stay, with size 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> GlobalAveragePooling3D(keepdims=True)(np.ones((5, 4, 4, 4, 3))).shape
        (5, 1, 1, 1, 3)
    """

    _rank = 3


class GlobalMaxPooling1D(GlobalMaxPooling):
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

    _rank = 1


class GlobalMaxPooling2D(GlobalMaxPooling):
    """Takes the largest value over all rows and columns of each image.

    Args:
        data_format: "channels_last", the default: inputs of shape (batch, rows, columns, channels);
            or "channels_first": (batch, channels, rows, columns).
        keepdims: Whether the spatial axes stay, with size 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> GlobalMaxPooling2D()([[[[1.0, 7.0], [3.0, 6.0]]]]).numpy().tolist()
        [[3.0, 7.0]]
    """

    _rank = 2


class GlobalMaxPooling3D(GlobalMaxPooling):
    """Takes the largest value over the spatial axes of each volume.

    Args:
        data_format: "channels_last", the default: the channels' axis is the last one; or
            "channels_first": it is the one behind the batch's.
        keepdims: Whether the spatial axes stay, with size 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> GlobalMaxPooling3D(keepdims=True)(np.ones((5, 4, 4, 4, 3))).shape
        (5, 1, 1, 1, 3)
    """

    _rank = 3


GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
