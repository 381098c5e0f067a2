"""`keras.ops` of images."""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import ShapeLike, TensorLike
from mirrored.layers.shapes import as_data_format
from mirrored.ops import Tensor, image_colors, image_hues
from mirrored.ops.image_transforms import check_rank, fitted, transformed, with_last_channels
from mirrored.ops.manipulation import pad
from mirrored.ops.spec import FLOATS, float32


def resize(
    images: TensorLike,
    size: ShapeLike,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Return images of another size, in the dtype that they have.

    Args:
        images: Shape (height, width, channels) or (batch, height, width, channels).
        size: The height and the width.
        interpolation: "bilinear", "nearest", "bicubic", "area", "lanczos3" or "lanczos5".
        antialias: Whether what is made smaller is made smooth before; "nearest" and "area" ignore
            it.
        crop_to_aspect_ratio: Whether edges are cut off before, for the proportions of `size`.
        pad_to_aspect_ratio: Whether edges are added before, for them.
        fill_mode: "constant".
        fill_value: What is in added edges.
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: An option or a shape is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.resize(mr.ones((4, 4, 3)), (2, 3)).shape
        (2, 3, 3)
    """
    sizes: Any = size
    if len(sizes) != 2:
        raise ValueError(f"Expected `size` to be a tuple of 2 integers. Received: size={size}")
    if sizes[0] <= 0 or sizes[1] <= 0:
        raise ValueError(f"`size` must have positive height and width. Received: size={size}")
    return fitted(
        ops.convert_to_tensor(images),
        size,
        interpolation,
        antialias,
        crop_to_aspect_ratio,
        pad_to_aspect_ratio,
        fill_mode,
        fill_value,
        as_data_format(data_format),
    )


def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Return images that a projection moves.

    Pixel (x, y) is taken from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with
    k = c0 x + c1 y + 1. A gradient flows to the images alone.

    Args:
        images: Shape (height, width, channels) or (batch, height, width, channels).
        transform: The numbers a0, a1, a2, b0, b1, b2, c0 and c1, or a row of them an image.
        interpolation: "nearest" or "bilinear".
        fill_mode: What is outside: "constant", "nearest", "wrap" or "reflect".
        fill_value: The constant.
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: An option or a shape is another one.
        InvalidArgumentError: A transform has not 8 numbers, or there is not one an image.

    Example:
        >>> import mirrored as mr
        >>> image = mr.constant([[[1.0], [2.0], [3.0]]])
        >>> mr.keras.ops.image.affine_transform(image, [1, 0, 1, 0, 1, 0, 0, 0]).numpy()[..., 0]
        array([[2., 3., 0.]], dtype=float32)
    """
    form = as_data_format(data_format)
    x = ops.convert_to_tensor(images)
    return transformed(x, transform, interpolation, fill_mode, fill_value, form)


def rgb_to_grayscale(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Return how bright colours are: one channel, of the dtype that there was.

    Args:
        images: Shape (height, width, 3) or (batch, height, width, 3); one channel stays.
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: The shape is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.rgb_to_grayscale(mr.ones((2, 2, 3))).shape
        (2, 2, 1)
    """
    form, x = as_data_format(data_format), ops.convert_to_tensor(images)
    check_rank(x)
    channels = x.shape[-1 if form == "channels_last" else -3]
    if channels not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received input with shape: "
            f"images.shape={x.shape}"
        )
    if channels == 1:
        return ops.identity(x)
    kind = x.dtype if x.dtype in FLOATS else float32
    weights = ops.constant([[0.2989], [0.5870], [0.1140]], kind)

    def change(x: Tensor) -> Tensor:
        return ops.cast(image_colors.mixed(ops.cast(x, kind), weights), x.dtype)

    return with_last_channels(x, form, change)


def _of_colours(images: TensorLike, data_format: Any, change: Callable[[Any], Tensor]) -> Tensor:
    form, x = as_data_format(data_format), ops.convert_to_tensor(images)
    check_rank(x)
    if x.dtype not in FLOATS:
        raise ValueError(
            f"Invalid images dtype: expected float dtype. Received: images.dtype={x.dtype.name}"
        )
    return with_last_channels(x, form, change)


def rgb_to_hsv(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Return red, green and blue as hue, saturation and brightness, from 0 to 1.

    Args:
        images: Floats, shape (height, width, 3) or (batch, height, width, 3).
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: They are no floats, or have another number of axes.
        FailedPreconditionError: There are not three channels.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.rgb_to_hsv([[[0.0, 1.0, 0.0]]]).numpy().round(2)[0, 0]
        array([0.33, 1.  , 1.  ], dtype=float32)
    """
    return _of_colours(images, data_format, image_hues.rgb_to_hsv)


def hsv_to_rgb(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Return hue, saturation and brightness, from 0 to 1, as red, green and blue.

    Args:
        images: Floats, shape (height, width, 3) or (batch, height, width, 3).
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: They are no floats, or have another number of axes.
        FailedPreconditionError: There are not three channels.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.hsv_to_rgb([[[0.5, 1.0, 1.0]]]).numpy()[0, 0]
        array([0., 1., 1.], dtype=float32)
    """
    return _of_colours(images, data_format, image_hues.hsv_to_rgb)


def pad_images(
    images: TensorLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Return images with zeros around them; two of three numbers are given for each axis.

    Args:
        images: Shape (height, width, channels) or (batch, height, width, channels).
        top_padding: How many rows come before.
        left_padding: How many columns come before.
        bottom_padding: How many rows come behind.
        right_padding: How many columns come behind.
        target_height: The height of the result.
        target_width: The width of the result.
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: The shape is another one, a number is missing, too many are there, or one is
            below 0.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.pad_images(mr.ones((2, 2, 3)), 1, 0, 1, target_width=4).shape
        (4, 4, 3)
    """
    form, x = as_data_format(data_format), ops.convert_to_tensor(images)
    check_rank(x)
    rows = {"top_padding": top_padding, "bottom_padding": bottom_padding}
    columns = {"left_padding": left_padding, "right_padding": right_padding}
    _check_two({**rows, "target_height": target_height})
    _check_two({**columns, "target_width": target_width})

    def change(x: Tensor) -> Tensor:
        pairs = [(0, 0)] * (x.ndim - 3)
        for numbers, target, own in zip(
            (rows, columns), (target_height, target_width), x.shape[-3:-1], strict=True
        ):
            before, behind = _filled(numbers, (target or 0) - own)
            _check_positive(dict([before, behind]))
            pairs.append((before[1], behind[1]))
        return pad(x, [*pairs, (0, 0)])

    return with_last_channels(x, form, change)


def crop_images(
    images: TensorLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Return images without their edges; two of three numbers are given for each axis.

    Args:
        images: Shape (height, width, channels) or (batch, height, width, channels).
        top_cropping: How many rows go at the top.
        left_cropping: How many columns go at the left.
        bottom_cropping: How many rows go at the bottom.
        right_cropping: How many columns go at the right.
        target_height: The height of the result.
        target_width: The width of the result.
        data_format: "channels_first" where the channels come before the height.

    Raises:
        ValueError: The shape is another one, a number is missing, too many are there, or one is
            below 0.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.image.crop_images(mr.ones((4, 4, 3)), 1, 0, 1, target_width=3).shape
        (2, 3, 3)
    """
    form, x = as_data_format(data_format), ops.convert_to_tensor(images)
    check_rank(x)
    rows = {"top_cropping": top_cropping, "bottom_cropping": bottom_cropping}
    columns = {"left_cropping": left_cropping, "right_cropping": right_cropping}
    rows["target_height"], columns["target_width"] = target_height, target_width
    _check_two(rows)
    _check_two(columns)

    def change(x: Tensor) -> Tensor:
        parts = [(0, -1)] * (x.ndim - 3)
        for numbers, own in zip((rows, columns), x.shape[-3:-1], strict=True):
            first, _, size = _filled(numbers, own)
            _check_positive(dict([first, size]))
            parts.append((first[1], size[1]))
        begin, sizes = zip(*parts, (0, -1), strict=True)
        return ops.slice(x, begin, sizes)

    return with_last_channels(x, form, change)


def _filled(numbers: dict[str, int | None], total: int) -> list[tuple[str, int]]:
    """Return names and numbers; one that is None is what the others lack to a total."""
    known = sum(number for number in numbers.values() if number is not None)
    return [(name, total - known if n is None else n) for name, n in numbers.items()]


def _check_two(numbers: dict[str, int | None]) -> None:
    if sum(number is None for number in numbers.values()) != 1:
        texts = ", ".join(f"{name}={number}" for name, number in numbers.items())
        raise ValueError(f"Must specify exactly two of {', '.join(numbers)}. Received: {texts}")
    _check_positive(numbers)


def _check_positive(numbers: Any) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ValueError(f"{name} must be >= 0. Received: {name}={number}")


explain_functions(__name__, all_but="")
