"""Learning rates that follow from the number of the step, as TensorFlow 1's `tf.train` has them."""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.compat.v1.drawn_calls import drawn
from mirrored.compat.v1.listing import named


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


def _decay(
    called: str, default: str, decayed: Callable[[Any, Any, Any], Any], formula: str
) -> Callable[..., Any]:
    """Return a function of a rate that decays by a factor in each of some steps.

    Args:
        called: Its name.
        default: The name of what it draws.
        decayed: From the rate, the factor and the quotient of steps to the rate by then.
        formula: The same as a text.
    """

    def decay(
        learning_rate: TensorLike,
        global_step: TensorLike,
        decay_steps: TensorLike,
        decay_rate: TensorLike,
        staircase: bool = False,
        name: str | None = None,
    ) -> Any:
        """Return {formula}.

        Args:
            learning_rate: The rate at first.
            global_step: The number of the step.
            decay_steps: The number of steps after which the rate decays once more.
            decay_rate: By what.
            staircase: Whether it stays the same in between.
            name: Its name.

        Raises:
            ValueError: There is no number of the step.
        """

        def compute(rate: Any, step: Any, steps: Any, factor: Any) -> Any:
            part = step / steps
            return decayed(rate, factor, ops.floor(part) if staircase else part)

        arguments = (learning_rate, global_step, decay_steps, decay_rate)
        return _drawn(compute, arguments, called, name or default)

    return named(decay, called, formula=formula)


exponential_decay = _decay(
    "exponential_decay",
    "ExponentialDecay",
    lambda rate, factor, part: rate * ops.pow(factor, part),
    "learning_rate * decay_rate ** (global_step / decay_steps)",
)
natural_exp_decay = _decay(
    "natural_exp_decay",
    "ExponentialTimeDecay",
    lambda rate, factor, part: rate * ops.exp(-factor * part),
    "learning_rate * exp(-decay_rate * global_step / decay_steps)",
)
inverse_time_decay = _decay(
    "inverse_time_decay",
    "InverseTimeDecay",
    lambda rate, factor, part: rate / (1.0 + factor * part),
    "learning_rate / (1 + decay_rate * global_step / decay_steps)",
)


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
