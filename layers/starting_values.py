"""The starting values of weights: numbers, draws of a distribution, and orthogonal matrices.

`initializers` names all of them.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from mirrored import ops
from mirrored._numbers import as_real
from mirrored._types import DTypeLike, TensorLike
from mirrored.layers.shapes import as_known_shape
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.spec import FLOATS, DType, Shape
from mirrored.serialization.constructor_arguments import Configured, deserialized


@runtime_checkable
class _Stream(Protocol):
    """What `keras.random.SeedGenerator` is to an initializer."""

    def next(self) -> Tensor:
        """Return two integers, others in each call."""


Seed = int | SeedGenerator | _Stream | dict[str, Any] | None

_BETWEEN_SEEDS = 10_000_019  # A prime: the seeds of a stream are far from one another.
_CUT = 2.0  # Keras' truncated normals keep values within two standard deviations.


class Initializer(Configured):
    """Base of initializers that have settings; a function of a shape and a dtype is one as well.

    Example:
        >>> import mirrored as mr
        >>> class Ramp(mr.keras.initializers.Initializer):
        ...     def __init__(self, step):
        ...         self.step = step
        ...
        ...     def __call__(self, shape, dtype=None):
        ...         return mr.range(shape[0], dtype=dtype) * self.step
        ...
        ...     def get_config(self):
        ...         return {"step": self.step}
        >>> Ramp(0.5).clone()((3,), "float32").numpy().tolist()
        [0.0, 0.5, 1.0]
    """

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Any:
        """Return the values that a weight starts with.

        Args:
            shape: The weight's shape.
            dtype: Its dtype; None means the default float.

        Raises:
            NotImplementedError: The subclass does not say.
        """
        raise NotImplementedError("Initializer subclasses must implement the `__call__()` method.")

    def clone(self) -> Self:
        """Return one that is made with the same arguments."""
        return self.from_config(self.get_config())


class Zeros(Initializer):
    """Fills a weight with zeros.

    Example:
        >>> Zeros()((2,)).numpy().tolist()
        [0.0, 0.0]
    """

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
        """Return zeros of ``shape``; ``dtype`` None means the default float."""
        return ops.zeros(shape, dtype=as_dtype(dtype))


class Ones(Initializer):
    """Fills a weight with ones.

    Example:
        >>> Ones()((2,)).numpy().tolist()
        [1.0, 1.0]
    """

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
        """Return ones of ``shape``; ``dtype`` None means the default float."""
        return ops.ones(shape, dtype=as_dtype(dtype))


class Constant(Initializer):
    """Fills a weight with one number, or with an array that broadcasts to its shape.

    Args:
        value: The number or array.

    Example:
        >>> Constant(3.0)((2,)).numpy().tolist()
        [3.0, 3.0]
    """

    def __init__(self, value: TensorLike | Mapping[str, Any] = 0.0) -> None:
        self.value = deserialized(value, None) if isinstance(value, dict) else value

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
        """Return the value in ``shape``; ``dtype`` None means the default float.

        Raises:
            ValueError: It is no number, or its shape does not broadcast.
        """
        if self.value is None:
            raise ValueError("A weight needs an initial value. Received: value=None")
        array = np.asarray(self.value, dtype=as_dtype(dtype))
        return ops.constant(np.broadcast_to(array, shape))


class Identity(Initializer):
    """Fills a matrix with ones on its diagonal, times ``gain``, and with zeros elsewhere.

    Args:
        gain: What is on the diagonal.

    Example:
        >>> Identity(2.0)((2, 3)).numpy().tolist()
        [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    _if_changed = ("gain",)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
        """Return the matrix; ``dtype`` None means the default float.

        Raises:
            ValueError: The shape is no matrix's.
            InvalidArgumentError: ``dtype`` is one of integers, and ``gain`` is a float.
        """
        if len(shape) != 2:
            raise ValueError(
                "Identity matrix initializer can only be used for 2D matrices. Received: "
                f"shape={shape} of rank {len(shape)}."
            )
        return self.gain * ops.eye(*shape, dtype=as_dtype(dtype))


class Drawn(Initializer):
    """Draws a weight's values; the shape and dtype are checked here, once for all kinds."""

    def __init__(self, seed: Seed = None) -> None:
        seed = deserialized(seed, None) if isinstance(seed, dict) else seed
        known = int | None | np.integer | SeedGenerator | _Stream
        if isinstance(seed, bool) or not isinstance(seed, known):
            raise ValueError(
                "`seed` argument should be an instance of `SeedGenerator` or an integer. "
                f"Received: seed={seed!r}"
            )
        self.seed = seed

    def __call__(self, shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
        """Return random values of ``shape``; ``dtype`` None means the default float.

        With an integer seed, every call returns the same values. Without, each draws new ones
        from the global stream. A ``SeedGenerator`` moves on with every call.

        Raises:
            ValueError: ``dtype`` is not a floating-point one.
        """
        floating = as_dtype(dtype)
        if floating not in FLOATS:
            raise ValueError(
                f"{type(self).__name__} expected a floating point dtype. Received: dtype={dtype}"
            )
        seed = self.seed
        if seed is not None and isinstance(seed, _Stream):
            number, taken = seed.next().numpy().tolist()
            seed = number + taken * _BETWEEN_SEEDS
        # A fresh generator counts from zero: the same seed gives the same values.
        generator = seed if isinstance(seed, SeedGenerator) else SeedGenerator(seed)
        return self._draw(generator, as_known_shape(shape, type(self).__name__), floating)

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        """Return ``shape`` values drawn from ``generator``."""
        raise NotImplementedError


class RandomUniform(Drawn):
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

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Seed = None) -> None:
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        return generator.uniform(shape, self.minval, self.maxval, dtype=dtype)


class RandomNormal(Drawn):
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

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Seed = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        return generator.normal(shape, self.mean, self.stddev, dtype=dtype)


class TruncatedNormal(Drawn):
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

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Seed = None) -> None:
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


