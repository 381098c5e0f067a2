"""What surrounds an update rule: weight decay, clipping, accumulation and moving averages.

As in optax, each is a small object that knows nothing of the others. `Optimizer` has their
settings, and a step makes them of what the settings are at that moment.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from mirrored import devices, ops
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.ops import Tensor
from mirrored.ops.spec import DType
from mirrored.optim.hyperparameters import Tensors, optional_number
from mirrored.variables import DeviceVariable, Variable


def ignores_number(update: Any) -> Any:
    """Return an `update` that does not look at the number of the step, which need not be cast."""
    update.number_is_ignored = True
    return update


@dataclass(slots=True)
class Step:
    """What is the same for all variables of one dtype in a step.

    Attributes:
        rate: The learning rate.
        number: The number of the step, from 1.
        shared: The numbers of `shared_names`.
        count: The number of the step, as an integer.
        due: Whether the variables change in it; None: in every one.
    """

    rate: Tensor
    number: Tensor
    shared: Tensors
    count: Tensor
    due: Tensor | None

    def cast(self, dtype: DType, update: Callable[..., Any]) -> "Step":
        """Return the same for variables of a dtype.

        Args:
            dtype: The dtype.
            update: The rule that is called with it; `ignores_number` says if it needs the number.
        """
        shared = tuple([ops.cast(number, dtype) for number in self.shared])
        ignored = getattr(update, "number_is_ignored", False)
        number = self.number if ignored else ops.cast(self.number, dtype)
        return Step(ops.cast(self.rate, dtype), number, shared, self.count, self.due)

    def if_due(self, new: Tensor, old: Tensor) -> Tensor:
        """Return the new value, or the old one where the variables do not change."""
        return new if self.due is None else ops.where(self.due, new, old)


class WeightDecay(NamedTuple):
    """The part of a variable's value, times the learning rate, that a step takes away.

    Attributes:
        setting: Called with a variable, returns its part; None: none.
        excluded: Variables that lose none.
        pattern: A regular expression of the names of such variables; None: there is none.
    """

    setting: Callable[[Variable], float | None]
    excluded: Collection[Variable]
    pattern: str | None

    def of(self, variable: Variable) -> float:
        """Return the part of a variable; 0 where it loses nothing."""
        part = self.setting(variable)
        if not part or any(variable is other for other in self.excluded):
            return 0.0
        if self.pattern is not None and re.search(self.pattern, variable.name):
            return 0.0
        return part


class Clipping(NamedTuple):
    """Bounds of gradients, of which one may be set.

    Attributes:
        clipnorm: The largest L2 norm of each gradient.
        clipvalue: The largest absolute value in one.
        global_clipnorm: The largest L2 norm of all together.

    Example:
        >>> from mirrored.optim.transforms import Clipping
        >>> Clipping(1, None, None).checked()
        Clipping(clipnorm=1.0, clipvalue=None, global_clipnorm=None)
    """

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None

    def checked(self) -> "Clipping":
        """Return the bounds as floats.

        Raises:
            ValueError: A number is not above 0, or there are several.
        """
        bounds = self._asdict()
        if sum(bound is not None for bound in self) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. "
                f"Received: {', '.join(f'{key}={value!r}' for key, value in bounds.items())}."
            )
        return Clipping(
            *(optional_number(key, bound, above_zero=True) for key, bound in bounds.items())
        )

    def __call__(self, gradients: Buckets) -> Buckets:
        """Return gradients within the bound that is set."""
        tensors = (gradients[i] for i in range(len(gradients)))
        bound = self.clipvalue
        if bound is not None:
            return Buckets(ops.clip_by_value(g, -bound, bound) for g in tensors)
        if self.clipnorm is not None:
            return Buckets(ops.clip_by_norm(g, self.clipnorm) for g in tensors)
        if self.global_clipnorm is not None:
            return Buckets(ops.clip_by_global_norm(list(tensors), self.global_clipnorm)[0])
        return gradients


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Sums gradients over several steps, of which the last one changes the variables.

    A batch that has no room in memory is trained so as several small ones.

    Attributes:
        steps: The number of these steps; None: gradients are not summed.
    """

    steps: int | None
    slot: ClassVar[str] = "gradient_accumulator"

    def counted(self, taken: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return which change of the variables the `taken`-th step is for, and if it makes it."""
        if self.steps is None:
            return taken, None
        return (taken - 1) // self.steps + 1, ops.equal(taken % self.steps, 0)

    def totals(self, gradients: Buckets, sums: Sequence[DeviceVariable]) -> Buckets:
        """Return the sums of gradients, given those before the step."""
        totals: list[Tensor] = []
        for i, before in enumerate(sums):
            with devices.device(before.device):
                totals.append(gradients[i] + before.read_value())
        return Buckets(totals)

    def means(self, totals: Buckets) -> Buckets:
        """Return the gradients that a step which changes the variables has."""
        return Buckets(totals[i] / float(self.steps or 1) for i in totals)

    def finish(self, value: Tensor, kept: Tensor, total: Any, step: Step) -> tuple[Tensor, Tensor]:
        """Return a variable's new value as it is, and the sum, which starts again if it is used."""
        return value, step.if_due(ops.zeros_like(total), total)


@dataclass(frozen=True, slots=True)
class MovingAverage:
    """Keeps the moving average of each weight.

    Averages of the last weights are often better ones than the last (Polyak and Juditsky 1992).

    Attributes:
        momentum: The part of the average that a step leaves in it.
        overwrite_frequency: Steps after which the weights become their averages; None: never.
    """

    momentum: float
    overwrite_frequency: int | None
    slot: ClassVar[str] = "average"

    def finish(self, value: Tensor, kept: Tensor, total: Any, step: Step) -> tuple[Tensor, Tensor]:
        """Return a variable's new value and average."""
        beyond_first = ops.cast(ops.not_equal(step.number, 1), value.dtype)
        momentum: Any = beyond_first * self.momentum
        average = momentum * kept + (1.0 - momentum) * value
        if self.overwrite_frequency:
            due = ops.equal(ops.floormod(step.count, self.overwrite_frequency), 0)
            value = ops.where(due, average, value)
        return value, average


def constrained(variable: Variable, value: Tensor) -> Tensor:
    """Return what a variable's constraint makes of its new value.

    Args:
        variable: The variable.
        value: The value.
    """
    if variable.constraint is None:
        return value
    result = ops.cast(ops.convert_to_tensor(variable.constraint(value)), value.dtype)
    if result.shape != value.shape:
        raise ValueError(
            f"A constraint must return a value of the variable's shape. Received: shape "
            f"{result.shape} for {variable.name}, which has shape {value.shape}."
        )
    return result.copy_to(value._device)
