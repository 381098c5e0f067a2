"""Images moved, turned and zoomed by matrices, and resized without a change of their proportions.

Keras' operations and layers of images are made of these.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.errors import InvalidArgumentError
from mirrored.ops.clipping import clip_by_value, saturated
from mirrored.ops.comparison import LESS, less
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.elementwise import abs as absolute
from mirrored.ops.gathering import GATHER
from mirrored.ops.image_geometry import resize
from mirrored.ops.manipulation import pad
from mirrored.ops.rounding import floor, round
from mirrored.ops.select import where
from mirrored.ops.shaping import cast, expand_dims, reshape, squeeze, stop_gradient, transpose
from mirrored.ops.slicing import sliced_along
from mirrored.ops.spec import FLOATS, float32, int32, int64
from mirrored.ops.tensor import Tensor

INTERPOLATIONS = ("nearest", "bilinear")
FILL_MODES = ("constant", "nearest", "wrap", "reflect")
_RESIZERS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic", "area")


def check_rank(images: Tensor) -> None:
    """Raise ValueError unless there is an image, or a batch of images."""
    if images.ndim not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={images.shape}"
        )


def with_last_channels(
    images: Tensor, data_format: str, change: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return what a function makes of images, whose channels are last while it does.

    Args:
        images: An image or a batch of them.
        data_format: Where their channels are: "channels_last" or "channels_first".
        change: The function.
    """
    if data_format == "channels_last":
        return change(images)
    lead = [*range(images.ndim - 3)]
    rank = images.ndim
    changed = change(transpose(images, [*lead, rank - 2, rank - 1, rank - 3]))
    return transpose(changed, [*lead, rank - 1, rank - 3, rank - 2])


def transformed(
    images: Tensor,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str = "channels_last",
) -> Tensor:
    """Return images that a projection moves.

    Pixel (x, y) is taken from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with
    k = c0 x + c1 y + 1. A gradient flows to the images alone.

    Args:
        images: An image or a batch of them.
        transform: The numbers a0, a1, a2, b0, b1, b2, c0 and c1, or a row of them an image.
        interpolation: "nearest" or "bilinear".
        fill_mode: What is outside: "constant", "nearest", "wrap" or "reflect".
        fill_value: The constant.
        data_format: Where the channels are.

    Raises:
        ValueError: An option or a shape is another one.
        InvalidArgumentError: A transform has not 8 numbers, or there is not one an image.
    """
    for name, value, known in (
        ("interpolation", interpolation, INTERPOLATIONS),
        ("fill_mode", fill_mode, FILL_MODES),
    ):
        if value not in known:
            raise ValueError(
                f"Invalid value for argument `{name}`. Expected of one {known}. Received: "
                f"{name}={value}"
            )
    check_rank(images)
    numbers = cast(stop_gradient(adopt(transform, None)), float32)
    if numbers.ndim not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of "
            f"transforms). Received input with shape: transform.shape={numbers.shape}"
        )
    single = images.ndim == 3
    batch = expand_dims(images, 0) if single else images
    rows = expand_dims(numbers, 0) if numbers.ndim == 1 else numbers
    if rows.shape[0] not in (1, batch.shape[0]) or rows.shape[1] != 8:
        raise InvalidArgumentError(
            "Input transform should be num_images x 8 or 1 x 8 [Op:ImageProjectiveTransformV3]. "
            f"Received: transform.shape={numbers.shape}, images.shape={images.shape}"
        )
    moved = with_last_channels(
        batch, data_format, lambda x: _moved(x, rows, interpolation, fill_mode, fill_value)
    )
    return squeeze(moved, [0]) if single else moved


def _moved(x: Tensor, rows: Tensor, interpolation: str, fill_mode: str, fill: float) -> Tensor:
    count, height, width, channels = x.shape
    at_y, at_x = (
        convert_to_tensor(grid[None]) for grid in np.indices((height, width), dtype=np.float32)
    )
    a0, a1, a2, b0, b1, b2, c0, c1 = (reshape(rows[:, i], (-1, 1, 1)) for i in range(8))
    scale = c0 * at_x + c1 * at_y + 1.0
    from_x = _mapped((a0 * at_x + a1 * at_y + a2) / scale, width, fill_mode)
    from_y = _mapped((b0 * at_x + b1 * at_y + b2) / scale, height, fill_mode)
    pixels = reshape(x, (-1, channels))
    kind = int32 if count * height * width < 2**31 else int64
    first = convert_to_tensor((np.arange(count) * (height * width)).astype(kind).reshape(-1, 1, 1))
    if interpolation == "bilinear":
        pixels = cast(pixels, float32)
    outside = cast(fill, pixels.dtype)

    def read(row: Tensor, column: Tensor) -> Tensor:
        inside = _is_within(row, height) & _is_within(column, width)
        places = cast(clip_by_value(row, 0, height - 1), kind) * width
        places = first + places + cast(clip_by_value(column, 0, width - 1), kind)
        values = GATHER(pixels, places, axis=0, outside=False)
        return where(expand_dims(inside, -1), values, outside)

    if interpolation == "nearest":
        return read(_rounded(from_y), _rounded(from_x))
    up, left = floor(from_y), floor(from_x)
    down, right = up + 1.0, left + 1.0
    part_x, part_y = expand_dims(from_x - left, -1), expand_dims(from_y - up, -1)
    rest_x, rest_y = expand_dims(right - from_x, -1), expand_dims(down - from_y, -1)
    above = rest_x * read(up, left) + part_x * read(up, right)
    below = rest_x * read(down, left) + part_x * read(down, right)
    return cast(rest_y * above + part_y * below, x.dtype)


