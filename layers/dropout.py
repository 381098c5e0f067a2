"""Sets inputs to zero at random while training, so that no unit leans on another.

The random numbers belong to the examples of the global batch, so that any number of replicas
drops what one device drops.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_real
from mirrored.layers.layer import LayerOptions, SameShape
from mirrored.layers.not_provided import only
from mirrored.ops import SeedGenerator, Tensor
from mirrored.program import variable_creation

OTHER_NOISE = "`SpatialDropout1D` drops whole features."


class Drawing(SameShape):
    """A layer that draws in training; its subclasses say what the arguments are."""

    _supports_masking = True

    def __init__(self, amount: float, /, seed: Any, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.seed = seed
        if amount > 0:
            self.seed_generator = generator_of(self.name, seed)


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
        variable_creation.ask(f"{owner}/seed_generator_state")
    return SeedGenerator(seed)


def from_0_to_1(name: str, value: Any) -> float:
    """Return an argument that is a part of 1.

    Args:
        name: What the error calls it.
        value: The argument.

    Raises:
        ValueError: It is no number from 0 to 1.
    """
    number = as_real(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(
            f"Invalid value received for argument `{name}`. Expected a float value between 0 and "
            f"1. Received: {name}={value!r}"
        )
    return number


@explained
class Dropout(Drawing):
    """Drops each input with probability ``rate``, and divides the others by 1 - ``rate``.

    It does so only in training; otherwise the inputs pass unchanged.

    Srivastava et al., Dropout, 2014: https://jmlr.org/papers/v15/srivastava14a.html

    Args:
        rate: The fraction to drop, from 0 to 1.
        seed: An integer for the same masks in every run; None takes one from the global stream.
        noise_shape: None, as Keras' configurations say: each input is drawn for.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: ``rate`` is not a number from 0 to 1.

    Example:
        >>> import numpy as np
        >>> layer = Dropout(0.5, seed=0)
        >>> layer(np.ones((1, 2))).numpy().tolist()
        [[1.0, 1.0]]
        >>> sorted(set(layer(np.ones((8, 8)), training=True).numpy().ravel().tolist()))
        [0.0, 2.0]
    """

    _keeps_integers = True

    def __init__(
        self,
        rate: float,
        *,
        seed: int | SeedGenerator | None = None,
        noise_shape: None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        fraction = from_0_to_1("rate", rate)
        super().__init__(fraction, seed, **options)
        self.rate = fraction
        self.noise_shape = only("noise_shape", noise_shape, None, OTHER_NOISE)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), with some set to zero while training."""
        if not training or self.rate == 0:
            return inputs
        # Mixed precision draws in float32: what it drops is what float32 drops.
        drawn = self.seed_generator.uniform(inputs.shape, dtype=self.dtype, per_example=True)
        return ops.dropped(inputs, drawn, self.rate)
