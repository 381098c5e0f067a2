"""Learning rates that change from step to step: functions of the number of steps taken.

They are made of ops, so that a recorded step computes its own rate, and is recorded once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explained, explained_only
from mirrored._types import TensorLike
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import LearningRateSchedule as LearningRateSchedule
from mirrored.serialization.constructor_arguments import arguments_of, deserialized, serialized


class _Schedule(LearningRateSchedule):
    """A schedule whose arguments are its attributes."""

    _above_zero: ClassVar[str] = "decay_steps"

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the schedule again."""
        return arguments_of(self)

    def __post_init__(self) -> None:
        steps = getattr(self, self._above_zero)
        if steps <= 0:
            raise ValueError(
                f"Argument `{self._above_zero}` must be > 0. Received: {self._above_zero}={steps}"
            )


@explained
@dataclass(eq=False, repr=False)
class ExponentialDecay(_Schedule):
    """A rate of initial_learning_rate * decay_rate^(step / decay_steps).

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: Steps after which the rate is `decay_rate` times the old rate; above 0.
        decay_rate: What the rate is multiplied by.
        staircase: Whether the rate changes only then, and not in each step.
        name: What messages call it.

    Raises:
        ValueError: `decay_steps` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> rate = mr.optim.schedules.ExponentialDecay(0.5, decay_steps=10, decay_rate=0.25)
        >>> float(rate(0)), float(rate(5)), float(rate(10))
        (0.5, 0.25, 0.125)
    """

    initial_learning_rate: TensorLike
    decay_steps: TensorLike
    decay_rate: TensorLike
    staircase: bool = False
    name: str = "ExponentialDecay"

    def __call__(self, step: TensorLike) -> Tensor:
        """Return the rate after a number of steps."""
        parts = _parts(step, self.decay_steps, self.staircase)
        return _number(self.initial_learning_rate) * ops.pow(_number(self.decay_rate), parts)


@explained
@dataclass(eq=False, repr=False)
class InverseTimeDecay(_Schedule):
    """A rate of initial_learning_rate / (1 + decay_rate * step / decay_steps).

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: How many steps count as 1; above 0.
        decay_rate: How fast the rate sinks.
        staircase: Whether only every `decay_steps`-th step changes the rate.
        name: What messages call it.

    Raises:
        ValueError: `decay_steps` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> rate = mr.optim.schedules.InverseTimeDecay(0.5, decay_steps=1, decay_rate=1.0)
        >>> float(rate(0)), float(rate(1)), float(rate(3))
        (0.5, 0.25, 0.125)
    """

    initial_learning_rate: TensorLike
    decay_steps: TensorLike
    decay_rate: TensorLike
    staircase: bool = False
    name: str = "InverseTimeDecay"

    def __call__(self, step: TensorLike) -> Tensor:
        """Return the rate after a number of steps."""
        parts = _parts(step, self.decay_steps, self.staircase)
        return _number(self.initial_learning_rate) / (1.0 + parts * self.decay_rate)


@explained
@dataclass(eq=False, repr=False)
class PolynomialDecay(_Schedule):
    """A rate that sinks from one number to another: (initial - end) (1 - p)^power + end.

    Here p is step / decay_steps, and 1 from then on.

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: Steps after which the rate is `end_learning_rate`; above 0.
        end_learning_rate: The least rate.
        power: 1 for a straight line.
        cycle: Whether the rate rises again beyond `decay_steps`: p is then the step's part of the
            next multiple of `decay_steps`.
        name: What messages call it.

    Raises:
        ValueError: `decay_steps` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> rate = mr.optim.schedules.PolynomialDecay(1.0, decay_steps=4, end_learning_rate=0.5)
        >>> [float(rate(step)) for step in (0, 2, 4, 6)]
        [1.0, 0.75, 0.5, 0.5]
    """

    initial_learning_rate: TensorLike
    decay_steps: TensorLike
    end_learning_rate: TensorLike = 0.0001
    power: TensorLike = 1.0
    cycle: bool = False
    name: str = "PolynomialDecay"

    def __call__(self, step: TensorLike) -> Tensor:
        """Return the rate after a number of steps."""
        steps, of = _number(step), _number(self.decay_steps)
        if self.cycle:
            of = of * ops.maximum(ops.ceil(steps / of), 1.0)
        else:
            steps = ops.minimum(steps, of)
        end = _number(self.end_learning_rate)
        start = _number(self.initial_learning_rate)
        return (start - end) * ops.pow(1.0 - steps / of, _number(self.power)) + end


@explained
@dataclass(eq=False, repr=False)
class PiecewiseConstantDecay(_Schedule):
    """A rate that is constant up to a step, then another.

    Args:
        boundaries: The last step of each rate, ascending.
        values: The rates, one more than boundaries.
        name: What messages call it.

    Raises:
        ValueError: The lengths do not fit.

    Example:
        >>> import mirrored as mr
        >>> rate = mr.optim.schedules.PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.25])
        >>> [float(rate(step)) for step in (10, 11, 20, 21)]
        [1.0, 0.5, 0.5, 0.25]
    """

    boundaries: Sequence[Any]
    values: Sequence[Any]
    name: str = "PiecewiseConstant"

    def __post_init__(self) -> None:
        if len(self.boundaries) != len(self.values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values. Received: "
                f"boundaries={self.boundaries} of length {len(self.boundaries)}, and "
                f"values={self.values} of length {len(self.values)}."
            )

    def __call__(self, step: TensorLike) -> Tensor:
        """Return the rate after a number of steps."""
        steps = ops.convert_to_tensor(step)
        rate = _number(self.values[0])
        for boundary, value in zip(self.boundaries, self.values[1:], strict=True):
            is_beyond = ops.greater(steps, ops.cast(boundary, steps.dtype))
            rate = ops.where(is_beyond, _number(value), rate)
        return rate


