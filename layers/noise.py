"""Noise while training, so that a network does not lean on exact numbers.

The draws belong to the examples of the global batch, as those of `Dropout`: any number of replicas
adds what one device adds.
"""

import math
from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.layers.dropout import Drawing, as_noise_shape, from_0_to_1
from mirrored.layers.layer import LayerOptions
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor

# Klambauer et al., Self-Normalizing Neural Networks, 2017: https://arxiv.org/abs/1706.02515
_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _normal(layer: Drawing, inputs: Tensor, stddev: float) -> Tensor:
    drawn = layer.seed_generator.normal(inputs.shape, dtype=layer.dtype, per_example=True)
    return ops.cast(drawn * stddev, inputs.dtype)


@explained
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

    def __init__(self, stddev: float, seed: Any = None, **options: Unpack[LayerOptions]) -> None:
        fraction = from_0_to_1("stddev", stddev)
        super().__init__(fraction, seed, **options)
        self.stddev = fraction

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), with noise while training."""
        if not training or self.stddev == 0:
            return inputs
        return inputs + _normal(self, inputs, self.stddev)


@explained
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

    def __init__(self, rate: float, seed: Any = None, **options: Unpack[LayerOptions]) -> None:
        fraction = from_0_to_1("rate", rate)
        super().__init__(fraction, seed, **options)
        self.rate = fraction
        if self.rate == 1:
            raise ValueError(f"The noise of rate=1 would be infinite. Received: rate={rate!r}")

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), times noise while training."""
        if not training or self.rate == 0:
            return inputs
        return inputs * (1.0 + _normal(self, inputs, math.sqrt(self.rate / (1.0 - self.rate))))


@explained
class AlphaDropout(Drawing):
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

    def __init__(
        self,
        rate: float,
        *,
        seed: Any = None,
        noise_shape: Any = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        fraction = from_0_to_1("rate", rate)
        super().__init__(fraction, seed, **options)
        self.noise_shape = as_noise_shape(noise_shape)
        self.rate = fraction
        if self.rate == 1:
            raise ValueError(f"Nothing would be left of rate=1. Received: rate={rate!r}")

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), with some dropped while training."""
        if not training or self.rate == 0:
            return inputs
        dropped = -_ALPHA * _SCALE
        factor = ((1.0 - self.rate) * (1.0 + self.rate * dropped**2)) ** -0.5
        is_kept = ops.greater_equal(self._drawn(inputs, self.noise_shape), self.rate)
        kept: Tensor = ops.where(is_kept, inputs, ops.constant(dropped, inputs.dtype))
        outputs: Tensor = kept * factor - factor * dropped * self.rate
        return outputs


@explained
class SpatialDropout1D(Drawing):
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

    def __init__(self, rate: float, seed: Any = None, **options: Unpack[LayerOptions]) -> None:
        fraction = from_0_to_1("rate", rate)
        super().__init__(fraction, seed, **options)
        self.rate = fraction

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it: those that Keras gives.

        But for mixed policies, which Keras forgets.
        """
        config = {**super().get_config(), "dtype": self.dtype_policy.name}
        return {name: config[name] for name in ("rate", "seed", "name", "dtype")}

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless each example is a sequence of vectors."""
        self._require_rank(input_shape, 3, exactly=3)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return ``inputs``, of shape (batch, steps, features), with some features at zero."""
        if not training or self.rate == 0:
            return inputs
        return self._kept(inputs, self.rate, (None, 1, None))
