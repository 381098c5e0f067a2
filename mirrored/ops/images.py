"""Convolution and pooling of images in any of TensorFlow's layouts.

The ops take images with two or three spatial axes and channels behind them. Here sequences get a
second spatial axis, channels in front of the others are moved behind them and back, and padding by
name becomes numbers.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import as_tensors
from mirrored.ops.convolutions import CONV_2D, CONV_3D
from mirrored.ops.depthwise import DEPTHWISE
from mirrored.ops.poolings import POOLINGS
from mirrored.ops.shaping import RESHAPE, TRANSPOSE
from mirrored.ops.spec import Shape, as_integers
from mirrored.ops.tensor import Tensor
from mirrored.ops.windows import check_rank, padding_of

FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


class Layout(NamedTuple):
    """How many spatial axes images have, and where their channels are.

    Attributes:
        rank: The number of spatial axes.
        channels_first: Whether channels come before them.
        name: The op that errors name.
    """

    rank: int
    channels_first: bool
    name: str

    def spatial(self, shape: Shape) -> Shape:
        """Return the spatial sizes of a shape."""
        return tuple(shape[2:] if self.channels_first else shape[1:-1])

    def moved(self, x: Tensor) -> Tensor:
        """Return images with channels behind, and at least two spatial axes."""
        if self.channels_first:
            x = TRANSPOSE(x, perm=(0, *range(2, self.rank + 2), 1))
        if self.rank == 1:
            x = RESHAPE(x, shape=(x.shape[0], 1, *x.shape[1:]))
        return x

    def moved_back(self, y: Tensor) -> Tensor:
        """Return results in this layout."""
        if self.rank == 1:
            y = RESHAPE(y, shape=(y.shape[0], *y.shape[2:]))
        if self.channels_first:
            y = TRANSPOSE(y, perm=(0, self.rank + 1, *range(1, self.rank + 1)))
        return y

    def filters(self, w: Tensor) -> Tensor:
        """Return filters with at least two spatial axes."""
        return RESHAPE(w, shape=(1, *w.shape)) if self.rank == 1 else w

    def sizes(self, sizes: Sequence[int]) -> Shape:
        """Return a number for each spatial axis, of which there are at least two."""
        return (1, *sizes) if self.rank == 1 else tuple(sizes)


def layout(name: str, rank: int, data_format: Any) -> Layout:
    """Return the layout that TensorFlow's name of it stands for.

    Args:
        name: The op that errors name.
        rank: The number of spatial axes.
        data_format: Its name; None: channels are behind.

    Raises:
        InvalidArgumentError: There is no such layout.
    """
    names = FORMATS[rank]
    if data_format is not None and data_format not in names:
        raise InvalidArgumentError(
            f"Value for attr 'data_format' of \"{data_format}\" is not in the list of allowed "
            f'values: "{names[0]}", "{names[1]}" [Op:{name}]'
        )
    return Layout(rank, data_format == names[1], name)


def per_axis(argument: str, value: Any, images: Layout) -> Shape:
    """Return a number for each spatial axis.

    Args:
        argument: The argument that errors name.
        value: One integer; or a sequence of one, of one for each spatial axis, or of one for each
            axis, where that of the batch and of the channels is 1. None stands for 1.
        images: The layout.

    Raises:
        ValueError: The sequence has another length.
        InvalidArgumentError: The numbers for batch and channels are not 1.
    """
    if value is None:
        return (1,) * images.rank
    numbers = as_integers(value, f"`{argument}`")
    rank = images.rank
    if len(numbers) == 1:
        return numbers * rank
    if len(numbers) == rank:
        return numbers
    if len(numbers) != rank + 2:
        raise ValueError(
            f"{argument} should be of length 1, {rank} or {rank + 2}. Received: "
            f"{argument}={value} of length {len(numbers)}"
        )
    channels = numbers[1] if images.channels_first else numbers[-1]
    if (numbers[0], channels) != (1, 1):
        raise InvalidArgumentError(
            f"Current implementation does not yet support {argument} in the batch and depth "
            f"dimensions. Received: {argument}={value}. Use 1 for them. [Op:{images.name}]"
        )
    return images.spatial(numbers)


def explicit_padding(padding: Any, images: Layout) -> Any:
    """Return "SAME", "VALID", or the elements of padding before and after each spatial axis.

    Args:
        padding: One of these names, or a pair of numbers for each axis of the images.
        images: The layout.

    Raises:
        InvalidArgumentError: It is another name, negative, or of the batch or the channels.
        TypeError: It is neither.
        ValueError: It has not one pair for each axis.
    """
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise InvalidArgumentError(
                f"Value for attr 'padding' of \"{padding}\" is not in the list of allowed values: "
                f'"SAME", "VALID", "EXPLICIT" [Op:{images.name}]'
            )
        return padding
    if not isinstance(padding, list | tuple):
        raise TypeError(f"Expected string for argument 'padding' not {padding}.")
    if len(padding) != images.rank + 2:
        raise ValueError(
            f"When padding is a list, it must be of size {images.rank + 2}. Received: "
            f"padding={padding} of size {len(padding)}"
        )
    pairs = [as_integers(pair, "`padding`") for pair in padding]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            "When padding is a list, each element of it must be a list of two integers. Received: "
            f"padding={padding}"
        )
    if min(map(min, pairs)) < 0:
        raise InvalidArgumentError(
            f"All elements of explicit_paddings must be nonnegative. Received: {padding} "
            f"[Op:{images.name}]"
        )
    batch, channels = pairs[0], pairs[1 if images.channels_first else -1]
    if any((*batch, *channels)):
        raise InvalidArgumentError(
            "Nonzero explicit padding in the batch or depth dimensions is not supported. "
            f"Received: {padding} [Op:{images.name}]"
        )
    return tuple(pairs[2:] if images.channels_first else pairs[1:-1])


def _check_positive(message: str, numbers: Shape, images: Layout) -> None:
    if min(numbers) < 1:
        raise InvalidArgumentError(f"{message} Received: {numbers} [Op:{images.name}]")


class Windows(NamedTuple):
    """How windows lie, for each spatial axis of a layout."""

    strides: Shape
    padding: Any  # "SAME", "VALID", or pairs.
    dilations: Shape

    def checked(
        self, images: Layout, text: str = "Row and column strides should be larger than 0."
    ) -> "Windows":
        """Return it, or raise InvalidArgumentError where numbers are below 1.

        Args:
            images: The layout of the images.
            text: What the error says of strides.
        """
        _check_positive(text, self.strides, images)
        _check_positive("Dilated rates should be larger than 0.", self.dilations, images)
        return self

    def attrs(self, images: Layout, sizes: Shape, taps: Shape) -> dict[str, Any]:
        """Return the attributes of an op for images and windows of these sizes."""
        padding = padding_of(self.padding, sizes, taps, self.strides, self.dilations)
        return {
            "strides": images.sizes(self.strides),
            "padding": ((0, 0), *padding) if images.rank == 1 else padding,
            "dilations": images.sizes(self.dilations),
        }


def _folded(x: Tensor, images: Layout, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what is computed of images, of which there may be several axes of a batch."""
    more = x.ndim - images.rank - 2
    if more <= 0:
        return compute(x)
    y = compute(RESHAPE(x, shape=(math.prod(x.shape[: more + 1]), *x.shape[more + 1 :])))
    return RESHAPE(y, shape=(*x.shape[: more + 1], *y.shape[1:]))


