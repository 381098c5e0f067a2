"""The starting values of weights, by the names and formulas of Keras.

An initializer is a function from a shape and a dtype to a tensor; the random ones take a seed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explained
from mirrored._numbers import as_real
from mirrored.layers.identifiers import resolve
from mirrored.layers.shapes import as_known_shape
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.spec import FLOATS, DType, Shape

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Initializer",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "get",
]

_public_module("tf.keras.initializers", __name__)

Initializer = Callable[..., Tensor]
_Seed = int | SeedGenerator | None

_CUT = 2.0  # Keras' truncated normals keep values within two standard deviations,
_CUT_DEVIATION = 0.87962566103423978  # which leaves the standard normal this deviation.


class Zeros:
    """Fills a weight with zeros.

    Example:
        >>> Zeros()((2,)).numpy().tolist()
        [0.0, 0.0]
    """

    def __call__(self, shape: Shape, dtype: Any = None) -> Tensor:
        """Return zeros of ``shape``; ``dtype`` None means the default float."""
        return ops.zeros(shape, dtype=_dtype(dtype))


class Ones:
    """Fills a weight with ones.

    Example:
        >>> Ones()((2,)).numpy().tolist()
        [1.0, 1.0]
    """

    def __call__(self, shape: Shape, dtype: Any = None) -> Tensor:
        """Return ones of ``shape``; ``dtype`` None means the default float."""
        return ops.ones(shape, dtype=_dtype(dtype))


@explained
class Constant:
    """Fills a weight with one number, or with an array that broadcasts to its shape.

    Args:
        value: The number or array.

    Example:
        >>> Constant(3.0)((2,)).numpy().tolist()
        [3.0, 3.0]
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Shape, dtype: Any = None) -> Tensor:
        """Return the value in ``shape``; ``dtype`` None means the default float."""
        array = np.asarray(self.value, dtype=_dtype(dtype))
        return ops.constant(np.broadcast_to(array, shape))


@explained
class _Random:
    """Draws a weight's values; the shape and dtype are checked here, once for all kinds."""

    def __init__(self, seed: _Seed = None) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer | SeedGenerator | None):
            raise ValueError(
                "`seed` argument should be an instance of `SeedGenerator` or an integer. "
                f"Received: seed={seed}"
            )
        self.seed = seed

    def __call__(self, shape: Shape, dtype: Any = None) -> Tensor:
        """Return random values of ``shape``; ``dtype`` None means the default float.

        With an integer seed, every call returns the same values. Without, each draws new ones
        from the global stream. A ``SeedGenerator`` moves on with every call.

        Raises:
            ValueError: ``dtype`` is not a floating-point one.
        """
        floating = _dtype(dtype)
        if floating not in FLOATS:
            raise ValueError(
                f"{type(self).__name__} expected a floating point dtype. Received: dtype={dtype}"
            )
        seed = self.seed
        # A fresh generator counts from zero: the same seed gives the same values.
        generator = seed if isinstance(seed, SeedGenerator) else SeedGenerator(seed)
        return self._draw(generator, as_known_shape(shape, type(self).__name__), floating)

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        """Return ``shape`` values drawn from ``generator``."""
        raise NotImplementedError


@explained
class RandomUniform(_Random):
    """Draws from the uniform distribution over [minval, maxval).

    Args:
        minval: The lower bound.
        maxval: The upper bound.
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> values = RandomUniform(-1.0, 1.0, seed=0)((100,)).numpy()
        >>> bool((abs(values) <= 1).all())
        True
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: _Seed = None) -> None:
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        return generator.uniform(shape, self.minval, self.maxval, dtype=dtype)


@explained
class RandomNormal(_Random):
    """Draws from the normal distribution.

    Args:
        mean: Its mean.
        stddev: Its standard deviation.
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> values = RandomNormal(stddev=1.0, seed=0)((2, 3))
        >>> values.shape
        (2, 3)
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: _Seed = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        return generator.normal(shape, self.mean, self.stddev, dtype=dtype)


@explained
class TruncatedNormal(_Random):
    """Draws from the normal distribution, cut off at two standard deviations from the mean.

    Args:
        mean: Its mean.
        stddev: Its standard deviation before the cut.
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> values = TruncatedNormal(stddev=1.0, seed=0)((100,)).numpy()
        >>> bool((abs(values) <= 2).all())
        True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: _Seed = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        # One uniform number a value and no rejection, so a value depends on its counter alone.
        fractions = generator.uniform(shape, dtype=dtype).numpy()
        values = np.interp(fractions, *_truncated_quantiles())
        return ops.constant((self.mean + self.stddev * values).astype(dtype))


@functools.cache
def _truncated_quantiles() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return fractions and the truncated standard normal's quantiles there.

    65,537 of them: interpolated linearly, they are off by less than 2e-8 deviations, which is less
    than float32 shows.
    """
    from statistics import NormalDist  # X.

    normal = NormalDist()
    fractions = np.linspace(0.0, 1.0, 2**16 + 1)
    low = normal.cdf(-_CUT)
    probabilities = low + fractions * (1.0 - 2.0 * low)
    return fractions, np.array([normal.inv_cdf(p) for p in probabilities.tolist()])


