"""What variables begin with: functions of a shape and a dtype, which draw their operations."""

import math
from typing import Any

import numpy as np

from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.compat.v1 import graph_draws, sources
from mirrored.compat.v1.drawn_calls import named_call
from mirrored.layers.starting_values import CUT_DEVIATION, fans
from mirrored.ops.spec import as_dtype

_MODES = ("fan_in", "fan_out", "fan_avg")


class _Initializer:
    """A function of a shape and a dtype; the dtype of its own where none is given."""

    dtype: Any = "float32"

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: Any = None
    ) -> Any:
        """Return a tensor of a shape and a dtype."""
        return self.create(shape, as_dtype(self.dtype if dtype is None else dtype))

    def create(self, shape: ShapeLike, dtype: DTypeLike) -> Any:
        """Return the tensor."""
        raise NotImplementedError


class constant_initializer(_Initializer):
    """Begins with a value.

    Args:
        value: A number, or an array of the shape.
        dtype: The dtype where the variable has none.
        verify_shape: Whether an array must have the variable's shape, and not only its size.
    """

    def __init__(
        self, value: TensorLike = 0, dtype: DTypeLike = "float32", verify_shape: bool = False
    ) -> None:
        self.value, self.dtype, self._verify = value, dtype, verify_shape

    def create(self, shape: ShapeLike, dtype: DTypeLike) -> Any:
        """Return the value."""
        return sources.constant(np.asarray(self.value, dtype), dtype, shape, "Const", self._verify)


class zeros_initializer(_Initializer):
    """Begins with zeros."""

    def __init__(self, dtype: DTypeLike = "float32") -> None:
        self.dtype = dtype

    def create(self, shape: ShapeLike, dtype: DTypeLike) -> Any:
        """Return zeros."""
        return named_call("zeros")(shape, dtype)


class ones_initializer(_Initializer):
    """Begins with ones."""

    def __init__(self, dtype: DTypeLike = "float32") -> None:
        self.dtype = dtype

    def create(self, shape: ShapeLike, dtype: DTypeLike) -> Any:
        """Return ones."""
        return named_call("ones")(shape, dtype)


class _Random(_Initializer):
    """Begins with what an operation draws."""

    draw: Any = staticmethod(graph_draws.random_normal)

    def __init__(self, first: Any, second: Any, seed: int | None, dtype: DTypeLike) -> None:
        self.first, self.second, self.seed, self.dtype = first, second, seed, dtype

    def create(self, shape: ShapeLike, dtype: DTypeLike) -> Any:
        """Return a draw."""
        return self.draw(shape, self.first, self.second, dtype=dtype, seed=self.seed)


class random_uniform_initializer(_Random):
    """Begins with numbers from an interval."""

    draw: Any = staticmethod(graph_draws.random_uniform)

    def __init__(
        self,
        minval: TensorLike = 0.0,
        maxval: TensorLike | None = 1.0,
        seed: int | None = None,
        dtype: DTypeLike = "float32",
    ) -> None:
        super().__init__(minval, 1.0 if maxval is None else maxval, seed, dtype)


class random_normal_initializer(_Random):
    """Begins with numbers of a normal distribution."""

    def __init__(
        self,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        seed: int | None = None,
        dtype: DTypeLike = "float32",
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class truncated_normal_initializer(random_normal_initializer):
    """Begins with numbers of a normal distribution that are less than two deviations away."""

    draw = staticmethod(graph_draws.truncated_normal)


class variance_scaling_initializer(_Initializer):
    """Begins with numbers whose variance follows from how many inputs or outputs weights have.

    Args:
        scale: The variance, times that number.
        mode: Which number: "fan_in", "fan_out", or "fan_avg" for the mean of both.
        distribution: "truncated_normal", which "normal" is too, "untruncated_normal" or "uniform".
        seed: A stream of draws of its own.
        dtype: The dtype where the variable has none.

    Raises:
        ValueError: `scale` is not positive, or `mode` or `distribution` is none of these.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: DTypeLike = "float32",
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in _MODES:
            raise ValueError(f"Argument `mode` should be one of {_MODES}. Received: {mode}")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(
                "Argument `distribution` should be one of ('normal', 'uniform', "
                f"'truncated_normal', 'untruncated_normal'). Received: {distribution}"
            )
        self._scale, self._mode, self._distribution = scale, mode, distribution
        self.seed, self.dtype = seed, dtype

    def create(self, shape: Any, dtype: DTypeLike) -> Any:
        """Return a draw."""
        variance = self._scale / max(1.0, fans(tuple(shape))[self._mode])
        if self._distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random_uniform_initializer(-limit, limit, self.seed)(shape, dtype)
        deviation = math.sqrt(variance)
        if self._distribution == "untruncated_normal":
            return random_normal_initializer(0.0, deviation, self.seed)(shape, dtype)
        deviation /= CUT_DEVIATION
        return truncated_normal_initializer(0.0, deviation, self.seed)(shape, dtype)


class glorot_uniform_initializer(variance_scaling_initializer):
    """Begins with numbers from the interval of Glorot and Bengio (2010).

    Args:
        seed: A stream of draws of its own.
        dtype: The dtype where the variable has none.
    """

    def __init__(self, seed: int | None = None, dtype: DTypeLike = "float32") -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class glorot_normal_initializer(variance_scaling_initializer):
    """Begins with numbers of the truncated normal distribution of Glorot and Bengio (2010)."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = "float32") -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


def he_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Return what begins with numbers of the truncated normal distribution of He et al. (2015)."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Return what begins with numbers from the interval of He et al. (2015)."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Return what begins with numbers of the truncated normal distribution of LeCun (1998)."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Return what begins with numbers from the interval of LeCun (1998)."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


# The names that `tf.initializers` has for them.
constant, zeros, ones = constant_initializer, zeros_initializer, ones_initializer
random_uniform, random_normal = random_uniform_initializer, random_normal_initializer
truncated_normal, variance_scaling = truncated_normal_initializer, variance_scaling_initializer
glorot_uniform, glorot_normal = glorot_uniform_initializer, glorot_normal_initializer
