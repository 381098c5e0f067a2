"""TensorFlow 1's `tf.train.ExponentialMovingAverage`: means of variables over the steps so far."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.compat.v1.graph import get_default_graph
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.compat.v1.groups import (
    global_variables,
    group,
    moving_average_variables,
    trainable_variables,
)
from mirrored.compat.v1.sources import constant, converted
from mirrored.compat.v1.variables import GraphKeys, Variable, update
from mirrored.ops.spec import FLOATS


class ExponentialMovingAverage:
    """Maintains exponential moving averages of variables or tensors.

    Args:
        decay: How much of a mean stays in each step.
        num_updates: The number of the step, by which means of few steps change more.
        zero_debias: Not provided.
        name: What the means' names end with.

    Raises:
        ValueError: `zero_debias` is True.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     v = tf.Variable(4.0, name="v")
        ...     averages = tf.train.ExponentialMovingAverage(0.75)
        ...     maintain = averages.apply([v])
        ...     session.run(tf.global_variables_initializer())
        ...     session.run(v.assign(8.0).op)
        ...     session.run(maintain)
        ...     averages.average_name(v), float(session.run(averages.average(v)))
        ('v/ExponentialMovingAverage', 5.0)
    """

    def __init__(
        self,
        decay: TensorLike,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        if zero_debias:
            raise ValueError("`zero_debias` is not provided. Leave it out.")
        self._decay = decay
        self._num_updates = num_updates
        self._name = name
        self._averages: dict[Tensor, Variable] = {}

    @property
    def name(self) -> str:
        """The suffix of the names of the averages."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """Return an operation that updates the averages.

        Args:
            var_list: The variables, and tensors; None: all variables that are trainable.

        Raises:
            TypeError: One of them is none of floats.
            ValueError: The shape of a tensor is not known.
        """
        tracked = list(trainable_variables() if var_list is None else var_list)
        for item in tracked:
            if not isinstance(item, Tensor) or item._dtype not in FLOATS:
                raise TypeError(f"The variables must be half, float, or double: {item!r}")
        graph = tracked[0].graph if tracked else get_default_graph()
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
            for item in tracked:
                if item not in self._averages:
                    self._averages[item] = self._begun(item)
        with graph.as_default(), graph.name_scope(self._name) as scope:
            rate = self._rate()
            updates = [
                update([self._averages[of]], _closer, [of, rate], "AssignSub", "AssignMovingAvg")
                for of in tracked
            ]
            key = GraphKeys.MOVING_AVERAGE_VARIABLES
            for item in tracked:
                if item not in graph.get_collection(key):
                    graph.add_to_collection(key, item)
            return group(*updates, name=scope)

    def _begun(self, of: Tensor) -> Variable:
        """Return the mean of a variable, which begins with its value; that of a tensor with 0."""
        start = of.initial_value if isinstance(of, Variable) else None
        if start is None:
            if not of.shape.is_fully_defined():
                raise ValueError(f"A mean needs a shape that is known. Received: {of}")
            start = constant(np.zeros(of._shape, of._dtype), name="zeros")
        with of.graph.device(of.op.node.device):
            return Variable(start, trainable=False, name=self.average_name(of))

    def _rate(self) -> Any:
        decay = converted(self._decay, "float32", "decay")
        if self._num_updates is None:
            return decay
        count = self._num_updates
        steps = count.read_value() if isinstance(count, Variable) else converted(count)
        return steps.graph.draw(_bounded, (decay, steps), kind="Minimum", name="decay").outputs[0]

    def average(self, var: Tensor) -> Variable | None:
        """Return the average of a variable; None if there is none."""
        return self._averages.get(var)

    def average_name(self, var: Tensor) -> str:
        """Return the name of the average of a variable."""
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(
        self, moving_avg_variables: Sequence[Any] | None = None
    ) -> dict[str, Variable]:
        """Return variables by name, so that a `Saver` restores their averages into them.

        Args:
            moving_avg_variables: Those that get means; None: all that are trainable, or have one.
        """
        to_restore = moving_avg_variables
        if to_restore is None:
            to_restore = trainable_variables() + moving_average_variables()
        averaged = set(to_restore)
        by_name = {self.average_name(item): item for item in averaged}
        others = (variable for variable in global_variables() if variable not in averaged)
        return {**by_name, **{e.op.name: e for e in others if e.op.name not in by_name}}


def _closer(mean: Any, value: Any, decay: Any) -> list[Any]:
    """Return a mean that is closer to the value that a variable or a tensor has by then."""
    return [mean - (mean - value) * (1.0 - ops.cast(decay, mean.dtype))]


def _bounded(decay: Any, steps: Any) -> Any:
    steps = ops.cast(steps, decay.dtype)
    return ops.minimum(decay, (1.0 + steps) / (10.0 + steps))
