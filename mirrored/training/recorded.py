"""Runs steps as recorded programs: Python for the first step of a kind, replay for all others.

Batches are gathered from the user's arrays straight into the memory that a program reads.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mirrored.data.arrays import Columns
from mirrored.data.batches import Span
from mirrored.distribute import PerReplica
from mirrored.distribute.sharding import Sharding, sharding_of
from mirrored.ops import Tensor, TensorSpec
from mirrored.program import (
    Graph,
    GraphRecorder,
    GuardFailed,
    Recordings,
    Runnable,
    make_program,
)
from mirrored.program.creation import settle
from mirrored.program.streamed import Planned, StreamedProgram
from mirrored.training.compilation import CompiledNetwork
from mirrored.training.runner import Take, input_dtypes
from mirrored.training.step import (
    Shards,
    Step,
    Totals,
    non_finite_error,
)


@dataclass(eq=False, slots=True)
class _Recording:
    """A recorded step.

    Attributes:
        kind: Whether it trains, tests or predicts.
        graph: The step.
        sharding: Where each replica's part of a batch is.
        has_penalty: Whether the outputs have the weights' penalty, after the statistics.
        program: What runs it, once it was run.
        planned: What is left of that where its memory had to be let go of.
    """

    kind: str
    graph: Graph
    sharding: Sharding
    has_penalty: bool = False
    program: Runnable | None = None
    planned: Planned | None = None

    def let_go(self) -> None:
        """Let go of memory that was given back, and that programs find elsewhere afterwards."""
        if isinstance(self.program, StreamedProgram):
            self.planned = self.program.planned
            self.program = None


@contextmanager
def recorded_runner(model: CompiledNetwork) -> Iterator["RecordedRunner"]:
    """Run recorded steps within this context; their memory is given back at its end."""
    with model._recordings.memory(_Recording.let_go):
        yield RecordedRunner(model)


class RecordedRunner:
    """Replays recorded steps.

    The recordings stay with the model, and their programs too, so that the next `fit` has them.

    Args:
        model: A model that is built and, but for prediction, compiled with a loss.
    """

    def __init__(self, model: CompiledNetwork) -> None:
        self._model = model
        self._strategy = model.distribute_strategy
        self._step = Step(model)
        self._recordings: Recordings[_Recording] = model._recordings
        self._identity = _identity(model)
        self._stepped = False

    def train(
        self, span: Span, where: Callable[[int], str], take: Take, going_on: Callable[[], bool]
    ) -> None:
        """Take a step of training for each batch; see `Runner`."""
        with self._undone_unless_stepped():
            done = 0
            for part in span.alike():
                step = self._recorded("train", part)
                try:
                    if not self._run_and_report(step, part, take, going_on):
                        return
                except GuardFailed as failed:
                    loss = _total(failed.outputs[: 1 + step.has_penalty])
                    losses = [float(each) for each in failed.outputs[1 + step.has_penalty :]]
                    place = where(done + failed.step)
                    raise non_finite_error(self._model, loss, losses, place) from None
                done += part.count

    def test(self, span: Span, take: Take) -> None:
        """Evaluate each batch; see `Runner`."""
        for part in span.alike():
            self._run_and_report(self._recorded("test", part), part, take, lambda: True)

    def predict(self, span: Span, take: Callable[[np.ndarray[Any, Any]], None]) -> None:
        """Compute the outputs for each batch; see `Runner`."""
        for part in span.alike():
            step = self._recorded("predict", part)
            self._run(step, part, partial(_joined, take))

    def _run_and_report(
        self, step: _Recording, part: Span, take: Take, going_on: Callable[[], bool]
    ) -> bool:
        """Run a part's steps, and tell of those that were done; return whether to go on.

        Their statistics are noted while they run and looked at afterwards: the less Python there
        is between two steps, the better for short ones.
        """
        (width,), dtype = step.graph.outputs[0].spec
        has_penalty = step.has_penalty
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
            return self._run(step, part, note)
        finally:
            self._stepped = self._stepped or done > 0
            rows = notes[:done].tolist()
            if has_penalty:
                rows = [[row[0] + row[-1], *row[1:-1]] for row in rows]
            take(rows, part.size)

    @contextmanager
    def _undone_unless_stepped(self) -> Iterator[None]:
        """Take back the slots that were made for a first step which then failed."""
        optimizer = self._model.required_compilation().optimizer
        known, self._stepped = optimizer.slots(), False
        try:
            yield
        except BaseException:
            if not self._stepped and optimizer.slots().keys() != known.keys():
                optimizer.restore_slots(known)
                self._recordings.clear()
            raise

    # ------------------------------------------------------------------ running

    def _run(
        self, step: _Recording, span: Span, each: Callable[[Sequence[Any], int], bool]
    ) -> bool:
        """Replay a step for each batch of a span; return whether to go on."""
        columns = _columns(step.kind, span)

        def feeds(arrays: Sequence[Any]) -> dict[int, Callable[[int], None]]:
            inputs, made = iter(arrays), {}
            for lane, rows in enumerate(step.sharding.slices):
                x, y, weight = (None if each is None else next(inputs) for each in columns)
                made[lane] = span.feeder(rows, (x, y, weight))
            return made

        with self._recordings.lock:
            program = self._program(step)
            team = self._strategy.team(program.threads)
            return program.replay(span.count, feeds, each, team)

    def _program(self, step: _Recording) -> Runnable:
        if step.program is not None and not step.program.take_memory():
            step.let_go()
        if step.program is None:
            strategy, arenas = self._strategy, self._recordings.arenas
            step.program = make_program(
                step.graph,
                strategy.num_replicas_in_sync,
                strategy.executor,
                arenas,
                step.planned,
            )
        return step.program

    # ------------------------------------------------------------------ recording

    def _recorded(self, kind: str, span: Span) -> _Recording:
        size = span.size
        columns = _columns(kind, span)
        dtypes = input_dtypes(self._model, columns[0])
        specs = tuple(
            None if array is None else TensorSpec(array.shape[1:], dtype or array.dtype)
            for array, dtype in zip(columns, dtypes, strict=True)
        )
        with self._recordings.lock:
            return self._recordings.get(
                (kind, size, specs, self._identity),
                lambda: self._record_in_place(kind, size, specs),
                is_current=lambda step: step.graph.is_current(),
            )

    def _record_in_place(self, kind: str, *args: Any) -> _Recording:
        """Record a step once its variables are where it leaves them."""
        if kind == "train":
            optimizer = self._model.required_compilation().optimizer
            optimizer.pack(self._model.trainable_variables)
        # Where only some variables have a gradient, those are brought together meanwhile.
        return settle(
            lambda logs: self._record(kind, *args, logs=logs), lambda step: step.graph.is_current()
        )

    def _record(
        self, kind: str, size: int, specs: tuple[TensorSpec | None, ...], *, logs: bool = True
    ) -> _Recording:
        # The data were checked.
        recorder = GraphRecorder(f"{kind}_function", logs=logs, validates=False)
        sharding = sharding_of(size, self._strategy.num_replicas_in_sync)
        recorder.graph.purpose = f"the step's memory for {max(sharding.sizes)} examples a replica"
        columns: list[list[Tensor]] = [[] for _ in specs]
        for lane, rows in enumerate(sharding.sizes):
            device = self._strategy.devices[lane]
            for column, spec in zip(columns, specs, strict=True):
                if spec is not None:
                    whole = TensorSpec((rows, *spec.shape), spec.dtype)
                    column.append(recorder.input(whole, device, lane))
        x, y, weight = (PerReplica(each, sharding.starts) if each else None for each in columns)
        shards = Shards(x, y, weight)
        with recorder.recording():
            if kind == "predict":
                outputs = [each for each in self._step.predict(shards) if each is not None]
                return _Recording(kind, recorder.finish(outputs), sharding)
            if kind == "test":
                totals = self._step.test(shards, size)
            else:
                totals = self._step.train(
                    shards, size, lambda totals: recorder.require_finite(_guarded(totals))
                )
        outputs = [*_guarded(totals), *totals.losses]
        return _Recording(kind, recorder.finish(outputs), sharding, totals.penalty is not None)


def _identity(model: CompiledNetwork) -> tuple[Any, ...]:
    """Return what a recorded step of a model depends on beside the batch."""
    compilation = model._compilation
    optimizer = None if compilation is None else compilation.optimizer
    settings = {
        name: value
        for name, value in vars(optimizer or object).items()
        if isinstance(value, bool | int | float | str | None)
    }
    return (
        id(compilation),
        tuple(id(layer) for layer in model.layers),
        tuple(id(variable) for variable in model.trainable_variables),
        tuple(sorted(settings.items(), key=lambda item: item[0])),
    )


def _columns(kind: str, span: Span) -> Columns:
    """Return arrays like those of the batches of a span that are alike."""
    x, y, weight = span.columns
    return (x, None, None) if kind == "predict" else (x, y, weight)


def _guarded(totals: Totals) -> tuple[Tensor, ...]:
    return (totals.statistics,) if totals.penalty is None else (totals.statistics, totals.penalty)


def _total(parts: Sequence[Any]) -> float:
    """Return the loss of a batch from its statistics and, where there is one, the penalty."""
    return sum(float(part.reshape(-1)[0]) for part in parts)


def _joined(take: Callable[[np.ndarray[Any, Any]], None], outputs: Sequence[Any], _: int) -> bool:
    take(np.concatenate(outputs))
    return True