def convolved(x: Any, w: Any, images: Layout, windows: Windows) -> Tensor:
    """Return the convolution of images with filters.

    Args:
        x: The images, in this layout; there may be more axes of the batch in front.
        w: Filters of shape (spatial axes, channels of a group, outputs).
        images: The layout.
        windows: Strides, padding and dilations.
    """
    x, w = as_tensors((x, w))
    windows = windows.checked(images)
    check_rank(images.name, "convolution filter", w.spec, images.rank + 2)
    if x.ndim < images.rank + 2:
        check_rank(images.name, "convolution input", x.spec, images.rank + 2)
    op = (CONV_3D if images.rank == 3 else CONV_2D).forward

    def compute(x: Tensor) -> Tensor:
        attrs = windows.attrs(images, images.spatial(x.shape), w.shape[:-2])
        return images.moved_back(op(images.moved(x), images.filters(w), **attrs))

    return _folded(x, images, compute)


def convolved_by_channel(x: Any, w: Any, images: Layout, windows: Windows) -> Tensor:
    """Return the convolution of each channel with filters of its own.

    Args:
        x: Images with one or two spatial axes.
        w: Filters of shape (spatial axes, channels, filters of each channel).
        images: The layout.
        windows: Strides, padding and dilations.
    """
    x, w = as_tensors((x, w))
    windows = windows.checked(images)
    check_rank(images.name, "input", x.spec, images.rank + 2)
    check_rank(images.name, "filter", w.spec, images.rank + 2)
    attrs = windows.attrs(images, images.spatial(x.shape), w.shape[:-2])
    return images.moved_back(DEPTHWISE.forward(images.moved(x), images.filters(w), **attrs))


