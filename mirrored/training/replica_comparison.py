"""One step of training on one device, and the same on several replicas: the first difference.

A step of a model's own runs on each replica's shard, and not all that it may do there makes what
it would make of the whole batch.
"""

import contextvars
import copy
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored._numbers import check_count, counted
from mirrored.data.arguments import DataArguments
from mirrored.data.arrays import is_stream
from mirrored.data.columns import described
from mirrored.data.stored import Given
from mirrored.distribute import (
    DistributedVariable,
    MirroredStrategy,
    split_sizes,
)
from mirrored.distribute.cross_device_ops.collectives import FirstLines
from mirrored.ops.hooks import only
from mirrored.ops.rng_state import RngState, current_rng_state, drawing_from
from mirrored.training import loop
from mirrored.training.compilation import begin_running
from mirrored.training.custom_steps import means_of
from mirrored.training.eager_steps import EagerSteps
from mirrored.training.inputs import prepare
from mirrored.training.model import Model
from mirrored.training.run_plan import RunPlan, optimizers_of
from mirrored.training.runs import planned
from mirrored.training.step_values import Event, StepNotes, Tolerances, Value, plain_name
from mirrored.variables import Variable, VariableAggregation, VariableSynchronization
from mirrored.variables.device_variable import StandIns, VariableState

# What makes each kind of thing differ where nothing before it does.
_CAUSES = {
    "output": (
        "A layer that combines examples, for example by a mean over the batch, sees only the "
        "examples of its shard. Reduce over all replicas with "
        "`get_replica_context().all_reduce`, or leave `synchronized=False` of "
        "`BatchNormalization` out. Random numbers agree only if mirrored draws them with a shape "
        "that begins with the batch."
    ),
    "loss": (
        "A loss must be the mean over the shard's examples. Usual causes are `reduce_sum` "
        "instead of `reduce_mean`, a mean over only the elements that a mask keeps, and pairs of "
        "examples within the batch."
    ),
    "gradient": (
        "The losses agree, so look at what the step does to its shard's gradients before the "
        "optimizer adds them up. Clip with the optimizer's `clipnorm`, `clipvalue` or "
        "`global_clipnorm`, which act after the sum, and do not scale by the batch size."
    ),
    "log": (
        "A float that a step returns is weighted by shard size. Return the mean over the shard's "
        "examples, or the result of a metric, instead of a sum or a count."
    ),
    "weight": (
        "The gradients agree, so look for code other than the optimizer that assigns it. A "
        "variable takes the mean or the sum of the replicas' values, as its `aggregation` says."
    ),
    "state": (
        "The variable's `aggregation` combines the values that replicas assign; a mean is "
        "weighted by shard size. That is exact for means. For a variance, a maximum or a count "
        "of steps, call `get_replica_context().all_reduce` before the assignment."
    ),
    "slot": "The gradients agree, so look for code other than the optimizer that writes it.",
    "metric": (
        "`update_state` must add sums over the shard's examples to variables of `add_weight`. A "
        "constant that it adds per step, or a value that it assigns, counts once per replica."
    ),
}


@dataclass(frozen=True)
class ReplicaComparison:
    """What was compared, and found to agree.

    Attributes:
        shards: How many examples each replica had.
        compared: What was compared, in the order of the step.
        largest: That of it which differed most.
        difference: By what part of its size that differed.
    """

    shards: tuple[int, ...]
    compared: tuple[str, ...]
    largest: str
    difference: float

    def __str__(self) -> str:
        return (
            f"{_both(self.shards)} take the same step: {len(self.compared)} values agree. The "
            f"largest difference is {self.difference:.1e} of the size of {self.largest}."
        )


