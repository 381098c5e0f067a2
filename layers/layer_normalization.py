"""Layer, group, RMS and unit normalization, and what all layers that normalize share.

They compute in float32 where their inputs are of fewer bits. No example sees another one.
"""

import math
from collections.abc import Sequence
from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import only
from mirrored._numbers import as_integer, as_real
from mirrored._types import AxisLike, Identifier
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
                    f'Layer "{self.name}" works on the axes of an example. Axis 0 is the batch, '
                    f"which replicas share. Received: axis={self.axis} for the shape {input_shape}"
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

    _supports_masking = True

    def __init__(
        self,
        axis: AxisLike,
        epsilon: float,
        center: bool,
        scale: bool,
        beta: WeightSettings,
        gamma: WeightSettings,
        /,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.axis: Any = axis
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
        raise TypeError(f"`axis` must be an integer. Received: axis={axis!r}")
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
        raise ValueError(
            f"`epsilon` must be a finite number of 0 or more. Received: epsilon={value!r}"
        )
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


class LayerNormalization(ScaledAndMoved):
    """Normalizes each example over some of its axes.

    Ba, Kiros and Hinton, Layer Normalization, 2016: https://arxiv.org/abs/1607.06450

    Args:
        axis: The axis to normalize over, or several in a list.
        epsilon: What is added to the variance.
        center: Whether there is ``beta``, which is added.
        scale: Whether there is ``gamma``, which is multiplied by.
        beta_initializer: What ``beta``, of the axes' shape, starts as.
        gamma_initializer: What ``gamma``, of the axes' shape, starts as.
        beta_regularizer: The penalty on ``beta``, if any.
        gamma_regularizer: The penalty on ``gamma``, if any.
        beta_constraint: What optimizers bring ``beta`` back to after a step, if anything.
        gamma_constraint: What they bring ``gamma`` back to.
        rms_scaling: False: `RMSNormalization` is a layer of its own.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``axis`` is no integer and no list of them.
        ValueError: ``epsilon`` is out of its range, or a name is unknown.

    Example:
        >>> LayerNormalization(epsilon=0.0)([[1.0, 5.0], [2.0, 2.5]]).numpy().tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def __init__(
        self,
        axis: AxisLike = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Identifier = "zeros",
        gamma_initializer: Identifier = "ones",
        beta_regularizer: Identifier | None = None,
        gamma_regularizer: Identifier | None = None,
        beta_constraint: Identifier | None = None,
        gamma_constraint: Identifier | None = None,
        *,
        rms_scaling: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        beta = beta_initializer, beta_regularizer, beta_constraint
        gamma = gamma_initializer, gamma_regularizer, gamma_constraint
        super().__init__(as_axes(axis), epsilon, center, scale, beta, gamma, **options)
        self.rms_scaling = only("rms_scaling", rms_scaling, False, "Use `RMSNormalization`.")

    def build(self, input_shape: Shape) -> None:
        """Create gamma and beta, of the shape of the axes."""
        self.axis = self.axis if isinstance(self.axis, list) else [self.axis]  # As Keras does.
        axes = positions(self.axis, len(input_shape))
        self._add_gamma_and_beta(tuple(input_shape[axis] for axis in axes))

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, of shape (batch, ...)."""
        values, axes = self._computed(inputs), positions(self.axis, inputs.ndim)
        mean, variance = ops.moments(values, axes, keepdims=True)
        return self._normalized(values, mean, variance, _broadcasting(inputs.shape, axes))


class RMSNormalization(Normalizing):
    """Divides each example by the root of its mean square over some of its axes.

    Zhang and Sennrich, Root Mean Square Layer Normalization, 2019:
    https://arxiv.org/abs/1910.07467

    Args:
        axis: The axis to normalize over, or several in a list.
        epsilon: What is added to the mean square.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``axis`` is no integer and no list of them.
        ValueError: ``epsilon`` is out of its range.

    Example:
        >>> RMSNormalization(epsilon=0.0)([[1.0, 7.0]]).numpy().round(4).tolist()
        [[0.20000000298023224, 1.399999976158142]]
    """

    scale: Variable

    def __init__(
        self, axis: AxisLike = -1, epsilon: float = 1e-6, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**options)
        self.axis = as_axes(axis)
        self.epsilon = as_epsilon(epsilon)

    def build(self, input_shape: Shape) -> None:
        """Create the scale, of the shape of the axes."""
        self.axis = self.axis if isinstance(self.axis, list) else [self.axis]  # As Keras does.
        shape = tuple(input_shape[axis] for axis in positions(self.axis, len(input_shape)))
        self.scale = self.add_weight(shape=shape, initializer="ones", name="scale")

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, of shape (batch, ...)."""
        values, axes = self._computed(inputs), positions(self.axis, inputs.ndim)
        square = ops.reduce_mean(ops.square(values), axes, keepdims=True)
        scale = ops.reshape(self.scale, _broadcasting(inputs.shape, axes))
        return ops.cast(values * ops.rsqrt(square + self.epsilon) * scale, self.compute_dtype)


class UnitNormalization(Normalizing):
    """Divides each example by its L2 norm over some of its axes.

    Args:
        axis: The axis to normalize over, or several in a list.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``axis`` is no integer and no list of them.

    Example:
        >>> UnitNormalization()([[3.0, 4.0], [0.0, 0.0]]).numpy().round(4).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """

    _supports_masking = True

    _built_from_start = True

    def __init__(self, axis: AxisLike = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = as_axes(axis)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, of shape (batch, ...)."""
        axes = positions(self.axis, inputs.ndim)
        norm = ops.rsqrt(ops.reduce_sum(ops.square(inputs), axes, keepdims=True))
        return inputs * ops.minimum(norm, 1e12)  # Of zeros the quotient is infinite.


def _broadcasting(shape: Shape, axes: list[int]) -> list[Any]:
    """Return a shape of the axes' sizes, which broadcasts to the whole; behind it stands none."""
    if axes == list(range(len(shape) - len(axes), len(shape))):
        return [shape[axis] for axis in axes]
    return [size if i in axes else 1 for i, size in enumerate(shape)]


class GroupNormalization(ScaledAndMoved):
    """Normalizes each example's features in groups, over all other axes too.

    Wu and He, Group Normalization, 2018: https://arxiv.org/abs/1803.08494

    Args:
        groups: How many groups there are; -1 for one a feature.
        axis: The features' axis.
        epsilon: What is added to the variance.
        center: Whether there is ``beta``, which is added.
        scale: Whether there is ``gamma``, which is multiplied by.
        beta_initializer: What ``beta``, of the features' shape, starts as.
        gamma_initializer: What ``gamma``, of the features' shape, starts as.
        beta_regularizer: The penalty on ``beta``, if any.
        gamma_regularizer: The penalty on ``gamma``, if any.
        beta_constraint: What optimizers bring ``beta`` back to after a step, if anything.
        gamma_constraint: What they bring ``gamma`` back to.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: ``groups`` is no such number, or another number is out of its range.

    Example:
        >>> layer = GroupNormalization(groups=2, epsilon=0.0)
        >>> layer([[1.0, 5.0, 2.0, 2.5]]).numpy().tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Identifier = "zeros",
        gamma_initializer: Identifier = "ones",
        beta_regularizer: Identifier | None = None,
        gamma_regularizer: Identifier | None = None,
        beta_constraint: Identifier | None = None,
        gamma_constraint: Identifier | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        number = as_integer(groups)
        if number is None or number < -1 or number == 0:
            raise ValueError(
                "Received an invalid value for argument `groups`, expected a positive integer (or "
                f"`-1` for instance normalization). Received: groups={groups!r}"
            )
        beta = beta_initializer, beta_regularizer, beta_constraint
        gamma = gamma_initializer, gamma_regularizer, gamma_constraint
        super().__init__(as_axis(axis), epsilon, center, scale, beta, gamma, **options)
        self.groups = number

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the groups part the features, which are those of before."""
        super().check_input_shape(input_shape)
        (axis,) = positions(self.axis, len(input_shape))
        features = input_shape[axis]
        if features is None:
            raise ValueError(
                f"Axis {self.axis} of input tensor should have a defined dimension but the layer "
                f"received an input with shape {input_shape}."
            )
        if features < self.groups:
            raise ValueError(
                f"Number of groups ({self.groups}) cannot be more than the number of channels "
                f"({features})."
            )
        if features % self.groups:
            raise ValueError(
                f"Number of groups ({self.groups}) must be a multiple of the number of channels "
                f"({features})."
            )

    def build(self, input_shape: Shape) -> None:
        """Create gamma and beta, of the features' shape."""
        (axis,) = positions(self.axis, len(input_shape))
        features = input_shape[axis]
        if self.groups == -1 and features is not None:
            self.groups = features
        self._add_gamma_and_beta((features,))

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, of shape (batch, ...)."""
        (axis,) = positions(self.axis, inputs.ndim)
        grouped = [*inputs.shape]
        grouped[axis : axis + 1] = [self.groups, inputs.shape[axis] // self.groups]
        values = ops.reshape(self._computed(inputs), grouped)
        others = [i for i in range(1, len(grouped)) if i != axis]
        mean, variance = ops.moments(values, others, keepdims=True)
        shape = [size if i in (axis, axis + 1) else 1 for i, size in enumerate(grouped)]
        return ops.reshape(self._normalized(values, mean, variance, shape), inputs.shape)
