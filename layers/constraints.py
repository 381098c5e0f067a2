"""What weights must satisfy: an optimizer brings them back to it after each of its steps.

A constraint is a function from a value to the nearest one that it allows; a variable keeps it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import Configured, serialized
from mirrored.serialization.registry import Registry, spelt

Projection = Callable[[Any], Any]  # What a constraint is to a variable.

_EPSILON = 1e-7  # Keras' epsilon, which keeps the norm of zeros from being divided by.


class Constraint(Configured):
    """Base of constraints that have settings; a function of a tensor is one as well.

    Example:
        >>> import mirrored as mr
        >>> class Within(mr.keras.constraints.Constraint):
        ...     def __init__(self, bound):
        ...         self.bound = bound
        ...
        ...     def __call__(self, w):
        ...         return mr.clip_by_value(w, -self.bound, self.bound)
        >>> layer = mr.keras.layers.Dense(1, kernel_constraint=Within(0.5))
    """

    def __call__(self, w: TensorLike) -> Any:
        """Return the value that a weight gets; that of the base is the weight itself.

        Args:
            w: The weight's value after a step, a tensor.
        """
        return w


class MaxNorm(Constraint):
    """Shortens what is longer than ``max_value``: by default, the weights of a unit.

    Srivastava et al., Dropout, 2014: https://jmlr.org/papers/v15/srivastava14a.html

    Args:
        max_value: The largest norm.
        axis: The axis along which norms are taken, or several; 0 for the inputs of a `Dense`.

    Example:
        >>> MaxNorm(1.0)([[3.0, 0.5], [4.0, 0.0]]).numpy().round(4).tolist()
        [[0.6000000238418579, 0.5], [0.800000011920929, 0.0]]
    """

    def __init__(self, max_value: float = 2, axis: AxisLike = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        """Return the weight with no norm above the largest.

        Args:
            w: The weight's value, a tensor that has the axis.
        """
        return _rescaled(w, self.axis, lambda norm: ops.clip_by_value(norm, 0, self.max_value))


class NonNeg(Constraint):
    """Makes 0 of what is negative.

    Example:
        >>> NonNeg()([-1.0, 2.0]).numpy().tolist()
        [0.0, 2.0]
    """

    def __call__(self, w: TensorLike) -> Tensor:
        """Return the weight with nothing below 0.

        Args:
            w: The weight's value, a tensor.
        """
        return ops.maximum(ops.convert_to_tensor(w), 0)


class UnitNorm(Constraint):
    """Gives norm 1: by default, to the weights of a unit.

    Args:
        axis: The axis along which norms are taken, or several; 0 for the inputs of a `Dense`.

    Example:
        >>> UnitNorm()([[3.0], [4.0]]).numpy().round(4).tolist()
        [[0.6000000238418579], [0.800000011920929]]
    """

    def __init__(self, axis: AxisLike = 0) -> None:
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        """Return the weight, divided by its norms.

        Args:
            w: The weight's value, a tensor that has the axis.
        """
        value = ops.convert_to_tensor(w)
        return value / (_norm(value, self.axis) + _EPSILON)


class MinMaxNorm(Constraint):
    """Brings norms between two bounds, or a part of the way there: by default, those of units.

    Args:
        min_value: The least norm.
        max_value: The largest norm.
        rate: The part of the way that a step makes them go; 1 for all of it.
        axis: The axis along which norms are taken, or several; 0 for the inputs of a `Dense`.

    Example:
        >>> MinMaxNorm(1.0, 3.0, rate=0.5)([[3.0], [4.0]]).numpy().round(4).tolist()
        [[2.4000000953674316], [3.200000047683716]]
    """

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: AxisLike = 0
    ) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: TensorLike) -> Tensor:
        """Return the weight with norms that are within the bounds, or nearer to them.

        Args:
            w: The weight's value, a tensor that has the axis.
        """

        def desired(norm: Tensor) -> Tensor:
            bounded = ops.clip_by_value(norm, self.min_value, self.max_value)
            return self.rate * bounded + (1 - self.rate) * norm

        return _rescaled(w, self.axis, desired)


def _norm(value: Tensor, axis: Any) -> Tensor:
    return ops.sqrt(ops.reduce_sum(ops.square(value), axis=axis, keepdims=True))


def _rescaled(w: Any, axis: Any, desired: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a value whose norms are what `desired` makes of them."""
    value = ops.convert_to_tensor(w)
    norm = _norm(value, axis)
    return value * (desired(norm) / (norm + _EPSILON))


_CLASSES = ("Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm")
_REGISTRY: Registry[Projection] = Registry(
    "constraint", __name__, spelt(dict.fromkeys(_CLASSES, ()))
)


def get(identifier: object) -> Projection | None:
    """Return the constraint that ``identifier`` stands for, None for None.

    Args:
        identifier: A name, such as ``"max_norm"`` or ``"MaxNorm"``, a class, a function from a
            tensor to one of its shape, or a name and arguments: ``{"class_name": ..., "config":
            ...}``.

    Raises:
        ValueError: There is no constraint of that name.
        TypeError: It does not take these arguments.

    Example:
        >>> get("max_norm").max_value
        2
    """
    return None if identifier is None else _REGISTRY.resolve(identifier)


def serialize(constraint: Any) -> Any:
    """Return the configuration of a constraint; None for None.

    Args:
        constraint: The constraint.

    Example:
        >>> import mirrored as mr
        >>> serialize(get("max_norm"))["config"]
        {'max_value': 2, 'axis': 0}
    """
    return serialized(constraint)


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the constraint that a configuration describes.

    Args:
        config: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> deserialize(serialize(MaxNorm(3))).max_value
        3
    """
    return _REGISTRY.deserialize(config, custom_objects)


_public_module("tf.keras.constraints", __name__, constants=("Projection",))


explain_functions(__name__, all_but="serialize")
