"""Hues and saturations of images: colours as such, and changes of them, fixed or drawn."""

from typing import Any

from mirrored._arguments import explain_functions
from mirrored._numbers import as_real
from mirrored._types import TensorLike
from mirrored.errors import FailedPreconditionError, InvalidArgumentError
from mirrored.ops.clipping import clip_by_value
from mirrored.ops.comparison import EQUAL, LESS
from mirrored.ops.conversion import adopt, convert_to_tensor, is_tensor
from mirrored.ops.elementwise import abs as absolute
from mirrored.ops.image_colors import Source, by_delta, by_factor, changed, of_seed, stream
from mirrored.ops.reduction import reduce_max, reduce_min
from mirrored.ops.rounding import floormod
from mirrored.ops.select import where
from mirrored.ops.shaping import cast, concat
from mirrored.ops.spec import FLOATS, float32, shape_text
from mirrored.ops.tensor import Tensor


def _checked(images: Any, op: str) -> Tensor:
    x = adopt(images, None) if is_tensor(images) else convert_to_tensor(images, float32)
    if x.dtype not in FLOATS:
        raise InvalidArgumentError(
            f"Value for attr 'T' of {x.dtype.name} is not in the list of allowed values: half, "
            f"bfloat16, float, double [Op:{op}]"
        )
    if not x.ndim:
        raise InvalidArgumentError(f"input must be at least 1D[] [Op:{op}]")
    if x.shape[-1] != 3:
        raise FailedPreconditionError(
            f"input must have 3 channels but input only has {x.shape[-1]} channels. [Op:{op}]"
        )
    return x


