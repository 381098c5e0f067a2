"""Dropout and noise: random changes of the inputs while training.

The random numbers belong to the examples of the global batch, so that any number of replicas
drops what one device drops.
"""

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._numbers import as_integer, from_0_to_1
from mirrored._types import PartialShapeLike
from mirrored.layers.layer import LayerOptions, SameShape
from mirrored.layers.shapes import as_data_format
from mirrored.layers.spatial import SpatialLayer
from mirrored.ops import SeedGenerator, Tensor
from mirrored.program import variable_access


class Drawing(SameShape):
    """A layer that draws in training; its subclasses say what the arguments are."""

    _amount: ClassVar[str] = "rate"  # The argument that says how much is changed, from 0 to 1.
    rate: float
    noise_shape: tuple[int | None, ...] | None = None

    def __init__(
        self, amount: float, /, seed: int | SeedGenerator | None, **options: Unpack[LayerOptions]
    ) -> None:
        fraction = from_0_to_1(self._amount, amount)
        super().__init__(**options)
        setattr(self, self._amount, fraction)
        self.seed = seed
        if fraction > 0:
            self.seed_generator = generator_of(self.name, seed)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), changed at random while training."""
        if not training or getattr(self, self._amount) == 0:
            return inputs
        return self._changed(inputs)

    def _changed(self, inputs: Tensor) -> Tensor:
        """Return the inputs with the changes of a step of training."""
        raise NotImplementedError

    def _drawn(self, inputs: Tensor, noise_shape: tuple[int | None, ...] | None) -> Tensor:
        """Return numbers from 0 to 1, of the shape of inputs or one that broadcasts to it."""
        shape: tuple[int, ...] = inputs.shape
        if noise_shape is not None:
            sizes = zip(noise_shape, shape, strict=False)
            shape = tuple(own if size is None else size for size, own in sizes)
            places = zip(shape, inputs.shape[inputs.ndim - len(shape) :], strict=True)
            if len(noise_shape) > inputs.ndim or any(size not in (1, own) for size, own in places):
                raise ValueError(
                    f"`noise_shape` of layer {self.name!r} must broadcast to the shape of its "
                    f"inputs. Received: noise_shape={noise_shape}, and inputs of shape "
                    f"{inputs.shape}. Use None for the size of the batch, because a replica has "
                    "only a part of it."
                )
        # What all examples share is drawn once, and not by their places in the batch.
        of_each = len(shape) == inputs.ndim and (noise_shape is None or noise_shape[0] != 1)
        # Mixed precision draws in float32: what it drops is what float32 drops.
        return self.seed_generator.uniform(shape, dtype=self.dtype, per_example=of_each)

    def _kept(self, inputs: Tensor, noise_shape: tuple[int | None, ...]) -> Tensor:
        """Return inputs with some set to zero, and the others divided by what is kept."""
        drawn = self._drawn(inputs, noise_shape)
        if self.rate == 1:
            return ops.zeros_like(inputs)
        mask = ops.cast(ops.greater_equal(drawn, self.rate), inputs.dtype)
        outputs: Tensor = inputs * (mask * (1.0 / (1.0 - self.rate)))
        return outputs


def as_noise_shape(value: Any) -> tuple[int | None, ...] | None:
    """Return a `noise_shape`: sizes, None where it is that of the inputs.

    Args:
        value: The argument.

    Raises:
        ValueError: It is no list of positive integers and None.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            "Invalid value received for argument `noise_shape`. Expected a tuple or list of "
            f"integers. Received: noise_shape={value}"
        )
    sizes = tuple(number if number is None else as_integer(number) for number in value)
    for index, (size, entry) in enumerate(zip(sizes, value, strict=True)):
        if entry is not None and (size is None or size < 1):
            raise ValueError(
                "Invalid value received for argument `noise_shape`. Expected all dimensions to be "
                f"positive integers or None. Received {entry!r} at index {index}"
            )
    return sizes