@explained
@dataclass(eq=False, repr=False)
class CosineDecay(_Schedule):
    """A rate that falls as half a wave of the cosine, after a warmup if asked for.

    See Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017,
    and for the warmup Goyal et al., "Accurate, large minibatch SGD", 2017.

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: How many steps the wave takes; above 0.
        alpha: The least rate, as a part of that which the wave begins with.
        name: What messages call it.
        warmup_target: What the rate rises to, in a straight line, before the wave; None: no warmup.
        warmup_steps: How many steps the warmup takes.

    Raises:
        ValueError: `decay_steps` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> rate = mr.optim.schedules.CosineDecay(
        ...     0.0, decay_steps=4, warmup_target=1.0, warmup_steps=2)
        >>> [round(float(rate(step)), 6) for step in (0, 1, 2, 4, 6, 9)]
        [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """

    initial_learning_rate: TensorLike
    decay_steps: TensorLike
    alpha: TensorLike = 0.0
    name: str = "CosineDecay"
    warmup_target: TensorLike | None = None
    warmup_steps: TensorLike = 0

    def __call__(self, step: TensorLike) -> Tensor:
        """Return the rate after a number of steps."""
        start, of = _number(self.initial_learning_rate), _number(self.decay_steps)
        if self.warmup_target is None:
            return self._wave(ops.minimum(_number(step), of) / of, start)
        target, warmup = _number(self.warmup_target), _number(self.warmup_steps)
        steps = ops.minimum(_number(step), of + warmup)
        # Without a warmup its part of the way is not looked at: 0 / 0 would be.
        part = steps / ops.maximum(warmup, 1.0)
        rising = (target - start) * part + start
        falling = self._wave((steps - warmup) / of, target)
        return ops.where(ops.less(steps, warmup), rising, falling)

    def _wave(self, part: Tensor, start: Tensor) -> Tensor:
        alpha = _number(self.alpha)
        return start * ((1.0 - alpha) * 0.5 * (1.0 + ops.cos(part * math.pi)) + alpha)


@explained
@dataclass(eq=False, repr=False)
class CosineDecayRestarts(_Schedule):
    """A rate that falls as half a wave of the cosine, again and again.

    See Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.

    Args:
        initial_learning_rate: The rate of the first step.
        first_decay_steps: How many steps the first wave takes; above 0.
        t_mul: How many times longer each wave is than the one before.
        m_mul: How many times higher each wave begins than the one before.
        alpha: The least rate, as a part of the initial one.
        name: What messages call it.

    Raises:
        ValueError: `first_decay_steps` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> rate = mr.optim.schedules.CosineDecayRestarts(1.0, first_decay_steps=2, m_mul=0.5)
        >>> [round(float(rate(step)), 6) for step in (0, 1, 2, 4, 5)]
        [1.0, 0.5, 0.5, 0.25, 0.073223]
    """

    initial_learning_rate: TensorLike
    first_decay_steps: TensorLike
    t_mul: float = 2.0
    m_mul: TensorLike = 1.0
    alpha: TensorLike = 0.0
    name: str = "SGDRDecay"

    _above_zero: ClassVar[str] = "first_decay_steps"

    def __call__(self, step: TensorLike) -> Tensor:
        """Return the rate after a number of steps."""
        done = _number(step) / self.first_decay_steps
        if float(self.t_mul) == 1.0:
            waves = ops.floor(done)
            part = done - waves
        else:
            longer = _number(self.t_mul)
            waves = ops.floor(ops.log(1.0 - done * (1.0 - longer)) / ops.log(longer))
            length = ops.pow(longer, waves)
            part = (done - (1.0 - length) / (1.0 - longer)) / length
        height = ops.pow(_number(self.m_mul), waves)
        alpha = _number(self.alpha)
        decayed = (1.0 - alpha) * (0.5 * height * (1.0 + ops.cos(part * math.pi))) + alpha
        return _number(self.initial_learning_rate) * decayed


def _number(value: Any) -> Tensor:
    return ops.cast(value, ops.floatx())


def _parts(step: Any, decay_steps: Any, staircase: bool) -> Tensor:
    parts: Tensor = _number(step) / decay_steps
    return ops.floor(parts) if staircase else parts


def serialize(learning_rate_schedule: Any) -> Any:
    """Return the configuration of a schedule.

    Args:
        learning_rate_schedule: The schedule.

    Example:
        >>> serialize(PiecewiseConstantDecay([2], [1.0, 0.5]))["config"]["boundaries"]
        [2]
    """
    return serialized(learning_rate_schedule)


@explained_only
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the schedule that a configuration describes.

    Args:
        config: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> deserialize(serialize(PiecewiseConstantDecay([2], [1.0, 0.5]))).values
        [1.0, 0.5]
    """
    names = {name: globals()[name] for name in globals()["__all__"] if not name.islower()}
    return deserialized(config, names, custom_objects)


_public_module("tf.keras.optimizers.schedules", __name__, constants=("LearningRateSchedule",))
