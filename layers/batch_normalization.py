"""Batch normalization: every feature gets mean 0 and variance 1 over the examples of a batch.

It is the one layer in which the examples of a batch depend on each other, so replicas meet in it.
"""

import math
from collections.abc import Mapping
from typing import Any, Unpack

from mirrored import ops
from mirrored._numbers import from_0_to_1
from mirrored._types import Identifier
from mirrored.distribute import get_replica_context
from mirrored.layers import initializers
from mirrored.layers.layer import LayerOptions
from mirrored.layers.layer_normalization import ScaledAndMoved, as_axis, positions
from mirrored.layers.shapes import Shape
from mirrored.layers.starting_values import another
from mirrored.ops import Tensor
from mirrored.variables import Variable, VariableAggregation

_EPSILON = 1e-7  # Keras', of which a count of nothing becomes no quotient of zeros.


class BatchNormalization(ScaledAndMoved):
    """Normalizes each feature over the batch in training, and by moving averages otherwise.

    Ioffe and Szegedy, Batch Normalization, 2015: https://arxiv.org/abs/1502.03167

    By default several replicas compute the mean and the variance of the global batch together, so
    that any number of replicas trains as one. With ``synchronized=False``, the default of
    TensorFlow, each replica takes those of its own shard: **several replicas then do not train as
    one does.** The moving averages then weight the replicas' statistics by shard size.

    Args:
        axis: The features' axis; all others are averaged over.
        momentum: The part of the moving averages that a step of training leaves in them.
        epsilon: What is added to the variance.
        center: Whether there is ``beta``, which is added.
        scale: Whether there is ``gamma``, which is multiplied by.
        beta_initializer: What ``beta`` starts as.
        gamma_initializer: What ``gamma`` starts as.
        moving_mean_initializer: What the moving mean starts as.
        moving_variance_initializer: What the moving variance starts as.
        beta_regularizer: The penalty on ``beta``, if any.
        gamma_regularizer: The penalty on ``gamma``, if any.
        beta_constraint: What optimizers bring ``beta`` back to after a step, if anything.
        gamma_constraint: What they bring ``gamma`` back to.
        synchronized: Whether replicas compute the global batch's mean and variance together. None
            is True wherever there are several replicas, and False elsewhere; Keras reads it as
            False. A file of Keras that says False is read as None.
        renorm: Whether training brings what a batch's mean and variance give to what running ones
            would: Ioffe, Batch Renormalization, 2017, https://arxiv.org/abs/1702.03275
        renorm_clipping: Bounds of that correction, in a dict: "rmin" and "rmax" of the quotient of
            deviations, "dmax" of the distance of means; None for none.
        renorm_momentum: The part of the running mean and deviation that a step leaves in them.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer. One
            that is not trainable goes by its moving averages in training too.

    Raises:
        ValueError: A number is out of its range, or a name is unknown.

    Example:
        >>> layer = BatchNormalization(epsilon=0.0, momentum=0.5)
        >>> layer([[1.0], [5.0]], training=True).numpy().tolist()
        [[-1.0], [1.0]]
        >>> layer.moving_mean.numpy().tolist(), layer.moving_variance.numpy().tolist()
        ([1.5], [2.5])
    """

    moving_mean: Variable
    moving_variance: Variable
    moving_stddev: Variable
    renorm_mean: Variable
    renorm_stddev: Variable

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Identifier = "zeros",
        gamma_initializer: Identifier = "ones",
        moving_mean_initializer: Identifier = "zeros",
        moving_variance_initializer: Identifier = "ones",
        beta_regularizer: Identifier | None = None,
        gamma_regularizer: Identifier | None = None,
        beta_constraint: Identifier | None = None,
        gamma_constraint: Identifier | None = None,
        *,
        synchronized: bool | None = None,
        renorm: bool = False,
        renorm_clipping: Mapping[str, float] | None = None,
        renorm_momentum: float = 0.99,
        **options: Unpack[LayerOptions],
    ) -> None:
        beta = beta_initializer, beta_regularizer, beta_constraint
        gamma = gamma_initializer, gamma_regularizer, gamma_constraint
        super().__init__(as_axis(axis), epsilon, center, scale, beta, gamma, **options)
        self.momentum = from_0_to_1("momentum", momentum)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.synchronized = None if synchronized is None else bool(synchronized)
        self.renorm = bool(renorm)
        self.renorm_clipping = _checked_bounds(renorm_clipping) if renorm else renorm_clipping
        self.renorm_momentum = from_0_to_1("renorm_momentum", renorm_momentum)

    def build(self, input_shape: Shape) -> None:
        """Create gamma and beta, and the moving averages, each of the features' shape."""
        (axis,) = positions(self.axis, len(input_shape))
        shape = (input_shape[axis],)
        self._add_gamma_and_beta(shape)
        self.moving_mean = self.__add_moving("moving_mean", shape, self.moving_mean_initializer)
        self.moving_variance = self.__add_moving(
            "moving_variance", shape, self.moving_variance_initializer
        )
        if self.renorm:
            self.moving_stddev = self.__add_moving("moving_stddev", shape, self.__first_deviation)
            mean = another(self.moving_mean_initializer)
            self.renorm_mean = self.__add_moving("renorm_mean", shape, mean)
            self.renorm_stddev = self.__add_moving("renorm_stddev", shape, self.__first_deviation)

    def __add_moving(self, name: str, shape: Shape, initializer: Any) -> Variable:
        # Synchronized, they are equal on all replicas: a mean of them would be rounded.
        once, mean = VariableAggregation.ONLY_FIRST_REPLICA, VariableAggregation.MEAN
        return self.add_weight(
            shape=shape,
            initializer=initializer,
            trainable=False,
            aggregation=mean if self.synchronized is False else once,
            name=name,
        )

    def __first_deviation(self, shape: Shape, dtype: Any = None) -> Tensor:
        make: Any = another(self.moving_variance_initializer)
        return ops.sqrt(make(shape, dtype=dtype))

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the features are those that there were first."""
        super().check_input_shape(input_shape)
        (axis,) = positions(self.axis, len(input_shape))
        if self.built and input_shape[axis] != self.moving_mean.shape[0]:
            raise ValueError(
                f'Input 0 of layer "{self.name}" is incompatible with the layer: expected axis '
                f"{self.axis} of input shape to have value {self.moving_mean.shape[0]}, but "
                f"received input with shape {input_shape}"
            )

    def call(self, inputs: Tensor, training: bool = False, mask: Tensor | None = None) -> Tensor:
        """Return the normalized inputs.

        Args:
            inputs: Shape (batch, ...).
            training: Whether to normalize by the batch, and to change the moving averages.
            mask: What the batch's mean and variance are over, of the inputs' shape without its last
                axis; None: all. What it leaves out is normalized too.

        Raises:
            ValueError: The mask has another number of axes.
        """
        if mask is not None and mask.ndim != inputs.ndim - 1:
            raise ValueError(
                "The mask provided should be one dimension less than the inputs. Received: "
                f"mask.shape={mask.shape}, inputs.shape={inputs.shape}"
            )
        values = self._computed(inputs)
        (axis,) = positions(self.axis, inputs.ndim)
        shape = [1] * inputs.ndim
        shape[axis] = inputs.shape[axis]
        if axis == inputs.ndim - 1:
            shape = shape[axis:]
        if training and self.trainable:
            axes = [i for i in range(inputs.ndim) if i != axis]
            mean, variance = (
                self.__moments(values, axes)
                if mask is None
                else self.__masked_moments(values, axes, mask)
            )
            correction = self.__moved_on(mean, variance)
        else:
            mean, variance = self.moving_mean.read_value(), self.moving_variance.read_value()
            correction = ()
        if len(shape) > 1:
            mean, variance = ops.reshape(mean, shape), ops.reshape(variance, shape)
            correction = tuple(ops.reshape(factor, shape) for factor in correction)
        return self._normalized(values, mean, variance, shape, correction)

    def __moved_on(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
        """Bring the averages on by a batch; return what it is corrected by, if it is."""

        def move(average: Variable, now: Tensor, momentum: float) -> Tensor:
            moved = average * momentum + now * (1.0 - momentum)
            average.assign(moved)
            return moved

        if not self.renorm:
            move(self.moving_mean, mean, self.momentum)
            move(self.moving_variance, variance, self.momentum)
            return ()
        deviation = ops.sqrt(variance + self.epsilon)
        correction = self.__correction(mean, deviation)
        move(self.renorm_mean, mean, self.renorm_momentum)
        move(self.renorm_stddev, deviation, self.renorm_momentum)
        move(self.moving_mean, mean, self.momentum)
        average = move(self.moving_stddev, deviation, self.momentum)
        self.moving_variance.assign(ops.relu(average * average - self.epsilon))
        return correction

    def __correction(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        """Return the quotient of deviations and the distance of means, to the running ones."""
        running = ops.maximum(self.renorm_stddev, math.sqrt(self.epsilon))
        quotient, distance = deviation / running, (mean - self.renorm_mean) / running
        bounds = self.renorm_clipping or {}
        if bounds.get("rmin") is not None:
            quotient = ops.maximum(quotient, bounds["rmin"])
        if bounds.get("rmax") is not None:
            quotient = ops.minimum(quotient, bounds["rmax"])
        if bounds.get("dmax") is not None:
            distance = ops.clip_by_value(distance, -bounds["dmax"], bounds["dmax"])
        return ops.stop_gradient(quotient), ops.stop_gradient(distance)

    def __moments(self, values: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
        """Return the features' mean and variance over this shard, or over all replicas'."""
        context = self.__meeting()
        if context is None:
            return ops.moments(values, axes)
        # Sums and not means: shards are not all of one size. From the mean of all, not from a
        # difference of squares, which would lose what they have in common.
        size = math.prod(values.shape[axis] for axis in axes)
        count = ops.fill((1,), ops.constant(float(size), values.dtype))
        total, count = context.all_reduce("sum", [ops.reduce_sum(values, axes), count])
        mean = total / count
        squares = ops.reduce_sum(ops.square(values - _kept(mean, axes, values)), axes)
        return mean, context.all_reduce("sum", squares) / count

    def __masked_moments(
        self, values: Tensor, axes: list[int], mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the same over what a mask leaves: 0 where that is nothing."""
        context = self.__meeting()
        shape = values.shape
        counts = ops.broadcast_to(ops.expand_dims(ops.cast(mask, ops.bool_), -1), shape)
        nothing = ops.zeros((), values.dtype)
        sums = [
            ops.reduce_sum(summand, axes)
            for summand in (ops.where(counts, values, nothing), ops.cast(counts, values.dtype))
        ]
        total, count = sums if context is None else context.all_reduce("sum", sums)
        count = count + _EPSILON
        mean = total / count
        apart = ops.where(counts, values - _kept(mean, axes, values), nothing)
        squares = ops.reduce_sum(ops.square(apart), axes)
        return mean, (squares if context is None else context.all_reduce("sum", squares)) / count

    def __meeting(self) -> Any:
        """Return the context in which replicas meet; None where each is on its own."""
        context: Any = get_replica_context()
        apart = self.synchronized is False or context is None or context.num_replicas_in_sync == 1
        return None if apart else context

    @property
    def _mirrored_config(self) -> dict[str, Any] | None:
        """What files say beside Keras' configuration, whose False may be Keras' default."""
        return {"synchronized": False} if self.synchronized is False else None

    @classmethod
    def _config_read(cls, config: dict[str, Any], own: Any) -> dict[str, Any]:
        """Return a configuration from a file, with None for a False that only Keras wrote."""
        asked = isinstance(own, Mapping) and own.get("synchronized") is False
        if asked or config.get("synchronized") is not False:
            return config
        return {**config, "synchronized": None}


def _checked_bounds(clipping: Any) -> dict[str, float]:
    """Return the bounds of the correction: none of others, and none beyond another."""
    bounds = dict(clipping or {})
    known = ["rmax", "rmin", "dmax"]
    if not set(bounds).issubset(known):
        raise ValueError(
            f"Received invalid keys for `renorm_clipping` argument: {clipping}. Supported values: "
            f"{known}."
        )
    low, high, far = (bounds.get(name) for name in ("rmin", "rmax", "dmax"))
    if low is not None and high is not None and high < low:
        raise ValueError(
            "rmax should be greater than rmin in the `renorm_clipping` argument. Received: "
            f"rmax={high}, rmin={low}."
        )
    if far is not None and far < 0:
        raise ValueError(
            f"dmax should be non-negative in the `renorm_clipping` argument. Received: dmax={far}."
        )
    return bounds


def _kept(mean: Tensor, axes: list[int], values: Tensor) -> Tensor:
    """Return a mean over axes in a shape that broadcasts to the values."""
    return ops.reshape(mean, [1 if i in axes else -1 for i in range(values.ndim)])
