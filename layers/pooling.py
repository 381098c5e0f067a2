"""Pooling layers: the largest or the mean element of each window, channel by channel."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

from mirrored.layers.layer import LayerOptions
from mirrored.layers.shapes import Shape, as_data_format, as_sizes, windowed_sizes
from mirrored.layers.spatial import SpatialLayer
from mirrored.ops import Tensor
from mirrored.ops.images import Layout, Windows, pooled

Sizes = int | Sequence[int]


class _Pooling(SpatialLayer):
    """What all have in common; a subclass says of how many axes, and what is computed."""

    _built_from_start = True
    _op: ClassVar[str] = "AvgPool"

    def __init__(
        self,
        pool_size: Sizes,
        strides: Sizes | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.pool_size = as_sizes("pool_size", pool_size, self._rank)
        self.strides = as_sizes("strides", pool_size if strides is None else strides, self._rank)
        self.padding = str(padding).lower()
        if self.padding not in ("valid", "same"):
            raise ValueError(
                "Argument `padding` must be either 'valid' or 'same'. Received: "
                f"padding={padding!r}"
            )
        self.data_format = as_data_format(data_format)

    def call(self, inputs: Tensor) -> Tensor:
        """Return a value for each window and channel.

        Args:
            inputs: Shape (batch, spatial axes, channels), or (batch, channels, spatial axes) with
                "channels_first".
        """
        name = self._op + "3D" * (self._rank == 3)
        images = Layout(self._rank, self.data_format == "channels_first", name)
        windows = Windows(self.strides, self.padding.upper(), (1,) * self._rank)
        return pooled(inputs, self.pool_size, images, windows)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape with the number of windows along each spatial axis."""
        before, sizes, behind = self._around(input_shape)
        ones = (1,) * self._rank
        windows = windowed_sizes(sizes, self.pool_size, self.strides, ones, self.padding)
        return (*before, *windows, *behind)


class _MaxPooling(_Pooling):
    """The largest elements; windows of 2 by default."""

    _op = "MaxPool"

    def __init__(
        self,
        pool_size: Sizes = 2,
        strides: Sizes | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(pool_size, strides, padding, data_format, **options)


class MaxPooling1D(_MaxPooling):
    """Takes the largest element of each window of sequences of shape (batch, steps, channels).

    Args:
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise; None: as the windows' size.
        padding: "valid": no padding; "same": as many windows as inputs, divided by the stride and
            rounded up. Padding is never counted.
        data_format: "channels_last", which None stands for, or "channels_first".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is not positive, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> MaxPooling1D(2)(np.ones((4, 10, 3))).shape
        (4, 5, 3)
    """

    _rank = 1


class MaxPooling2D(_MaxPooling):
    """Takes the largest element of each window of images of shape (batch, rows, columns, channels).

    Args:
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise; None: as the windows' size.
        padding: "valid": no padding; "same": as many windows as inputs, divided by the stride and
            rounded up. Padding is never counted.
        data_format: "channels_last", which None stands for, or "channels_first".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is not positive, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> MaxPooling2D(2)(np.ones((4, 8, 8, 3))).shape
        (4, 4, 4, 3)
    """

    _rank = 2


class MaxPooling3D(_MaxPooling):
    """Takes the largest element of each window of volumes (batch, depth, rows, columns, channels).

    Args:
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise; None: as the windows' size.
        padding: "valid": no padding; "same": as many windows as inputs, divided by the stride and
            rounded up. Padding is never counted.
        data_format: "channels_last", which None stands for, or "channels_first".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is not positive, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> MaxPooling3D(2)(np.ones((2, 5, 5, 5, 1))).shape
        (2, 2, 2, 2, 1)
    """

    _rank = 3


class AveragePooling1D(_Pooling):
    """Takes the mean of each window of sequences of shape (batch, steps, channels).

    Args:
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise; None: as the windows' size.
        padding: "valid": no padding; "same": as many windows as inputs, divided by the stride and
            rounded up. Padding is never counted.
        data_format: "channels_last", which None stands for, or "channels_first".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is not positive, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> AveragePooling1D(2)(np.ones((4, 10, 3))).shape
        (4, 5, 3)
    """

    _rank = 1


class AveragePooling2D(_Pooling):
    """Takes the mean of each window of images of shape (batch, rows, columns, channels).

    Args:
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise; None: as the windows' size.
        padding: "valid": no padding; "same": as many windows as inputs, divided by the stride and
            rounded up. Padding is never counted.
        data_format: "channels_last", which None stands for, or "channels_first".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is not positive, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> AveragePooling2D(2)(np.ones((4, 8, 8, 3))).shape
        (4, 4, 4, 3)
    """

    _rank = 2


class AveragePooling3D(_Pooling):
    """Takes the mean of each window of volumes (batch, depth, rows, columns, channels).

    Args:
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise; None: as the windows' size.
        padding: "valid": no padding; "same": as many windows as inputs, divided by the stride and
            rounded up. Padding is never counted.
        data_format: "channels_last", which None stands for, or "channels_first".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is not positive, or a name is unknown.

    Example:
        >>> import numpy as np
        >>> AveragePooling3D(2)(np.ones((2, 5, 5, 5, 1))).shape
        (2, 2, 2, 2, 1)
    """

    _rank = 3


# Keras' short names.
MaxPool1D = MaxPooling1D
AvgPool1D = AveragePooling1D
MaxPool2D = MaxPooling2D
AvgPool2D = AveragePooling2D
MaxPool3D = MaxPooling3D
AvgPool3D = AveragePooling3D
