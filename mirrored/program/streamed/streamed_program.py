"""A recorded function on devices with streams: it is fed and read while it runs.

It is used as the program of host memory is; results come a few steps later, never others.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np

from mirrored.backends import Backend, Storage
from mirrored.backends.communication.watch import WATCH
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import get_log_device_placement, log_placement
from mirrored.devices.work_timing import observers
from mirrored.errors import CollectiveError, ResourceExhaustedError, WorkersChangedError
from mirrored.ops.host_tensor import HostRows
from mirrored.program.buffers import Arenas, Buffers
from mirrored.program.dataflow import Graph, Node, ancestors
from mirrored.program.lowering import Draws, StreamLowering, WriteGuard, spread_flag
from mirrored.program.replay import Feed, Feeder, GuardFailed, Report
from mirrored.program.schedule import FusedGroup, Guard, Kernels, Launch, Stage, split_at_writes
from mirrored.program.streamed.graph_launch import (
    AllReduce,
    BoundLaunch,
    StepLauncher,
    kernel_by_kernel,
)
from mirrored.program.streamed.kept_casts import KeptCasts
from mirrored.program.streamed.small_results import SmallResults, turns_of
from mirrored.program.streamed.staging import Result, Staging, counter_of
from mirrored.program.streamed.stream_plan import Planned
from mirrored.program.thread_pool import ThreadPool
from mirrored.program.timed_program import run_apart, run_timed


class StreamedProgram:
    """A graph with memory for all its values, on devices with streams.

    Args:
        graph: The graph.
        memory: The arenas to use; None: its own.
        planned: What an earlier program of the graph was made of, whose memory is gone.

    Attributes:
        graph: The graph.
        planned: What it is made of.
        threads: How many threads run it: the caller's.
        inputs: The arrays that a call without feeds writes.
        outputs: The arrays of what the function returns, as the last step left them.

    Raises:
        ResourceExhaustedError: A device has no room for the program.
    """

    threads = 1

    def __init__(
        self, graph: Graph, memory: Arenas | None = None, planned: Planned | None = None
    ) -> None:
        self.planned = planned or Planned(graph)
        self.graph = graph = self.planned.graph
        self._kept_casts = KeptCasts(self.planned.kept_casts)
        schedule = self.planned.schedule
        plan, self._feeds, reports, self._counters = self.planned.plan
        self._arrays = Buffers(plan, memory or Arenas(), graph.purpose)
        self._arrays.take()
        self._draws = Draws()
        for node in self._counters:
            self._draws.add(node.attrs["draw"], node.output.number)
        self._storages: list[Storage] = []
        self._reports = {device: self._arrays.bytes_of(block) for device, block in reports.items()}
        self._flags = self._make_flags(schedule.stages)
        guard = graph.guard_device if graph.collectives else None
        self._write_guard = None if guard is None else WriteGuard(guard)
        self.inputs: list[Any] = [self._arrays.of(value) for value in graph.inputs]
        self.outputs: list[Any] = [self._arrays.of(value) for value in graph.outputs]
        self._reported = SmallResults(self._reports, turns_of(graph), graph.outputs, self.outputs)
        devices = [value.device for value in (*graph.inputs, *graph.outputs)]
        devices += [node.device for node in graph.nodes]
        devices += [storage.device for _, storage, _ in graph.reads]
        bound = self._bound(schedule.stages)
        all_peers = [work.connection.peers for work in graph.collectives]
        peers = next((peers for peers in all_peers if peers is not None and peers.goes_on), None)
        self._steps = StepLauncher(*bound, [item.backend for item in devices], peers)
        self._streams = {side.memory: side for side in reversed(self._steps.backends)}
        # The arrays that the inputs were copied from last. They are tensors', which never change.
        self._taken: list[Any] = [None] * len(self.inputs)
        self._may_write = self._was_stopped = False
        self._look: Callable[[Node], object] | None = None
        self._lost = False  # Whether steps of the last replay were stopped.
        # Others may go on with sums that turn out wrong, and write what comes of it.
        sums = {node for collective in graph.collectives for node in collective.nodes}
        self._tells_sums = not sums.isdisjoint(ancestors(graph.outputs))
        if graph.collectives:
            WATCH.before_abort(self._stop_writes)

    def take_memory(self) -> bool:
        """Return whether the memory is still there; if not, the program has to be created again.

        Raises:
            ResourceExhaustedError: A device has no room for the program.
        """
        return self._arrays.take()

    # ------------------------------------------------------------------ binding

    def _make_flags(self, stages: Sequence[Sequence[Launch]]) -> dict[Any, Any]:
        """Return a flag for each memory, where a step may have to leave variables as they are."""
        flags: dict[Any, Any] = {}
        int32 = np.dtype(np.int32)
        guard = self.graph.guard_device
        if guard is not None:
            flags[guard.backend.memory] = self._reports[guard][: int32.itemsize].view(int32)
            devices = [node.device for node in self.graph.nodes if self.graph.writes]
            devices += [variable.pinned()[0].device for variable, _ in self.graph.writes]
            used = {launch.backend.memory for launches in stages for launch in launches}
            used |= {backend.memory for backend in self._writers()}
            for device in devices:
                memory = device.backend.memory
                if memory in used and memory not in flags:
                    storage = device.allocate((1,), int32)
                    self._storages.append(storage)
                    flags[memory] = storage.array
        return flags

    def _writers(self) -> list[Backend]:
        """Return a backend for each memory where writes of variables are left for the end."""
        writers = [variable.pinned()[0].device.backend for variable, _ in self._arrays.plan.commits]
        return list({writer.memory: writer for writer in reversed(writers)}.values())

    def _bound(self, stages: Sequence[Stage]) -> tuple[list[list[BoundLaunch]], int]:
        """Return what stages launch, and from which of these stages on variables are written."""
        flags = self._flags
        lowering = StreamLowering(self._arrays, flags, self._counters, self._write_guard)
        bound: list[list[BoundLaunch]] = []
        before, behind = split_at_writes(stages, lowering.in_place)
        writes = None
        for number, launches in enumerate((*before, *behind)):
            writes = len(bound) if number == len(before) else writes
            collective = launches[0].collective
            if collective is not None:
                all_reduce = AllReduce(collective, *lowering.ranks(collective))
                bound.append([BoundLaunch(launches[0], [], all_reduce)])
                continue
            bound.append([BoundLaunch(launch, lowering.lower(launch)) for launch in launches])
            if isinstance(launches[0].phases[0], Guard):
                others = [launch.backend for launches in stages for launch in launches]
                copies = spread_flag(launches[0].backend, [*others, *self._writers()], flags)
                if copies:
                    sides = [(Launch(backend, [], between=True), call) for backend, call in copies]
                    bound.append([BoundLaunch(launch, [call]) for launch, call in sides])
        waits = len(self.graph.collectives)
        commits = [(backend, lowering.commits(backend)) for backend in self._writers()]
        if commits and writes is None:
            writes = len(bound)
        last = [*commits, *self._reported.ends()]
        for where, calls in sorted(last, key=lambda end: not is_offloaded(end[0])):
            goes_on = len(bound) != writes and bound and len(bound[-1]) == 1
            if not (goes_on and bound[-1][0].goes_on(where, waits)):
                bound.append([BoundLaunch(Launch(where, [], waits=waits), [])])
            bound[-1] = [bound[-1][0].with_calls(calls)]
        return bound, len(bound) if writes is None else writes

    # ------------------------------------------------------------------ running

    @cached_property
    def _staging(self) -> Staging:
        counters = list(self._counters.values())
        return Staging(self._feeds, self._arrays, self.graph.inputs, counters, self._streams)

    @cached_property
    def _results(self) -> list[Result]:
        values = list(zip(self.graph.outputs, self.outputs, strict=True))
        guard = None if self.graph.guard_device is None else self.graph.guard_device.backend
        flag = None if guard is None else (self._flags[guard.memory], guard)
        streams = self._streams
        return [
            Result(values, flag, self._reported.turn(number), streams)
            for number in range(turns_of(self.graph))
        ]

    def call(self, sources: Sequence[Any], pool: ThreadPool | None = None) -> None:
        """Run one step, as a call of a function does; see `Program.call`."""
        self.run(1, sources, pool=pool)

    def returned(
        self, sources: Sequence[Any], pool: ThreadPool | None = None
    ) -> list[tuple[Any, Storage]]:
        """Run one step; return its results; see `Program.returned`."""
        storages = self._reported.make_room()
        self.run(1, sources, pool=pool)
        return self._reported.returned(storages)

    def run(
        self,
        steps: int,
        feed: Feed | Sequence[Any] = None,
        report: Report | None = None,
        pool: ThreadPool | None = None,
        look: Callable[[Node], object] | None = None,
    ) -> bool:
        """Run a number of steps; see `Program.run`.

        What feeders write goes through pinned memory; arrays, one an input, which all steps are
        given, are copied by the devices. Without `report` the host waits for no more than sums.
        With it some steps are on their way before the first is reported; where it says to stop,
        those are done and reported too. Where a collective fails, those that wrote before it are
        reported. With `look` they run kernel by kernel, and it is called with each node whose
        result is there.
        """
        del pool
        self._look = look
        # Made now: where there is no room for either nothing has changed.
        bring, staged = self._brought(feed), callable(feed)
        results = self._results if report is not None else []
        waiting: deque[Result] = deque()
        going_on, self._lost = True, False
        self._reported.begin(steps, report=report is not None)
        self._steps.begin()
        if report is not None or not self._may_write:
            self._let_write()
        try:
            for step in range(steps):
                undo = self._draws.mark() if self._draws else None
                with self._undone_where_stopped(undo):
                    bring(step)
                    self._kept_casts.refresh(self._streams)
                    self._reported.asked()
                    self._step()
                if report is None:
                    self._steps.stay_near()
                    continue
                waiting.append(results[step % len(results)])
                waiting[-1].undo = undo
                waiting[-1].fetch(step)
                if len(waiting) == len(results) or observers:
                    going_on = self._settle(waiting, report)
                if not going_on:
                    break
            if report is None and self._tells_sums:
                self._steps.lead.wait_on_host(self._steps.lead.record())
        finally:
            # What was enqueued is done, and so is reported, whatever was raised.
            try:
                if report is not None:
                    going_on = self._settle_all(waiting, report) and going_on
            finally:
                if staged and not self._is_stuck:
                    self._staging.wait()
                self._steps.end()
        if self._lost:
            raise WATCH.lost()
        return going_on

    def _brought(self, feed: Feed | Sequence[Any]) -> Callable[[int], None]:
        """Return what brings a step's inputs and draws to the devices."""
        if callable(feed):
            self._taken = [None] * len(self.inputs)
            return partial(self._stage, [feed(inputs) for inputs in self._staging.inputs])
        for i, array in enumerate(feed or ()):
            if self._taken[i] is not None and self._taken[i]() is array:
                continue  # It is there from the call before.
            self._taken[i] = None
            is_on_host = isinstance(array, np.ndarray | HostRows)
            source = np.asarray(array) if is_on_host else array
            self.graph.inputs[i].device.backend.copy_between(source, self.inputs[i])
            if not is_on_host:
                self._taken[i] = weakref.ref(array)
        return self._draw_in_place

    @contextmanager
    def _undone_where_stopped(self, undo: Callable[[], None] | None) -> Iterator[None]:
        """Take back the draws of a step that was not asked for as a whole: it writes nothing."""
        try:
            yield
        except BaseException as error:
            self._reported.forget()
            if isinstance(error, WorkersChangedError) and not WATCH.stuck:
                # Another program gets the memory.
                for backend in self._steps.backends:
                    backend.synchronize()
            kinds = CollectiveError | ResourceExhaustedError | WorkersChangedError
            if isinstance(error, kinds) or self._is_stopped:
                _take_back([undo])
            raise

    @property
    def _is_stopped(self) -> bool:
        """Whether a collective has failed since steps were allowed to write."""
        return self._write_guard is not None and not self._may_write

    @property
    def _is_stuck(self) -> bool:
        """Whether a collective has failed, and devices may never be done."""
        return self._is_stopped and WATCH.stuck

    def _settle_all(self, waiting: deque[Result], report: Report) -> bool:
        going_on, raised = True, None
        while waiting:
            if self._is_stuck:
                _take_back([run.undo for run in waiting])
                break
            try:
                going_on = self._settle(waiting, report) and going_on
            except GuardFailed:
                raise
            except BaseException as error:
                if not (isinstance(error, Exception) or self._is_stopped):
                    raise
                raised = raised or error
        if raised is not None:
            raise raised
        return going_on

    def _settle(self, waiting: deque[Result], report: Report) -> bool:
        """Wait for the first of some results, and tell of it; where it failed, of none.

        Where a collective fails meanwhile the result stays where it is, to be looked at then.
        """
        result = waiting[0]
        try:
            wrote = result.wait()
        except BaseException:
            if not self._is_stopped:
                waiting.popleft()
            raise
        waiting.popleft()
        if wrote:
            return report(result.arrays, result.step)
        # The steps behind it were asked for in vain: they write nothing, and draw again.
        for backend in self._steps.backends:
            backend.synchronize()
        behind = [run.undo for run in waiting]
        waiting.clear()
        if self._is_stopped:
            _take_back([result.undo, *behind])
            self._lost = True
            return False
        _take_back(behind)
        raise GuardFailed(result.step, result.arrays)

    def _let_write(self) -> None:
        """Let the steps to come write variables."""
        WATCH.settle()
        if self._was_stopped:
            # What was asked for before that must not pass the guard when it is open again.
            if WATCH.stuck:
                raise WATCH.lost()
            for backend in self._steps.backends:
                backend.synchronize()
            self._was_stopped = False
        self._may_write = True
        if self._write_guard is not None:
            self._write_guard.open()
            if not self._may_write:  # Stopped meanwhile, by what failed in another thread.
                self._write_guard.shut()
        for memory, flag in self._flags.items():
            if memory in self._streams:
                self._streams[memory].copy_between(np.ones(1, np.int32), flag)
            else:
                flag[...] = 1

    def _stop_writes(self) -> None:
        """Keep what the devices were asked for from writing variables: sums may be wrong.

        They may wait for each other indefinitely: this does not wait. A step that is past the
        guard writes on all devices: its sums were there.
        """
        if self._may_write and self._write_guard is not None:
            self._may_write, self._was_stopped = False, True
            self._write_guard.shut()

    def _draws_of_step(self) -> list[Any]:
        if self._draws:
            self._draws.take()
        return self._draws.drawn

    def _stage(self, sides: Sequence[Mapping[int, Feeder]], step: int) -> None:
        """Bring a step's batch and draws to the devices, beside what they compute."""
        draws = self._draws_of_step()
        side = self._staging.begin()
        for feed in sides[side].values():
            feed(step)
        self._staging.bring(side, draws)

    def _draw_in_place(self, _: int) -> None:
        """Bring a step's draws to the devices."""
        for value, draw in zip(self._counters.values(), self._draws_of_step(), strict=True):
            backend = value.device.backend
            stream = self._streams.get(backend.memory, backend)
            stream.copy_between(counter_of(draw), self._arrays.of(value))

    def _step(self) -> None:
        if self.graph.writes:  # Before it does: an interrupt may come behind it.
            self._kept_casts.written()
        steps = self._steps
        if self._look is None and not observers:
            steps.run()
        else:
            with steps.together():
                self._run_apart(steps.parts[0])
            self._run_apart(steps.parts[1])
        if get_log_device_placement():
            log_placement(self.graph.name, self.graph.device)

    def _run_apart(self, stages: Sequence[Sequence[BoundLaunch]]) -> None:
        """Run a part of a step kernel by kernel, for a profiler or to look at each result."""
        backends = self._steps.backends
        if self._look is not None:
            together = {  # Their calls have the last node.
                phase.nodes[-1]: phase.nodes
                for phase in self.planned.schedule.phases()
                if isinstance(phase, FusedGroup) or (isinstance(phase, Kernels) and phase.together)
            }
            with kernel_by_kernel():
                for launch, calls, *_ in run_apart(stages, backends):
                    sums = launch.all_reduce
                    nodes = [calls[0].node] if sums is None else sums.collective.nodes
                    for node in together.get(nodes[0], nodes):
                        if node is not None and node.output.base not in self._arrays.plan.locals:
                            self._look(node)
        else:
            with kernel_by_kernel():
                run_timed(stages, backends, self.graph, observers[0])


def _take_back(undo: Sequence[Callable[[], None] | None]) -> None:
    """Take back the draws of steps: those of the first one, and with them all behind it."""
    if undo and undo[0] is not None:
        undo[0]()
