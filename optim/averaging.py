"""Moving averages of the weights, which an optimizer keeps beside them where it is asked to.

Averages of the last weights are often better ones than the last (Polyak and Juditsky 1992).
"""

from collections.abc import Iterable
from typing import Any

from mirrored import ops
from mirrored._numbers import check_count
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import check_number
from mirrored.optim.slots import SlotOwner
from mirrored.variables import Variable

_NAME = "average"


class Averaging(SlotOwner):
    """Keeps averages; `Optimizer` says what the arguments mean."""

    def __init__(
        self,
        name: str | None,
        use_ema: bool,
        ema_momentum: float,
        ema_overwrite_frequency: int | None,
    ) -> None:
        super().__init__(name)
        self.use_ema = bool(use_ema)
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        if self.use_ema:
            self.ema_momentum = check_number("ema_momentum", ema_momentum, at_most=1.0)
            if ema_overwrite_frequency:
                check_count("ema_overwrite_frequency", ema_overwrite_frequency, least=1)

    @property
    def beside_names(self) -> tuple[str, ...]:
        """The names of what is kept for each variable behind the rule's slots: the average."""
        return (_NAME,) if self.use_ema else ()

    def _start_of(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        # That of a variable that no step changes is its value.
        is_average = self.use_ema and name == _NAME
        return (shape, None) if is_average else super()._start_of(name, shape)

    @property
    def keeps_averages(self) -> bool:
        """Whether `averages` has some, once there was a step."""
        return self.use_ema

    def averages(self) -> list[tuple[Variable, Variable]]:
        """Return each variable that was updated, with its average; none without `use_ema`.

        Example:
            >>> import mirrored as mr
            >>> v = mr.Variable(1.0)
            >>> optimizer = mr.optim.SGD(1.0, use_ema=True, ema_momentum=0.5)
            >>> for _ in range(2):
            ...     _ = optimizer.apply_gradients([(mr.constant(1.0), v)])
            >>> [(float(each), float(average)) for each, average in optimizer.averages()]
            [(-1.0, -0.5)]
        """
        if not self.use_ema:
            return []
        place = self.beside_names.index(_NAME) - len(self.beside_names)
        return [(each, slots[place]) for each, slots in self._slots.values()]

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Set variables to their averages, where there are some: `fit` does so at its end.

        Args:
            var_list: The variables; those that were never updated stay as they are.
        """
        averages = {id(each): average for each, average in self.averages()}
        for variable in var_list:
            if id(variable) in averages:
                variable.assign(averages[id(variable)])

    def _averaged(
        self, value: Tensor, average: Tensor, steps: Tensor, local_step: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return a variable's new value and average, given the number of this step, from 1."""
        beyond_first = ops.cast(ops.not_equal(local_step, 1), value.dtype)
        momentum: Any = beyond_first * self.ema_momentum
        average = momentum * average + (1.0 - momentum) * value
        if self.ema_overwrite_frequency:
            due = ops.equal(ops.floormod(steps, self.ema_overwrite_frequency), 0)
            value = ops.where(due, average, value)
        return value, average
