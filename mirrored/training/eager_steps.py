"""Runs steps on batches of the host op by op: Python calls every op of every step."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from mirrored import _nest, ops
from mirrored.data.arrays import Arrays
from mirrored.data.batches import Span
from mirrored.distribute import PerReplica
from mirrored.distribute.sharding import Sharding
from mirrored.errors import CollectiveError, WorkersChangedError
from mirrored.ops import TensorSpec
from mirrored.ops.random import mark_streams
from mirrored.training.custom_steps import row_of
from mirrored.training.run_plan import RunPlan
from mirrored.training.step import Shards, Totals, joined, of_all_workers
from mirrored.training.step_driver import NotFinite, StepDriver, Take, row_with_penalty


class EagerSteps(StepDriver):
    """Runs Python for every op of every step.

    Args:
        plan: The plan of the run.
        refuses: As for `Step`.
    """

    def __init__(self, plan: RunPlan, *, refuses: bool = True) -> None:
        super().__init__(plan, refuses=refuses)
        self._compared: set[str] = set()

    def _run(
        self, kind: str, part: Span, sharding: Sharding, take: Take, going_on: Callable[[], bool]
    ) -> bool:
        step = self._step(kind)
        for i, batch in enumerate(part):
            with _drawn_again() if kind == "train" else nullcontext():
                shards = self._distribute(batch, sharding, kind)
                if kind == "train":
                    totals = step.train(shards, sharding.of_all, partial(_check_finite, i))
                else:
                    totals = step.test(shards, sharding.of_all)
            row = row_with_penalty(totals, _outputs_of(totals))
            take([row_of(totals, row)], sharding.examples)
            if not going_on():
                return False
        return True

    def _predict(self, part: Span, sharding: Sharding, take: Callable[[Any], None]) -> None:
        step = self._step("predict")
        for batch in part:
            shards = self._distribute(batch, sharding, "predict")
            outputs = step.predict(shards, sharding.of_all)
            rows = joined([_nest.map_structure(_on_host, output) for output in outputs])
            take(of_all_workers(self._strategy, rows))

    def _distribute(self, batch: Arrays, sharding: Sharding, kind: str) -> Shards:
        if kind not in self._compared:
            self._compared.add(kind)
            self._compare(batch, sharding.examples, kind)
        dtypes = self._plan.fed_dtypes(kind, batch)
        columns = map(_cast, batch.columns, dtypes)
        return batch.layout.pack([self._cut(column, sharding) for column in columns])

    def _compare(self, batch: Arrays, examples: int, kind: str) -> None:
        """Raise WorkerError where other workers take another step."""
        if self._strategy.is_shared:
            from mirrored.training.step_facts import facts_of  # Of several workers.

            specs = [TensorSpec(column.shape[1:], column.dtype) for column in batch.columns]
            facts = facts_of(self._model, examples, specs)
            self._strategy.check_alike(facts, f"the step that {kind}s")

    def _cut(self, array: np.ndarray[Any, Any], sharding: Sharding) -> PerReplica:
        parts = []
        for replica, rows in enumerate(sharding.cut(array)):
            with self._strategy.replica_scope(replica):
                parts.append(ops.transfer(rows, self._strategy.devices[replica]))
        return PerReplica(parts, sharding.starts, sharding.examples)


@contextmanager
def _drawn_again() -> Iterator[None]:
    """Take back a step's draws where its sums failed: it wrote nothing, and can be repeated."""
    back = mark_streams()
    try:
        yield
    except (CollectiveError, KeyboardInterrupt, WorkersChangedError):
        back()
        raise


def _check_finite(step: int, totals: Totals) -> None:
    """Raise NotFinite unless the loss, and each replica's part of it, is finite."""
    outputs = _outputs_of(totals)
    loss = row_with_penalty(totals, outputs)[0]
    losses = [loss_part.numpy() for loss_part in totals.losses]
    if not all(math.isfinite(number) for number in (loss, *losses)):
        sums = [middles.numpy() for middles in totals.gradient_middles]
        raise NotFinite(step, totals, [*outputs, *losses, *sums])


def _outputs_of(totals: Totals) -> list[Any]:
    """Return what a step left, as a program returns it."""
    penalty = [] if totals.penalty is None else [totals.penalty.numpy()]
    return [totals.statistics.numpy(), *penalty]


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """Return the array in another dtype; what is too large for it is infinite, and no warning."""
    if dtype is None:
        return array
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def _on_host(part: Any) -> Any:
    return None if part is None else part.numpy()
