"""Runs steps as recorded programs: Python for the first step of a kind, replay for all others.

Batches are gathered from the user's arrays straight into the memory that a program reads.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np

from mirrored.data.batches import Span
from mirrored.data.columns import Layout
from mirrored.distribute import PerReplica, Strategy
from mirrored.distribute.sharding import Sharding, sharding_of_span
from mirrored.ops import Tensor, TensorSpec
from mirrored.ops.hooks import active_recorder
from mirrored.program import Feeder, GuardFailed, Report, Trace, trace
from mirrored.program.results import Results
from mirrored.training.eager_steps import Take, column_dtypes
from mirrored.training.own_steps import OwnStep, row_of
from mirrored.training.run_plan import RunPlan
from mirrored.training.step import Shards, Step, Totals, joined, of_all_workers


class RecordedSteps:
    """Replays recorded steps.

    Traces and their programs stay with the model, so that the next `fit` has them.

    Args:
        plan: The plan of the run.
    """

    def __init__(self, plan: RunPlan) -> None:
        self._plan, self._model, self._strategy = plan, plan.model, plan.strategy
        self._traces = plan.model._traces
        self._optimizers = plan.optimizers
        self._identity, self._kept = _identity(plan)
        self._stepped = False
        self._weighed = False

    def train(
        self, span: Span, where: Callable[[int], str], take: Take, going_on: Callable[[], bool]
    ) -> None:
        """Take a step of training for each batch; see `EagerSteps`."""
        with self._undone_unless_stepped():
            done = 0
            for part in span.alike():
                try:
                    if not self._run_and_report("train", part, take, going_on):
                        return
                except GuardFailed as failed:
                    take([self._row(part, failed.outputs)], part.size)
                    place = where(done + failed.step)
                    raise self._non_finite(part, failed.outputs, place) from None
                done += part.count

    def test(self, span: Span, take: Take) -> None:
        """Evaluate each batch; see `EagerSteps`."""
        for part in span.alike():
            self._run_and_report("test", part, take, lambda: True)

    def predict(self, span: Span, take: Callable[[Any], None]) -> None:
        """Compute the outputs for each batch; see `EagerSteps`."""
        for part in span.alike():
            trace = self._trace("predict", part)
            results: Any = trace.results
            self._run(trace, part, partial(_join, results, self._strategy, take))

    def _run_and_report(
        self, kind: str, part: Span, take: Take, going_on: Callable[[], bool]
    ) -> bool:
        """Run a part's steps, and tell of those that were done; return whether to go on.

        Their statistics are noted while they run and looked at afterwards: the less Python there
        is between two steps, the better for short ones.
        """
        trace = self._trace(kind, part)
        totals = _totals(trace)
        (width,), dtype = trace.graph.outputs[0].spec
        has_penalty = totals.penalty is not None
        notes = np.empty((part.count, width + has_penalty), dtype)
        done = 0

        def note(outputs: Sequence[Any], i: int) -> bool:
            nonlocal done
            notes[i, :width] = outputs[0]
            if has_penalty:
                notes[i, width] = outputs[1]
            done = i + 1
            return going_on()

        try:
            return self._run(trace, part, note)
        finally:
            self._stepped = self._stepped or done > 0
            rows = notes[:done].tolist()
            if has_penalty:
                rows = [[row[0] + row[-1], *row[1:-1]] for row in rows]
            if totals.names is not None:
                rows = [row_of(totals, row) for row in rows]
            take(rows, part.size)

    def _row(self, part: Span, outputs: Sequence[Any]) -> list[float]:
        """Return the statistics of a step that wrote nothing, with its loss, penalties included."""
        row: list[float] = outputs[0].tolist()
        if _totals(self._trace("train", part)).penalty is not None:
            row[0] += float(outputs[1].reshape(-1)[0])
        return row

    def _non_finite(self, part: Span, outputs: Sequence[Any], where: str) -> Exception:
        totals = _totals(self._trace("train", part))
        penalties = totals.penalty is not None
        losses = [float(each) for each in outputs[1 + penalties :]]
        from mirrored.training.failed_step import failed_step  # Seldom needed.

        return failed_step(self._model, totals, self._row(part, outputs)[0], losses, where)

    @contextmanager
    def _undone_unless_stepped(self) -> Iterator[None]:
        """Take back the slots that were made for a first step which then failed."""
        known, self._stepped = [optimizer.slots.snapshot() for optimizer in self._optimizers], False
        try:
            yield
        except BaseException:
            for optimizer, before in zip(self._optimizers, known, strict=True):
                if not self._stepped and optimizer.slots.snapshot().keys() != before.keys():
                    optimizer.slots.restore(before)
                    self._traces.clear()
            raise

    def _run(self, trace: Trace, span: Span, report: Report) -> bool:
        """Run a recorded step for each batch of a span; return whether to go on."""
        width = len(span.columns)
        sharding = self._sharding(span)

        def feed(arrays: Sequence[Any]) -> dict[int, Feeder]:
            return {
                replica: span.feeder(rows, arrays[replica * width : (replica + 1) * width])
                for replica, rows in enumerate(sharding.slices)
            }

        with self._traces.lock:
            return trace.run(span.count, feed, report, self._traces.arenas)

    # ------------------------------------------------------------------ recording

    @cached_property
    def _step(self) -> Step:
        return OwnStep(self._plan)  # It looks through all layers, which a replay need not.

    def _sharding(self, span: Span) -> Sharding:
        return sharding_of_span(span, self._strategy.sharing)

    def _trace(self, kind: str, span: Span) -> Trace:
        """Return the step for batches like these, recorded where it is not."""
        columns, layout, sharding = span.columns, span.layout, self._sharding(span)
        dtypes = column_dtypes(self._model, layout, columns, own=self._plan.is_custom(kind))
        specs = tuple(
            [
                TensorSpec(array.shape[1:], dtype or array.dtype)
                for array, dtype in zip(columns, dtypes, strict=True)
            ]
        )
        key = kind, sharding.of_all, specs, layout, self._identity
        with self._traces.lock:
            known = self._traces.find(key)
            if known is not None:
                return known
            made = self._record(kind, specs, layout, sharding)
            made.kept = self._kept
            if kind == "train" and not self._weighed:  # Not again, for the smaller last batch.
                from mirrored.training.replica_work import tell_of_small_steps

                self._weighed = True
                tell_of_small_steps(self._strategy, made.graph)
            return self._traces.keep(key, made)

    def _record(
        self,
        kind: str,
        specs: tuple[TensorSpec, ...],
        layout: Layout,
        sharding: Sharding,
    ) -> Trace:
        if kind == "train" and not self._plan.is_custom(kind):
            optimizer = self._model.required_compilation().required_optimizer()
            # Where only some variables have a gradient, those are brought together meanwhile.
            optimizer.rule.pack(self._model.trainable_variables)
        inputs = [
            (TensorSpec((rows, *spec.shape), spec.dtype), self._strategy.devices[replica], replica)
            for replica, rows in enumerate(sharding.sizes)
            for spec in specs
        ]

        size, sizes = sharding.examples, sharding.of_all

        def step(fed: list[Tensor]) -> Any:
            width = len(specs)
            columns = [PerReplica(fed[i::width], sharding.starts, size) for i in range(width)]
            shards = Shards(*layout.pack(columns))
            if kind == "predict":
                return self._step.predict(shards, sizes)
            if kind == "test":
                return self._step.test(shards, sizes)
            return self._step.train(shards, sizes, _require_finite)

        made = trace(
            f"{kind}_function",
            inputs,
            step,
            returns=Tensor,
            replicas=self._strategy.local_replicas,
            purpose=f"the step's memory for {max(sharding.sizes)} examples a replica",
            labels_checked=True,
        )
        if self._strategy.is_shared:
            from mirrored.distribute.worker_agreement import facts_of_graph  # Of several workers.
            from mirrored.training.step_facts import facts_of

            # Workers are compared in their operations where their first replicas have as many.
            operations = facts_of_graph(made.graph, f"{sharding.sizes[0]} examples")
            facts = {**facts_of(self._model, size, specs), **operations}
            self._strategy.check_alike(facts, f"the step that {kind}s")
        return made


_SETTINGS = (bool, int, float, str, type(None))


def _identity(plan: RunPlan) -> tuple[tuple[Any, ...], list[Any]]:
    """Return what a recorded step of a model depends on beside the batch, and whose ids are in it.

    Whoever keeps the first keeps the second, or another object could have an id of it. (But for the
    compilation: with another one all traces go.)
    """
    rules = [inner for optimizer in plan.optimizers for inner in optimizer.within]
    settings = [(i, vars(rule)) for i, rule in enumerate(rules)]
    held: list[Any] = []
    trained: list[bool] = []
    for layer, variables in plan.layers:
        held += (layer, *variables)
        trained += (layer._trainable, *[variable.trainable for variable in variables])
    identity = (
        id(plan.model._compilation),
        tuple(map(id, held)),
        tuple(trained),
        tuple(
            [
                (i, *each)
                for i, its in settings
                for each in its.items()
                if isinstance(each[1], _SETTINGS)
            ]
        ),
    )
    return identity, held


def _require_finite(totals: Totals) -> None:
    recorder = active_recorder()
    if recorder is not None:
        parts = (totals.statistics, totals.penalty)
        recorder.require_finite(tuple(each for each in parts if each is not None))


def _totals(trace: Trace) -> Totals:
    """Return what a step left when it was recorded."""
    results: Any = trace.results
    totals: Totals = results.structure
    return totals


def _join(
    results: Results,
    strategy: Strategy,
    take: Callable[[Any], None],
    outputs: Sequence[Any],
    _: int,
) -> bool:
    # Copies: what a program returns it writes over in its next run.
    made = joined(results.with_tensors([each.copy() for each in outputs]))
    take(of_all_workers(strategy, made))
    return True
