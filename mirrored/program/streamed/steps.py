"""One step of a streamed program: its tracks in order, each waiting for what it needs.

On one card all of it is captured once and launched as a whole; between cards, and around work of
the host, each part of it is.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from mirrored.backends import Backend
from mirrored.backends.streams import Launchable, StreamBackend, is_streamed
from mirrored.errors import ResourceExhaustedError
from mirrored.program.binding import Call
from mirrored.program.source import make_function

Work = Callable[[], object]


class Unit:
    """Work that one backend launches as a whole, where that is possible.

    The first run launches kernel by kernel, which compiles them; then it is captured.

    Args:
        backend: The backend.
        work: Launches it.
    """

    def __init__(self, backend: StreamBackend, work: Work) -> None:
        """Capture nothing yet."""
        self._backend = backend
        self._work = work
        self._runs = 0
        self._settings = backend.settings
        self._captured: Launchable | None = None

    def run(self) -> None:
        """Let the device do the work."""
        if self._backend.settings != self._settings:
            self._captured, self._runs = None, 0
            self._settings = self._backend.settings
        if self._runs == 1:
            self._captured = self._backend.capture(self._work)
        self._runs += 1
        if self._captured is not None:
            try:
                self._captured.launch()
                return
            except ResourceExhaustedError:
                self._captured = None  # Its kernels one by one need less.
        self._work()


class BoundTrack:
    """The calls of a track.

    Args:
        backend: The one on whose stream they run.
        calls: The calls.
        between: Whether they are copies between memories, or the host's work.
    """

    def __init__(self, backend: Backend, calls: Sequence[Call], *, between: bool) -> None:
        """Make them a function."""
        self.backend = backend
        self.calls = calls
        self.between = between
        self._function = make_function(calls)

    def run(self) -> None:
        """Make the calls."""
        if self.between:
            self._function()
        else:
            self.backend.run(self._function)


class Steps:
    """Runs one step after the other.

    Args:
        stages: The tracks; those of one stage run side by side.
        backends: Those of the devices of all that the program reads and writes.

    Attributes:
        stages: The tracks.
        backends: The streams that it runs on; a step begins and ends on the first.
    """

    def __init__(self, stages: Sequence[Sequence[BoundTrack]], backends: Iterable[Backend]) -> None:
        """Find out what can be launched as a whole."""
        self.stages = stages
        tracks, backends = [track for tracks in stages for track in tracks], list(backends)
        used = dict.fromkeys([*(track.backend for track in tracks), *backends])
        self.backends: list[StreamBackend] = [each for each in used if is_streamed(each)]
        # Others ask for work on the devices' own streams alone.
        own = {self.lead, *backends}
        self._shared = [each for each in self.backends if each in own]
        one = len({each.memory for each in used}) == 1
        self._whole: Unit | None = None
        self._units: dict[BoundTrack, Unit] = {}
        if one and tracks and not any(track.between for track in tracks):
            # Not a method: what refers to itself lives until the garbage collector comes by, and
            # so would the program's memory.
            work = partial(_run_stages, stages, self.backends, BoundTrack.run)
            self._whole = Unit(self.lead, work)
        else:
            self._units = {
                track: Unit(track.backend, track.run)
                for track in tracks
                if is_streamed(track.backend) and not track.between
            }

    @property
    def lead(self) -> StreamBackend:
        """The backend that a step begins and ends on."""
        return self.backends[0]

    def run(self) -> None:
        """Run a step, after what the lead was asked for before."""
        if self._whole is not None:
            self._whole.run()
            return
        _join(self.backends)  # Each card was fed on a stream of its own.
        _run_stages(self.stages, self.backends, lambda track: self._units.get(track, track).run())
        _fork(self.backends)

    def begin(self) -> None:
        """Let the lead wait for what the other devices were asked for by others."""
        _join(self._shared)

    def end(self) -> None:
        """Let the other devices wait for the lead."""
        _fork(self._shared)


def _fork(backends: Sequence[StreamBackend]) -> None:
    if len(backends) > 1:
        event = backends[0].record()
        for backend in backends[1:]:
            backend.wait(event)


def _join(backends: Sequence[StreamBackend]) -> None:
    for backend in backends[1:]:
        backends[0].wait(backend.record())


def _run_stages(
    stages: Sequence[Sequence[BoundTrack]],
    backends: Sequence[StreamBackend],
    run: Callable[[BoundTrack], object],
) -> None:
    """Run all tracks, between a fork from the first backend and a join there.

    Args:
        stages: The tracks.
        backends: All that have streams.
        run: Runs a track.
    """
    _fork(backends)
    before: list[StreamBackend] = []
    for tracks in stages:
        for backend in before:
            others = [track.backend for track in tracks if track.backend is not backend]
            event = backend.record() if others else None
            for other in others:
                _wait(other, backend, event)
        for track in tracks:
            run(track)
        before = [each.backend for each in tracks if is_streamed(each.backend)] or before
    _join(backends)


def _wait(backend: Backend, other: StreamBackend, event: Any) -> None:
    if is_streamed(backend):
        backend.wait(event)
    else:
        other.wait_on_host(event)
