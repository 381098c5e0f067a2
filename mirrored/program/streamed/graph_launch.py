"""The launches of one step of a streamed program, in order, with their waits.

On one card all of it is captured once and launched as a whole; between cards, and around work of
the host, each part of it is. The end of a step, which writes variables on any number of cards, is
one launch: a card that is full refuses all of it or nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from mirrored.backends import Backend
from mirrored.backends.communication.collective_failures import Peers
from mirrored.backends.stream_backend import Event, Launchable, StreamBackend, is_offloaded
from mirrored.errors import ResourceExhaustedError
from mirrored.program.dataflow import Collective
from mirrored.program.kernel_calls import Call, make_function
from mirrored.program.schedule import Launch


class GraphLaunch:
    """Work that one backend launches as a whole, where that is possible.

    The first run launches kernel by kernel, which compiles them; then it is captured.

    Args:
        backend: The backend.
        work: Launches it.
        otherwise: What is run where it is not captured; None: `work`.
        writes: Whether it writes variables. It is then captured for the first run, and raises where
            the card refuses it, with nothing written.
    """

    def __init__(
        self,
        backend: StreamBackend,
        work: Callable[[], object],
        otherwise: Callable[[], object] | None = None,
        *,
        writes: bool = False,
    ) -> None:
        self._backend = backend
        self._work = work
        self._otherwise = otherwise or work
        self._writes = writes
        self._runs = 0
        self._settings = backend.settings
        self._captured: Launchable | None = None

    def run(self) -> None:
        """Let the device do the work.

        Raises:
            ResourceExhaustedError: It has no memory for that.
        """
        if self._backend.settings != self._settings:
            self._captured, self._runs = None, 0
            self._settings = self._backend.settings
        # Where the card has no room for a graph, its kernels one by one need less.
        refused = () if self._writes else (ResourceExhaustedError,)
        if self._captured is None and (self._runs == 1 or (self._writes and not self._runs)):
            with suppress(*refused):
                self._captured = self._backend.capture(self._work)
        self._runs += 1
        if self._captured is not None:
            with suppress(*refused):
                self._captured.launch()
                return
            self._captured = None
        with kernel_by_kernel() if self._writes else ExitStack():
            self._otherwise()


@contextmanager
def kernel_by_kernel() -> Iterator[None]:
    """Say in errors of launches that write variables that some of them may have been done."""
    try:
        yield
    except ResourceExhaustedError as error:
        error.add_note(
            "The writes of this step are launched one by one, because a profiler runs, CUDA graphs "
            "are off (MIRRORED_CUDA_GRAPHS=0) or cannot hold them. If it was at the end of the "
            "step, only some variables have its values: load a checkpoint."
        )
        raise


class AllReduce:
    """An all-reduce, with its arrays.

    Args:
        collective: The all-reduce.
        sends: What each rank adds, as vectors.
        sums: Where each rank's sum goes.

    Attributes:
        collective: The all-reduce.
        runs: How often it was asked for.
    """

    def __init__(self, collective: Collective, sends: Sequence[Any], sums: Sequence[Any]) -> None:
        self.collective = collective
        self.runs = 0
        self._sends = sends
        self._sums = sums

    @property
    def streams(self) -> Sequence[StreamBackend]:
        """The streams that it runs on, by rank."""
        streams: Sequence[StreamBackend] = self.collective.connection.streams
        return streams

    def start(self) -> list[tuple[StreamBackend, Any]]:
        """Ask for it, and return an event at the end of each rank's part, with its stream."""
        self.runs += 1
        events = self.collective.connection.all_reduce(
            self._sends,
            self._sums,
            what=self.collective.what,
            step=self.runs,
            timeout=self.collective.timeout,
        )
        return list(zip(self.streams, events, strict=True))


class BoundLaunch:
    """The calls of a launch.

    Args:
        launch: The launch.
        calls: The calls.
        all_reduce: What it is instead of calls.
    """

    def __init__(
        self, launch: Launch, calls: Sequence[Call], all_reduce: AllReduce | None = None
    ) -> None:
        self._launch = launch
        self.backend = launch.backend
        self.calls = calls
        self.between = launch.between
        self.meets = launch.meets
        self.waits = launch.waits
        self.all_reduce = all_reduce
        self._function = make_function(calls)

    def goes_on(self, backend: Backend, waits: int) -> bool:
        """Whether it may do more on a backend, after N all-reduces."""
        alone = self.all_reduce is None and not self.between
        return alone and self.backend is backend and self.waits == waits

    def with_calls(self, calls: Sequence[Call]) -> "BoundLaunch":
        """Return the launch with more calls behind its own."""
        return BoundLaunch(self._launch, [*self.calls, *calls], self.all_reduce)

    def run(self) -> None:
        """Make the calls."""
        if self.between:
            self._function()
        else:
            self.backend.run(self._function)