def generator_of(owner: str, seed: Any) -> SeedGenerator:
    """Return what a layer draws from.

    Args:
        owner: The layer's name.
        seed: An integer, None for one from the global stream, or the generator itself.
    """
    if isinstance(seed, SeedGenerator):
        return seed
    if seed is not None:
        # Eagerly each call would begin again, and what is recorded would go on.
        variable_access.ask(f"{owner}/seed_generator_state")
    return SeedGenerator(seed)


class _Dropping(Drawing):
    """Drops single inputs, or those that share a draw."""

    _may_drop_all = True

    def __init__(
        self,
        rate: float,
        *,
        seed: int | SeedGenerator | None = None,
        noise_shape: PartialShapeLike | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(rate, seed, **options)
        self.noise_shape = as_noise_shape(noise_shape)
        if self.rate == 1 and not self._may_drop_all:
            raise ValueError(f"Nothing would be left of rate=1. Received: rate={rate!r}")


class Dropout(_Dropping):
    """Drops each input with probability ``rate``, and divides the others by 1 - ``rate``.

    It does so only in training; otherwise the inputs pass unchanged.

    Srivastava et al., Dropout, 2014: https://jmlr.org/papers/v15/srivastava14a.html

    Args:
        rate: The fraction to drop, from 0 to 1.
        seed: An integer for the same masks in every run; None takes one from the global stream.
        noise_shape: The shape of the draws, which broadcasts to that of the inputs, with None for
            the inputs' own sizes: (None, 1, None) drops whole features. None: each input is drawn
            for.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not a number from 0 to 1, or ``noise_shape`` is none.

    Example:
        >>> import numpy as np
        >>> layer = Dropout(0.5, seed=0)
        >>> layer(np.ones((1, 2))).numpy().tolist()
        [[1.0, 1.0]]
        >>> sorted(set(layer(np.ones((8, 8)), training=True).numpy().ravel().tolist()))
        [0.0, 2.0]
    """

    _keeps_integers = True

    def _changed(self, inputs: Tensor) -> Tensor:
        if self.noise_shape is not None:
            return self._kept(inputs, self.noise_shape)
        return ops.dropped(inputs, self._drawn(inputs, None), self.rate)


# Klambauer et al., Self-Normalizing Neural Networks, 2017: https://arxiv.org/abs/1706.02515
_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _normal(layer: Drawing, inputs: Tensor, stddev: float) -> Tensor:
    drawn = layer.seed_generator.normal(inputs.shape, dtype=layer.dtype, per_example=True)
    return ops.cast(drawn * stddev, inputs.dtype)


class GaussianNoise(Drawing):
    """Adds normal noise of mean 0 while training.

    Args:
        stddev: The noise's standard deviation, from 0 to 1.
        seed: An integer for the same noise in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``stddev`` is not from 0 to 1.

    Example:
        >>> layer = GaussianNoise(0.5, seed=0)
        >>> layer([[1.0]]).numpy().tolist()
        [[1.0]]
        >>> bool(layer([[1.0]], training=True)[0, 0] == 1.0)
        False
    """

    _amount = "stddev"
    stddev: float

    def __init__(
        self,
        stddev: float,
        seed: int | SeedGenerator | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(stddev, seed, **options)

    def _changed(self, inputs: Tensor) -> Tensor:
        return inputs + _normal(self, inputs, self.stddev)


class GaussianDropout(Drawing):
    """Multiplies by normal noise of mean 1 while training.

    Srivastava et al., Dropout, 2014: https://jmlr.org/papers/v15/srivastava14a.html

    Args:
        rate: The noise's standard deviation is sqrt(rate / (1 - rate)); from 0 to 1, and below.
        seed: An integer for the same noise in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not from 0 to 1, or is 1, where the noise would be infinite.

    Example:
        >>> GaussianDropout(0.5)([[1.0, 2.0]]).numpy().tolist()
        [[1.0, 2.0]]
    """

    def __init__(
        self, rate: float, seed: int | SeedGenerator | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(rate, seed, **options)
        if self.rate == 1:
            raise ValueError(f"The noise of rate=1 would be infinite. Received: rate={rate!r}")

    def _changed(self, inputs: Tensor) -> Tensor:
        return inputs * (1.0 + _normal(self, inputs, math.sqrt(self.rate / (1.0 - self.rate))))


class AlphaDropout(_Dropping):
    """Sets inputs to a negative value at random while training, keeping their mean and variance.

    It goes with the activation "selu": Klambauer et al., Self-Normalizing Neural Networks, 2017,
    https://arxiv.org/abs/1706.02515

    Args:
        rate: The fraction to drop, from 0 to 1.
        seed: An integer for the same masks in every run; None takes one from the global stream.
        noise_shape: As for ``Dropout``.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not from 0 to 1, or is 1.

    Example:
        >>> AlphaDropout(0.5)([[1.0, 2.0]]).numpy().tolist()
        [[1.0, 2.0]]
    """

    _may_drop_all = False

    def _changed(self, inputs: Tensor) -> Tensor:
        dropped = -_ALPHA * _SCALE
        factor = ((1.0 - self.rate) * (1.0 + self.rate * dropped**2)) ** -0.5
        is_kept = ops.greater_equal(self._drawn(inputs, self.noise_shape), self.rate)
        kept: Tensor = ops.where(is_kept, inputs, ops.constant(dropped, inputs.dtype))
        outputs: Tensor = kept * factor - factor * dropped * self.rate
        return outputs


class _SpatialDropout(SpatialLayer, Drawing):
    """Sets whole channels of examples to zero at random while training."""

    _keeps_integers = True

    def __init__(
        self,
        rate: float,
        data_format: str | None,
        seed: int | SeedGenerator | None,
        /,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(rate, seed, **options)
        self.data_format = as_data_format(data_format)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it: those that Keras gives.

        But for mixed policies, which Keras forgets.
        """
        config = {**super().get_config(), "dtype": self.dtype_policy.name}
        return {name: config[name] for name in config if name != "trainable"}

    def _changed(self, inputs: Tensor) -> Tensor:
        axes = self._spatial_axes
        shape = (1 if axis in axes else None for axis in range(inputs.ndim))
        return self._kept(inputs, tuple(shape))


class SpatialDropout1D(_SpatialDropout):
    """Sets whole features of sequences to zero at random while training.

    Tompson et al., 2014: https://arxiv.org/abs/1411.4280

    Args:
        rate: The fraction to drop, from 0 to 1.
        seed: An integer for the same masks in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not from 0 to 1.

    Example:
        >>> SpatialDropout1D(0.5)([[[1.0, 2.0]]]).numpy().tolist()
        [[[1.0, 2.0]]]
    """

    _rank = 1

    def __init__(
        self, rate: float, seed: int | SeedGenerator | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(rate, "channels_last", seed, **options)


class _DropoutOfImages(_SpatialDropout):
    """Its channels are behind or before the spatial axes."""

    def __init__(
        self,
        rate: float,
        data_format: str | None = None,
        seed: int | SeedGenerator | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(rate, data_format, seed, **options)


class SpatialDropout2D(_DropoutOfImages):
    """Sets whole channels of images to zero at random while training.

    Tompson et al., 2014: https://arxiv.org/abs/1411.4280

    Args:
        rate: The fraction to drop, from 0 to 1.
        data_format: "channels_last", the default: inputs of shape (batch, rows, columns, channels);
            or "channels_first": (batch, channels, rows, columns).
        seed: An integer for the same masks in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not from 0 to 1, or there is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> outputs = SpatialDropout2D(0.5, seed=0)(np.ones((5, 8, 8, 3)), training=True)
        >>> bool((outputs == outputs[:, :1, :1]).numpy().all())
        True
    """

    _rank = 2


class SpatialDropout3D(_DropoutOfImages):
    """Sets whole channels of volumes to zero at random while training.

    Tompson et al., 2014: https://arxiv.org/abs/1411.4280

    Args:
        rate: The fraction to drop, from 0 to 1.
        data_format: "channels_last", the default: the channels' axis is the last one; or
            "channels_first": it is the one behind the batch's.
        seed: An integer for the same masks in every run; None takes one from the global stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not from 0 to 1, or there is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> SpatialDropout3D(0.5)(np.ones((5, 4, 4, 4, 3))).shape
        (5, 4, 4, 4, 3)
    """

    _rank = 3
