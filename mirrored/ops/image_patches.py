"""Patches of images and volumes, as values of one pixel."""

from collections.abc import Sequence

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.gathering import GATHER
from mirrored.ops.images import Layout, Windows, explicit_padding, layout, per_axis
from mirrored.ops.manipulation import pad
from mirrored.ops.shaping import RESHAPE, TRANSPOSE
from mirrored.ops.spec import Shape, shape_text
from mirrored.ops.tensor import Tensor
from mirrored.ops.windows import axes_of, padding_of


def patches(x: Tensor, taps: Shape, images: Layout, windows: Windows) -> Tensor:
    """Return the elements of each window, row by row, in place of channels.

    Args:
        x: Images or volumes in this layout.
        taps: The sizes of the windows, for each spatial axis.
        images: The layout.
        windows: Strides, padding and dilations.

    Raises:
        InvalidArgumentError: A number is not positive, or the windows are larger than the images.
    """
    strides, padding, dilations = windows.checked(images)
    if min(taps) < 1:
        raise InvalidArgumentError(f"ksizes is out of range. Received: {taps} [Op:{images.name}]")
    x, sizes = images.moved(x), images.spatial(x.shape)
    pairs = padding_of(padding, sizes, taps, strides, dilations)
    axes = axes_of(images.name, sizes, taps, strides=strides, padding=pairs, dilations=dilations)
    x = pad(x, ((0, 0), *pairs, (0, 0)))
    shape = [x.shape[0]]
    for place, axis in enumerate(axes, 1):
        starts = np.arange(axis.windows, dtype=np.int32) * axis.stride
        reads = starts[:, None] + np.arange(axis.taps, dtype=np.int32) * axis.dilation
        x = GATHER(x, convert_to_tensor(reads.ravel()), axis=place, outside=False)
        shape += reads.shape
    x = RESHAPE(x, shape=(*shape, x.shape[-1]))
    behind = x.ndim - 1
    x = TRANSPOSE(x, perm=(0, *range(1, behind, 2), *range(2, behind, 2), behind))
    counts, depth = (axis.windows for axis in axes), int(np.prod((*taps, x.shape[-1])))
    return images.moved_back(RESHAPE(x, shape=(x.shape[0], *counts, depth)))


def extract_patches(
    images: TensorLike,
    sizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Return the pixels of each patch of images, row by row, as channels of one pixel.

    Args:
        images: Shape (batch, rows, columns, channels).
        sizes: The size of patches: ``[1, rows, columns, 1]``.
        strides: The distance of two patches, likewise.
        rates: The distance of two pixels of a patch, likewise.
        padding: "VALID", or "SAME" for zeros around images.
        name: Accepted for compatibility.

    Raises:
        TypeError: The padding is no string.
        ValueError: The numbers are not four.
        InvalidArgumentError: A number or the padding is out of range, or the images are not such.

    Example:
        >>> import mirrored as mr
        >>> ones = [1, 1, 1, 1]
        >>> mr.image.extract_patches(mr.ones((2, 8, 8, 3)), [1, 4, 4, 1], ones, ones, "SAME").shape
        (2, 8, 8, 48)
    """
    x, rows = adopt(images, None), layout("ExtractImagePatches", 2, None)
    if x.ndim != 4 or x.dtype.kind == "b":
        raise InvalidArgumentError(
            "input must be 4-dimensional, and of numbers. Received: images of shape "
            f"{shape_text(x.shape)} and dtype {x.dtype.name} [Op:{rows.name}]"
        )
    if not isinstance(padding, str):
        raise TypeError(f"Expected string for argument 'padding' not {padding}.")
    numbers = {"sizes": sizes, "strides": strides, "rates": rates}
    for argument, value in numbers.items():
        if len(value) != 4:
            raise ValueError(f"{argument} should be of length 4. Received: {argument}={value}")
    taps, steps, dilations = (per_axis(*pair, rows) for pair in numbers.items())
    return patches(x, taps, rows, Windows(steps, explicit_padding(padding, rows), dilations))


explain_functions(__name__, all_but="patches")
