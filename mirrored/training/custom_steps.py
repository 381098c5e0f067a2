"""Steps that a model defines itself: `train_step` and its like, run on every replica.

A replica with n_r of the batch's n examples counts by n_r / n in all that is put together: the
gradients, the values that the step returns, means of what variables are assigned. So a loss is the
mean over a shard's examples, and N replicas compute what one does.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.autodiff.tape import GradientsMade, telling_of_gradients
from mirrored.distribute import Strategy
from mirrored.distribute.context import replica_number
from mirrored.distribute.global_batch import GlobalBatch
from mirrored.ops import Tensor
from mirrored.ops.hooks import only
from mirrored.ops.spec import FLOATS, INTEGERS, DType
from mirrored.training.files.tensor_tree import slots_undone_on_failure
from mirrored.training.run_plan import RunPlan, optimizers_of
from mirrored.training.running_means import EpochLogs, LatestLogs, RunningMeans
from mirrored.training.step import Shards, Step, Totals, middles_of, undone_on_failure, with_check
from mirrored.training.utilities import pack_x_y_sample_weight
from mirrored.variables import Variable
from mirrored.variables.device_variable import Undone


def means_of(plan: RunPlan, kind: str, *, goes_on: bool = False) -> EpochLogs:
    """Return what makes logs of the steps of one epoch.

    Args:
        plan: The plan of the run.
        kind: "train" or "test".
        goes_on: Whether metrics keep their values, or are reset.
    """
    return (LatestLogs if plan.is_custom(kind) else RunningMeans)(plan.model, goes_on=goes_on)


def step_of(plan: RunPlan, kind: str, *, refuses: bool = True) -> Step:
    """Return what computes a model's steps of a kind.

    Args:
        plan: The plan of the run.
        kind: "train", "test" or "predict".
        refuses: As for `Step`.
    """
    is_custom = kind != "predict" and plan.is_custom(kind)
    return (CustomStep if is_custom else Step)(plan, refuses=refuses)


class CustomStep(Step):
    """Steps of training or evaluation that a model defines itself; see `Step`."""

    def train(
        self, shards: Shards, sizes: Sequence[int], check: Callable[[Totals], None]
    ) -> Totals:
        """Take one step of training; see `Step`. Where it raises, nothing was changed."""
        with self._whole():
            totals = self._run_method("train", shards, sizes)
            check(totals)
        return totals

    def test(self, shards: Shards, sizes: Sequence[int]) -> Totals:
        """Return what the model makes of one global batch, without training."""
        with self._whole():
            return self._run_method("test", shards, sizes)

    # ------------------------------------------------------------------ around the replicas

    def _method(self, kind: str) -> Callable[[Any], Any]:
        return self._model.train_step if kind == "train" else self._model.test_step

    def _run_method(self, kind: str, shards: Shards, sizes: Sequence[int]) -> Totals:
        """Run a step on all replicas, and put together what it returns."""
        method, strategy = self._method(kind), self._strategy
        across = strategy.local_replicas < strategy.num_replicas_in_sync
        batch = GlobalBatch(sizes, of_means=True, scales=self._scales(kind, shards))
        logs: list[_Logs] = []
        spare: list[_Logs] = []  # Of a replica without examples, where no other is here.

        def on_replica(x: Any, y: Any, sample_weight: Any) -> dict[str, Tensor]:
            replica = replica_number()
            row, notes = self._noted(method, batch, (x, y, sample_weight))
            if batch.is_empty(replica):
                spare.append(row)
            else:
                logs.append(row)
                row.check_like(logs[0])
            vectors = row.as_vectors(notes.loss(), batch.share(replica), squares=across)
            if notes.checks:
                vectors["middles"] = middles_of(notes.gradients)
                self._checked_names = tuple(notes.names)
                check = with_check(ops.zeros((), ops.float64), vectors["middles"])
                vectors["values"] = vectors["values"] + check
            return vectors

        with batch.in_force():
            outcome = self._with_zeros(self._run(on_replica, shards))
            values = strategy.reduce("sum", outcome["values"])
            parts = _integers_of(strategy, outcome, batch) if "integers" in outcome else []
        losses = strategy.experimental_local_results(outcome["loss"])
        first, *_ = logs or spare
        if parts:
            with strategy.replica_scope(0):
                values = _with_integers(values, parts)
        return Totals(values, None, losses, *self._checked(outcome), first.names, first.specs)

    def _noted(
        self, method: Callable[[Any], Any], batch: GlobalBatch, data: Sequence[Any]
    ) -> "tuple[_Logs, _Notes]":
        """Run a step on a replica's shard; return what it returned and what it differentiated."""
        replica = replica_number()
        skips = any(optimizer.skips_non_finite for optimizer in optimizers_of(self._model))
        notes = _Notes(batch, replica, skips, self._model.required_compilation().check_gradients)
        with telling_of_gradients(notes.note):
            returned = method(pack_x_y_sample_weight(*data))
        return _Logs(returned, batch, replica), notes

    def _analysed(self, kind: str, batch: GlobalBatch) -> Callable[..., Any]:
        """Return what a replica computes in a step of a kind, to be analysed."""
        method = self._method(kind)

        def step(*data: Any) -> None:
            row, notes = self._noted(method, batch, data)
            row.as_vectors(notes.loss(), 1.0, squares=False)

        return step

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Take back what a step wrote before it failed, where Python runs it op by op."""
        optimizers = optimizers_of(self._model)
        owners: tuple[Any, ...] = (*optimizers, *self._model.metrics)
        variables = [*self._model.weights, *(v for owner in owners for v in owner.variables)]
        with (
            slots_undone_on_failure(optimizers),
            undone_on_failure(variables),
            Undone().after_failure(),  # What is kept of replicas too, where workers die.
        ):
            yield


def row_of(totals: Totals, statistics: list[float]) -> Any:
    """Return a step's statistics as loops take them: of a model's own step, by their names.

    Args:
        totals: What the step left, or left when it was recorded.
        statistics: Its statistics.
    """
    if totals.names is None:
        return statistics
    row: dict[str, Any] = {}
    start = 1
    for name, (shape, dtype) in zip(totals.names, totals.specs, strict=True):
        stop = start + math.prod(shape)
        numbers = statistics[start:stop]
        row[name] = np.array(numbers, dtype).reshape(shape) if shape else numbers[0]
        start = stop
    return row


class _Notes:
    """What a replica's step differentiates: the losses, which are to be finite, and gradients.

    Args:
        batch: How many examples there are.
        replica: The replica's number.
        skips: Whether the optimizer itself leaves out what is not finite, so that losses may be it.
        checks: Whether gradients are to be finite too.

    Attributes:
        checks: Whether they are checked.
        gradients: The gradients, where they are checked.
        names: The names of their variables.
    """

    def __init__(self, batch: GlobalBatch, replica: int, skips: bool, checks: bool) -> None:
        self._batch, self._replica, self._skips = batch, replica, skips
        self._losses: list[Tensor] = []
        self.checks = checks and not skips
        self.gradients: list[Tensor] = []
        self.names: list[str] = []

    def note(self, targets: list[Any], sources: list[Any]) -> GradientsMade:
        """Take what a tape is asked for."""
        trained = [isinstance(source, Variable) and source.trainable for source in sources]
        if not any(trained):
            return lambda gradients: None
        rows = [target.shape for target in targets if target.shape != ()]
        if rows and len(self._batch.sizes) > 1 and not self._batch.is_analysed:
            raise ValueError(
                "The gradient of a loss with several values is the gradient of their sum. How "
                "the sums of shards add up is not known, because the step could not be recorded "
                f"for shards of other sizes. Received: a loss of shape {rows[0]}. Differentiate "
                "`mr.reduce_mean` of it, the mean over a shard's examples."
            )
        with only():  # No tape that is open has anything to learn from it.
            targets = [ops.reduce_sum(target) if target.shape else target for target in targets]
        self._batch.note_losses(targets, self._replica)
        if not (self._skips or self._batch.is_empty(self._replica)):
            with only():  # No tape that is open has anything to learn from it.
                self._losses += [ops.cast(target, ops.float64) for target in targets]
        if not self.checks:
            return self._batch.note_gradients

        def note_gradients(gradients: list[Tensor | None]) -> None:
            self._batch.note_gradients(gradients)
            for source, gradient in zip(sources, gradients, strict=True):
                if gradient is not None and isinstance(source, Variable) and source.trainable:
                    self.gradients.append(gradient)
                    self.names.append(source.name)

        return note_gradients

    def loss(self) -> Tensor:
        """Return the sum of the losses: finite where all of them are."""
        return ops.add_n(self._losses) if self._losses else ops.zeros((), ops.float64)


class _Logs:
    """What a replica's step returned: numbers by name, or arrays of them.

    Args:
        returned: A dict of numbers, in which dicts are taken apart; or None.
        batch: How many examples there are.
        replica: The replica's number.

    Attributes:
        names: The names, those of integers at the end.
        specs: The shapes and dtypes of what has these names.
    """

    def __init__(self, returned: Any, batch: GlobalBatch, replica: int) -> None:
        self._batch, self._replica = batch, replica
        self._floats: dict[str, Tensor] = {}
        self._integers: dict[str, Tensor] = {}
        with only():
            self._take({} if returned is None else returned)
        self.names = (*self._floats, *self._integers)
        numbers = (*self._floats.values(), *self._integers.values())
        self.specs = tuple([number.spec for number in numbers])

    def _take(self, returned: Any) -> None:
        if not isinstance(returned, Mapping):
            raise TypeError(
                'A step of a model must return a dict from names to numbers, such as {"loss": '
                f"loss}}. Received: {returned!r:.200} (of type {type(returned).__name__})."
            )
        for name in sorted(returned, key=str):  # As Keras' logs are, in dicts within too.
            value = returned[name]
            if isinstance(value, Mapping):
                self._take(value)
                continue
            number = _number(str(name), value)
            if self._batch.is_an_example_each(number, self._replica):
                raise TypeError(_not_numbers(str(name), value))
            kind = self._integers if number.dtype in INTEGERS else self._floats
            kind[str(name)] = number

    def check_like(self, first: "_Logs") -> None:
        """Raise unless the first replica's step returned the same names, and shapes."""
        if self.names == first.names and self.specs != first.specs:
            raise ValueError(
                "A step must return numbers of the same shapes on all replicas. Received: "
                f"{[spec.shape for spec in first.specs]} on the first, and "
                f"{[spec.shape for spec in self.specs]}, for {list(self.names)}."
            )
        if self.names != first.names:
            raise ValueError(
                "A step must return the same names on all replicas. Received: "
                f"{list(first.names)} on the first replica, and {list(self.names)}."
            )

    def as_vectors(self, loss: Tensor, share: float, *, squares: bool) -> dict[str, Tensor]:
        """Return the loss; this and the numbers, as they count in the sums; and the integers.

        With `squares`, those of the integers too.
        """
        with only():
            floats = self._weighted(share) if share else self._floats.values()
            numbers = _joined([loss, *floats], ops.float64)
            vectors = {"loss": loss, "values": numbers if share == 1.0 else numbers * share}
            if self._integers:
                vectors["integers"] = _joined(self._integers.values(), ops.int64)
                if squares:
                    vectors["squares"] = ops.square(vectors["integers"])
        return vectors

    def _weighted(self, share: float) -> list[Tensor]:
        """Return the floats so that each counts by the shard's part of the examples."""
        values, names = list(self._floats.values()), list(self._floats)
        weights = self._batch.weights("logs", self._replica, values, names) if names else []
        pairs = zip(values, weights, strict=True)
        return [value if weight == share else value * (weight / share) for value, weight in pairs]


