"""Images flipped, turned, cropped, padded and resized: the places of pixels change.

All of it is made of ops that move and mix values, and so runs and differentiates as those do.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer, as_real
from mirrored._types import ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.gathering import GATHER
from mirrored.ops.image_sampling import Samples, centres, samples
from mirrored.ops.manipulation import pad, reverse
from mirrored.ops.shaping import cast, transpose
from mirrored.ops.slicing import sliced_along
from mirrored.ops.spec import FLOATS, INTEGERS, float32, uint32, uint64
from mirrored.ops.tensor import Tensor

_RESIZED_INTEGERS = INTEGERS - {uint32, uint64}


class ResizeMethod:
    """The ways to resize.

    Example:
        >>> import mirrored as mr
        >>> mr.image.ResizeMethod.NEAREST_NEIGHBOR
        'nearest'
    """

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


# TensorFlow's operations, which errors name.
_RESIZERS = {
    ResizeMethod.BILINEAR: "ResizeBilinear",
    ResizeMethod.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethod.BICUBIC: "ResizeBicubic",
    ResizeMethod.AREA: "ResizeArea",
}
_METHODS = [value for name, value in vars(ResizeMethod).items() if name.isupper()]


def as_image(image: Any) -> Tensor:
    """Return an image, or images along further axes before the last three, as a tensor.

    Raises:
        ValueError: It has fewer than three axes, or no pixels.
    """
    x = adopt(image, None)
    if x.ndim < 3:
        raise ValueError(f"'image' (shape {x.shape}) must be at least three-dimensional.")
    return _not_empty(x)


def _not_empty(x: Tensor) -> Tensor:
    if 0 in x.shape[-3:]:
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {x.shape}")
    return x


def as_images(image: Any) -> Tensor:
    """Return an image or a batch of them as a tensor.

    Args:
        image: Shape (height, width, channels) or (batch, height, width, channels).

    Raises:
        ValueError: It has another number of axes, or no pixels.
    """
    x = adopt(image, None)
    if x.ndim not in (3, 4):
        raise ValueError(f"'image' (shape {x.shape}) must have either 3 or 4 dimensions.")
    return _not_empty(x)


def _check(*conditions: tuple[bool, str]) -> None:
    for holds, text in conditions:
        if not holds:
            raise ValueError(text)


def _flip(image: Any, axis: int) -> Tensor:
    x = as_images(as_image(image))
    return reverse(x, [axis % x.ndim])


def flip_left_right(image: TensorLike) -> Tensor:
    """Return images with their columns in the other order.

    Args:
        image: Shape (height, width, channels) or (batch, height, width, channels).

    Raises:
        ValueError: The shape is another one, or has no pixels.

    Example:
        >>> import mirrored as mr
        >>> mr.image.flip_left_right([[[1], [2]], [[3], [4]]]).numpy()[..., 0]
        array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return _flip(image, -2)


def flip_up_down(image: TensorLike) -> Tensor:
    """Return images with their rows in the other order; all else as `flip_left_right`.

    Example:
        >>> import mirrored as mr
        >>> mr.image.flip_up_down([[[1], [2]], [[3], [4]]]).numpy()[..., 0]
        array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return _flip(image, -3)


def transposed(image: TensorLike, name: str | None = None) -> Tensor:
    """Return images with rows and columns exchanged.

    Args:
        image: As for `flip_left_right`.
        name: Accepted for compatibility.

    Raises:
        ValueError: As there.

    Example:
        >>> import mirrored as mr
        >>> mr.image.transpose([[[1], [2]], [[3], [4]]]).numpy()[..., 0]
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    x = as_images(as_image(image))
    return transpose(x, [*range(x.ndim - 3), x.ndim - 2, x.ndim - 3, x.ndim - 1])


