"""TensorFlow's functions for convolution, which choose the layout and the padding of an op.

Filters have the axes (spatial axes, channels, outputs), those of a transposed convolution (spatial
axes, outputs, channels).
"""

from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.images import (
    Layout,
    Windows,
    convolved,
    convolved_by_channel,
    explicit_padding,
    layout,
    per_axis,
    transposed_convolution,
)
from mirrored.ops.spec import Shape, as_integer, as_integers
from mirrored.ops.tensor import Tensor

# "SAME", "VALID", or a pair of numbers for each axis.
Padding = str | Sequence[Sequence[int]]


def as_windows(strides: Any, padding: Any, dilations: Any, images: Layout) -> Windows:
    """Return how windows lie, as these arguments of TensorFlow's functions say."""
    return Windows(
        per_axis("strides", strides, images),
        explicit_padding(padding, images),
        per_axis("dilations", dilations, images),
    )


def _name(rank: int) -> str:
    return "Conv3D" if rank == 3 else "Conv2D"


def _convolution(
    rank: int,
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Tensor:
    images = layout(_name(rank), rank, data_format)
    return convolved(input, filters, images, as_windows(strides, padding, dilations, images))


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: AxisLike,
    padding: Padding,
    data_format: str | None = "NWC",
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution of sequences with filters: sums of products over windows.

    Args:
        input: Floats of shape (batch, width, channels); there may be
            more axes of the batch in front.
        filters: The same dtype, and shape (width, channels of a group,
            outputs). With fewer channels than the input has there are groups: each computes its
            part of the outputs.
        stride: The distance of two windows: an integer, or one for each spatial axis.
        padding: "SAME": as many outputs as the input has elements, divided by the stride and
            rounded up; "VALID": no padding; or the elements before and after each axis of the
            input.
        data_format: "NWC", or "NCW" with channels before the spatial axes.
        dilations: The distance of two elements that a window reads: likewise.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, strides, dilations or padding do not fit.
        ValueError: Strides, dilations or padding have a wrong number of elements.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.conv1d(mr.ones((1, 5, 2)), mr.ones((3, 2, 4)), 1, "VALID").shape
        (1, 3, 4)
    """
    return _convolution(1, input, filters, stride, padding, data_format, dilations)


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = "NHWC",
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution of images with filters: sums of products over windows.

    Args:
        input: Floats of shape (batch, height, width, channels); there may be
            more axes of the batch in front.
        filters: The same dtype, and shape (height, width, channels of a group,
            outputs). With fewer channels than the input has there are groups: each computes its
            part of the outputs.
        strides: The distance of two windows: an integer, or one for each spatial axis.
        padding: "SAME": as many outputs as the input has elements, divided by the stride and
            rounded up; "VALID": no padding; or the elements before and after each axis of the
            input.
        data_format: "NHWC", or "NCHW" with channels before the spatial axes.
        dilations: The distance of two elements that a window reads: likewise.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, strides, dilations or padding do not fit.
        ValueError: Strides, dilations or padding have a wrong number of elements.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.conv2d(mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 8)), 1, "SAME").shape
        (1, 5, 5, 8)
    """
    return _convolution(2, input, filters, strides, padding, data_format, dilations)


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = "NDHWC",
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution of volumes with filters: sums of products over windows.

    Args:
        input: Floats of shape (batch, depth, height, width, channels); there may be
            more axes of the batch in front.
        filters: The same dtype, and shape (depth, height, width, channels of a group,
            outputs). With fewer channels than the input has there are groups: each computes its
            part of the outputs.
        strides: The distance of two windows: an integer, or one for each spatial axis.
        padding: "SAME": as many outputs as the input has elements, divided by the stride and
            rounded up; "VALID": no padding; or the elements before and after each axis of the
            input.
        data_format: "NDHWC", or "NCDHW" with channels before the spatial axes.
        dilations: The distance of two elements that a window reads: likewise.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, strides, dilations or padding do not fit.
        ValueError: Strides, dilations or padding have a wrong number of elements.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.conv3d(mr.ones((1, 4, 4, 4, 1)), mr.ones((2, 2, 2, 1, 3)), 2, "VALID").shape
        (1, 2, 2, 2, 3)
    """
    return _convolution(3, input, filters, strides, padding, data_format, dilations)


def _rank_of(filters: TensorLike) -> int:
    """Return the number of spatial axes of filters."""
    rank = adopt(filters, None).ndim - 2
    if not 1 <= rank <= 3:
        raise ValueError(
            f"`filters` must have 1, 2 or 3 spatial axes and two more. Received {rank + 2} axes."
        )
    return rank


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: AxisLike | None = None,
    padding: Padding = "VALID",
    data_format: str | None = None,
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution of sequences, images or volumes, as the filters' axes say.

    Args:
        input: Floats of shape (batch, spatial axes, channels).
        filters: The same dtype, and shape (spatial axes, channels of a group, outputs).
        strides: The distance of two windows: an integer, or one for each spatial axis.
        padding: "SAME", "VALID", or the elements before and after each axis of the input.
        data_format: "NWC", "NHWC" or "NDHWC" by the number of axes, which None stands for; or
            "NCW", "NCHW" or "NCDHW", with channels before the spatial axes.
        dilations: The distance of two elements that a window reads: likewise.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, strides, dilations or padding do not fit.
        ValueError: Strides and dilations are both above 1; or they have a wrong number of elements.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.convolution(mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 8)), padding="SAME").shape
        (1, 5, 5, 8)
    """
    rank = _rank_of(filters)
    images = layout(_name(rank), rank, data_format)
    windows = as_windows(strides, padding, dilations, images)
    check_not_both(windows.strides, windows.dilations)
    return convolved(input, filters, images, windows)


def check_not_both(strides: Shape, dilations: Shape) -> None:
    """Raise ValueError where strides and dilations are both above 1."""
    if max(strides) > 1 and max(dilations) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
            f"strides={list(strides)} and dilation_rate={list(dilations)}"
        )


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """Return the convolution of images with windows that read every `rate`-th element.

    Args:
        value: Floats of shape (batch, height, width, channels).
        filters: The same dtype, and shape (height, width, channels, outputs).
        rate: The distance of two elements that a window reads.
        padding: "SAME" or "VALID".
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, the rate or the padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.atrous_conv2d(mr.ones((1, 7, 7, 1)), mr.ones((3, 3, 1, 2)), 2, "VALID").shape
        (1, 3, 3, 2)
    """
    return _convolution(2, value, filters, 1, padding, None, as_integer(rate, "`rate`"))


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = None,
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution of each channel of images with filters of its own.

    Args:
        input: Floats of shape (batch, height, width, channels).
        filter: The same dtype, and shape (height, width, channels, filters of each channel).
        strides: The distance of two windows; the same along both axes, as in TensorFlow.
        padding: "SAME", "VALID", or the elements before and after each axis of the input.
        data_format: "NHWC", which None stands for, or "NCHW".
        dilations: The distance of two elements that a window reads.
        name: Accepted for compatibility.

    Returns:
        A tensor whose channels are the results of the first channel, then those of the next.

    Raises:
        InvalidArgumentError: Shapes, dtypes, strides, dilations or padding do not fit.
        ValueError: Strides and dilations are both above 1; or they have a wrong number of elements.

    Example:
        >>> import mirrored as mr
        >>> x, filters = mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 2))
        >>> mr.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], "SAME").shape
        (1, 5, 5, 6)
    """
    images = layout("DepthwiseConv2dNative", 2, data_format)
    windows = as_windows(strides, padding, dilations, images)
    if len(set(windows.strides)) > 1:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column "
            f"dimensions. Received: strides={strides} [Op:{images.name}]"
        )
    check_not_both(windows.strides, windows.dilations)
    return convolved_by_channel(input, filter, images, windows)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = None,
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a depthwise convolution of images, and then sums of its channels.

    Args:
        input: Floats of shape (batch, height, width, channels).
        depthwise_filter: Shape (height, width, channels, filters of each channel).
        pointwise_filter: Shape (1, 1, channels times filters of each channel, outputs).
        strides: The distance of two windows; the same along both axes, as in TensorFlow.
        padding: "SAME", "VALID", or the elements before and after each axis of the input.
        data_format: "NHWC", which None stands for, or "NCHW".
        dilations: The distance of two elements that a window reads.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, strides, dilations or padding do not fit.
        ValueError: The pointwise filters are larger than 1 by 1.

    Example:
        >>> import mirrored as mr
        >>> x, first, second = mr.ones((1, 5, 5, 3)), mr.ones((3, 3, 3, 2)), mr.ones((1, 1, 6, 4))
        >>> mr.nn.separable_conv2d(x, first, second, [1, 1, 1, 1], "SAME").shape
        (1, 5, 5, 4)
    """
    points = adopt(pointwise_filter, None)
    if points.shape[:2] != (1, 1):
        raise ValueError(
            f"`pointwise_filter` must have height and width 1. Received: shape {points.shape}"
        )
    by_channel = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return _convolution(2, by_channel, points, 1, "VALID", data_format, None)


