"""Initializers whose variance depends on the weight's shape: Glorot's, He's and LeCun's."""

import math
from collections.abc import Sequence
from typing import ClassVar

from mirrored._arguments import explained
from mirrored._numbers import as_real
from mirrored.layers.starting_values import Drawn, Seed, TruncatedNormal
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.spec import DType, Shape

_CUT_DEVIATION = 0.87962566103423978  # A standard normal's deviation, cut at two of them.


@explained
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
        fan_in, fan_out = _fans(shape, self.input_axes, self.output_axes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            limit = math.sqrt(3.0) * deviation
            return generator.uniform(shape, -limit, limit, dtype=dtype)
        if self.distribution == "untruncated_normal":
            return generator.normal(shape, 0.0, deviation, dtype=dtype)
        return TruncatedNormal(0.0, deviation / _CUT_DEVIATION, generator)(shape, dtype)


@explained
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


def _fans(
    shape: Shape, inputs: Sequence[int] | None = None, outputs: Sequence[int] | None = None
) -> tuple[int, int]:
    """Return how many inputs feed a unit of a weight and how many units an input feeds.

    Where their axes are not given, the last axis is the units, the one before it the inputs;
    further axes, as in a convolution's kernel, multiply both.
    """
    if inputs is not None and outputs is not None:
        return math.prod(shape[axis] for axis in inputs), math.prod(shape[axis] for axis in outputs)
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"Invalid `{name}` argument: {value}. Please use one of {', '.join(choices)}."
        )
