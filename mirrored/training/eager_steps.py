"""Runs steps on batches of the host: what is fed to a step, and what comes back of it.

Here Python calls every op of every step; `recorded_steps` replays programs instead.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from mirrored import _nest, ops
from mirrored.data.arrays import Arrays
from mirrored.data.batches import Span
from mirrored.data.columns import Columns, Layout
from mirrored.distribute import PerReplica
from mirrored.distribute.sharding import Sharding, sharding_of_span
from mirrored.errors import CollectiveError
from mirrored.layers.weights import find
from mirrored.ops import SeedGenerator, TensorSpec
from mirrored.ops.rng_state import current_rng_state
from mirrored.training.losses.values import loss_dtype
from mirrored.training.model_steps import SteppedNetwork
from mirrored.training.own_steps import OwnStep, row_of
from mirrored.training.run_plan import RunPlan
from mirrored.training.step import Shards, Totals, joined, of_all_workers

# Given a row for each step - its losses, then each metric's total and count; or what a step of the
# model's own returned, by name - and their number of examples. A step of training whose loss is
# not finite is among them, before it raises.
Take = Callable[[list[Any], int], None]


class EagerSteps:
    """Runs Python for every op of every step.

    Args:
        plan: The plan of the run.
        refuses: As for `Step`.
    """

    def __init__(self, plan: RunPlan, *, refuses: bool = True) -> None:
        self._plan, self._model, self._strategy = plan, plan.model, plan.strategy
        self._step = OwnStep(plan, refuses=refuses)
        self._generators = find(
            (value for layer, _ in plan.layers for value in vars(layer).values()), SeedGenerator
        )
        self._compared: set[str] = set()

    def train(
        self, span: Span, where: Callable[[int], str], take: Take, going_on: Callable[[], bool]
    ) -> None:
        """Take a step of training for each batch.

        Raises:
            NonFiniteLossError: The loss is NaN or infinite; that step changed nothing.
            ResourceExhaustedError: A device has not enough memory; that step changed nothing.
        """
        for i, (batch, sharding) in enumerate(self._batches(span)):
            examples = sharding.examples
            check = partial(self._check_finite, where=where(i), take=take, examples=examples)
            with self._drawn_again():
                shards = self._distribute(batch, sharding, "train")
                totals = self._step.train(shards, sharding.of_all, check)
            take([row_of(totals, _row(totals))], examples)
            if not going_on():
                return

    @contextmanager
    def _drawn_again(self) -> Iterator[None]:
        """Take back a step's draws where its sums failed: it wrote nothing, and can be repeated."""
        marks = [current_rng_state().mark(), *(each.mark() for each in self._generators)]
        try:
            yield
        except (CollectiveError, KeyboardInterrupt):
            for back in marks:
                back()
            raise

    def test(self, span: Span, take: Take) -> None:
        """Evaluate each batch."""
        for batch, sharding in self._batches(span):
            shards = self._distribute(batch, sharding, "test")
            totals = self._step.test(shards, sharding.of_all)
            take([row_of(totals, _row(totals))], sharding.examples)

    def predict(self, span: Span, take: Callable[[Any], None]) -> None:
        """Compute the outputs for each batch, in its order."""
        for batch, sharding in self._batches(span):
            shards = self._distribute(batch, sharding, "predict")
            parts = self._step.predict(shards, sharding.of_all)
            made = joined([_nest.map_structure(_on_host, each) for each in parts])
            take(of_all_workers(self._strategy, made))

    def _check_finite(self, totals: Totals, where: str, take: Take, examples: int) -> None:
        row = _row(totals)
        loss, losses = row[0], [float(each) for each in totals.losses]
        if not all(math.isfinite(each) for each in (loss, *losses)):
            take([row_of(totals, row)], examples)
            from mirrored.training.failed_step import failed_step  # Seldom needed.

            raise failed_step(self._model, totals, loss, losses, where)

    def _batches(self, span: Span) -> Iterator[tuple[Arrays, Sharding]]:
        """Yield the batches, each with where the parts of this process's replicas are."""
        for part in span.alike():
            sharding = sharding_of_span(part, self._strategy.sharing)
            for batch in part:
                yield batch, sharding

    def _distribute(self, batch: Arrays, sharding: Sharding, kind: str) -> Shards:
        if kind not in self._compared:
            self._compared.add(kind)
            self._compare(batch, sharding.examples, kind)
        dtypes = column_dtypes(
            self._model, batch.layout, batch.columns, own=self._plan.is_custom(kind)
        )
        parts = [
            self._cut(_cast(array, dtype), sharding)
            for array, dtype in zip(batch.columns, dtypes, strict=True)
        ]
        return Shards(*batch.layout.pack(parts))

    def _compare(self, batch: Arrays, examples: int, kind: str) -> None:
        """Raise WorkerError where other workers take another step."""
        if self._strategy.is_shared:
            from mirrored.training.step_facts import facts_of  # Of several workers.

            specs = [TensorSpec(each.shape[1:], each.dtype) for each in batch.columns]
            facts = facts_of(self._model, examples, specs)
            self._strategy.check_alike(facts, f"the step that {kind}s")

    def _cut(self, array: np.ndarray[Any, Any], sharding: Sharding) -> PerReplica:
        parts = []
        for replica, rows in enumerate(sharding.cut(array)):
            with self._strategy.replica_scope(replica):
                parts.append(ops.transfer(rows, self._strategy.devices[replica]))
        return PerReplica(parts, sharding.starts, sharding.examples)


def column_dtypes(
    model: SteppedNetwork, layout: Layout, columns: Columns, *, own: bool
) -> list[np.dtype[Any] | None]:
    """Return the dtypes that inputs, targets and sample weights get; None: they keep theirs."""
    if own:
        # As in Keras: floating-point data in floatx, all others as they are.
        return [_floatx(each.dtype) for each in columns]
    dtypes: list[np.dtype[Any] | None] = [None] * len(columns)
    numbers = layout.parts[0]
    if type(numbers) is int:
        dtypes[numbers] = model.fed_dtypes(columns[numbers].dtype)
    else:
        given = _nest.map_structure(lambda n: n if n is None else columns[n].dtype, numbers)
        fed = _nest.flatten(model.fed_dtypes(given))
        for number, dtype in zip(_nest.flatten(numbers), fed, strict=True):
            if number is not None:
                dtypes[number] = dtype
    compared = loss_dtype(_nest.flatten(model.output_dtypes)[0])
    outputs = None if model._compilation is None else model._compilation.outputs
    if outputs is not None and layout.parts[1] is not None:
        for output, number in zip(outputs.outputs, _nest.flatten(layout.parts[1]), strict=True):
            if number is not None and not (output.loss and output.loss.targets_are_labels):
                dtypes[number] = compared
    for number in layout.numbers(2):
        dtypes[number] = compared
    return dtypes


def _floatx(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    return ops.as_dtype(ops.floatx()) if dtype == np.float64 else None


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """Return the array in another dtype; what is too large for it is infinite, and no warning."""
    if dtype is None:
        return array
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def _on_host(part: Any) -> Any:
    return None if part is None else part.numpy()


def _row(totals: Totals) -> list[float]:
    row: list[float] = totals.statistics.numpy().tolist()
    if totals.penalty is not None:
        row[0] += float(totals.penalty)
    return row