@explained
def compare_replicas(
    model: Model,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    replicas: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
) -> ReplicaComparison:
    """Take one step of training on one device and on several replicas, and compare the two.

    It shows whether a step computes the same on several replicas. Whether replicas that train have
    the same weights is another question, which `strategy.check_replicas` and
    `mr.callbacks.CheckReplicas` answer.

    Both steps run op by op on copies of the model, whose replicas are all on the host's CPU, so it
    does not matter which devices there are and under which strategy the model was made. The model,
    its optimizers, its metrics and the random streams stay as they are. Compared are, in the order
    of the step, what layers return for each example, the losses, the gradients that optimizers
    get, what the step returns, and then all variables: weights, states of layers, optimizers'
    slots, and metrics'. Outputs tell where a difference begins, and are none by themselves.

    A step that `fit` runs on shards is to make what it makes of the whole batch; see
    `Model.train_step`. Here it shows where it does not: where a loss is a sum over examples, or is
    made of pairs of them, where a step clips its shard's gradients, or a layer looks at its batch.

    Args:
        model: A model that is compiled, whether it has a `train_step` of its own or not.
        x: The inputs of one batch, arrays of shape (examples, ...). Where all replicas would have
            equally many examples the last one is left out, since some mistakes show in uneven
            shards alone.
        y: The targets.
        sample_weight: A weight for each example.
        replicas: On how many replicas the second step runs.
        rtol: By what part of its size a value may differ, and by ten times that the change of a
            variable, since optimizers divide by small numbers. None: 7e-5 where layers compute in
            float32, 4e-10 in float64, 0.05 in bfloat16, by the coarsest of them.
        atol: How far it may differ besides, an element. None: ten times what that dtype can tell
            from 1, as 1.2e-6 for float32.

    Returns:
        What was compared, and the largest difference.

    Raises:
        AssertionError: Something differs. The text names the first thing that does, with both
            values and the usual causes.
        InvalidArgumentError: The model is not compiled.
        ValueError: There are fewer than two examples, or an argument is out of range.
        TypeError: The model is none, something that it holds cannot be copied, or `x` is no batch.
        RuntimeError: The step writes a variable that is not reached through the model.

    Example:
        >>> import mirrored as mr
        >>> class Root(mr.Model):
        ...     def compute_loss(self, x, y, y_pred, sample_weight, training=True):
        ...         return mr.sqrt(mr.reduce_mean((y_pred - y) ** 2))
        >>> inputs = mr.layers.Input((1,))
        >>> model = Root(inputs, mr.layers.Dense(1, kernel_initializer="zeros")(inputs))
        >>> model.compile("sgd")
        >>> mr.debugging.compare_replicas(model, [[1.0], [2.0], [3.0]], [[0.0], [0.0], [3.0]])
        Traceback (most recent call last):
        ...
        AssertionError: One device and 2 replicas, with shards of 2 and 1 examples, take different
        steps. The first difference is the loss that is differentiated: 1.73205 on one device,
        1 on 2 replicas. ...
    """
    if not isinstance(model, Model):
        raise TypeError(f"`compare_replicas` takes a model. Received: {model!r:.200}")
    loop.check_context("compare_replicas")
    planned(model, "train_on_batch")
    check_count("replicas", replicas, least=2)
    if is_stream(x):
        raise TypeError(
            f"`compare_replicas` takes one batch. Received: {described(x)}. Take one batch, as in "
            "`x, y = next(iter(dataset))`."
        )
    arrays = DataArguments(use="fit", x=x, y=y, sample_weight=sample_weight).arrays()
    if arrays.size < 2:
        raise ValueError(
            "`compare_replicas` needs two examples or more, because one example runs on one "
            f"replica. Received: {counted(arrays.size, 'example')}."
        )
    uneven = arrays.size > 2 and arrays.size % replicas == 0
    examples = arrays.size - 1 if uneven else arrays.size
    draws = current_rng_state()
    # Whatever is in force here, such as a strategy's scope or a tape, is nothing to the copies.
    base, many = (
        contextvars.Context().run(_values, model, arrays, examples, count, draws)
        for count in (1, replicas)
    )
    shards = tuple(split_sizes(examples, replicas))
    return _compared(base, many, shards, Tolerances(model, rtol, atol))


def _both(shards: tuple[int, ...]) -> str:
    """Return between what a step was compared, as the subject of a sentence."""
    sizes = f"{', '.join(map(str, shards[:-1]))} and {shards[-1]}"
    return f"One device and {len(shards)} replicas, with shards of {sizes} examples,"


def _compared(
    base: dict[Event, Value], many: dict[Event, Value], shards: tuple[int, ...], within: Tolerances
) -> ReplicaComparison:
    """Return the values that agree, or raise AssertionError about the first that does not."""
    gaps = within.differences(base, many)
    differing = [gap for gap in gaps if not gap.agrees]
    # What layers return tells where a difference begins. By itself it is none: a step may take its
    # examples in another order.
    if all(gap.event.kind == "output" for gap in differing):
        gaps = [gap for gap in gaps if gap.agrees]
        largest = max(gaps, key=lambda gap: gap.difference)
        return ReplicaComparison(
            shards, tuple(str(gap.event) for gap in gaps), str(largest.event), largest.difference
        )
    first, *others = differing
    text = (
        f"{_both(shards)} take different steps. The first difference is {first.event}: "
        f"{first.values(len(shards))}. {_CAUSES[first.event.kind]}"
    )
    if others:
        shown = "; ".join(str(gap.event) for gap in others[:3])
        text += (
            f" Later differences: {len(others)}. They are {shown}{'; ...' if others[3:] else '.'}"
        )
    raise AssertionError(text)


