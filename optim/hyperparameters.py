"""What the settings of optimizers may be: numbers, each in a range of its own."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import Configured

Tensors = tuple[Tensor, ...]  # The values of a variable's slots.
LearningRate: TypeAlias = TensorLike | Callable[..., Any]  # A number, a schedule or a function.


class OtherSettings(TypedDict, total=False):
    """Settings of optimizers that say themselves how weights decay; `Optimizer` has the others."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class Settings(OtherSettings, total=False):
    """The settings that all optimizers have; `Optimizer` says what they mean."""

    weight_decay: float | None


class LearningRateSchedule(Configured):
    """Base of the schedules: a subclass computes the rate of a step in `__call__`, with ops.

    Example:
        >>> import mirrored as mr
        >>> class Halved(mr.optim.schedules.LearningRateSchedule):
        ...     def __call__(self, step):
        ...         return 0.5 ** mr.cast(step, "float32")
        >>> v, optimizer = mr.Variable(0.0), mr.optim.SGD(Halved())
        >>> for _ in range(3):
        ...     _ = optimizer.apply_gradients([(mr.constant(-1.0), v)])
        >>> float(v)
        1.75
    """

    def __call__(self, step: Any) -> Any:
        """Return the learning rate, a scalar.

        Args:
            step: How many steps were taken before, an integer scalar.
        """
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`."
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the schedule again."""
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `get_config()` in order "
            "to be serializable."
        )


def scheduled(schedule: Callable[..., Any], steps: Any) -> Tensor:
    """Return the learning rate that a schedule or a function computes, after N steps.

    Args:
        schedule: A `LearningRateSchedule`; or a function without arguments.
        steps: The number of steps that were taken before.
    """
    rate = schedule(steps) if isinstance(schedule, LearningRateSchedule) else schedule()
    return ops.cast(ops.convert_to_tensor(rate), ops.floatx())


def check_number(
    name: str,
    value: Any,
    *,
    below: float = math.inf,
    at_most: float = math.inf,
    above_zero: bool = False,
) -> float:
    """Return a hyperparameter as a float.

    Args:
        name: What the error calls it.
        value: A finite number of 0 or more.
        below: What it is less than.
        at_most: What it is not more than.
        above_zero: Whether 0 is refused.

    Raises:
        ValueError: It is no such number.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    inside = 0 <= number < below and number <= at_most and not (above_zero and number == 0)
    if isinstance(value, bool | str) or not inside:
        low = "above 0" if above_zero else "of 0 or more"
        high = "" if below == math.inf else f" and below {below:g}"
        high += "" if at_most == math.inf else f" and at most {at_most:g}"
        raise ValueError(
            f"`{name}` must be a finite number {low}{high}. Received: {name}={value!r}"
        )
    return number


def optional_number(name: str, value: Any, *, above_zero: bool = False) -> float | None:
    """Return a hyperparameter as `check_number` does, or None where it is None."""
    return None if value is None else check_number(name, value, above_zero=above_zero)
