"""Runs steps as recorded programs: Python for the first step of a kind, replay for all others.

Batches are gathered from the user's arrays straight into the memory that a program reads.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from mirrored._logging import logger
from mirrored.data.batches import Span
from mirrored.data.columns import Layout
from mirrored.distribute import PerReplica, Strategy
from mirrored.distribute.sharding import Sharding
from mirrored.ops import Tensor, TensorSpec
from mirrored.ops.hooks import active_recorder
from mirrored.optim.slots import Slots
from mirrored.program import THREADS_FROM, Feeder, Graph, GuardFailed, Report, Trace, trace
from mirrored.training.custom_steps import row_of
from mirrored.training.run_plan import RunPlan
from mirrored.training.step import Totals, joined, of_all_workers
from mirrored.training.step_driver import NotFinite, StepDriver, Take

_logged: WeakSet[Strategy] = WeakSet()  # Those of which it was said that steps are small.


class RecordedSteps(StepDriver):
    """Replays recorded steps.

    Traces and their programs stay with the model, so that the next `fit` has them.

    Args:
        plan: The plan of the run.
    """

    def __init__(self, plan: RunPlan) -> None:
        super().__init__(plan)
        self._traces = plan.model.__state__.traces
        plan.keep()
        self._stepped = self._replayed = False
        self._slots: list[tuple[Slots, Any]] = []  # With what was in them before.
        self._weighed = False

    def train(
        self, span: Span, where: Callable[[int], str], take: Take, going_on: Callable[[], bool]
    ) -> None:
        """Take a step of training for each batch; see `StepDriver`."""
        self._stepped, self._replayed, self._slots = False, False, []
        try:
            super().train(span, where, take, going_on)
        except BaseException as error:  # Slots that were made for a first step which failed go.
            # An interrupt, which is no `Exception`, may hide that the step was written.
            stays = self._stepped or (self._replayed and not isinstance(error, Exception))
            for slots, before in self._slots:
                if not stays and slots.snapshot().keys() != before.keys():
                    slots.restore(before)
                    self._traces.clear()
            raise

    def reform(self) -> None:
        """Share the steps out among the workers that are left, and record them again."""
        super().reform()
        self._traces.clear()

    def _predict(self, part: Span, sharding: Sharding, take: Callable[[Any], None]) -> None:
        trace = self._trace("predict", part, sharding)
        results: Any = trace.results

        def report(outputs: Sequence[Any], _: int) -> bool:
            # Copies: what a program returns it writes over in its next run.
            rows = joined(results.with_tensors([output.copy() for output in outputs]))
            take(of_all_workers(self._strategy, rows))
            return True

        self._replay(trace, part, sharding, report)

    def _run(
        self, kind: str, part: Span, sharding: Sharding, take: Take, going_on: Callable[[], bool]
    ) -> bool:
        """Take a part's steps; see `StepDriver`.

        Their statistics are noted while they run and looked at afterwards: the less Python there
        is between two steps, the better for short ones.
        """
        trace = self._trace(kind, part, sharding)
        results: Any = trace.results
        totals: Totals = results.structure  # What the step left when it was recorded.
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
            return self._replay(trace, part, sharding, note, trains=kind == "train")
        except GuardFailed as failed:
            raise NotFinite(failed.step, totals, failed.outputs) from None
        finally:
            self._stepped = self._stepped or done > 0
            rows = notes[:done].tolist()
            if has_penalty:
                rows = [[row[0] + row[-1], *row[1:-1]] for row in rows]
            if totals.names is not None:
                rows = [row_of(totals, row) for row in rows]
            take(rows, part.size)

    def _replay(
        self,
        trace: Trace,
        span: Span,
        sharding: Sharding,
        report: Report,
        *,
        trains: bool = False,
    ) -> bool:
        """Run a recorded step for each batch of a span; return whether to go on."""
        width = len(span.arrays.columns)

        def feed(arrays: Sequence[Any]) -> dict[int, Feeder]:
            return {
                replica: span.feeder(rows, arrays[replica * width : (replica + 1) * width])
                for replica, rows in enumerate(sharding.slices)
            }

        verifier = self._model.__state__.verifier if trains else None
        with self._traces.lock:
            self._replayed = True
            if verifier is not None:
                return verifier.run(trace, span.count, feed, report, self._traces.arenas)
            return trace.run(span.count, feed, report, self._traces.arenas)

    # ------------------------------------------------------------------ recording

    def _trace(self, kind: str, span: Span, sharding: Sharding) -> Trace:
        """Return the step for batches like these, recorded where it is not."""
        specs, layout = self._plan.example_specs(kind, span.arrays), span.arrays.layout
        key = kind, sharding.of_all, specs, layout, self._plan.identity
        with self._traces.lock:
            known = self._traces.find(key)
            if known is not None:
                return known
            if kind == "train" and not (self._stepped or self._slots):  # It may make slots.
                slots = [optimizer.slots for optimizer in self._plan.optimizers]
                self._slots += [(owner, owner.snapshot()) for owner in slots]
            recording = self._record(kind, specs, layout, sharding)
            recording.kept = self._plan.held
            if kind == "train" and not self._weighed:  # Not again, for the smaller last batch.
                self._weighed = True
                _tell_of_small_steps(self._strategy, recording.graph)
            return self._traces.keep(key, recording)

    def _record(
        self, kind: str, specs: tuple[TensorSpec, ...], layout: Layout, sharding: Sharding
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
            shards = layout.pack(columns)
            taken = self._step(kind)
            if kind == "predict":
                return taken.predict(shards, sizes)
            if kind == "test":
                return taken.test(shards, sizes)
            return taken.train(shards, sizes, _require_finite)

        recording = trace(
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
            operations = facts_of_graph(recording.graph, f"{sharding.sizes[0]} examples")
            facts = {**facts_of(self._model, size, specs), **operations}
            self._strategy.check_alike(facts, f"the step that {kind}s")
        return recording


def _require_finite(totals: Totals) -> None:
    recorder = active_recorder()
    if recorder is not None:
        parts = (totals.statistics, totals.penalty)
        recorder.require_finite(tuple(part for part in parts if part is not None))


def _tell_of_small_steps(strategy: Strategy, graph: Graph) -> None:
    """Say once of a strategy that one device would be faster, where a step is that small.

    Real GPUs have numbers of their own, which nobody has measured.

    Args:
        strategy: The strategy whose replicas take the step.
        graph: A step of training.
    """
    replicas = strategy.local_replicas
    if replicas == 1 or strategy in _logged or not strategy.shares_memory or strategy.lanes:
        return
    if strategy.executor == "threads":  # The user's choice: they do not run one after another.
        return
    work = sum(node.flops for node in graph.nodes) / replicas
    if work < THREADS_FROM:
        _logged.add(strategy)
        logger.debug(
            "The matrix products of a step take %s operations on each of %d replicas. Below %s "
            "operations the replicas run one after another, and one device would be faster.",
            f"{work:,.0f}",
            replicas,
            f"{THREADS_FROM:,.0f}",
        )
