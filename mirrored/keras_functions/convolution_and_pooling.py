"""`keras.ops` of images: convolutions and pooling, in Keras' terms."""

from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.layers.shapes import as_data_format, as_sizes
from mirrored.ops import Tensor
from mirrored.ops.conversion import as_tensors
from mirrored.ops.convolution_functions import check_not_both
from mirrored.ops.image_patches import patches
from mirrored.ops.images import (
    FORMATS,
    Layout,
    Windows,
    convolved,
    convolved_by_channel,
    explicit_padding,
    layout,
    pooled,
    sizes_of_transposed,
    transposed_convolution,
)
from mirrored.ops.shaping import expand_dims, squeeze

Sizes = int | Sequence[int]


def _layout(name: str, x: Tensor, data_format: Any) -> Layout:
    """Return the layout of images, of as many spatial axes as they have."""
    rank = x.ndim - 2
    if rank not in FORMATS:
        raise ValueError(
            f"`inputs` must have 1, 2 or 3 spatial axes. Received: inputs of shape {x.shape}"
        )
    first = as_data_format(data_format) == "channels_first"
    return layout(name + "3D" * (rank == 3), rank, FORMATS[rank][first])


def _windows(strides: Any, padding: Any, dilation_rate: Any, images: Layout) -> Windows:
    windows = Windows(
        as_sizes("strides", strides, images.rank),
        explicit_padding(str(padding).upper(), images),
        as_sizes("dilation_rate", dilation_rate, images.rank),
    )
    check_not_both(windows.strides, windows.dilations)
    return windows


def conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> Tensor:
    """Return the convolution of sequences, images or volumes with filters.

    Args:
        inputs: Floats of shape (batch, spatial axes, channels).
        kernel: The same dtype, and shape (spatial axes, channels of a group, outputs).
        strides: The distance of two windows: an integer, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.

    Raises:
        ValueError: Strides and dilations are both above 1, a number is not positive, or the result
            has no elements.
        InvalidArgumentError: Shapes, dtypes or the padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.conv(mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 8))).shape
        (1, 3, 3, 8)
    """
    x, w = as_tensors((inputs, kernel))
    images = _layout("Conv", x, data_format)
    result = convolved(x, w, images, _windows(strides, padding, dilation_rate, images))
    if x.size and not result.size:
        raise ValueError(
            f"The convolution operation resulted in an empty output. Output shape: {result.shape}. "
            "This can happen if the input is too small for the given kernel size, strides, "
            "dilation rate, and padding mode. Please check the input shape and convolution "
            "parameters."
        )
    return result