def _is_within(places: Tensor, size: int) -> Tensor:
    return less(absolute(places * 2.0 - (size - 1)), float(size))


def _rounded(x: Tensor) -> Tensor:
    """Return the nearest integers, and of two those that are farther from 0."""
    positive = absolute(x)
    whole = floor(positive)
    whole = where(LESS(positive - whole, 0.5), whole, whole + 1.0)
    return where(LESS(x, 0.0), -whole, whole)


def _mapped(x: Tensor, size: int, fill_mode: str) -> Tensor:
    """Return places along an axis; a mode but "constant" brings those that are outside inside."""
    if fill_mode == "constant":
        return x
    last = size - 1.0
    if size > 1 and fill_mode != "nearest":
        low, high = (_reflected if fill_mode == "reflect" else _wrapped)(x, float(size))
        x = where(LESS(x, 0.0), low, where(LESS(last, x), high, x))
    return clip_by_value(x, 0.0, last)


def _reflected(x: Tensor, size: float) -> tuple[Tensor, Tensor]:
    """Return what places below 0 become, and those past the last; as TensorFlow: dcba|abcd|dcba."""
    twice = 2.0 * size
    low, high = x + twice * floor(-x / twice), x - twice * floor(x / twice)
    low = where(LESS(low, -size), low + twice, -low - 1.0)
    return low, where(LESS(high, size), high, twice - high - 1.0)


def _wrapped(x: Tensor, size: float) -> tuple[Tensor, Tensor]:
    """Return the same, as TensorFlow does it: abcd|abcd|abcd."""
    last = size - 1.0
    return x + size * (floor(-x / last) + 1.0), x - size * floor(x / last)


def fitted(
    images: Tensor,
    size: Any,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str = "channels_last",
) -> Tensor:
    """Return images of another size, in the dtype that they have.

    Args:
        images: An image or a batch of them.
        size: The height and the width.
        interpolation: As the method of `resize`.
        antialias: As for `resize`.
        crop_to_aspect_ratio: Whether edges are cut off before, for the proportions of `size`.
        pad_to_aspect_ratio: Whether edges are added before, for them.
        fill_mode: "constant".
        fill_value: What is in added edges.
        data_format: Where the channels are.

    Raises:
        ValueError: An option or a shape is another one.
    """
    height, width = size
    if interpolation not in _RESIZERS:
        raise ValueError(
            "Invalid value for argument `interpolation`. Expected of one "
            f"{_RESIZERS}. Received: interpolation={interpolation}"
        )
    if fill_mode != "constant":
        raise ValueError(
            "Invalid value for argument `fill_mode`. Only `'constant'` is supported. Received: "
            f"fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError(
            "Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`."
        )
    check_rank(images)

    def change(x: Tensor) -> Tensor:
        if crop_to_aspect_ratio:
            x = in_proportion(x, height, width, np.float32)
        elif pad_to_aspect_ratio:
            x = _padded(x, height, width, fill_value)
        return resize(x, (height, width), interpolation, antialias=antialias)

    resized = with_last_channels(images, data_format, change)
    if resized.dtype == images.dtype:
        return resized
    return saturated(resized if images.dtype in FLOATS else round(resized), images.dtype)


def in_proportion(x: Tensor, height: int, width: int, real: Any = float) -> Tensor:
    """Return the largest middle of images that has the proportions of a size.

    Args:
        x: The images, channels last.
        height: The size's height.
        width: The size's width.
        real: The floats that are counted with.
    """
    rows, columns = x.shape[-3:-1]
    sizes = (
        max(min(rows, int(real(columns * height) / real(width))), 1),
        max(min(columns, int(real(rows * width) / real(height))), 1),
    )
    for axis, own, part in zip((x.ndim - 3, x.ndim - 2), (rows, columns), sizes, strict=True):
        start = (own - part) // 2
        x = sliced_along(x, axis, slice(start, start + part))
    return x


def _padded(x: Tensor, height: int, width: int, fill: float) -> Tensor:
    rows, columns = x.shape[-3:-1]
    sizes = (
        max(rows, int(np.float32(columns * height) / np.float32(width))),
        max(columns, int(np.float32(rows * width) / np.float32(height))),
    )
    more = ((sizes[0] - rows) // 2, (sizes[1] - columns) // 2)
    pairs = [(0, 0)] * (x.ndim - 3) + [(count, count) for count in more] + [(0, 0)]
    return pad(x, pairs, constant_values=fill) if any(more) else x
