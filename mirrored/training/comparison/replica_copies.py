"""Copies of a model whose replicas all run on the host's CPU, for as many of them as are asked for.

They need no devices of their own, so that a model that was made under any strategy can be tried
out on another number of replicas.
"""

import copy
from typing import Any

import numpy as np

from mirrored import devices
from mirrored.distribute import MirroredStrategy, ReductionToOneDevice, Strategy
from mirrored.distribute.cross_device_ops.interface import FirstLines
from mirrored.ops.hooks import only
from mirrored.training.model import Model
from mirrored.variables import Variable, VariableAggregation, VariableSynchronization
from mirrored.variables.device_variable import StandIns, VariableState


class ReplicaCopy:
    """A copy of a model, of its optimizers and metrics, for some number of replicas.

    Args:
        model: The model, made under any strategy or none; it stays as it is.
        replicas: How many there are.

    Attributes:
        model: The copy.
        strategy: The strategy that it belongs to.
        known: Each variable that was copied with its value, by the copy's identity.
        stand_ins: The context in which the copy runs is theirs.

    Raises:
        TypeError: Something in the model's attributes cannot be copied.
        RuntimeError: The model runs just now.
    """

    def __init__(self, model: Model, replicas: int) -> None:
        self.strategy = _ReplicasOfTheHost(replicas)
        self.known: dict[int, tuple[Variable, np.ndarray]] = {}
        self.stand_ins = StandIns(self._variable_of)
        theirs = model.distribute_strategy
        try:
            with self.stand_ins.in_force():
                self.model = copy.deepcopy(model, {id(theirs): self.strategy})
        except TypeError as error:
            raise TypeError(
                "Replicas are compared on copies of the model, with all that its attributes hold. "
                f"Received: the model {model.name!r}, which cannot be copied: {error}. Keep what "
                "is no part of the model elsewhere."
            ) from error

    def _variable_of(self, state: VariableState) -> Variable:
        with self.strategy.scope(), only():
            variable = Variable(
                state.value,
                trainable=state.trainable,
                name=state.name,
                dtype=state.value.dtype,
                synchronization=state.synchronization,
                aggregation=state.aggregation,
            )
            variable._traits = state.traits
            if (state.synchronization, state.aggregation) == (
                VariableSynchronization.ON_READ,
                VariableAggregation.SUM,
            ):
                variable.assign(state.value)  # Which gives each copy its part of the sum.
        self.known[id(variable)] = variable, state.value
        return variable


class _ReplicasOfTheHost(MirroredStrategy):
    """A strategy of which all replicas are on the host's CPU."""

    def __init__(self, replicas: int) -> None:
        self._devices = (devices.get_device("CPU:0"),) * replicas
        Strategy.__init__(self, _Unlogged())

    def arguments(self) -> dict[str, Any]:
        """Return nothing: it is created for one comparison."""
        return {}


class _Unlogged(ReductionToOneDevice):
    """Sums as any other, and writes no line about it."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = FirstLines(0)