def as_dtype(dtype: Any) -> DType:
    """Return a dtype as NumPy's object, the default float for None.

    Args:
        dtype: Whatever names one.
    """
    return ops.as_dtype(ops.floatx() if dtype is None else dtype)


def another(initializer: Any) -> Any:
    """Return a copy of an initializer, which draws other numbers unless it has a seed.

    Args:
        initializer: The initializer; what is none of this library's stays as it is.
    """
    return initializer.clone() if hasattr(initializer, "clone") else initializer


class Orthogonal(Drawn):
    """Draws a matrix whose columns, or rows where these are fewer, are orthogonal unit vectors.

    It is the Q of a QR decomposition of normal numbers, with signs such that R has a positive
    diagonal, and so any such matrix is as likely as any other. A weight of more axes is a matrix
    whose rows are all axes but the last.

    Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks, 2014: https://arxiv.org/abs/1312.6120

    Args:
        gain: What the matrix is multiplied by.
        seed: An integer for the same values every time, None for new ones.

    Example:
        >>> import mirrored as mr
        >>> q = Orthogonal(seed=0)((3, 3))
        >>> float(mr.reduce_max(mr.abs(mr.matmul(q, q, transpose_a=True) - mr.eye(3)))) < 1e-6
        True
    """

    takes_long: ClassVar[bool] = True  # More than in proportion to the values.

    def __init__(self, gain: float = 1.0, seed: Seed = None) -> None:
        super().__init__(seed)
        self.gain = gain

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        if len(shape) < 2:
            raise ValueError(
                "The tensor to initialize must be at least two-dimensional. Received: "
                f"shape={shape} of rank {len(shape)}."
            )
        rows, columns = math.prod(shape[:-1]), shape[-1]
        computed = np.dtype("float64" if dtype == np.float64 else "float32")
        sizes = max(rows, columns), min(rows, columns)
        # The host's routine decides, and not a device's: every machine starts with the same.
        q, r = np.linalg.qr(generator.normal(sizes, dtype=computed).numpy())
        q = q * np.sign(np.diag(r))
        q = q.T if rows < columns else q
        return ops.constant((self.gain * q).reshape(shape).astype(dtype))


CUT_DEVIATION = 0.87962566103423978  # A standard normal's deviation, cut at two of them.