def rot90(image: TensorLike, k: int = 1, name: str | None = None) -> Tensor:
    """Return images turned against the clock by right angles.

    Args:
        image: As for `flip_left_right`.
        k: How many right angles, an integer.
        name: Accepted for compatibility.

    Raises:
        ValueError: As there.
        TypeError: `k` is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.image.rot90([[[1], [2]], [[3], [4]]]).numpy()[..., 0]
        array([[2, 4],
               [1, 3]], dtype=int32)
    """
    x, turns = as_images(as_image(image)), as_integer(k)
    if turns is None:
        raise TypeError(f"`k` is an integer, known in advance. Received: k={k!r}")
    if turns % 4 == 2:
        return reverse(x, [x.ndim - 3, x.ndim - 2])
    if turns % 4 == 1:
        return transposed(_flip(x, -2))
    return _flip(transposed(x), -2) if turns % 4 else x


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """Return the middle of images.

    Args:
        image: As for `flip_left_right`.
        central_fraction: What is kept of the height and of the width, above 0 and up to 1.

    Raises:
        ValueError: The shape is another one, or the fraction is.

    Example:
        >>> import mirrored as mr
        >>> mr.image.central_crop(mr.ones((8, 6, 3)), 0.5).shape
        (4, 4, 3)
    """
    x, fraction = adopt(image, None), as_real(central_fraction)
    if fraction is None or not 0 < fraction <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    if fraction == 1:
        return x
    as_image(x)
    if x.ndim > 4:
        raise ValueError(
            f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {x.ndim}."
        )
    for axis in (x.ndim - 3, x.ndim - 2):
        size = x.shape[axis]
        start = int((size - size * fraction) / 2)
        x = sliced_along(x, axis, slice(start, size - start))
    return x


