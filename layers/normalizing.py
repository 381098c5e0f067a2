"""What layers that normalize share: axes, and what the normalized values are scaled by and moved.

They compute in float32 where their inputs are of fewer bits.
"""

import math
from collections.abc import Sequence
from typing import Any, Unpack

from mirrored import ops
from mirrored._numbers import as_integer, as_real
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, require_rank
from mirrored.layers.weights import WeightSettings, add_configured, settings_of
from mirrored.ops import Tensor
from mirrored.variables import Variable


class Normalizing(Layer):
    """A layer that keeps the shape of its inputs, whose axes behind the batch's it looks at."""

    axis: int | list[int]

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the axes are among those of one input, behind the batch's."""
        require_rank(self.name, input_shape, 2)
        for axis in _as_list(self.axis):
            if not -len(input_shape) <= axis < len(input_shape):
                raise ValueError(
                    f"Axis {axis} is out of bounds for input shape {input_shape}. Received: "
                    f"axis={self.axis}"
                )
            if axis in (0, -len(input_shape)):
                raise ValueError(
                    f'Layer "{self.name}" works on the axes of an example: axis 0 is that of the '
                    f"batch, which replicas share. Received: axis={self.axis} for the shape "
                    f"{input_shape}"
                )

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape``."""
        self.check_input_shape(input_shape)
        return input_shape

    def _computed(self, inputs: Tensor) -> Tensor:
        """Return inputs in the dtype of the weights, float32 where they are of fewer bits."""
        return ops.cast(inputs, self.dtype)


class ScaledAndMoved(Normalizing):
    """A normalizing layer with ``gamma``, what values are scaled by, and ``beta``, what is added.

    Its subclasses say what the arguments are.
    """

    def __init__(
        self,
        axis: Any,
        epsilon: float,
        center: bool,
        scale: bool,
        beta: WeightSettings,
        gamma: WeightSettings,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.axis = axis
        self.epsilon = as_epsilon(epsilon)
        self.center = bool(center)
        self.scale = bool(scale)
        self.beta_initializer, self.beta_regularizer, self.beta_constraint = settings_of(beta)
        self.gamma_initializer, self.gamma_regularizer, self.gamma_constraint = settings_of(gamma)
        self.gamma: Variable | None = None
        self.beta: Variable | None = None

    def _add_gamma_and_beta(self, shape: Shape) -> None:
        if self.scale:
            self.gamma = add_configured(self, "gamma", shape)
        if self.center:
            self.beta = add_configured(self, "beta", shape)

    def _normalized(
        self,
        values: Tensor,
        mean: Tensor,
        variance: Tensor,
        shape: Sequence[int],
        correction: Sequence[Tensor] = (),
    ) -> Tensor:
        """Return values less the mean over the deviation, times gamma, plus beta.

        Args:
            values: The values, as `_computed` returns them.
            mean: Their mean, of a shape that broadcasts to them.
            variance: Their variance, likewise.
            shape: What shape of gamma and beta broadcasts to them.
            correction: What the normalized values are multiplied by, and what is added to them,
                before gamma and beta, if anything.
        """
        gamma, beta = (
            weight if weight is None or weight.shape == tuple(shape) else ops.reshape(weight, shape)
            for weight in (self.gamma, self.beta)
        )
        factor = ops.rsqrt(variance + self.epsilon)
        if correction:
            more = correction[1] if gamma is None else correction[1] * gamma
            factor, beta = factor * correction[0], more if beta is None else beta + more
        if gamma is not None:
            factor = factor * gamma
        shift = -mean * factor if beta is None else beta - mean * factor
        return ops.cast(values * factor + shift, self.compute_dtype)


def as_axes(axis: Any) -> int | list[int]:
    """Return an argument that is one axis or several.

    Args:
        axis: The argument.

    Raises:
        TypeError: It is neither an integer nor a list or tuple of these.
    """
    several = isinstance(axis, list | tuple)
    entries = [as_integer(entry) for entry in (axis if several else [axis])]
    axes = [entry for entry in entries if entry is not None]
    if len(axes) != len(entries) or not axes:
        raise TypeError(
            "Expected an int or a list/tuple of ints for the argument 'axis', but received: "
            f"{axis!r}"
        )
    return axes if several else axes[0]


def as_axis(axis: Any) -> int:
    """Return an argument that is one axis.

    Args:
        axis: The argument.

    Raises:
        TypeError: It is no integer.
    """
    number = as_integer(axis)
    if number is None:
        raise TypeError(f"`axis` is an integer. Received: axis={axis!r}")
    return number


def as_epsilon(value: Any) -> float:
    """Return what keeps quotients finite.

    Args:
        value: A finite number of 0 or more.

    Raises:
        ValueError: It is none.
    """
    number = as_real(value)
    if number is None or not 0 <= number < math.inf:
        raise ValueError(f"`epsilon` is a finite number of 0 or more. Received: epsilon={value!r}")
    return number


def positions(axis: int | list[int], rank: int) -> list[int]:
    """Return axes as numbers from 0, in order.

    Args:
        axis: One or several.
        rank: How many axes there are.
    """
    return sorted(position % rank for position in _as_list(axis))


def _as_list(axis: int | list[int]) -> list[int]:
    return axis if isinstance(axis, list) else [axis]
