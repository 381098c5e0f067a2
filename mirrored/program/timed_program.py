"""A program's step with a clock around each kernel, used while a profiler measures.

The calls, their order and their arrays are those of the program, so the bits are too. On the host
the clocks stand within what replays a step; a step of streams is run kernel by kernel, and waited
for, so that a clock shows the kernel's own time and its launch, and no more.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from time import perf_counter_ns
from typing import Any, Protocol

from mirrored.backends import Backend
from mirrored.devices import Device
from mirrored.devices.work_timing import (
    ALL_REPLICAS,
    Observer,
    Work,
    copy_work,
    kernel_work,
)
from mirrored.program.dataflow import COPY, SHARED, Graph, Node, Value, joins_rows
from mirrored.program.kernel_calls import Call
from mirrored.program.lowering import LoweredStage
from mirrored.program.thread_pool import Barrier


class TimedStages:
    """What a program runs, instead of its stages, while somebody measures.

    Args:
        graph: The program's graph.
        stages: Its stages.
        threads: How many threads run them.
        observer: Who measures.

    Attributes:
        observer: Who measures.
        stages: The stages with a clock around each kernel.
    """

    def __init__(
        self, graph: Graph, stages: Sequence[LoweredStage], threads: int, observer: Observer
    ) -> None:
        self.observer = observer
        self._graph = graph
        self._threads = threads
        self._replicas = {value.replica for value in graph.inputs} | {
            replica for stage in stages for replica in stage.replicas or ()
        }
        self._replicas.discard(SHARED)
        # A lone replica's work is its own; a function outside replicas is that of its caller.
        several = len(self._replicas) > 1
        self._shared = ALL_REPLICAS if several else next(iter(self._replicas), None)
        self.stages = [self._stage(stage) for stage in stages]

    def feeds(self, feeds: Mapping[int, Callable[[int], None]]) -> dict[int, Any]:
        """Return what writes the inputs, with a clock."""
        return {
            replica: self._clocked(feed, *self._infeed(replica)) for replica, feed in feeds.items()
        }

    def barrier(self, size: int) -> Barrier:
        """Return where the threads of one run meet, with a clock."""
        waits = []
        for number in range(size):
            device = self._device_of(number)
            wait = Work("wait", "wait", "wait", device.short_name)
            waits.append(_owned(self._graph, wait, number))
        return _TimedBarrier(waits, self.observer)

    def _stage(self, stage: LoweredStage) -> LoweredStage:
        if stage.check is not None:
            work = _check_of(self._graph.device)
            return LoweredStage(check=self._clocked(stage.check, work, self._shared))
        if stage.replicas is not None:
            replicas = stage.replicas.items()
            return LoweredStage(
                replicas={replica: self._calls(calls, replica) for replica, calls in replicas}
            )
        if stage.shards is not None:
            return LoweredStage(
                shards=[
                    self._shard(pieces, thread if self._threads > 1 else self._shared)
                    for thread, pieces in enumerate(stage.shards)
                ]
            )
        return LoweredStage(calls=self._calls(stage.calls or (), self._shared))

    def _calls(self, calls: Sequence[Call], replica: int | None, shares: int = 0) -> list[Call]:
        """Return one call for all that a node's kernel calls."""
        return [
            Call(self._clocked(_in_turn(kernel), _host_work(kernel, shares), replica))
            for kernel in _kernels(calls)
        ]

    def _shard(self, pieces: Sequence[Sequence[Call]], replica: int | None) -> list[list[Call]]:
        """Return the calls of all pieces as those of one, because each has a clock of its own."""
        calls = [call for piece in pieces for call in self._calls(piece, replica, self._threads)]
        return [[Call(_in_turn(calls))]] if calls else []

    def _clocked(self, function: Callable[..., Any], work: Work, replica: int | None) -> Any:
        add, now = self.observer.add, perf_counter_ns
        work, replica = _owned(self._graph, work, replica)

        def run(*args: Any) -> Any:
            start = now()
            result = function(*args)
            add(work, replica, start, now())
            return result

        return run

    def _infeed(self, replica: int) -> tuple[Work, int | None]:
        inputs = [
            item for item in self._graph.inputs if not self._replicas or item.replica == replica
        ]
        nbytes = sum(input_.nbytes for input_ in inputs)
        device = self._device_of(replica).short_name
        work = Work("Infeed", "transfer", "Infeed", device, nbytes, nbytes, "host")
        return work, replica if replica in self._replicas else self._shared

    def _device_of(self, replica: int) -> Device:
        values = [*self._graph.inputs, *(node.output for node in self._graph.nodes)]
        return next((item.device for item in values if item.replica == replica), self._graph.device)


class _TimedBarrier(Barrier):
    """Where the threads of one run wait for each other, and how long each of them does."""

    def __init__(self, waits: Sequence[tuple[Work, int | None]], observer: Observer) -> None:
        super().__init__(len(waits))
        self._waits = waits
        self._observer = observer

    def lead(self, shared: Callable[[], Any] | None = None) -> None:
        """Wait for all others, and do the shared work, of which each part has its own clock."""
        start = perf_counter_ns()

        def met() -> None:
            self._observer.add(*self._waits[0], start, perf_counter_ns())
            if shared is not None:
                shared()

        super().lead(met)

    def follow(self, number: int) -> None:
        """Wait until the first thread has done the shared work."""
        start = perf_counter_ns()
        super().follow(number)
        self._observer.add(*self._waits[number], start, perf_counter_ns())