def _transposed(
    rank: int,
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Tensor:
    images = layout(f"{_name(rank)}BackpropInput{'V2' if rank == 3 else ''}", rank, data_format)
    x, w = adopt(input, None), adopt(filters, None)
    shape = as_integers(output_shape, "`output_shape`")
    if len(shape) not in (rank, rank + 2):
        raise ValueError(
            f"output_shape should be of length {rank} or {rank + 2}. Received: "
            f"output_shape={output_shape} of length {len(shape)}"
        )
    if len(shape) == rank + 2:
        channels = shape[1 if images.channels_first else -1]
        if shape[0] not in (-1, x.shape[0]):
            raise InvalidArgumentError(
                "input and out_backprop must have the same batch size. Input batch: "
                f"{shape[0]}, outbackprop batch: {x.shape[0]} [Op:{images.name}]"
            )
        if w.ndim == rank + 2 and channels != w.shape[-2]:
            raise InvalidArgumentError(
                "input depth must be evenly divisible by filter depth. Received: output_shape="
                f"{output_shape} and filters of {w.shape[-2]} outputs [Op:{images.name}]"
            )
        shape = images.spatial(shape)
    windows = as_windows(strides, padding, dilations, images)
    return transposed_convolution(x, w, shape, images, windows)


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: AxisLike,
    padding: Padding = "SAME",
    data_format: str | None = "NWC",
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of a convolution by sequences, which enlarges them.

    Args:
        input: Floats of shape (batch, width, channels).
        filters: The same dtype, and shape (width, outputs, channels).
        output_shape: The shape of the result, or its spatial sizes.
        strides: The strides of the convolution.
        padding: Its padding.
        data_format: As in `conv1d`.
        dilations: Its dilations.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The convolution of the result has not the input's shape; or dtypes,
            strides, dilations or padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, filters = mr.ones((1, 4, 2)), mr.ones((3, 5, 2))
        >>> mr.nn.conv1d_transpose(x, filters, [1, 8, 5], 2).shape
        (1, 8, 5)
    """
    return _transposed(1, input, filters, output_shape, strides, padding, data_format, dilations)


def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: AxisLike,
    padding: Padding = "SAME",
    data_format: str | None = "NHWC",
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of a convolution by images, which enlarges them.

    Args:
        input: Floats of shape (batch, height, width, channels).
        filters: The same dtype, and shape (height, width, outputs, channels).
        output_shape: The shape of the result, or its spatial sizes.
        strides: The strides of the convolution.
        padding: Its padding.
        data_format: As in `conv2d`.
        dilations: Its dilations.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The convolution of the result has not the input's shape; or dtypes,
            strides, dilations or padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, filters = mr.ones((1, 4, 4, 2)), mr.ones((3, 3, 5, 2))
        >>> mr.nn.conv2d_transpose(x, filters, [1, 8, 8, 5], 2).shape
        (1, 8, 8, 5)
    """
    return _transposed(2, input, filters, output_shape, strides, padding, data_format, dilations)


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: AxisLike,
    padding: Padding = "SAME",
    data_format: str | None = "NDHWC",
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of a convolution by volumes, which enlarges them.

    Args:
        input: Floats of shape (batch, depth, height, width, channels).
        filters: The same dtype, and shape (depth, height, width, outputs, channels).
        output_shape: The shape of the result, or its spatial sizes.
        strides: The strides of the convolution.
        padding: Its padding.
        data_format: As in `conv3d`.
        dilations: Its dilations.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The convolution of the result has not the input's shape; or dtypes,
            strides, dilations or padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, filters = mr.ones((1, 2, 2, 2, 2)), mr.ones((2, 2, 2, 1, 2))
        >>> mr.nn.conv3d_transpose(x, filters, [1, 4, 4, 4, 1], 2).shape
        (1, 4, 4, 4, 1)
    """
    return _transposed(3, input, filters, output_shape, strides, padding, data_format, dilations)


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: AxisLike,
    padding: Padding = "SAME",
    data_format: str | None = None,
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of a convolution by its input, of as many axes as the filters say.

    Args:
        input: Floats of shape (batch, spatial axes, channels).
        filters: The same dtype, and shape (spatial axes, outputs, channels).
        output_shape: The shape of the result, or its spatial sizes.
        strides: The strides of the convolution.
        padding: Its padding.
        data_format: As in `convolution`.
        dilations: Its dilations.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The convolution of the result has not the input's shape; or dtypes,
            strides, dilations or padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, filters = mr.ones((1, 4, 4, 2)), mr.ones((3, 3, 5, 2))
        >>> mr.nn.conv_transpose(x, filters, [1, 8, 8, 5], strides=2).shape
        (1, 8, 8, 5)
    """
    rank = _rank_of(filters)
    return _transposed(rank, input, filters, output_shape, strides, padding, data_format, dilations)


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    rate: int,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `atrous_conv2d` by its images.

    Args:
        value: Floats of shape (batch, height, width, channels).
        filters: The same dtype, and shape (height, width, outputs, channels).
        output_shape: The shape of the result.
        rate: The distance of two elements that a window reads.
        padding: "SAME" or "VALID".
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes, dtypes, the rate or the padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> x, filters = mr.ones((1, 3, 3, 2)), mr.ones((3, 3, 1, 2))
        >>> mr.nn.atrous_conv2d_transpose(x, filters, [1, 7, 7, 1], 2, "VALID").shape
        (1, 7, 7, 1)
    """
    dilations = as_integer(rate, "`rate`")
    return _transposed(2, value, filters, output_shape, 1, padding, None, dilations)


explain_functions(__name__)
