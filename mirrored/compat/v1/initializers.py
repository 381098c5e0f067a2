"""What variables begin with: functions of a shape and a dtype, which draw their operations."""

import math
from typing import Any

import numpy as np

from mirrored.compat.v1.calls import named_call
from mirrored.compat.v1.draws import random_normal, random_uniform, truncated_normal
from mirrored.compat.v1.sources import constant
from mirrored.ops.spec import as_dtype


class _Initializer:
    """A function of a shape and a dtype; the dtype of its own where none is given."""

    dtype: Any = "float32"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Return a tensor of a shape and a dtype."""
        return self.made(shape, as_dtype(self.dtype if dtype is None else dtype))

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return the tensor."""
        raise NotImplementedError


class constant_initializer(_Initializer):
    """Begins with a value.

    Args:
        value: A number, or an array of the shape.
        dtype: The dtype where the variable has none.
        verify_shape: Whether an array must have the variable's shape, and not only its size.
    """

    def __init__(self, value: Any = 0, dtype: Any = "float32", verify_shape: bool = False) -> None:
        self.value, self.dtype, self._verify = value, dtype, verify_shape

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return the value."""
        return constant(np.asarray(self.value, dtype), dtype, shape, "Const", self._verify)


class zeros_initializer(_Initializer):
    """Begins with zeros."""

    def __init__(self, dtype: Any = "float32") -> None:
        self.dtype = dtype

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return zeros."""
        return named_call("zeros")(shape, dtype)


class ones_initializer(_Initializer):
    """Begins with ones."""

    def __init__(self, dtype: Any = "float32") -> None:
        self.dtype = dtype

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return ones."""
        return named_call("ones")(shape, dtype)


class _Random(_Initializer):
    """Begins with what an operation draws."""

    draw: Any = staticmethod(random_normal)

    def __init__(self, first: Any, second: Any, seed: int | None, dtype: Any) -> None:
        self.first, self.second, self.seed, self.dtype = first, second, seed, dtype

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return a draw."""
        return self.draw(shape, self.first, self.second, dtype=dtype, seed=self.seed)


class random_uniform_initializer(_Random):
    """Begins with numbers from an interval."""

    draw: Any = staticmethod(random_uniform)

    def __init__(
        self, minval: Any = 0.0, maxval: Any = 1.0, seed: int | None = None, dtype: Any = "float32"
    ) -> None:
        super().__init__(minval, 1.0 if maxval is None else maxval, seed, dtype)


class random_normal_initializer(_Random):
    """Begins with numbers of a normal distribution."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = "float32"
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class truncated_normal_initializer(random_normal_initializer):
    """Begins with numbers of a normal distribution that are less than two deviations away."""

    draw = staticmethod(truncated_normal)


def _fans(shape: Any) -> tuple[float, float]:
    """Return how many inputs and outputs weights of a shape have."""
    sizes = list(shape)
    if len(sizes) < 2:
        return (sizes[0], sizes[0]) if sizes else (1, 1)
    field = math.prod(sizes[:-2])
    return sizes[-2] * field, sizes[-1] * field


class glorot_uniform_initializer(_Initializer):
    """Begins with numbers from the interval of Glorot and Bengio (2010).

    Args:
        seed: A stream of draws of its own.
        dtype: The dtype where the variable has none.
    """

    def __init__(self, seed: int | None = None, dtype: Any = "float32") -> None:
        self.seed, self.dtype = seed, dtype

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return a draw."""
        limit = math.sqrt(3.0 / max(1.0, sum(_fans(shape)) / 2.0))
        return random_uniform_initializer(-limit, limit, self.seed)(shape, dtype)


class glorot_normal_initializer(glorot_uniform_initializer):
    """Begins with numbers of the truncated normal distribution of Glorot and Bengio (2010)."""

    def made(self, shape: Any, dtype: Any) -> Any:
        """Return a draw."""
        # The deviation of what is left of a normal distribution of deviation 1.
        deviation = math.sqrt(1.0 / max(1.0, sum(_fans(shape)) / 2.0)) / 0.87962566103423978
        return truncated_normal_initializer(0.0, deviation, self.seed)(shape, dtype)