def _in_turn(calls: Iterable[Call]) -> Callable[[], object]:
    """Return a function that makes the calls, without the time that compiling one takes."""
    kernels = [call.bound() for call in calls]
    if len(kernels) == 1:
        return kernels[0]

    def run() -> None:
        for kernel in kernels:
            kernel()

    return run


def _host_work(calls: Sequence[Call], shares: int) -> Work:
    """Return what the calls of one node do; 0: for all of it, else for a piece of one of shares."""
    node: Node = calls[0].node
    if joins_rows(node.op, node.attrs):  # The other parts are where they should be already.
        joined = sum(call.args[0].nbytes for call in calls)
        return _kernel_work(node, joined, joined)
    read, written = _bytes_of(node)
    if shares:
        # A compiled loop is called with addresses, and computes all of a share.
        sizes = [arg.size for call in calls for arg in call.args if hasattr(arg, "size")]
        length = max(sizes, default=-(-node.output.size // shares))
        read = sum(_bytes_of_piece(operand, length) for operand in node.inputs)
        written = _bytes_of_piece(node.output, length)
    if node.op is COPY:
        return copy_work(node.inputs[0].device, node.device, written)
    return _kernel_work(node, read, written)


def _bytes_of_piece(value: Value, length: int) -> int:
    return (length if value.spec.shape else 1) * value.spec.dtype.itemsize


# ------------------------------------------------------------------ streams


class BoundLaunch(Protocol):
    """Calls that a stream is asked for, or an all-reduce."""

    backend: Backend
    between: bool
    calls: Sequence[Call]
    all_reduce: Any


def run_apart(
    stages: Iterable[Iterable[BoundLaunch]], backends: Iterable[Backend]
) -> Iterator[tuple[BoundLaunch, Sequence[Call], int, int]]:
    """Run a step kernel by kernel; yield each, with when it began and ended, when it is done.

    Of an all-reduce there are no calls.

    Args:
        stages: What the step does, in order.
        backends: All that it runs on.
    """
    for stage in stages:
        for launch in stage:
            if launch.all_reduce is not None:
                for backend in backends:
                    backend.synchronize()
                start = perf_counter_ns()
                for stream, event in launch.all_reduce.start():
                    stream.wait_on_host(event)
                yield launch, (), start, perf_counter_ns()
            for calls in _kernels(launch.calls):
                launch.backend.synchronize()
                start = perf_counter_ns()
                for call in calls:
                    if launch.between:
                        call.run()
                    else:
                        launch.backend.run(call.run)
                launch.backend.synchronize()
                yield launch, calls, start, perf_counter_ns()


def run_timed(
    stages: Iterable[Iterable[BoundLaunch]],
    backends: Iterable[Backend],
    graph: Graph,
    observer: Observer,
) -> None:
    """Run a step kernel by kernel, and tell of each how long it took; see `run_apart`.

    Args:
        stages: What the step does, in order.
        backends: All that it runs on.
        graph: The program's graph.
        observer: Who measures.
    """
    for launch, calls, start, end in run_apart(stages, backends):
        if launch.all_reduce is not None:
            for node in launch.all_reduce.collective.nodes:
                nbytes, device = node.output.nbytes, node.device.short_name
                work = Work("AllReduce", "collective", node.op.name, device, nbytes, nbytes)
                observer.add(work, ALL_REPLICAS, start, end)
        elif calls[0].node is None:
            observer.add(_check_of(graph.device), None, start, end)
        else:
            node = calls[0].node
            work, replica = _owned(graph, _kernel_work(node, *_bytes_of(node)), node.replica)
            observer.add(work, replica, start, end)


# ------------------------------------------------------------------ both


def _owned(graph: Graph, work: Work, number: int | None) -> tuple[Work, int | None]:
    """Return the work of what has a number in a graph, by its name, and its first replica."""
    if number is None or number == SHARED:
        shared = None if number is None else ALL_REPLICAS
        return (work._replace(whose="all parts") if graph.parts > 1 else work), shared
    if graph.parts > 1:
        return work._replace(whose=f"part {number} of {graph.parts}"), number
    if number not in graph.lanes:
        return work, number
    first, count = graph.lanes.index(number), graph.lanes.count(number)
    last = first + count - 1
    return (work._replace(whose=f"replicas {first} to {last}") if last > first else work), first


def _kernels(calls: Iterable[Call]) -> list[list[Call]]:
    """Return calls in groups, all that a node's kernel calls in one."""
    return [list(group) for _, group in groupby(calls, key=lambda call: id(call.node))]


def _bytes_of(node: Node) -> tuple[int, int]:
    """Return how many bytes a node's kernel reads and writes."""
    return sum(operand.nbytes for operand in node.inputs), node.output.nbytes


def _kernel_work(node: Node, bytes_in: int, bytes_out: int) -> Work:
    sources = [operand.device for operand in node.inputs]
    return kernel_work(node.op.name, sources, node.device, bytes_in, bytes_out)


def _check_of(device: Device) -> Work:
    return Work("CheckNumerics", "compute", "CheckNumerics", device.short_name)