# After this number of steps without a report the host waits until as many before them are done. The
# driver would let it run on until its queue is full, and then block it without seeing interrupts.
_AHEAD = 8


class StepLauncher:
    """Runs one step after the other.

    Args:
        stages: The launches; those of one stage run side by side.
        writes: The number of the stage from which on variables are written.
        backends: Those of the devices of all that the program reads and writes.
        peers: Other processes, which go on where one dies; None: there are none.

    Attributes:
        parts: The launches before variables are written, and the others.
        backends: The streams that it runs on; a step begins and ends on the first.
        together: In its block the first part runs.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[BoundLaunch]],
        writes: int,
        backends: Iterable[Backend],
        peers: Peers | None = None,
    ) -> None:
        self.parts = stages[:writes], stages[writes:]
        launches, backends = [launch for launches in stages for launch in launches], list(backends)
        # All-reduces have streams of their own, which are waited for one by one.
        own_launches = [launch.backend for launch in launches if launch.all_reduce is None]
        used = dict.fromkeys([*own_launches, *backends])
        self.backends: list[StreamBackend] = [backend for backend in used if is_offloaded(backend)]
        # Others ask for work on the devices' own streams alone.
        own = {self.lead, *backends}
        self._shared = [backend for backend in self.backends if backend in own]
        self._unreported = 0  # Steps without a report.
        self._behind: Event | None = None  # In one of them.
        graphs = {
            launch: GraphLaunch(launch.backend, launch.run)
            for stage in self.parts[0]
            for launch in stage
            if is_offloaded(launch.backend) and not launch.between and not launch.all_reduce
        }
        # Not methods: what refers to itself lives until the garbage collector comes by, and so
        # would the program's memory.
        last = [stage for stage in self.parts[1] if is_offloaded(stage[0].backend)]
        end = partial(_run_stages, last, self.backends, BoundLaunch.run)
        end_launch = GraphLaunch(self.lead, end, writes=True) if last else None
        on_host = [launch for stage in self.parts[1] if stage not in last for launch in stage]
        self.together: Callable[[], AbstractContextManager[object]] = (
            nullcontext if peers is None else partial(_together, peers, self.lead)
        )
        self._run: Callable[[], object] = partial(
            _run_parts, self.parts[0], end_launch, on_host, self.backends, graphs, self.together
        )
        if may_be_one_launch(launches, used):
            graphs.clear()
            work = partial(_run_stages, stages, self.backends, BoundLaunch.run)
            self._run = GraphLaunch(self.lead, work, self._run).run

    @property
    def lead(self) -> StreamBackend:
        """The backend that a step begins and ends on."""
        return self.backends[0]

    def stay_near(self) -> None:
        """Wait for the devices where the host is many steps ahead of them; call it after a step."""
        self._unreported += 1
        if self._unreported % _AHEAD == 0:
            behind, self._behind = self._behind, self.lead.record()
            if behind is not None:
                self.lead.wait_on_host(behind)

    def run(self) -> None:
        """Run a step, after what the lead was asked for before."""
        self._run()

    def begin(self) -> None:
        """Let the lead wait for what the other devices were asked for by others."""
        _join(self._shared)

    def end(self) -> None:
        """Let the other devices wait for the lead."""
        _fork(self._shared)


def may_be_one_launch(launches: Sequence[BoundLaunch], backends: Iterable[Backend]) -> bool:
    """Return whether a whole step may be one launch: it is of one card alone."""
    alone = len({backend.memory for backend in backends}) == 1 and bool(launches)
    return alone and not any(launch.between or launch.all_reduce for launch in launches)


def _fork(backends: Sequence[StreamBackend]) -> None:
    if len(backends) > 1:
        event = backends[0].record()
        for backend in backends[1:]:
            backend.wait(event)


def _join(backends: Sequence[StreamBackend]) -> None:
    for backend in backends[1:]:
        backends[0].wait(backend.record())


@contextmanager
def _together(peers: Peers, lead: StreamBackend) -> Iterator[None]:
    """Let all processes come to the writes of a step, or none: its sums are done by then.

    The guard has decided too, so that no later failure keeps this process alone from writing.
    """
    with peers.together():
        yield
        lead.wait_on_host(lead.record())


def _run_parts(
    stages: Sequence[Sequence[BoundLaunch]],
    end: GraphLaunch | None,
    on_host: Sequence[BoundLaunch],
    backends: Sequence[StreamBackend],
    graphs: Mapping[BoundLaunch, GraphLaunch],
    together: Callable[[], AbstractContextManager[object]],
) -> None:
    """Run a step of several launches.

    Args:
        stages: What it does before it writes variables.
        end: What it does then.
        on_host: What the host writes.
        backends: All that have streams.
        graphs: The launches that are captured.
        together: In its block all is done before variables are written.
    """
    with together():
        _join(backends)  # Each card was fed on a stream of its own.
        _run_stages(stages, backends, lambda launch: graphs.get(launch, launch).run())
    with ExitStack() as held:
        # What other threads ask of any of the devices is before all writes, or behind them.
        locks = {backend.memory: backend.lock for backend in backends}
        for memory in sorted(locks, key=str):
            held.enter_context(locks[memory])
        if end is not None:
            _join(backends)
            end.run()
        _fork(backends)
    for launch in on_host:
        launch.run()


def _run_stages(
    stages: Sequence[Sequence[BoundLaunch]],
    backends: Sequence[StreamBackend],
    run: Callable[[BoundLaunch], object],
) -> None:
    """Run all launches, between a fork from the first backend and a join there.

    Args:
        stages: The launches.
        backends: All that have streams.
        run: Runs a launch.
    """
    _fork(backends)
    before: list[StreamBackend] = []
    sums = _Sums()
    for launches in stages:
        all_reduce = launches[0].all_reduce
        if all_reduce is not None:
            sums.start(all_reduce, before or backends[:1], launches[0].waits)
            continue
        here = [launch.backend for launch in launches]
        if launches[0].meets:
            _let_wait(here, [(prior, prior.record()) for prior in before if here != [prior]])
        sums.join(here, launches[0].waits)
        for launch in launches:
            run(launch)
        asked = [work.backend for work in launches if is_offloaded(work.backend)] or before
        before = asked if launches[0].meets else list(dict.fromkeys((*before, *asked)))
    sums.join(backends[:1], sums.count)
    _join(backends)


class _Sums:
    """The all-reduces of one step that were asked for.

    Attributes:
        count: How many they are.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[Any, list[tuple[StreamBackend, Any]]]] = []
        self._joined = 0

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self._ends)

    def start(self, all_reduce: AllReduce, before: Sequence[StreamBackend], waits: int) -> None:
        """Ask for one, after what was asked for before.

        Args:
            all_reduce: The all-reduce.
            before: The streams of that.
            waits: How many of the other all-reduces it waits for.
        """
        events = {backend: backend.record() for backend in before}
        for stream in all_reduce.streams:
            # Its rank begins when all of them have come here: it waits for its own card alone.
            own = [other for other in before if other.memory == stream.memory] or before
            for backend in own:
                stream.wait(events[backend])
        self._wait(all_reduce.streams, self._ends[:waits])
        self._ends.append((all_reduce.collective.connection, all_reduce.start()))

    def join(self, backends: Sequence[Backend], count: int) -> None:
        """Let streams, and what is asked for after this, wait for the first all-reduces."""
        self._wait(backends, self._ends[self._joined : count])
        self._joined = max(self._joined, count)

    def _wait(self, backends: Sequence[Backend], ends: Sequence[Any]) -> None:
        # Those of one connection come one after the other, on the same streams.
        for events in dict(ends).values():
            streams = [stream for stream, _ in events]
            _let_wait([backend for backend in backends if backend not in streams], events)


def _let_wait(backends: Sequence[Backend], events: Sequence[tuple[StreamBackend, Any]]) -> None:
    """Let each of some streams wait for all events, each of another stream.

    Where there are many, the first waits for all and the rest for the first: so calls to the driver
    are as many as streams and events, and not as their product.
    """
    lead = backends[0] if backends else None
    if lead is None or not is_offloaded(lead) or len(backends) < 2 or len(events) < 2:
        for backend in backends:
            for stream, event in events:
                if stream is not backend:
                    _wait(backend, stream, event)
        return
    _let_wait([lead], events)
    event = lead.record()
    for backend in backends[1:]:
        _wait(backend, lead, event)


def _wait(backend: Backend, other: StreamBackend, event: Any) -> None:
    if is_offloaded(backend):
        backend.wait(event)
    else:
        other.wait_on_host(event)