def _joined(numbers: Iterable[Tensor], dtype: DType) -> Tensor:
    """Return numbers, and arrays of them, as one vector."""
    parts = [ops.cast(number, dtype) for number in numbers]
    if all(part.shape == () for part in parts):
        return ops.stack(parts)
    return ops.concat([ops.reshape(part, (-1,)) for part in parts], axis=0)


def _number(name: str, value: Any) -> Tensor:
    """Return a number that a step returned, or an array of numbers."""
    try:
        number = ops.convert_to_tensor(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number.dtype not in (*FLOATS, *INTEGERS):
        raise TypeError(_not_numbers(name, value))
    return number


def _not_numbers(name: str, value: Any) -> str:
    return (
        "A step of a model must return named numbers or arrays. Floats are averaged over "
        "replicas, weighted by shard size. Integers must be the same on all replicas. With "
        f"several replicas, values per example cannot be returned. Received: {name!r}: "
        f"{value!r:.200}. Return its mean over the shard's examples."
    )


def _integers_of(
    strategy: Strategy, outcome: dict[str, Any], batch: GlobalBatch
) -> Sequence[Tensor]:
    """Return the integers of all replicas that have examples, which differ if those do."""
    if "squares" not in outcome:
        whole = strategy.experimental_local_results(outcome["integers"])
        return [part for part, size in zip(whole, batch.sizes, strict=True) if size]
    # A worker does not see the others' numbers. These are all alike where as many of their squares
    # as there are numbers is the square of their sum, and where that is not so they differ.
    count = sum(map(bool, batch.sizes))
    total, squares = (strategy.reduce("sum", outcome[name]) for name in ("integers", "squares"))
    with strategy.replica_scope(0):
        value = total // count
        alike = ops.equal(squares * count, ops.square(total))
        return [value, ops.where(alike, value, value + 1)]


def _with_integers(values: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """Return the values with the integers behind them; the loss is NaN where these differ."""
    first, *others = [part.copy_to(values._device) for part in parts]
    loss = values[:1]
    for other in others:
        differ = ops.reduce_any(ops.not_equal(other, first))
        loss = ops.where(differ, ops.constant(float("nan"), ops.float64), loss)
    return ops.concat([loss, values[1:], ops.cast(first, ops.float64)], axis=0)
