"""TensorFlow 1's `tf.train.ExponentialMovingAverage`: means of variables over the steps so far."""

from collections.abc import Sequence
from typing import Any

from mirrored import ops
from mirrored.compat.v1.elements import Operation
from mirrored.compat.v1.graph import get_default_graph
from mirrored.compat.v1.groups import (
    global_variables,
    group,
    moving_average_variables,
    trainable_variables,
)
from mirrored.compat.v1.running import storage_of
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.variables import GraphKeys, Variable, update


class ExponentialMovingAverage:
    """Keeps a mean beside each of some variables, of which the past counts less and less.

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
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        if zero_debias:
            raise ValueError("`zero_debias` is not provided. Leave it out.")
        self._decay = decay
        self._num_updates = num_updates
        self._name = name
        self._averages: dict[Variable, Variable] = {}

    @property
    def name(self) -> str:
        """What the means' names end with."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """Return what brings the means up to date.

        Args:
            var_list: The variables; None: all that are trainable.

        Raises:
            TypeError: One of them is no variable.
        """
        variables = list(trainable_variables() if var_list is None else var_list)
        for each in variables:
            if not isinstance(each, Variable):
                raise TypeError(f"Means are kept of variables here. Received: {each!r}")
        graph = variables[0].graph if variables else get_default_graph()
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
            for each in variables:
                if each not in self._averages:
                    with graph.device(each.op.node.device):
                        start = each.initial_value
                        name = self.average_name(each)
                        self._averages[each] = Variable(start, trainable=False, name=name)
        with graph.as_default(), graph.name_scope(self._name) as scope:
            rate = self._rate()
            updates = [_maintained(self._averages[each], each, rate) for each in variables]
            key = GraphKeys.MOVING_AVERAGE_VARIABLES
            for each in variables:
                if each not in graph.get_collection(key):
                    graph.add_to_collection(key, each)
            return group(*updates, name=scope)

    def _rate(self) -> Any:
        decay = converted(self._decay, "float32", "decay")
        if self._num_updates is None:
            return decay
        given = self._num_updates
        steps = given.read_value() if isinstance(given, Variable) else converted(given)
        return steps.graph.draw(_bounded, (decay, steps), kind="Minimum", name="decay").outputs[0]

    def average(self, var: Variable) -> Variable | None:
        """Return the variable that is the mean of another; None: there is none."""
        return self._averages.get(var)

    def average_name(self, var: Variable) -> str:
        """Return what the mean of a variable is called."""
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Variable]:
        """Return variables by names with which a `Saver` gives them the means of a file.

        Args:
            moving_avg_variables: Those that get means; None: all that are trainable, or have one.
        """
        given = moving_avg_variables
        if given is None:
            given = trainable_variables() + moving_average_variables()
        averaged = set(given)
        found = {self.average_name(each): each for each in averaged}
        names = set(found)
        others = (each for each in global_variables() if each not in averaged)
        return {**found, **{e.op.name: e for e in others if e.op.name not in names}}


def _maintained(average: Variable, variable: Variable, decay: Any) -> Operation:
    """Return what brings a mean closer to the value that its variable has by then."""

    def closer(mean: Any, decay: Any) -> list[Any]:
        value = storage_of(variable).read_value()
        return [mean - (mean - value) * (1.0 - ops.cast(decay, mean.dtype))]

    operation = update([average], closer, [decay], "AssignSub", "AssignMovingAvg")
    operation.reads = (*operation.reads, variable)
    return operation


def _bounded(decay: Any, steps: Any) -> Any:
    steps = ops.cast(steps, decay.dtype)
    return ops.minimum(decay, (1.0 + steps) / (10.0 + steps))
