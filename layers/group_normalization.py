"""Group normalization: groups of an example's features get mean 0 and variance 1.

One group is layer normalization over all axes, and as many groups as features are instances'.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_integer
from mirrored.layers.layer import LayerOptions
from mirrored.layers.normalizing import ScaledAndMoved, as_axis, positions
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor


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
        super().__init__(
            as_axis(axis),
            epsilon,
            center,
            scale,
            beta_initializer,
            gamma_initializer,
            beta_regularizer,
            gamma_regularizer,
            beta_constraint,
            gamma_constraint,
            **options,
        )
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
