"""Layers that change images at random while they train.

What is drawn belongs to the examples of the global batch, so that any number of replicas changes
images as one device does. Other than of most layers, a call that does not say so trains.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored.layers.image_resizing import ImageLayer, Transformation
from mirrored.layers.layer import LayerOptions
from mirrored.layers.regularization import generator_of
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.image_transforms import transformed
from mirrored.ops.spec import float32, float64

Factor = float | Sequence[float]
Seed = int | SeedGenerator | None
_FILL_MODES = ("reflect", "wrap", "constant", "nearest")
_INTERPOLATIONS = ("nearest", "bilinear")


class _RandomLayer(ImageLayer):
    """A layer that draws in training; its subclasses say what the arguments are."""

    def __init__(
        self, seed: Seed, data_format: str | None, /, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(data_format, **options)
        self.seed = seed
        self.generator = generator_of(self.name, seed)

    def _uniform(self, images: Tensor, low: float, high: float) -> Tensor:
        """Return one number an image, shape (batch, 1, 1, 1)."""
        batched = images.ndim == 4
        # Mixed precision draws in float32, and so the same.
        wide = float64 if self.dtype == float64 else float32
        return self.generator.uniform(
            (images.shape[0] if batched else 1, 1, 1, 1), low, high, wide, per_example=batched
        )

    def _changed(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        if not self._keeps_integers:
            images = ops.cast(images, self.compute_dtype)
        return images if drawn is None else self._moved(images, drawn, interpolation)

    def _moved(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        raise NotImplementedError


class RandomFlip(_RandomLayer):
    """Turns half of the images over in training.

    Args:
        mode: "horizontal" exchanges left and right, "vertical" top and bottom, and
            "horizontal_and_vertical" both, of the same images.
        seed: An integer for the same changes in every run; None takes one from the global stream.
        data_format: "channels_last", the default: shape (batch, height, width, channels) or one
            image; or "channels_first": (batch, channels, height, width).
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``mode`` or ``data_format``.

    Example:
        >>> layer = RandomFlip("horizontal", seed=1)
        >>> layer([[[1.0], [2.0]]], training=False).numpy()[..., 0].tolist()
        [[1.0, 2.0]]
        >>> layer([[[1.0], [2.0]]], training=True).shape
        (1, 2, 1)
    """

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: Seed = None,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(
                "`mode` is 'horizontal', 'vertical' or 'horizontal_and_vertical'. Received: "
                f"mode={mode!r}"
            )
        super().__init__(seed, data_format, **options)
        self.mode = mode

    def _draw(self, images: Tensor) -> Transformation:
        return ops.less_equal(self._uniform(images, 0.0, 1.0), 0.5)

    def _moved(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        vertical, horizontal = (1, 2) if self.data_format == "channels_last" else (2, 3)
        axes = [horizontal] if "horizontal" in self.mode else []
        axes += [vertical] if "vertical" in self.mode else []
        return ops.where(drawn, ops.reverse(images, axes), images)


class _RandomAffine(_RandomLayer):
    """A layer that moves images by matrices."""

    def __init__(
        self,
        fill_mode: str,
        interpolation: str,
        seed: Seed,
        fill_value: float,
        data_format: str | None,
        /,
        **options: Unpack[LayerOptions],
    ) -> None:
        for name, value, known in (
            ("fill_mode", fill_mode, _FILL_MODES),
            ("interpolation", interpolation, _INTERPOLATIONS),
        ):
            if value not in known:
                raise NotImplementedError(f"Unknown `{name}` {value}. Expected of one {known}.")
        super().__init__(seed, data_format, **options)
        self.fill_mode, self.fill_value = fill_mode, fill_value
        self.interpolation = interpolation

    def _size(self, images: Tensor) -> tuple[int, int]:
        """Return height and width."""
        first = -3 if self.data_format == "channels_last" else -2
        return images.shape[first], images.shape[first + 1]

    def _moved(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        return transformed(
            images, drawn, interpolation, self.fill_mode, self.fill_value, self.data_format
        )


def _rows(*numbers: Tensor | float) -> Tensor:
    """Return the numbers of matrices, a row an image; the last two are 0."""
    like = next(number for number in numbers if isinstance(number, Tensor))
    columns = [ops.zeros_like(like) + number for number in (*numbers, 0.0, 0.0)]
    return ops.reshape(ops.concat(columns, 1), (like.shape[0], 8))


def _range(
    name: str, factor: Any, holds: Callable[[float], bool], text: str
) -> tuple[float, float]:
    """Return the bounds that a factor stands for.

    Args:
        name: The argument.
        factor: Two numbers, or the absolute value of both.
        holds: Whether a number is one of those that are allowed.
        text: What errors say of these.

    Raises:
        ValueError: It is neither.
    """
    pair = isinstance(factor, tuple | list)
    if not (pair and len(factor) == 2) and not isinstance(factor, int | float):
        raise ValueError(f"{text}Received: {name}={factor}")
    numbers = sorted(factor) if pair else [-abs(factor), abs(factor)]
    for number in factor if pair else (factor,):
        if not holds(number):
            raise ValueError(f"{text}Received: input_number={number}")
    return numbers[0], numbers[1]


_TRANSLATIONS = (
    "The `factor` argument should be a number (or a list of two numbers) in the range [-1.0, 1.0]. "
)
_ZOOMS = (
    "The `height_factor` and `width_factor` arguments should be a number (or a list of two "
    "numbers) in the range (-1.0, 1.0]. "
)


class RandomTranslation(_RandomAffine):
    """Shifts each image in training.

    Args:
        height_factor: The bounds of how far it is shifted down, as parts of its height: two numbers
            from -1 to 1, or one for both directions.
        width_factor: How far to the right, likewise.
        fill_mode: What is where the image was: "reflect", "wrap", "nearest" or "constant".
        interpolation: "bilinear" or "nearest".
        seed: An integer for the same changes in every run; None takes one from the global stream.
        fill_value: The constant.
        data_format: As for ``RandomFlip``.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A factor is another one, or there is no such ``data_format``.
        NotImplementedError: There is no such ``fill_mode`` or ``interpolation``.

    Example:
        >>> layer = RandomTranslation(0.0, (0.5, 0.5), "constant")
        >>> layer([[[1.0], [2.0]]]).numpy()[..., 0].tolist()
        [[0.0, 1.0]]
    """

    def __init__(
        self,
        height_factor: Factor,
        width_factor: Factor,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: Seed = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        self._bounds = tuple(
            _range(name, factor, lambda number: -1.0 <= number <= 1.0, _TRANSLATIONS)
            for name, factor in (("height_factor", height_factor), ("width_factor", width_factor))
        )
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **options)
        self.height_factor, self.width_factor = height_factor, width_factor

    def _draw(self, images: Tensor) -> Transformation:
        down, right = (
            self._uniform(images, *bounds) * float(size)
            for bounds, size in zip(self._bounds, self._size(images), strict=True)
        )
        return _rows(1.0, 0.0, -right, 0.0, 1.0, -down)


class RandomRotation(_RandomAffine):
    """Turns each image about its middle in training.

    Args:
        factor: The bounds of how far, in full turns against the clock: two numbers, or one from -1
            to 1 for both directions.
        fill_mode: What is where the image was: "reflect", "wrap", "nearest" or "constant".
        interpolation: "bilinear" or "nearest".
        seed: An integer for the same changes in every run; None takes one from the global stream.
        fill_value: The constant.
        data_format: As for ``RandomFlip``.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: The factor is another one, or there is no such ``data_format``.
        NotImplementedError: There is no such ``fill_mode`` or ``interpolation``.

    Example:
        >>> layer = RandomRotation((0.5, 0.5), interpolation="nearest")
        >>> layer([[[1.0], [2.0]]]).numpy()[..., 0].tolist()
        [[2.0, 1.0]]
    """

    def __init__(
        self,
        factor: Factor,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: Seed = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        bounds = _overlapping(factor, -1)
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **options)
        self.factor = bounds

    def _draw(self, images: Tensor) -> Transformation:
        low, high = self.factor
        angle = self._uniform(images, low * 360.0, high * 360.0) * (math.pi / 180.0)
        cosine, sine = ops.cos(angle), ops.sin(angle)
        height, width = self._size(images)
        x, y = 0.5 * (width - 1), 0.5 * (height - 1)
        shift_x = x - x * cosine + y * sine
        shift_y = y - x * sine - y * cosine
        return _rows(cosine, -sine, shift_x, sine, cosine, shift_y)


def _overlapping(factor: Any, least: float) -> tuple[float, float]:
    """Return the bounds that a factor stands for, of which a pair may be beyond limits in part.

    Args:
        factor: Two numbers, or the absolute value of both; None: 0.
        least: The lower limit, which one number has for its lower bound, too. The upper one is 1.

    Raises:
        ValueError: It is neither, or beyond.
    """
    factor = factor or 0.0
    if isinstance(factor, tuple | list):
        if len(factor) == 2 and factor[0] <= 1 and factor[1] >= least:
            low, high = sorted(factor)
            return low, high
    elif isinstance(factor, int | float) and least <= factor <= 1:
        return max(-abs(factor), least), abs(factor)
    raise ValueError(
        "The `factor` argument should be a number (or a list of two numbers) in the range "
        f"[{least}, 1]. Received: factor={factor}"
    )


class RandomZoom(_RandomAffine):
    """Makes each image larger or smaller about its middle in training.

    Args:
        height_factor: The bounds of how much more of the height is seen, as a part of it: two
            numbers above -1 and up to 1, or one for both directions. Less than 0 enlarges.
        width_factor: How much more of the width; None: as much as of the height.
        fill_mode: What is around the image: "reflect", "wrap", "nearest" or "constant".
        interpolation: "bilinear" or "nearest".
        seed: An integer for the same changes in every run; None takes one from the global stream.
        fill_value: The constant.
        data_format: As for ``RandomFlip``.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A factor is another one, or there is no such ``data_format``.
        NotImplementedError: There is no such ``fill_mode`` or ``interpolation``.

    Example:
        >>> layer = RandomZoom((1.0, 1.0), fill_mode="constant")
        >>> layer([[[1.0]], [[2.0]], [[3.0]]]).numpy()[..., 0].tolist()
        [[0.0], [2.0], [0.0]]
    """

    def __init__(
        self,
        height_factor: Factor,
        width_factor: Factor | None = None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: Seed = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        factors = {"height_factor": height_factor, "width_factor": width_factor}
        self._bounds = tuple(
            _range(name, factor, lambda number: -1.0 < number <= 1.0, _ZOOMS)
            for name, factor in factors.items()
            if factor is not None
        )
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **options)
        self.height_factor, self.width_factor = height_factor, width_factor

    def _draw(self, images: Tensor) -> Transformation:
        zooms = [self._uniform(images, 1.0 + low, 1.0 + high) for low, high in self._bounds]
        high, wide = zooms[0], zooms[-1]
        height, width = self._size(images)
        shift_x = (width - 1.0) / 2.0 * (1.0 - wide)
        shift_y = (height - 1.0) / 2.0 * (1.0 - high)
        return _rows(wide, 0.0, shift_x, 0.0, high, shift_y)


class _RandomColors(_RandomLayer):
    """Changes the colours of images within a range of values, and no masks."""

    _keeps_integers = True
    _changes_masks = False
    _least: ClassVar[float]  # The least factor; the largest one is 1.

    def __init__(
        self,
        factor: Factor,
        value_range: Sequence[float] = (0, 255),
        seed: Seed = None,
        *,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        bounds = _overlapping(factor, self._least)
        values = self._checked_range(value_range)
        super().__init__(seed, data_format, **options)
        self.factor = bounds
        self.value_range = values

    def _checked_range(self, value_range: Any) -> Any:
        return value_range


class RandomContrast(_RandomColors):
    """Moves the pixels of each image away from the mean of their channel, or to it, in training.

    Args:
        factor: Distances are multiplied by a number from 1 - lower to 1 + upper: the two numbers,
            or one from 0 to 1 that is upper, where lower is 0.
        value_range: What results are limited to.
        seed: An integer for the same changes in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: The factor is another one.

    Example:
        >>> layer = RandomContrast((0.0, 0.0))
        >>> layer([[[1.0], [2.0]]]).numpy()[..., 0].tolist()
        [[1.0, 2.0]]
    """

    _least = 0

    def _draw(self, images: Tensor) -> Transformation:
        low, high = self.factor
        return ops.cast(self._uniform(images, 1.0 - low, 1.0 + high), self.compute_dtype)

    def _moved(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        axes = [1, 2] if self.data_format == "channels_last" else [2, 3]
        mean = ops.cast(images, self.compute_dtype)
        for axis in axes:
            mean = ops.reduce_mean(mean, axis, keepdims=True)
        changed = (images - mean) * drawn + mean
        return ops.clip_by_value(changed, self.value_range[0], self.value_range[1])


class RandomBrightness(_RandomColors):
    """Adds a number to all pixels of each image in training.

    Args:
        factor: The bounds of the number, as parts of the range of values: two numbers, or one from
            -1 to 1 for both directions.
        value_range: The least and the largest value, to which results are limited.
        seed: An integer for the same changes in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: The factor or the range is another one.

    Example:
        >>> layer = RandomBrightness((0.2, 0.2))
        >>> layer([[[10.0], [250.0]]]).numpy()[..., 0].tolist()
        [[61.0, 255.0]]
    """

    _least = -1

    def _checked_range(self, value_range: Any) -> Any:
        if not isinstance(value_range, tuple | list) or len(value_range) != 2:
            raise ValueError(
                "The `value_range` argument should be a list of two numbers. Received: "
                f"value_range={value_range}"
            )
        return sorted(value_range)

    def _draw(self, images: Tensor) -> Transformation:
        low, high = self.value_range
        return self._uniform(images, *self.factor) * float(high - low)

    def _moved(self, images: Tensor, drawn: Transformation, interpolation: str) -> Tensor:
        brighter: Tensor = images + ops.cast(drawn, images.dtype)
        return ops.clip_by_value(brighter, self.value_range[0], self.value_range[1])