class VarianceScaling(Drawn):
    """Draws so that a layer's outputs vary about as much as its inputs: variance scale / fan.

    Args:
        scale: The variance of a value times ``fan``.
        mode: ``"fan_in"`` (inputs of a unit), ``"fan_out"`` (units that an input feeds) or
            ``"fan_avg"``, their mean.
        distribution: ``"truncated_normal"`` (cut at two deviations, then widened to the variance
            asked for), ``"untruncated_normal"`` or ``"uniform"``.
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the weight whose sizes, multiplied, are the inputs of a unit; they
            count where ``output_axes`` is given too.
        output_axes: Likewise the axes of the units.

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
        seed: Seed = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(seed)
        factor = as_real(scale)
        if factor is None or not factor > 0:
            raise ValueError(f"Argument `scale` must be positive float. Received: scale={scale!r}")
        _check_choice("mode", mode, ("fan_in", "fan_out", "fan_avg"))
        kinds = ("uniform", "truncated_normal", "untruncated_normal")
        distribution = str(distribution).lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        _check_choice("distribution", distribution, kinds)
        self.scale, self.mode, self.distribution = factor, mode, distribution
        self.input_axes, self.output_axes = input_axes, output_axes

    def _draw(self, generator: SeedGenerator, shape: Shape, dtype: DType) -> Tensor:
        fan = fans(shape, self.input_axes, self.output_axes)[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            limit = math.sqrt(3.0) * deviation
            return generator.uniform(shape, -limit, limit, dtype=dtype)
        if self.distribution == "untruncated_normal":
            return generator.normal(shape, 0.0, deviation, dtype=dtype)
        return TruncatedNormal(0.0, deviation / CUT_DEVIATION, generator)(shape, dtype)


class _OfLayer(VarianceScaling):
    """A `VarianceScaling` that has a name of its own, and takes no other scale."""

    _scaling: ClassVar[tuple[float, str, str]]

    def __init__(
        self,
        seed: Seed = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(*self._scaling, seed, input_axes, output_axes)


class GlorotUniform(_OfLayer):
    """Draws uniformly within sqrt(6 / (fan_in + fan_out)) of zero; Keras' default for kernels.

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010: https://proceedings.mlr.press/v9/glorot10a.html

    Args:
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the inputs, as for `VarianceScaling`.
        output_axes: The axes of the units.

    Example:
        >>> GlorotUniform(seed=0)((64, 10)).shape
        (64, 10)
    """

    _scaling = (1.0, "fan_avg", "uniform")


class GlorotNormal(_OfLayer):
    """Draws from a truncated normal of deviation sqrt(2 / (fan_in + fan_out)).

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010: https://proceedings.mlr.press/v9/glorot10a.html

    Args:
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the inputs, as for `VarianceScaling`.
        output_axes: The axes of the units.

    Example:
        >>> GlorotNormal(seed=0)((64, 10)).shape
        (64, 10)
    """

    _scaling = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_OfLayer):
    """Draws uniformly within sqrt(6 / fan_in) of zero, for layers before a ReLU.

    He et al., Delving deep into rectifiers, 2015: https://arxiv.org/abs/1502.01852

    Args:
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the inputs, as for `VarianceScaling`.
        output_axes: The axes of the units.

    Example:
        >>> HeUniform(seed=0)((64, 10)).shape
        (64, 10)
    """

    _scaling = (2.0, "fan_in", "uniform")


class HeNormal(_OfLayer):
    """Draws from a truncated normal of deviation sqrt(2 / fan_in), for layers before a ReLU.

    He et al., Delving deep into rectifiers, 2015: https://arxiv.org/abs/1502.01852

    Args:
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the inputs, as for `VarianceScaling`.
        output_axes: The axes of the units.

    Example:
        >>> HeNormal(seed=0)((64, 10)).shape
        (64, 10)
    """

    _scaling = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_OfLayer):
    """Draws uniformly within sqrt(3 / fan_in) of zero.

    Klambauer et al., Self-normalizing neural networks, 2017: https://arxiv.org/abs/1706.02515

    Args:
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the inputs, as for `VarianceScaling`.
        output_axes: The axes of the units.

    Example:
        >>> LecunUniform(seed=0)((64, 10)).shape
        (64, 10)
    """

    _scaling = (1.0, "fan_in", "uniform")


class LecunNormal(_OfLayer):
    """Draws from a truncated normal of deviation sqrt(1 / fan_in), for layers before a SELU.

    Klambauer et al., Self-normalizing neural networks, 2017: https://arxiv.org/abs/1706.02515

    Args:
        seed: An integer for the same values every time, None for new ones.
        input_axes: The axes of the inputs, as for `VarianceScaling`.
        output_axes: The axes of the units.

    Example:
        >>> LecunNormal(seed=0)((64, 10)).shape
        (64, 10)
    """

    _scaling = (1.0, "fan_in", "truncated_normal")


def fans(
    shape: Shape, inputs: Sequence[int] | None = None, outputs: Sequence[int] | None = None
) -> dict[str, float]:
    """Return how many inputs feed a unit of a weight, how many units an input feeds, and the mean.

    Where their axes are not given, the last axis is the units, the one before it the inputs;
    further axes, as in a convolution's kernel, multiply both.
    """
    if inputs is not None and outputs is not None:
        fan_in, fan_out = (math.prod(shape[axis] for axis in axes) for axes in (inputs, outputs))
    elif len(shape) < 2:
        fan_in = fan_out = shape[0] if shape else 1
    else:
        fan_in, fan_out = (size * math.prod(shape[:-2]) for size in shape[-2:])
    return {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"Invalid `{name}` argument: {value}. Please use one of {', '.join(choices)}."
        )
