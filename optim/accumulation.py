"""Gradients that are summed over several steps, of which the last one changes the variables.

A batch that has no room in memory is trained so as several small ones.
"""

from collections.abc import Sequence
from typing import Any

from mirrored import devices, ops
from mirrored._numbers import check_count
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copy_of
from mirrored.ops import Tensor
from mirrored.optim.averaging import Averaging
from mirrored.variables import Variable

_NAME = "gradient_accumulator"


class Accumulating(Averaging):
    """Sums gradients where it is asked to; `Optimizer` says what the argument means."""

    gradient_accumulation_steps: int | None = None

    def _accumulate(self, steps: Any) -> None:
        """Take the argument."""
        if steps is not None:
            check_count("gradient_accumulation_steps", steps, least=2)
        self.gradient_accumulation_steps = steps

    @property
    def beside_names(self) -> tuple[str, ...]:
        """The names of what is kept behind the rule's slots, the sum of gradients at the end."""
        names = super().beside_names
        return (*names, _NAME) if self.gradient_accumulation_steps else names

    def _counted(self, taken: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return which change of the variables the `taken`-th step is for, and if it makes it."""
        steps = self.gradient_accumulation_steps
        if steps is None:
            return taken, None
        return (taken - 1) // steps + 1, ops.equal(taken % steps, 0)

    def _totals(
        self, replica: int, variables: Sequence[Variable], gradients: Buckets
    ) -> Buckets | None:
        """Return the sums of the gradients so far; None where they are not summed."""
        if self.gradient_accumulation_steps is None:
            return None
        sums: list[Tensor] = []
        for i, variable in enumerate(variables):
            copy = copy_of(self._slots_of(variable)[-1], replica)
            with devices.device(copy.device):
                sums.append(gradients[i] + copy.read_value())
        return Buckets(sums)

    def _mean_gradients(self, totals: Buckets) -> Buckets:
        """Return what a step that changes the variables is given."""
        return Buckets(totals[i] / float(self.gradient_accumulation_steps or 1) for i in totals)
