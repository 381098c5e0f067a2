"""The values of images: dtypes, brightness, contrast and colours, fixed or drawn at random.

What is drawn for images of a batch belongs to the examples of the global batch, so that any number
of replicas draws what one device draws.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._numbers import as_real
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.clipping import saturated
from mirrored.ops.comparison import LESS
from mirrored.ops.conversion import adopt, constant, convert_to_tensor, is_tensor
from mirrored.ops.elementwise import maximum, minimum
from mirrored.ops.gathering import gather
from mirrored.ops.image_geometry import as_image, as_images, flip_left_right, flip_up_down
from mirrored.ops.manipulation import tile
from mirrored.ops.powers import RSQRT, pow
from mirrored.ops.random import uniform_by_example
from mirrored.ops.reduction import reduce_mean
from mirrored.ops.rng_state import WHOLE, current_position
from mirrored.ops.select import where
from mirrored.ops.shaping import cast, identity, reshape
from mirrored.ops.spec import FLOATS, Shape, as_dtype, float16, float32, int32, shape_text
from mirrored.ops.stateless_random import Draw
from mirrored.ops.statistics import reduce_std
from mirrored.ops.tensor import Tensor

_INTEGERS = "iu"
_PIXELS = [-3, -2, -1]


def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Return images in another dtype, scaled: floats go from 0 to 1, integers to their largest.

    Args:
        image: Numbers of any shape.
        dtype: A float or an integer.
        saturate: Whether what is beyond the limits of the dtype is brought to them before.
        name: Accepted for compatibility.

    Raises:
        AttributeError: One of the dtypes is neither a float nor an integer.

    Example:
        >>> import mirrored as mr
        >>> mr.image.convert_image_dtype([0.0, 0.5, 1.0], "uint8").numpy()
        array([  0, 127, 255], dtype=uint8)
    """
    x, kind = adopt(image, None), as_dtype(dtype)
    for text, known in (("dtype", kind), ("image dtype", x.dtype)):
        if known not in FLOATS and known.kind not in _INTEGERS:
            raise AttributeError(f"{text} must be either floating point or integer")
    if kind == x.dtype:
        return identity(x)
    convert = saturated if saturate else cast
    if kind in FLOATS:
        converted = cast(x, kind)
        return converted if x.dtype in FLOATS else converted * (1.0 / np.iinfo(x.dtype).max)
    most = int(np.iinfo(kind).max)
    if x.dtype in FLOATS:
        return convert(x * (most + 0.5), kind)
    own = int(np.iinfo(x.dtype).max)
    if own > most:
        return convert(x // ((own + 1) // (most + 1)), kind)
    return convert(x, kind) * ((most + 1) // (own + 1))


def changed(image: Any, change: Callable[[Tensor], Tensor], *, saturate: bool = True) -> Tensor:
    """Return images that a function of floats changes, in the dtype that they had.

    Args:
        image: The images.
        change: The function.
        saturate: Whether integers are brought to the limits of their dtype.
    """
    x = adopt(image, None)
    floats = x if x.dtype in (float16, float32) else convert_image_dtype(x, float32)
    return convert_image_dtype(change(floats), x.dtype, saturate=saturate)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Return images that are brighter by a number.

    Args:
        image: Numbers of any shape; integers as `convert_image_dtype` scales them.
        delta: The number, of floats from 0 to 1.

    Example:
        >>> import mirrored as mr
        >>> mr.image.adjust_brightness(mr.constant([10, 250], "uint8"), 0.1).numpy()
        array([ 35, 255], dtype=uint8)
    """
    return changed(image, lambda x: x + cast(delta, x.dtype))


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """Return images whose distance to the mean of each channel is multiplied by a number.

    Args:
        images: Shape (..., height, width, channels).
        contrast_factor: The number.

    Raises:
        InvalidArgumentError: The images have fewer than three axes, or there are several numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.adjust_contrast([[[1.0], [3.0]]], 2.0).numpy()[..., 0]
        array([[0., 4.]], dtype=float32)
    """
    x, factor = adopt(images, None), cast(contrast_factor, float32)
    if x.ndim < 3:
        raise InvalidArgumentError(
            f"input must be at least 3-D, got shape{shape_text(x.shape)} [Op:AdjustContrastv2]"
        )
    if factor.ndim:
        raise InvalidArgumentError(
            f"contrast_factor must be scalar: {shape_text(factor.shape)} [Op:AdjustContrastv2]"
        )

    def change(x: Tensor) -> Tensor:
        wide = cast(x, float32)
        mean = reduce_mean(wide, [-3, -2], keepdims=True)
        return cast((wide - mean) * factor + mean, x.dtype)

    return changed(x, change)


def adjust_gamma(image: TensorLike, gamma: TensorLike = 1, gain: TensorLike = 1) -> Tensor:
    """Return gain * image ** gamma.

    Args:
        image: Numbers of any shape; integers as `convert_image_dtype` scales them.
        gamma: The exponent, not below 0.
        gain: The factor.

    Raises:
        ValueError: `gamma` is below 0.

    Example:
        >>> import mirrored as mr
        >>> mr.image.adjust_gamma([0.5], 2.0, 4.0).numpy()
        array([1.], dtype=float32)
    """
    number = None if is_tensor(gamma) else as_real(gamma)
    if number is not None and number < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    return changed(image, lambda x: gain * pow(x, gamma))


def per_image_standardization(image: TensorLike) -> Tensor:
    """Return images of mean 0 and standard deviation 1, each by itself, as float32.

    Args:
        image: Shape (..., height, width, channels).

    Raises:
        ValueError: It has fewer than three axes, or no pixels.

    Example:
        >>> import mirrored as mr
        >>> mr.image.per_image_standardization([[[1.0], [3.0]]]).numpy()[..., 0]
        array([[-1.,  1.]], dtype=float32)
    """
    x = cast(as_image(image), float32)
    least = RSQRT(constant(float(np.prod(x.shape[-3:])), float32))
    deviation = maximum(reduce_std(x, _PIXELS, keepdims=True), least)
    return (x - reduce_mean(x, _PIXELS, keepdims=True)) / deviation


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """Return how bright colours are: one channel, of the dtype that there was.

    Args:
        images: Shape (..., 3).
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The last axis is not that of three colours.

    Example:
        >>> import mirrored as mr
        >>> mr.image.rgb_to_grayscale([[[10.0, 0.0, 10.0]]]).numpy().tolist()
        [[[4.129000186920166]]]
    """
    x = adopt(images, None)
    weights = constant([[0.2989], [0.5870], [0.1140]], float32)
    return convert_image_dtype(mixed(convert_image_dtype(x, float32), weights), x.dtype)


def mixed(x: Tensor, weights: Tensor) -> Tensor:
    """Return sums of channels with weights, one after the other.

    A product of matrices would have fewer digits on cards.

    Args:
        x: Shape (..., channels).
        weights: Shape (channels, results).

    Raises:
        InvalidArgumentError: The channels are others.
    """
    channels = weights.shape[0]
    if x.shape[-1:] != (channels,):
        rows = shape_text((int(np.prod(x.shape[:-1])), *x.shape[-1:]))
        raise InvalidArgumentError(
            f"Matrix size-incompatible: In[0]: {rows}, In[1]: {shape_text(weights.shape)} "
            "[Op:MatMul]"
        )
    terms = (x[..., i : i + 1] * weights[i] for i in range(channels))
    return functools.reduce(operator.add, terms)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Return images of one channel with three alike.

    Args:
        images: Shape (..., 1).
        name: Accepted for compatibility.

    Raises:
        ValueError: The last axis has another size.

    Example:
        >>> import mirrored as mr
        >>> mr.image.grayscale_to_rgb([[[1], [2]]]).numpy().tolist()
        [[[1, 1, 1], [2, 2, 2]]]
    """
    x = adopt(images, None)
    if x.ndim < 2:
        raise ValueError(f"A grayscale image (shape {x.shape}) must be at least two-dimensional.")
    if x.shape[-1] != 1:
        raise ValueError("Last dimension of a grayscale image should be size 1.")
    return tile(x, [*(1 for _ in x.shape[:-1]), 3])


# The columns are what one colour adds to each channel of the other kind.
_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_FROM_YIQ = [
    [1.0, 1.0, 1.0],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_FROM_YUV = [
    [1.0, 1.0, 1.0],
    [0.0, -0.394642334, 2.03206185],
    [1.13988303, -0.58062185, 0.0],
]


def _channels(images: Any, weights: list[list[float]]) -> Tensor:
    x = adopt(images, None)
    return mixed(x, convert_to_tensor(weights, x.dtype))


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Return red, green and blue as brightness and two differences, as in NTSC.

    Args:
        images: Floats, shape (..., 3).

    Raises:
        InvalidArgumentError: The last axis is not that of three channels.
        TypeError: They are no floats.

    Example:
        >>> import mirrored as mr
        >>> mr.image.rgb_to_yiq([[[1.0, 0.0, 0.0]]]).numpy().round(3).tolist()[0][0][0]
        0.29899999499320984
    """
    return _channels(images, _YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """Return what `rgb_to_yiq` was of; all else as there.

    Example:
        >>> import mirrored as mr
        >>> mr.image.yiq_to_rgb([[[1.0, 0.0, 0.0]]]).numpy().tolist()
        [[[1.0, 1.0, 1.0]]]
    """
    return _channels(images, _FROM_YIQ)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Return red, green and blue as brightness and two differences, as in PAL.

    Args:
        images: Floats, shape (..., 3).

    Raises:
        InvalidArgumentError: The last axis is not that of three channels.
        TypeError: They are no floats.

    Example:
        >>> import mirrored as mr
        >>> mr.image.rgb_to_yuv([[[1.0, 0.0, 0.0]]]).numpy().round(3).tolist()[0][0][0]
        0.29899999499320984
    """
    return _channels(images, _YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """Return what `rgb_to_yuv` was of; all else as there.

    Example:
        >>> import mirrored as mr
        >>> mr.image.yuv_to_rgb([[[1.0, 0.0, 0.0]]]).numpy().tolist()
        [[[1.0, 1.0, 1.0]]]
    """
    return _channels(images, _FROM_YUV)


# Draws, from 0 to 1, of a shape, whose first axis may be the batch.
Source = Callable[[Shape], Tensor]


def stream(seed: Any) -> Source:
    """Return what draws from a global stream, or from that of a seed."""
    return lambda shape: uniform_by_example(shape, float32, seed, bool(shape))


def of_seed(seed: Any) -> Source:
    """Return what draws TensorFlow's numbers for a seed."""

    def draw(shape: Shape) -> Tensor:
        at = current_position() if shape else WHOLE
        return Draw.of_seed(seed, None, at).uniform(shape, 0, 1, float32)

    return draw


def by_delta(
    adjust: Callable[[Any, Tensor], Tensor], image: Any, max_delta: float, draw: Source
) -> Tensor:
    """Return images adjusted by a number that is drawn from -max_delta to max_delta."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust(image, draw(()) * (max_delta - -max_delta) + -max_delta)


def by_factor(
    adjust: Callable[[Any, Tensor], Tensor], image: Any, lower: float, upper: float, draw: Source
) -> Tensor:
    """Return images adjusted by a factor that is drawn from lower to upper."""
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust(image, draw(()) * (upper - lower) + lower)


def _flipped(image: Any, flip: Callable[[Any], Tensor], draw: Source) -> Tensor:
    x = as_images(as_image(image))
    if x.ndim == 3:
        chosen = LESS(draw(()), 0.5)
    else:  # TensorFlow rounds what it draws for a batch: half is not turned.
        chosen = LESS(0.5, reshape(draw(x.shape[:1]), (-1, 1, 1, 1)))
    return where(chosen, flip(x), x)


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Return images of which each has its columns in the other order, or not, by chance.

    Args:
        image: Shape (height, width, channels) or (batch, height, width, channels).
        seed: An integer gives a stream of its own, beside the global seed.

    Raises:
        ValueError: The shape is another one, or has no pixels.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_flip_left_right(mr.ones((2, 3, 1))).shape
        (2, 3, 1)
    """
    return _flipped(image, flip_left_right, stream(seed))


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Return images of which each has its rows in the other order, or not, by chance.

    Args:
        image: As for `random_flip_left_right`.
        seed: The same.

    Raises:
        ValueError: As there.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_flip_up_down(mr.ones((2, 3, 1))).shape
        (2, 3, 1)
    """
    return _flipped(image, flip_up_down, stream(seed))


def stateless_random_flip_left_right(image: TensorLike, seed: TensorLike) -> Tensor:
    """Return what `random_flip_left_right` does, by TensorFlow's numbers for a seed.

    Args:
        image: As there.
        seed: Two integers.

    Raises:
        ValueError: As there.
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.stateless_random_flip_left_right([[[1], [2]]], (3, 4)).numpy()[..., 0]
        array([[2, 1]], dtype=int32)
    """
    return _flipped(image, flip_left_right, of_seed(seed))


def stateless_random_flip_up_down(image: TensorLike, seed: TensorLike) -> Tensor:
    """Return what `random_flip_up_down` does, by TensorFlow's numbers for a seed.

    Args:
        image: As there.
        seed: Two integers.

    Raises:
        ValueError: As there.
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.stateless_random_flip_up_down([[[1]], [[2]]], (3, 4)).numpy()[..., 0]
        array([[2],
               [1]], dtype=int32)
    """
    return _flipped(image, flip_up_down, of_seed(seed))


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Return images that are brighter by one number, which is drawn.

    Args:
        image: As for `adjust_brightness`.
        max_delta: The number is drawn evenly from [-max_delta, max_delta).
        seed: An integer gives a stream of its own, beside the global seed.

    Raises:
        ValueError: `max_delta` is below 0.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_brightness(mr.ones((2, 3, 1)), 0.2).shape
        (2, 3, 1)
    """
    return by_delta(adjust_brightness, image, max_delta, stream(seed))


def stateless_random_brightness(image: TensorLike, max_delta: float, seed: TensorLike) -> Tensor:
    """Return what `random_brightness` does, by TensorFlow's numbers for a seed.

    Args:
        image: As there.
        max_delta: The same.
        seed: Two integers.

    Raises:
        ValueError: As there.
        InvalidArgumentError: The seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.stateless_random_brightness([[[0.0]]], 1.0, (3, 4)).shape
        (1, 1, 1)
    """
    return by_delta(adjust_brightness, image, max_delta, of_seed(seed))


def random_contrast(
    image: TensorLike, lower: float, upper: float, seed: int | None = None
) -> Tensor:
    """Return images whose contrast is changed by one factor, which is drawn.

    Args:
        image: As for `adjust_contrast`.
        lower: The least factor.
        upper: The bound above all factors.
        seed: An integer gives a stream of its own, beside the global seed.

    Raises:
        ValueError: `upper` is not above `lower`, or that is below 0.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_contrast(mr.ones((2, 3, 1)), 0.2, 0.5).shape
        (2, 3, 1)
    """
    return by_factor(adjust_contrast, image, lower, upper, stream(seed))


def stateless_random_contrast(
    image: TensorLike, lower: float, upper: float, seed: TensorLike
) -> Tensor:
    """Return what `random_contrast` does, by TensorFlow's numbers for a seed.

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
        >>> mr.image.stateless_random_contrast([[[1.0]]], 0.2, 0.5, (3, 4)).numpy().item()
        1.0
    """
    return by_factor(adjust_contrast, image, lower, upper, of_seed(seed))


def _cropped(value: Any, size: Any, offset: Callable[[int, int], Tensor]) -> Tensor:
    """Return a part of a tensor.

    Args:
        value: The tensor.
        size: The shape of the part.
        offset: Returns where it begins, of an axis and a number of places.
    """
    x, sizes = adopt(value, None), tuple(convert_to_tensor(size, int32).numpy().tolist())
    if len(sizes) != x.ndim or any(own < part for own, part in zip(x.shape, sizes, strict=True)):
        raise InvalidArgumentError(
            "Need value.shape >= size, got "
            f"{shape_text(x.shape)} and {shape_text(sizes)} [Op:Assert]"
        )
    for axis, (own, part) in enumerate(zip(x.shape, sizes, strict=True)):
        if own != part:
            start = offset(axis, own - part + 1)
            x = gather(x, start + np.arange(part, dtype=np.int32), axis=axis)
    return x


def random_crop(
    value: TensorLike, size: ShapeLike, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Return a part of a tensor, whose place is drawn.

    Args:
        value: The tensor.
        size: The shape of the part.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The part is larger, or has another number of axes.

    Example:
        >>> import mirrored as mr
        >>> mr.image.random_crop(mr.ones((5, 5, 3)), (2, 2, 3)).shape
        (2, 2, 3)
    """
    draw = stream(seed)  # All replicas have the same: a vector could be taken for the batch.
    return _cropped(
        value, size, lambda _, count: minimum(cast(draw(()) * float(count), int32), count - 1)
    )


def stateless_random_crop(
    value: TensorLike, size: ShapeLike, seed: TensorLike, name: str | None = None
) -> Tensor:
    """Return a part of a tensor, whose place is that of TensorFlow for a seed.

    Args:
        value: As for `random_crop`.
        size: The same.
        seed: Two integers.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: As there; or the seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.image.stateless_random_crop([1, 2, 3, 4], (2,), seed=(1, 2)).numpy()
        array([2, 3], dtype=int32)
    """
    most = np.iinfo(np.int32).max
    rank = adopt(value, None).ndim
    drawn = Draw.of_seed(seed).uniform((rank,), 0, most, int32)
    return _cropped(value, size, lambda axis, count: drawn[axis] % count)


explain_functions(__name__, all_but="by_delta by_factor changed mixed of_seed stream")