@explained
class VarianceScaling(_Random):
    """Draws so that a layer's outputs vary about as much as its inputs: variance scale / fan.

    Args:
        scale: The variance of a value times ``fan``.
        mode: ``"fan_in"`` (inputs of a unit), ``"fan_out"`` (units that an input feeds) or
            ``"fan_avg"``, their mean.
        distribution: ``"truncated_normal"`` (cut at two deviations, then widened to the variance
            asked for), ``"untruncated_normal"`` or ``"uniform"``.
        seed: An integer for the same values every time, None for new ones.

    Raises:
        ValueError: An argument is not one of these.

    Example:
        >>> VarianceScaling(2.0, mode="fan_in", seed=0)((64, 10)).shape
        (64, 10)
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: _Seed = None,
    ) -> None:
        super().__init__(seed)
        factor = as_real(scale)
        if factor is None or not factor > 0:
            raise ValueError(f"Argument `scale` must be positive float. Received: scale={scale}")
        _check_choice("mode", mode, ("fan_in", "fan_out", "fan_avg"))
        kinds = ("uniform", "truncated_normal", "untruncated_normal")
        _check_choice("distribution", distribution, kinds)
        self.scale, self.mode, self.distribution = factor, mode, distribution

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        fan_in, fan_out = _fans(shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            limit = math.sqrt(3.0) * deviation
            return generator.uniform(shape, -limit, limit, dtype=dtype)
        if self.distribution == "untruncated_normal":
            return generator.normal(shape, 0.0, deviation, dtype=dtype)
        return TruncatedNormal(0.0, deviation / _CUT_DEVIATION, generator)(shape, dtype)


@explained
class GlorotUniform(VarianceScaling):
    """Draws uniformly within sqrt(6 / (fan_in + fan_out)) of zero; Keras' default for kernels.

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010: https://proceedings.mlr.press/v9/glorot10a.html

    Args:
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> GlorotUniform(seed=0)((64, 10)).shape
        (64, 10)
    """

    def __init__(self, seed: _Seed = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)


@explained
class GlorotNormal(VarianceScaling):
    """Draws from a truncated normal of deviation sqrt(2 / (fan_in + fan_out)).

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010: https://proceedings.mlr.press/v9/glorot10a.html

    Args:
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> GlorotNormal(seed=0)((64, 10)).shape
        (64, 10)
    """

    def __init__(self, seed: _Seed = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)


@explained
class HeUniform(VarianceScaling):
    """Draws uniformly within sqrt(6 / fan_in) of zero, for layers before a ReLU.

    He et al., Delving deep into rectifiers, 2015: https://arxiv.org/abs/1502.01852

    Args:
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> HeUniform(seed=0)((64, 10)).shape
        (64, 10)
    """

    def __init__(self, seed: _Seed = None) -> None:
        super().__init__(2.0, "fan_in", "uniform", seed)


@explained
class HeNormal(VarianceScaling):
    """Draws from a truncated normal of deviation sqrt(2 / fan_in), for layers before a ReLU.

    He et al., Delving deep into rectifiers, 2015: https://arxiv.org/abs/1502.01852

    Args:
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> HeNormal(seed=0)((64, 10)).shape
        (64, 10)
    """

    def __init__(self, seed: _Seed = None) -> None:
        super().__init__(2.0, "fan_in", "truncated_normal", seed)


def _fans(shape: Shape) -> tuple[int, int]:
    """Return how many inputs feed a unit of a weight and how many units an input feeds.

    The last axis is the units, the one before it the inputs; further axes, as in a
    convolution's kernel, multiply both.
    """
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


def _dtype(dtype: Any) -> DType:
    """Return ``dtype`` as NumPy's object, the default float for None."""
    return ops.as_dtype(ops.floatx() if dtype is None else dtype)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"Invalid `{name}` argument: {value}. Please use one of {', '.join(choices)}."
        )


_NAMES: dict[str, Callable[[], Initializer]] = {
    "constant": Constant,
    "glorot_normal": GlorotNormal,
    "glorot_uniform": GlorotUniform,
    "he_normal": HeNormal,
    "he_uniform": HeUniform,
    "normal": RandomNormal,
    "one": Ones,
    "ones": Ones,
    "random_normal": RandomNormal,
    "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal,
    "uniform": RandomUniform,
    "variance_scaling": VarianceScaling,
    "zero": Zeros,
    "zeros": Zeros,
}
_CLASSES = {str(getattr(made, "__name__", "")): made for made in _NAMES.values()}


@explained
def get(identifier: object) -> Initializer | None:
    """Return the initializer that ``identifier`` stands for, None for None.

    Args:
        identifier: A name, such as ``"glorot_uniform"`` or ``"GlorotUniform"``, a class, or a
            callable ``initializer(shape, dtype=None)``.

    Raises:
        ValueError: There is no initializer of that name.

    Example:
        >>> type(get("he_normal")).__name__
        'HeNormal'
    """
    if identifier is None:
        return None
    if isinstance(identifier, str) and identifier in _CLASSES:
        return _CLASSES[identifier]()
    found = resolve("initializer", identifier, _NAMES)
    return found() if isinstance(found, type) else found