def transposed_convolution(
    y: Any, w: Any, sizes: Shape, images: Layout, windows: Windows
) -> Tensor:
    """Return images of which a convolution has the shape of others: its gradient, of `y`.

    Args:
        y: Images in this layout.
        w: Filters of shape (spatial axes, outputs, channels).
        sizes: The spatial sizes of the result.
        images: The layout.
        windows: Strides, padding and dilations of that convolution.
    """
    y, w = as_tensors((y, w))
    windows = windows.checked(images)
    check_rank(images.name, "out_backprop", y.spec, images.rank + 2)
    check_rank(images.name, "filter", w.spec, images.rank + 2)
    channels = y.shape[1 if images.channels_first else -1]
    if channels != w.shape[-1]:
        raise InvalidArgumentError(
            f"filter and out_backprop must have the same out_depth. Received: {w.shape[-1]} and "
            f"{channels} [Op:{images.name}]"
        )
    if min(sizes, default=0) < 0:
        raise InvalidArgumentError(f"Dimension {min(sizes)} must be >= 0 [Op:{images.name}]")
    op = (CONV_3D if images.rank == 3 else CONV_2D).to_images
    attrs = windows.attrs(images, sizes, w.shape[:-2])
    shape = (*images.sizes(sizes), w.shape[-2])
    return images.moved_back(op(images.filters(w), images.moved(y), sizes=shape, **attrs))


def pooled(x: Any, window: Shape, images: Layout, windows: Windows) -> Tensor:
    """Return the largest or the mean element of each window.

    Args:
        x: Images in this layout.
        kind: "max" or "mean".
        window: The sizes of the windows.
        images: The layout.
        windows: Strides, padding and dilations.
    """
    (x,) = as_tensors((x,))
    _check_positive("Sliding window ksize must be positive.", window, images)
    windows = windows.checked(images, "Sliding window strides must be positive.")
    check_rank(images.name, "input", x.spec, images.rank + 2)
    op = POOLINGS[images.name]
    attrs = windows.attrs(images, images.spatial(x.shape), window)
    return images.moved_back(op(images.moved(x), window=images.sizes(window), **attrs))


def sizes_of_transposed(
    sizes: Sequence[int | None],
    taps: Shape,
    strides: Shape,
    dilations: Shape,
    padding: str,
    output_padding: Shape | None,
) -> tuple[int | None, ...]:
    """Return the spatial sizes of a transposed convolution, as Keras computes them.

    Args:
        sizes: Those of its input; None: one that is not known.
        taps: The sizes of the windows.
        strides: The strides.
        dilations: The dilations.
        padding: "VALID" or "SAME".
        output_padding: How much larger the result is; None: as large as the strides say.
    """
    results: list[int | None] = []
    for number, size in enumerate(sizes):
        stride, reach = strides[number], (taps[number] - 1) * dilations[number] + 1
        more = None if output_padding is None else output_padding[number]
        if size is None:
            results.append(None)
        elif padding == "VALID":
            least = (size - 1) * stride + reach
            results.append(least + (max(stride - reach, 0) if more is None else more))
        elif more is None:
            results.append(size * stride)
        else:
            results.append((size - 1) * stride + reach % 2 + more)
    return tuple(results)