def pad_to_bounding_box(
    image: TensorLike, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return images of another size, with zeros around what they show.

    Args:
        image: As for `flip_left_right`.
        offset_height: How many rows of zeros come first.
        offset_width: How many columns of zeros come first.
        target_height: The height.
        target_width: The width.

    Raises:
        ValueError: The shape is another one, an offset is below 0, or the images do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.image.pad_to_bounding_box([[[7]]], 0, 1, 2, 3).numpy()[..., 0]
        array([[0, 7, 0],
               [0, 0, 0]], dtype=int32)
    """
    x = as_images(image)
    height, width = x.shape[-3:-1]
    right, below = target_width - offset_width - width, target_height - offset_height - height
    _check(
        (offset_height >= 0, "offset_height must be >= 0"),
        (offset_width >= 0, "offset_width must be >= 0"),
        (right >= 0, "width must be <= target - offset"),
        (below >= 0, "height must be <= target - offset"),
    )
    pairs = [(0, 0)] * (x.ndim - 3)
    return pad(x, [*pairs, (offset_height, below), (offset_width, right), (0, 0)])


def crop_to_bounding_box(
    image: TensorLike, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return a rectangle of images.

    Args:
        image: As for `flip_left_right`.
        offset_height: The first row.
        offset_width: The first column.
        target_height: The height.
        target_width: The width.

    Raises:
        ValueError: The shape is another one, or the rectangle is not in the images.

    Example:
        >>> import mirrored as mr
        >>> mr.image.crop_to_bounding_box([[[1], [2]], [[3], [4]]], 0, 1, 2, 1).numpy()[..., 0]
        array([[2],
               [4]], dtype=int32)
    """
    x = as_images(image)
    height, width = x.shape[-3:-1]
    _check(
        (offset_width >= 0, "offset_width must be >= 0."),
        (offset_height >= 0, "offset_height must be >= 0."),
        (target_width > 0, "target_width must be > 0."),
        (target_height > 0, "target_height must be > 0."),
        (width >= target_width + offset_width, "width must be >= target + offset."),
        (height >= target_height + offset_height, "height must be >= target + offset."),
    )
    rows = slice(offset_height, offset_height + target_height)
    columns = slice(offset_width, offset_width + target_width)
    return sliced_along(sliced_along(x, x.ndim - 3, rows), x.ndim - 2, columns)


def _check_target(height: Any, width: Any) -> None:
    _check((width > 0, "target_width must be > 0."), (height > 0, "target_height must be > 0."))


def resize_with_crop_or_pad(image: TensorLike, target_height: int, target_width: int) -> Tensor:
    """Return the middle of images, or images with zeros around them, of another size.

    Args:
        image: As for `flip_left_right`.
        target_height: The height.
        target_width: The width.

    Raises:
        ValueError: The shape is another one, or the size is not above 0.

    Example:
        >>> import mirrored as mr
        >>> mr.image.resize_with_crop_or_pad(mr.ones((1, 4, 1)), 3, 2).numpy()[..., 0]
        array([[0., 0.],
               [1., 1.],
               [0., 0.]], dtype=float32)
    """
    x = as_images(image)
    _check_target(target_height, target_width)
    height, width = x.shape[-3:-1]
    more_rows, more_columns = target_height - height, target_width - width
    cropped = crop_to_bounding_box(
        x,
        max(-more_rows // 2, 0),
        max(-more_columns // 2, 0),
        min(target_height, height),
        min(target_width, width),
    )
    return pad_to_bounding_box(
        cropped, max(more_rows // 2, 0), max(more_columns // 2, 0), target_height, target_width
    )


def resize_with_pad(
    image: TensorLike,
    target_height: int,
    target_width: int,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Return images that are resized as a whole, with zeros around them where they end before.

    Args:
        image: As for `flip_left_right`.
        target_height: The height.
        target_width: The width.
        method: As for `resize`.
        antialias: The same.

    Raises:
        ValueError: The shape is another one, or the size is not above 0.

    Example:
        >>> import mirrored as mr
        >>> mr.image.resize_with_pad(mr.ones((1, 1, 1)), 1, 3).numpy()[..., 0]
        array([[0., 1., 0.]], dtype=float32)
    """
    x = as_images(image)
    _check_target(target_height, target_width)
    sizes = np.asarray(x.shape[-3:-1], np.float32)
    targets = np.asarray((target_height, target_width), np.float32)
    exact = sizes / np.max(sizes / targets)
    offsets = np.maximum(np.floor((targets - exact) / np.float32(2)), 0).astype(int).tolist()
    smaller = np.floor(exact).astype(int).tolist()
    resized = resize(x, smaller, method, antialias=antialias)
    return pad_to_bounding_box(resized, offsets[0], offsets[1], target_height, target_width)


def resize(
    images: TensorLike,
    size: ShapeLike,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return images of another size.

    The centres of pixels are at half numbers. Images of the nearest pixels have the dtype that they
    had, others are of float32.

    Args:
        images: Shape (height, width, channels) or (batch, height, width, channels).
        size: The height and the width.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or
            "mitchellcubic", as `ResizeMethod` has them.
        preserve_aspect_ratio: Whether the larger size follows from the smaller one.
        antialias: Whether what is made smaller is made smooth before; "nearest" and "area" ignore
            it.
        name: Accepted for compatibility.

    Raises:
        ValueError: The shape is another one, `size` is not two integers, or there is no such
            method.
        InvalidArgumentError: A size is not above 0, or the images have no pixels or another dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.image.resize([[[0.0], [4.0]]], (1, 4)).numpy()[..., 0]
        array([[0., 1., 3., 4.]], dtype=float32)
    """
    x = adopt(images, None)
    if x.ndim not in (3, 4):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    target = _as_size(size)
    if preserve_aspect_ratio:
        own = np.asarray(x.shape[-3:-1], np.float32)
        target = np.round(np.min(np.asarray(target, np.float32) / own) * own).astype(int).tolist()
    if method not in _METHODS:
        raise ValueError(f"Resize method is not implemented: {method}")
    nearest = method == ResizeMethod.NEAREST_NEIGHBOR
    _check_resized(x, target, _RESIZERS.get(method, "ScaleAndTranslate"))
    if not nearest:
        x = cast(x, float32)
    # The columns first: TensorFlow mixes them before rows.
    for axis, wanted in ((x.ndim - 2, target[1]), (x.ndim - 3, target[0])):
        size = x.shape[axis]
        if nearest:
            x = _taken(x, np.minimum(np.floor(centres(size, wanted)), size - 1), axis)
        elif method == ResizeMethod.BILINEAR and not antialias:
            x = _mixed(x, axis, wanted)
        else:
            x = _summed(x, axis, samples(method, antialias, size, wanted))
    return x


def _as_size(size: Any) -> Sequence[int]:
    try:
        values = adopt(size, None)
    except TypeError as error:
        raise ValueError("'size' must be a 1-D int32 Tensor") from error
    if values.dtype.kind not in "iu" and not (
        isinstance(size, np.ndarray) and (size == np.trunc(size)).all()
    ):
        raise ValueError("'size' must be a 1-D int32 Tensor")
    if values.shape != (2,):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    sizes: list[int] = values.numpy().astype(int).tolist()
    return sizes


def _check_resized(x: Tensor, target: Sequence[int], op: str) -> None:
    if x.dtype not in FLOATS and x.dtype not in _RESIZED_INTEGERS:
        raise InvalidArgumentError(
            f"Value for attr 'T' of {x.dtype.name} is not in the list of allowed values: int8, "
            f"uint8, int16, uint16, int32, int64, bfloat16, half, float, double [Op:{op}]"
        )
    texts = (
        (min(target) > 0, "output dimensions must be positive"),
        (0 not in x.shape[-3:-1], "input image must be of non-zero size"),
        (x.shape[-1] > 0, "image must have at least one channel"),
    )
    for holds, text in texts:
        if not holds:
            raise InvalidArgumentError(f"{text} [Op:{op}]")


def _taken(x: Tensor, places: NDArray[Any], axis: int) -> Tensor:
    return GATHER(x, convert_to_tensor(places.astype(np.int32)), axis=axis, outside=False)


def _mixed(x: Tensor, axis: int, wanted: int) -> Tensor:
    size = x.shape[axis]
    at = centres(size, wanted) - np.float32(0.5)
    below = np.floor(at)
    part = _along(at - below, x, axis)
    low = _taken(x, np.maximum(below, 0), axis)
    high = _taken(x, np.minimum(np.ceil(at), size - 1), axis)
    return low + (high - low) * part


def _along(numbers: NDArray[Any], x: Tensor, axis: int) -> Tensor:
    """Return numbers that broadcast along an axis."""
    return convert_to_tensor(numbers.reshape(-1, *(1,) * (x.ndim - axis - 1)))


def _summed(x: Tensor, axis: int, parts: Samples) -> Tensor:
    terms = [
        _taken(x, places, axis) * _along(weights, x, axis)
        for places, weights in zip(*parts, strict=True)
    ]
    return functools.reduce(operator.add, terms)


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """Return the sum of the differences between neighbouring pixels, one number an image.

    Args:
        images: As for `flip_left_right`.
        name: Accepted for compatibility.

    Raises:
        ValueError: The shape is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.image.total_variation([[[1.0], [3.0]], [[3.0], [3.0]]]).numpy().item()
        4.0
    """
    from mirrored.ops.elementwise import abs as absolute  # Needed here only, as the sum is.
    from mirrored.ops.reduction import reduce_sum

    x = adopt(images, None)
    if x.ndim not in (3, 4):
        raise ValueError("'images' must be either 3 or 4-dimensional.")
    sums = [
        reduce_sum(absolute(_difference(x, axis)), [x.ndim - 3, x.ndim - 2, x.ndim - 1])
        for axis in (x.ndim - 3, x.ndim - 2)
    ]
    return sums[0] + sums[1]


def _difference(x: Tensor, axis: int) -> Tensor:
    return sliced_along(x, axis, slice(1, None)) - sliced_along(x, axis, slice(0, -1))


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the differences of each pixel to the next row's and to the next column's.

    The last row, or column, has zeros.

    Args:
        image: Shape (batch, height, width, channels).

    Raises:
        ValueError: The shape is another one.

    Example:
        >>> import mirrored as mr
        >>> dy, dx = mr.image.image_gradients([[[[1.0], [3.0]], [[4.0], [3.0]]]])
        >>> dx.numpy()[0, ..., 0].tolist()
        [[2.0, 0.0], [-1.0, 0.0]]
    """
    x = adopt(image, None)
    if x.ndim != 4:
        raise ValueError(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}."
        )
    rows, columns = (
        pad(_difference(x, axis), [(0, int(axis == other)) for other in range(4)])
        for axis in (1, 2)
    )
    return rows, columns


explain_functions(__name__, all_but="as_image as_images")
