"""Layer, group, RMS and unit normalization: of the features of each example.

No example sees another one, so that replicas need not meet.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained, only
from mirrored._numbers import as_integer
from mirrored.layers.layer import LayerOptions
from mirrored.layers.normalizing import (
    Normalizing,
    ScaledAndMoved,
    as_axes,
    as_axis,
    as_epsilon,
    positions,
)
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor
from mirrored.variables import Variable


@explained
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

    _supports_masking = True

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
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


@explained
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
        self, axis: Any = -1, epsilon: float = 1e-6, **options: Unpack[LayerOptions]
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


@explained
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

    def __init__(self, axis: Any = -1, **options: Unpack[LayerOptions]) -> None:
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


@explained
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

    _supports_masking = True

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
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
