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
from mirrored.distribute.sharding import Sharding, sharding_of
from mirrored.errors import CollectiveError
from mirrored.layers.weights import find
from mirrored.ops import SeedGenerator
from mirrored.ops.rng_state import current_rng_state
from mirrored.training.compilation import CompiledNetwork
from mirrored.training.losses.values import loss_dtype
from mirrored.training.step import (
    Shards,
    Step,
    Totals,
    non_finite_error,
)

# Given a row for each step - its loss, then each metric's total and count - and their number of
# examples. A step of training whose loss is not finite is among them, before it raises.
Take = Callable[[list[list[float]], int], None]


class EagerSteps:
    """Runs Python for every op of every step."""

    def __init__(self, model: CompiledNetwork) -> None:
        self._model = model
        self._strategy = model.distribute_strategy
        self._step = Step(model)
        self._generators = find(
            (each for layer in model._walk() for each in vars(layer).values()), SeedGenerator
        )

    def train(
        self, span: Span, where: Callable[[int], str], take: Take, going_on: Callable[[], bool]
    ) -> None:
        """Take a step of training for each batch.

        Raises:
            NonFiniteLossError: The loss is NaN or infinite; that step changed nothing.
            ResourceExhaustedError: A device has not enough memory; that step changed nothing.
        """
        for i, batch in enumerate(span):
            check = partial(self._check_finite, where=where(i), take=take, examples=batch.size)
            with self._drawn_again():
                totals = self._step.train(self._distribute(batch), batch.size, check)
            take([_row(totals)], batch.size)
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
        for batch in span:
            totals = self._step.test(self._distribute(batch), batch.size)
            take([_row(totals)], batch.size)

    def predict(self, span: Span, take: Callable[[np.ndarray[Any, Any]], None]) -> None:
        """Compute the outputs for each batch, in its order."""
        for batch in span:
            parts = self._step.predict(self._distribute(batch))
            # A replica without examples has nothing to add.
            take(np.concatenate([part.numpy() for part in parts if part is not None and len(part)]))

    def _check_finite(self, totals: Totals, where: str, take: Take, examples: int) -> None:
        row = _row(totals)
        loss, losses = row[0], [float(each) for each in totals.losses]
        if not all(math.isfinite(each) for each in (loss, *losses)):
            take([row], examples)
            raise non_finite_error(self._model, loss, losses, where)

    def _distribute(self, batch: Arrays) -> Shards:
        sharding = sharding_of(batch.size, self._strategy.num_replicas_in_sync)
        dtypes = column_dtypes(self._model, batch.layout, batch.columns)
        parts = [
            self._cut(_cast(array, dtype), sharding)
            for array, dtype in zip(batch.columns, dtypes, strict=True)
        ]
        return Shards(*batch.layout.pack(parts))

    def _cut(self, array: np.ndarray[Any, Any], sharding: Sharding) -> PerReplica:
        parts = []
        for replica, rows in enumerate(sharding.cut(array)):
            with self._strategy.replica_scope(replica):
                parts.append(ops.transfer(rows, self._strategy.devices[replica]))
        return PerReplica(parts, sharding.starts)


def column_dtypes(
    model: CompiledNetwork, layout: Layout, columns: Columns
) -> list[np.dtype[Any] | None]:
    """Return the dtypes that inputs, targets and sample weights get; None: they keep theirs."""
    compilation = model._compilation
    loss = None if compilation is None else compilation.loss
    compared = loss_dtype(model.output_dtype)
    dtypes: list[np.dtype[Any] | None] = [None] * len(columns)
    numbers = layout.parts[0]
    if type(numbers) is int:
        dtypes[numbers] = model.fed_dtypes(columns[numbers].dtype)
    else:
        own = _nest.map_structure(lambda n: n if n is None else columns[n].dtype, numbers)
        fed = _nest.flatten(model.fed_dtypes(own))
        for number, dtype in zip(_nest.flatten(numbers), fed, strict=True):
            if number is not None:
                dtypes[number] = dtype
    keeps = loss is not None and loss.targets_are_labels
    for part, dtype in ((1, None if keeps else compared), (2, compared)):
        for number in layout.numbers(part):
            dtypes[number] = dtype
    return dtypes


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """Return the array in another dtype; what is too large for it is infinite, and no warning."""
    if dtype is None:
        return array
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def _row(totals: Totals) -> list[float]:
    row: list[float] = totals.statistics.numpy().tolist()
    if totals.penalty is not None:
        row[0] += float(totals.penalty)
    return row
