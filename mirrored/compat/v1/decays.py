"""Learning rates that follow from the number of the step, as TensorFlow 1's `tf.train` has them."""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.compat.v1.drawn_calls import drawn


def _drawn(function: Callable[..., Any], arguments: Sequence[Any], kind: str, name: str) -> Any:
    """Draw a rate as one operation: of floats, the number of the step among them.

    Raises:
        ValueError: There is no number of the step.
    """
    if arguments[1] is None:
        raise ValueError(f"global_step is required for {kind}.")

    def decayed(rate: Any, step: Any, *others: Any) -> Any:
        rate = ops.convert_to_tensor(rate)
        return function(
            rate, ops.cast(step, rate.dtype), *(ops.cast(o, rate.dtype) for o in others)
        )

    return drawn(decayed, tuple(arguments), "Mul", name)


def exponential_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """Return learning_rate * decay_rate ** (global_step / decay_steps).

    Args:
        learning_rate: The rate at first.
        global_step: The number of the step.
        decay_steps: After how many steps it is multiplied.
        decay_rate: By what.
        staircase: Whether it stays the same in between.
        name: Its name.

    Raises:
        ValueError: There is no number of the step.
    """

    def decayed(rate: Any, step: Any, steps: Any, factor: Any) -> Any:
        return rate * ops.pow(factor, _part(step, steps, staircase))

    arguments = (learning_rate, global_step, decay_steps, decay_rate)
    return _drawn(decayed, arguments, "exponential_decay", name or "ExponentialDecay")


def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """Return learning_rate * exp(-decay_rate * global_step / decay_steps)."""

    def decayed(rate: Any, step: Any, steps: Any, factor: Any) -> Any:
        return rate * ops.exp(-factor * _part(step, steps, staircase))

    arguments = (learning_rate, global_step, decay_steps, decay_rate)
    return _drawn(decayed, arguments, "natural_exp_decay", name or "ExponentialTimeDecay")


def inverse_time_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """Return learning_rate / (1 + decay_rate * global_step / decay_steps)."""

    def decayed(rate: Any, step: Any, steps: Any, factor: Any) -> Any:
        return rate / (1.0 + factor * _part(step, steps, staircase))

    arguments = (learning_rate, global_step, decay_steps, decay_rate)
    return _drawn(decayed, arguments, "inverse_time_decay", name or "InverseTimeDecay")


def polynomial_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    """Return a rate that decays by a polynomial to `end_learning_rate` in `decay_steps` steps.

    Args:
        learning_rate: The rate at first.
        global_step: The number of the step.
        decay_steps: After how many steps it is the last one.
        end_learning_rate: The last one.
        power: The power.
        cycle: Whether it begins again then, for the next multiple of these steps.
        name: Its name.

    Raises:
        ValueError: There is no number of the step.
    """

    def decayed(rate: Any, step: Any, steps: Any, end: Any, power: Any) -> Any:
        if cycle:
            steps = steps * ops.maximum(ops.ceil(step / steps), ops.ones_like(step))
        else:
            step = ops.minimum(step, steps)
        return (rate - end) * ops.pow(1.0 - step / steps, power) + end

    arguments = (learning_rate, global_step, decay_steps, end_learning_rate, power)
    return _drawn(decayed, arguments, "polynomial_decay", name or "PolynomialDecay")


def piecewise_constant(
    x: TensorLike, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Any:
    """Return the value of the interval between boundaries that a number is in.

    Args:
        x: The number: the first value is for those up to the first boundary.
        boundaries: The boundaries, in order.
        values: One more.
        name: Its name.

    Raises:
        ValueError: There are more or fewer values.
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")

    def chosen(x: Any) -> Any:
        result = ops.convert_to_tensor(values[0])
        for boundary, value in zip(boundaries, values[1:], strict=True):
            result = ops.where(ops.greater(x, boundary), ops.cast(value, result.dtype), result)
        return result

    return drawn(chosen, (x,), "Select", name or "PiecewiseConstant")


def _part(step: Any, steps: Any, staircase: bool) -> Any:
    part = step / steps
    return ops.floor(part) if staircase else part