def conv_transpose(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Sizes = 1,
    padding: str = "valid",
    output_padding: Sizes | None = None,
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> Tensor:
    """Return the gradient of a convolution by its images, which enlarges them.

    Args:
        inputs: Floats of shape (batch, spatial axes, channels).
        kernel: The same dtype, and shape (spatial axes, outputs, channels).
        strides: The strides of the convolution.
        padding: Its padding, "valid" or "same".
        output_padding: How much larger the result is; None: as large as the strides say.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The dilations of the convolution.

    Raises:
        ValueError: Strides and dilations are both above 1, or a number is not positive.
        InvalidArgumentError: Shapes, dtypes or the padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, kernel = mr.ones((1, 4, 4, 2)), mr.ones((3, 3, 5, 2))
        >>> mr.keras.ops.conv_transpose(x, kernel, 2, padding="same").shape
        (1, 8, 8, 5)
    """
    x, w = as_tensors((inputs, kernel))
    images = _layout("Conv", x, data_format)
    windows = _windows(strides, padding, dilation_rate, images)
    more = None
    if output_padding is not None:
        more = as_sizes("output_padding", output_padding, images.rank, least=0)
    sizes: Any = sizes_of_transposed(
        images.spatial(x.shape),
        w.shape[: images.rank],
        windows.strides,
        windows.dilations,
        windows.padding,
        more,
    )
    return transposed_convolution(x, w, sizes, images, windows)


def depthwise_conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> Tensor:
    """Return the convolution of each channel with filters of its own.

    Args:
        inputs: Floats of shape (batch, spatial axes, channels), with one or two spatial axes.
        kernel: The same dtype, and shape (spatial axes, channels, filters of each channel).
        strides: The distance of two windows: an integer, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.

    Raises:
        ValueError: Strides and dilations are both above 1, or a number is not positive.
        InvalidArgumentError: Shapes, dtypes or the padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.depthwise_conv(mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 2))).shape
        (1, 3, 3, 6)
    """
    x, w = as_tensors((inputs, kernel))
    images = _layout("DepthwiseConv", x, data_format)
    return convolved_by_channel(x, w, images, _windows(strides, padding, dilation_rate, images))


def separable_conv(
    inputs: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> Tensor:
    """Return a depthwise convolution, and then sums of its channels.

    Args:
        inputs: Floats of shape (batch, spatial axes, channels), with one or two spatial axes.
        depthwise_kernel: Shape (spatial axes, channels, filters of each channel).
        pointwise_kernel: Shape (1 for each spatial axis, channels of the first result, outputs).
        strides: The distance of two windows: an integer, or one for each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.

    Raises:
        ValueError: Strides and dilations are both above 1, or a number is not positive.
        InvalidArgumentError: Shapes, dtypes or the padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, first, second = mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 2)), mr.ones((1, 1, 6, 4))
        >>> mr.keras.ops.separable_conv(x, first, second).shape
        (1, 3, 3, 4)
    """
    middle = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(middle, pointwise_kernel, data_format=data_format)


def _pool(
    op: str, inputs: Any, pool_size: Any, strides: Any, padding: Any, data_format: Any
) -> Tensor:
    (x,) = as_tensors((inputs,))
    images = _layout(op, x, data_format)
    size = as_sizes("pool_size", pool_size, images.rank)
    windows = _windows(size if strides is None else strides, padding, 1, images)
    return pooled(x, size, images, windows)


def max_pool(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Return the largest element of each window, channel by channel.

    Args:
        inputs: Floats or integers of shape (batch, spatial axes, channels).
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows; None: as the windows' size.
        padding: "valid" or "same".
        data_format: "channels_last", which None stands for, or "channels_first".

    Raises:
        ValueError: A number is not positive.
        InvalidArgumentError: The shape or the padding does not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.max_pool(mr.ones((1, 4, 4, 3)), 2).shape
        (1, 2, 2, 3)
    """
    return _pool("MaxPool", inputs, pool_size, strides, padding, data_format)


def average_pool(
    inputs: TensorLike,
    pool_size: Sizes,
    strides: Sizes | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Return the mean of each window, channel by channel.

    Args:
        inputs: Floats of shape (batch, spatial axes, channels).
        pool_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows; None: as the windows' size.
        padding: "valid" or "same"; padding is not counted.
        data_format: "channels_last", which None stands for, or "channels_first".

    Raises:
        ValueError: A number is not positive.
        InvalidArgumentError: The shape or the padding does not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.average_pool(mr.ones((1, 4, 4, 3)), 2).shape
        (1, 2, 2, 3)
    """
    return _pool("AvgPool", inputs, pool_size, strides, padding, data_format)


def extract_patches(
    images: TensorLike,
    size: Sizes,
    strides: Sizes | None = None,
    dilation_rate: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Return the elements of each patch of images or volumes, row by row, as channels of one pixel.

    Args:
        images: Shape (batch, rows, columns, channels), or without the batch; volumes, where the
            size has three numbers.
        size: The size of patches: an integer, or one for each spatial axis.
        strides: The distance of two patches; None: the size.
        dilation_rate: The distance of two elements of a patch.
        padding: "valid", or "same" for zeros around images.
        data_format: "channels_last", which None stands for, or "channels_first".

    Raises:
        TypeError: The size is no integer, and no sequence.
        ValueError: The size has a wrong number of integers, the images have a wrong number of axes,
            or strides and dilations are both above 1.
        InvalidArgumentError: Numbers or the padding are out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.extract_patches(mr.ones((2, 8, 8, 3)), 4).shape
        (2, 2, 2, 48)
    """
    if not isinstance(size, int | list | tuple):
        raise TypeError(
            f"Invalid `size` argument. Expected an int or a tuple. Received: size={size} of type "
            f"{type(size).__name__}"
        )
    rank = 2 if isinstance(size, int) else len(size)
    if rank not in (2, 3):
        raise ValueError(
            "Invalid `size` argument. Expected a tuple of length 2 or 3. Received: "
            f"size={size} with length {rank}"
        )
    (x,) = as_tensors((images,))
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(
            f"`images` must have {rank + 1} or {rank + 2} axes for patches of {rank} spatial axes. "
            f"Received: images of shape {x.shape}"
        )
    batch = x if x.ndim == rank + 2 else expand_dims(x, 0)
    places = _layout("Conv", batch, data_format)
    windows = _windows(size if strides is None else strides, padding, dilation_rate, places)
    outputs = patches(batch, as_sizes("size", size, rank), places, windows)
    return outputs if batch is x else squeeze(outputs, 0)


def extract_patches_3d(
    volumes: TensorLike,
    size: Sizes,
    strides: Sizes | None = None,
    dilation_rate: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Return the elements of each patch of volumes, as channels of one element.

    Args:
        volumes: Shape (batch, three spatial axes, channels), or without the batch.
        size: As for `extract_patches`, with three numbers.
        strides: As there.
        dilation_rate: As there.
        padding: As there.
        data_format: As there.

    Raises:
        ValueError: As there.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.extract_patches_3d(mr.ones((4, 4, 4, 3)), 2).shape
        (2, 2, 2, 24)
    """
    sizes = (size,) * 3 if isinstance(size, int) else size
    return extract_patches(volumes, sizes, strides, dilation_rate, padding, data_format)


explain_functions(__name__)
