"""TensorFlow's functions for pooling, which choose the layout and the padding of an op."""

from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.convolution_functions import Padding, as_windows, check_not_both
from mirrored.ops.images import layout, per_axis, pooled
from mirrored.ops.tensor import Tensor


def _pool(
    op: str,
    rank: int,
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any = None,
) -> Tensor:
    images = layout(op + "3D" * (rank == 3), rank, data_format)
    if op == "AvgPool" and not isinstance(padding, str):
        raise TypeError(f"Expected string for argument 'padding' not {padding}.")
    windows = as_windows(strides, padding, dilations, images)
    window = per_axis("ksize", ksize, images)
    if not isinstance(windows.padding, str):
        for pair, size in zip(windows.padding, window, strict=True):
            if max(pair) >= size:
                raise InvalidArgumentError(
                    f"Padding {max(pair)} needs to be smaller than the window size {size} "
                    f"[Op:{images.name}]"
                )
    return pooled(input, window, images, windows)


def _rank_of(input: Any) -> int:
    """Return the number of spatial axes of images."""
    x = adopt(input, None)
    if x.ndim not in (3, 4, 5):
        raise ValueError(
            f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={x.shape} of rank "
            f"{x.ndim}."
        )
    return x.ndim - 2


def max_pool(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest element of each window, channel by channel.

    Args:
        input: Floats or integers of shape (batch, spatial axes, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID", or the elements before and after each axis of the input;
            padding is never counted.
        data_format: None for channels behind the spatial axes; or "NCW", "NCHW", "NCDHW".
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.max_pool(mr.ones((1, 4, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2, 2)
    """
    return _pool("MaxPool", _rank_of(input), input, ksize, strides, padding, data_format)


def max_pool1d(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest element of each window, channel by channel.

    Args:
        input: Floats or integers of shape (batch, width, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID", or the elements before and after each axis of the input;
            padding is never counted.
        data_format: "NWC", or "NCW" with channels before the spatial axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.max_pool1d(mr.ones((1, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2)
    """
    return _pool("MaxPool", 1, input, ksize, strides, padding, data_format)


def max_pool2d(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest element of each window, channel by channel.

    Args:
        input: Floats or integers of shape (batch, height, width, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID", or the elements before and after each axis of the input;
            padding is never counted.
        data_format: "NHWC", or "NCHW" with channels before the spatial axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.max_pool2d(mr.ones((1, 4, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2, 2)
    """
    return _pool("MaxPool", 2, input, ksize, strides, padding, data_format)


def max_pool3d(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: Padding,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the largest element of each window, channel by channel.

    Args:
        input: Floats or integers of shape (batch, depth, height, width, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID", or the elements before and after each axis of the input;
            padding is never counted.
        data_format: "NDHWC", or "NCDHW" with channels before the spatial axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.max_pool3d(mr.ones((1, 4, 4, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2, 2, 2)
    """
    return _pool("MaxPool", 3, input, ksize, strides, padding, data_format)


def avg_pool(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the mean of each window, channel by channel.

    Args:
        input: Floats of shape (batch, spatial axes, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID";
            padding is never counted.
        data_format: None for channels behind the spatial axes; or "NCW", "NCHW", "NCDHW".
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.avg_pool(mr.ones((1, 4, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2, 2)
    """
    return _pool("AvgPool", _rank_of(input), input, ksize, strides, padding, data_format)


def avg_pool1d(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: str,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Return the mean of each window, channel by channel.

    Args:
        input: Floats of shape (batch, width, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID";
            padding is never counted.
        data_format: "NWC", or "NCW" with channels before the spatial axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.avg_pool1d(mr.ones((1, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2)
    """
    return _pool("AvgPool", 1, input, ksize, strides, padding, data_format)


def avg_pool2d(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Return the mean of each window, channel by channel.

    Args:
        input: Floats of shape (batch, height, width, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID";
            padding is never counted.
        data_format: "NHWC", or "NCHW" with channels before the spatial axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.avg_pool2d(mr.ones((1, 4, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2, 2)
    """
    return _pool("AvgPool", 2, input, ksize, strides, padding, data_format)


def avg_pool3d(
    input: TensorLike,
    ksize: AxisLike,
    strides: AxisLike,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the mean of each window, channel by channel.

    Args:
        input: Floats of shape (batch, depth, height, width, channels).
        ksize: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "SAME", "VALID";
            padding is never counted.
        data_format: "NDHWC", or "NCDHW" with channels before the spatial axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape, window, strides or padding do not fit.
        ValueError: The input has another number of axes, or an argument another length.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.avg_pool3d(mr.ones((1, 4, 4, 4, 2)), 2, 2, "VALID").shape
        (1, 2, 2, 2, 2)
    """
    return _pool("AvgPool", 3, input, ksize, strides, padding, data_format)


def pool(
    input: TensorLike,
    window_shape: AxisLike,
    pooling_type: str,
    strides: AxisLike | None = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: AxisLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest element or the mean of each window, whose elements may be apart.

    Args:
        input: Floats of shape (batch, spatial axes, channels).
        window_shape: The size of a window along each spatial axis.
        pooling_type: "MAX" or "AVG".
        strides: The distance of two windows; None: 1.
        padding: "SAME" or "VALID".
        data_format: As in `max_pool`.
        dilations: The distance of two elements that a window reads; None: 1.
        name: Accepted for compatibility.

    Raises:
        ValueError: There is no such type; strides and dilations are both above 1; or strides are
            above the window's sizes.
        InvalidArgumentError: The shape, window, strides or padding do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.pool(mr.ones((1, 5, 5, 1)), [2, 2], "MAX", dilations=[2, 2]).shape
        (1, 3, 3, 1)
    """
    rank = _rank_of(input)
    kinds = {"MAX": "MaxPool", "AVG": "AvgPool"}
    if pooling_type not in kinds:
        raise ValueError(f"{rank}-D {pooling_type} pooling is not supported.")
    images = layout("Pool", rank, data_format)
    steps = per_axis("strides", strides, images)
    rates = per_axis("dilations", dilations, images)
    check_not_both(steps, rates)
    if padding != "VALID" and max(rates) > 1:
        raise ValueError(
            "`padding` must be 'VALID' where `dilations` are above 1. Received: "
            f"padding={padding!r}. TensorFlow counts padding as zeros there. Pad the input with "
            "mr.pad first."
        )
    size = per_axis("window_shape", window_shape, images)
    if any(step > count for step, count in zip(steps, size, strict=True)):
        raise ValueError(
            "`strides` > `window_shape` not supported due to inconsistency between CPU and GPU "
            f"implementations. Received: strides={steps} and window_shape={size}. Use "
            "mr.nn.max_pool or mr.nn.avg_pool."
        )
    return _pool(kinds[pooling_type], rank, input, size, steps, padding, data_format, rates)


explain_functions(__name__)