def _hues(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return hues from 0 to 1, the distance of the largest channel and the least, and the former.

    Each has an axis of size 1 in place of the channels.
    """
    red, green, blue = (x[..., i : i + 1] for i in range(3))
    most = reduce_max(x, -1, keepdims=True)
    distance = most - reduce_min(x, -1, keepdims=True)
    is_gray = EQUAL(distance, 0.0)
    sixth = 1.0 / (6.0 * where(is_gray, distance + 1.0, distance))
    from_green = (blue - red) * sixth + 2.0 / 6.0
    from_blue = (red - green) * sixth + 4.0 / 6.0
    hue = where(EQUAL(green, most), from_green, from_blue)
    hue = where(EQUAL(red, most), (green - blue) * sixth, hue)
    hue = where(is_gray, hue * 0.0, hue)
    return where(LESS(hue, 0.0), hue + 1.0, hue), distance, most


def _colours(hue: Tensor, distance: Tensor, most: Tensor) -> Tensor:
    """Return the channels of what `_hues` returned."""
    place = hue * 6.0
    parts = (
        absolute(place - 3.0) - 1.0,
        2.0 - absolute(place - 2.0),
        2.0 - absolute(place - 4.0),
    )
    return concat([most - distance * (1.0 - clip_by_value(part, 0.0, 1.0)) for part in parts], -1)


def _saturation(distance: Tensor, most: Tensor) -> Tensor:
    is_bright = LESS(0.0, most)
    return where(is_bright, distance / where(is_bright, most, most * 0.0 + 1.0), distance * 0.0)


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Return red, green and blue as hue, saturation and brightness, from 0 to 1.

    Args:
        images: Floats, shape (..., 3).
        name: Accepted for compatibility.

    Raises:
        FailedPreconditionError: The last axis is not that of three channels.
        InvalidArgumentError: They are no floats, or there is no axis.

    Example:
        >>> import mirrored as mr
        >>> mr.image.rgb_to_hsv([[[0.0, 1.0, 0.5]]]).numpy().tolist()
        [[[0.4166666865348816, 1.0, 1.0]]]
    """
    hue, distance, most = _hues(_checked(images, "RGBToHSV"))
    return concat([hue, _saturation(distance, most), most], -1)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Return hue, saturation and brightness, from 0 to 1, as red, green and blue.

    Args:
        images: Floats, shape (..., 3).
        name: Accepted for compatibility.

    Raises:
        FailedPreconditionError: The last axis is not that of three channels.
        InvalidArgumentError: They are no floats, or there is no axis.

    Example:
        >>> import mirrored as mr
        >>> mr.image.hsv_to_rgb([[[0.5, 1.0, 1.0]]]).numpy().tolist()
        [[[0.0, 1.0, 1.0]]]
    """
    x = _checked(images, "HSVToRGB")
    hue, saturation, most = (x[..., i : i + 1] for i in range(3))
    return _colours(hue, saturation * most, most)


def _adjusted(image: Any, number: Any, argument: str, op: str) -> tuple[Tensor, Tensor]:
    """Return images and a number, which are checked."""
    x, value = adopt(image, None), cast(number, float32)
    if x.ndim < 3:
        raise InvalidArgumentError(
            f"input must be at least 3-D, got shape{shape_text(x.shape)} [Op:{op}]"
        )
    if x.shape[-1] != 3:
        raise InvalidArgumentError(
            f"input must have 3 channels but instead has {x.shape[-1]} channels. [Op:{op}]"
        )
    if value.ndim:
        raise InvalidArgumentError(
            f"{argument} must be scalar: {shape_text(value.shape)} [Op:{op}]"
        )
    return x, value


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Return images whose hues are turned.

    Args:
        image: Shape (..., height, width, 3); integers as `convert_image_dtype` scales them.
        delta: How far, of 1 for a whole turn: a number from -1 to 1.
        name: Accepted for compatibility.

    Raises:
        ValueError: The number is another one.
        InvalidArgumentError: The shape is another one, or there are several numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.adjust_hue([[[1.0, 0.0, 0.0]]], 0.5).numpy().tolist()
        [[[0.0, 1.0, 1.0]]]
    """
    number = None if is_tensor(delta) else as_real(delta)
    if number is not None and not -1 <= number <= 1:
        raise ValueError("delta must be in the interval [-1, 1]")
    x, turn = _adjusted(image, delta, "delta", "AdjustHue")

    def change(floats: Tensor) -> Tensor:
        hue, distance, most = _hues(cast(floats, float32))
        return cast(_colours(floormod(hue + turn, 1.0), distance, most), floats.dtype)

    return changed(x, change, saturate=False)


def adjust_saturation(
    image: TensorLike, saturation_factor: TensorLike, name: str | None = None
) -> Tensor:
    """Return images whose saturation is multiplied by a number, and limited to 0 and 1.

    Args:
        image: Shape (..., height, width, 3); integers as `convert_image_dtype` scales them.
        saturation_factor: The number.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape is another one, or there are several numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.adjust_saturation([[[1.0, 0.0, 0.0]]], 0.25).numpy().tolist()
        [[[1.0, 0.75, 0.75]]]
    """
    x, factor = _adjusted(image, saturation_factor, "scale", "AdjustSaturation")

    def change(floats: Tensor) -> Tensor:
        hue, distance, most = _hues(cast(floats, float32))
        saturation = clip_by_value(_saturation(distance, most) * factor, 0.0, 1.0)
        return cast(_colours(hue, saturation * most, most), floats.dtype)

    return changed(x, change, saturate=False)


def _turned(image: Any, max_delta: float, draw: Source) -> Tensor:
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    return by_delta(adjust_hue, image, max_delta, draw)


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Return images whose hues are turned by one number, which is drawn.

    Args:
        image: As for `adjust_hue`.
        max_delta: The number is drawn evenly from [-max_delta, max_delta); it is 0.5 at most.
        seed: An integer gives a stream of its own, beside the global seed.

    Raises:
        ValueError: `max_delta` is below 0 or above 0.5.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_hue(mr.ones((2, 3, 3)), 0.2).shape
        (2, 3, 3)
    """
    return _turned(image, max_delta, stream(seed))


def stateless_random_hue(image: TensorLike, max_delta: float, seed: TensorLike) -> Tensor:
    """Return what `random_hue` does, by TensorFlow's numbers for a seed.

    Args:
        image: As there.
        max_delta: The same.
        seed: Two integers.

    Raises:
        ValueError: As there.
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.stateless_random_hue([[[1.0, 1.0, 1.0]]], 0.2, (3, 4)).numpy().tolist()
        [[[1.0, 1.0, 1.0]]]
    """
    return _turned(image, max_delta, of_seed(seed))


def random_saturation(
    image: TensorLike, lower: float, upper: float, seed: int | None = None
) -> Tensor:
    """Return images whose saturation is multiplied by one factor, which is drawn.

    Args:
        image: As for `adjust_saturation`.
        lower: The least factor.
        upper: The bound above all factors.
        seed: An integer gives a stream of its own, beside the global seed.

    Raises:
        ValueError: `upper` is not above `lower`, or that is below 0.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_saturation(mr.ones((2, 3, 3)), 0.2, 0.5).shape
        (2, 3, 3)
    """
    return by_factor(adjust_saturation, image, lower, upper, stream(seed))


def stateless_random_saturation(
    image: TensorLike, lower: float, upper: float, seed: TensorLike | None = None
) -> Tensor:
    """Return what `random_saturation` does, by TensorFlow's numbers for a seed.

    Args:
        image: As there.
        lower: The same.
        upper: The same.
        seed: Two integers.

    Raises:
        ValueError: As there.
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> white = [[[1.0, 1.0, 1.0]]]
        >>> mr.image.stateless_random_saturation(white, 0.2, 0.5, (3, 4)).numpy().tolist()
        [[[1.0, 1.0, 1.0]]]
    """
    return by_factor(adjust_saturation, image, lower, upper, of_seed(seed))


explain_functions(__name__, all_but="")