def _values(
    model: Model, arrays: Given, examples: int, replicas: int, draws: RngState
) -> dict[Event, Value]:
    """Return the values of one step on a copy of the model, in the step's order."""
    with ExitStack() as stack:
        # Both steps draw the same numbers, and nobody else misses them.
        own = RngState(draws.seed, draws.draws, dict(draws.draws_by_seed))
        stack.enter_context(drawing_from(own))
        try:
            copy = ReplicaCopy(model, replicas)
            stack.enter_context(copy.stand_ins.in_force())
            return _step(copy, arrays, examples)
        except Exception as error:
            where = f"{replicas} replicas" if replicas > 1 else "one device"
            error.add_note(
                f"Raised while `compare_replicas` took a step on {where}, with a copy of the "
                "model. A step must reach the model through `self`: only that is the copy."
            )
            raise


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
                "`compare_replicas` copies the model, with all its attributes. Received: the "
                f"model {model.name!r}, which cannot be copied: {error}. Keep objects that are "
                "not parts of the model out of its attributes."
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
            is_sum = state.aggregation is VariableAggregation.SUM
            if is_sum and state.synchronization is VariableSynchronization.ON_READ:
                variable.assign(state.value)  # Which gives each copy its part of the sum.
        self.known[id(variable)] = variable, state.value
        return variable


class _ReplicasOfTheHost(MirroredStrategy):
    """A strategy of which all replicas are on the host's CPU."""

    def __init__(self, replicas: int) -> None:
        super().__init__(["CPU:0"], replicas=replicas)
        self._cross_device_ops._lines = FirstLines(0)

    def _log_devices(self, workers: str = "") -> None:
        """Log nothing, as collectives here: it is created for one comparison."""

    def _warn_of_other_processes(self) -> None:
        """Do nothing, since each process compares for itself."""


def _step(copy: ReplicaCopy, arrays: Given, examples: int) -> dict[Event, Value]:
    plan = RunPlan(copy.model)
    data = DataArguments(use="fit", x=None, batch_size=examples, steps=1)
    with ExitStack() as stack:
        epochs = stack.enter_context(closing(data.of_arrays(arrays)))
        prepare(plan, epochs, use="fit")
        begin_running(copy.model, "compare_replicas", stack)
        stack.enter_context(copy.strategy.scope())
        epochs.begin()
        means = means_of(plan, "train")
        notes = StepNotes(plan, tuple(split_sizes(examples, copy.strategy.num_replicas_in_sync)))
        stack.enter_context(notes.taken())
        steps = EagerSteps(plan, refuses=False)
        for span in epochs.spans(1):
            steps.train(span, lambda _: "the step that is compared", means.add, lambda: True)
        values = {event: Value(value) for event, value in notes.values().items()}
        for name, number in means.logs().items():
            values[Event("log", name)] = Value(np.asarray(number))
        return values | _variables(copy)


def _variables(copy: ReplicaCopy) -> dict[Event, Value]:
    """Return the values of all variables after the step, with those before."""
    counts: Counter[tuple[str, str]] = Counter()
    values: dict[Event, Value] = {}
    seen: set[int] = set()
    for kind, variable, trained in _kinds(copy):
        if id(variable) in seen:
            continue
        seen.add(id(variable))
        name = plain_name(variable)
        before = copy.known.get(id(variable))
        # A step starts with metrics in their initial state.
        known = None if before is None or kind == "metric" else before[1]
        by = None if trained is None else plain_name(trained)
        event = Event(kind, name, counts[kind, name])
        counts[kind, name] += 1
        values[event] = Value(_read(variable), known, by)
    return values


def _kinds(copy: ReplicaCopy) -> Iterator[tuple[str, Variable, Variable | None]]:
    """Yield the variables, each with its kind, and the weight that it belongs to."""
    model = copy.model
    trained = {id(weight) for weight in model.trainable_variables}
    for variable in model.weights:
        is_weight = id(variable) in trained
        yield "weight" if is_weight else "state", variable, variable if is_weight else None
    for optimizer in optimizers_of(model):
        for variable, slots in optimizer.slots.snapshot().values():
            yield "weight", variable, variable
            for slot in slots:
                yield "slot", slot, variable
    for metric in model.metrics:
        for variable in metric.variables:
            yield "metric", variable, None
    for variable, _ in copy.known.values():
        yield "state", variable, None


def _read(variable: Any) -> np.ndarray[Any, Any]:
    if isinstance(variable, DistributedVariable):
        return variable.whole().value
    return np.asarray(variable.numpy())
