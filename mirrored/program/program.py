"""A recorded function in host memory: it accepts inputs and runs as a flat list of calls.

A step allocates nothing, and nothing is written to variables unless the whole step can be.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from mirrored.backends import Storage
from mirrored.backends.product_settings import run_on_threads
from mirrored.devices import get_log_device_placement, log_placement
from mirrored.devices.work_timing import Observer, observers
from mirrored.errors import WorkersChangedError
from mirrored.ops.host_tensor import fill
from mirrored.program.buffers import Arenas, Buffers
from mirrored.program.concurrency import Threads
from mirrored.program.dataflow import SHARED, Graph
from mirrored.program.lowering import HostLowering, LoweredStage
from mirrored.program.memory_planner import plan_memory
from mirrored.program.replay import (
    After,
    Feed,
    Feeder,
    GuardFailed,
    Report,
    SerialReplay,
    ThreadedReplay,
)
from mirrored.program.schedule import Schedule, make_schedule
from mirrored.program.thread_pool import Barrier, ThreadPool, idle_pools

if TYPE_CHECKING:
    from mirrored.program.timed_program import TimedStages


class Program:
    """A graph with memory for all its values.

    Args:
        graph: The graph.
        threads: How many threads run the replicas and share groups; 1: one does everything.
        blas: How many threads a matrix product uses; None: as many as it does anyway.
        memory: The arenas to use; None: its own.
        schedule: Its schedule, where that is known.

    Attributes:
        schedule: The order of its nodes.
        plan: Where its values are.
        inputs: The arrays that feeders write.
        outputs: The arrays of what the function returns, as the last step left them.

    Raises:
        ResourceExhaustedError: A device has no room for the program.
    """

    def __init__(
        self,
        graph: Graph,
        threads: int = 1,
        blas: int | None = None,
        memory: Arenas | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        """Plan, allocate and bind."""
        self.graph = graph
        self.threads = threads
        self._blas = blas
        self.schedule = schedule or make_schedule(graph, Threads())
        self.plan = plan_memory(graph, self.schedule, threads)
        self._arrays = Buffers(self.plan, memory or Arenas(), graph.purpose)
        self._enter = graph.device.backend.run
        self.take_memory()

    def take_memory(self) -> bool:
        """Take the memory where it was given back, and bind to it where it is another.

        Returns:
            True: the program is as good as new.

        Raises:
            ResourceExhaustedError: A device has no room for the program.
        """
        if not self._arrays.take():
            self._bind()
        return True

    def _bind(self) -> None:
        arrays = self._arrays
        lowering = HostLowering(arrays, self.threads, self.graph)
        self.stages = lowering.lower(self.schedule)
        self._draws, strategy = lowering.draws, self.graph.strategy
        self._draws.may_repeat = strategy is not None and strategy.goes_on
        self.inputs: list[Any] = [arrays.of(value) for value in self.graph.inputs]
        self.outputs: list[Any] = [arrays.of(value) for value in self.graph.outputs]
        self._replay = self._make_replay(self.stages)
        # The same with clocks, made when somebody measures.
        self._timed: tuple[TimedStages, SerialReplay | ThreadedReplay] | None = None

    def _make_replay(
        self, stages: Sequence[LoweredStage], barrier: Callable[[int], Barrier] = Barrier
    ) -> SerialReplay | ThreadedReplay:
        if self.threads == 1:
            return SerialReplay(stages, self._draws)
        return ThreadedReplay(stages, self._draws, self.threads, barrier)

    def call(self, sources: Sequence[Any], pool: ThreadPool | None = None) -> None:
        """Run one step, as a call of a function does: with the least that Python can do.

        Args:
            sources: What is fed, for each input; see `fill`.
            pool: As for `run`.
        """
        if observers or get_log_device_placement() or not isinstance(self._replay, SerialReplay):
            self.run(1, partial(self._filled, sources), pool=pool)
            return
        fill(self.inputs, sources)
        try:
            run_on_threads(self._blas, self._enter, self._replay.call)
        except WorkersChangedError:
            self._draws.take_back()
            raise

    def returned(
        self, sources: Sequence[Any], pool: ThreadPool | None = None
    ) -> list[tuple[Any, Storage]]:
        """Run one step; return its results, each with what its memory lasts for as long as.

        Args:
            sources: What is fed, for each input; see `fill`.
            pool: As for `run`.

        Raises:
            ResourceExhaustedError: A device has no room for them; nothing was run.
        """
        values = self.graph.outputs
        # Before anything is written: what is returned needs memory too.
        storages = [value.device.allocate(*value.spec) for value in values]
        self.call(sources, pool)
        for value, array, storage in zip(values, self.outputs, storages, strict=True):
            value.device.backend.copy_between(array, storage.array)
        return [(storage.array, storage) for storage in storages]

    def run(
        self,
        steps: int,
        feed: Feed = None,
        report: Report | None = None,
        pool: ThreadPool | None = None,
    ) -> bool:
        """Run a number of steps.

        Args:
            steps: How many.
            feed: What writes the inputs; see `Feed`.
            report: Called with the outputs and the number of each step that is done, in order,
                while nothing runs; returns whether to go on. None: nobody is notified.
            pool: The threads, as many as the program was made for.

        Returns:
            Whether to go on, as `report` said last.

        Raises:
            GuardFailed: A value was not finite; that step wrote nothing, nor did one behind it.
        """
        feeders: Mapping[int, Feeder] = {} if feed is None else feed(self.inputs)
        after: After = None if report is None else partial(report, self.outputs)
        replay = self._replay
        if not observers:
            self._timed = None
        for observer in observers:
            stages, replay = self._timed_by(observer)
            feeders = stages.feeds(feeders)
        if get_log_device_placement():
            after = self._logged(after)
        try:
            if isinstance(replay, SerialReplay):
                run_on_threads(self._blas, self._enter, replay.run, steps, feeders, after)
            else:
                with nullcontext(pool) if pool else idle_pools.taken(self.threads) as team:
                    run_on_threads(self._blas, replay.run, steps, feeders, after, team, self._enter)
        except GuardFailed as failed:
            failed.outputs = self.outputs
            raise
        except WorkersChangedError:
            self._draws.take_back()
            raise
        return replay.going_on

    def _filled(self, sources: Sequence[Any], inputs: Sequence[Any]) -> Mapping[int, Feeder]:
        """Return what fills inputs, those of a replica on its own thread; what all read is there.

        To gather a batch takes as long as a part of a step, and replicas do it side by side.
        """
        by_replica: dict[int, tuple[list[Any], list[Any]]] = {}
        for value, target, source in zip(self.graph.inputs, inputs, sources, strict=True):
            targets, fed = by_replica.setdefault(value.replica, ([], []))
            targets.append(target)
            fed.append(source)
        fill(*by_replica.pop(SHARED, ((), ())))
        return {replica: partial(_fill, *copies) for replica, copies in by_replica.items()}

    def forget_observer(self) -> None:
        """Let go of whoever measured the last run."""
        self._timed = None

    def _logged(self, after: After) -> After:
        def log(step: int) -> bool:
            log_placement(self.graph.name, self.graph.device)
            return after is None or after(step)

        return log

    def _timed_by(self, observer: Observer) -> "tuple[TimedStages, SerialReplay | ThreadedReplay]":
        if self._timed is None or self._timed[0].observer is not observer:
            from mirrored.program.timed_program import TimedStages  # Few runs are timed.

            stages = TimedStages(self.graph, self.stages, self.threads, observer)
            self._timed = stages, self._make_replay(stages.stages, stages.barrier)
        return self._timed


def _fill(targets: Sequence[Any], sources: Sequence[Any], _: int) -> None:
    fill(targets, sources)
