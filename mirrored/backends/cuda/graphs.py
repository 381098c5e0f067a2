"""CUDA graphs, which launch what a function launches as one, and CUDA events.

Where nothing can be captured a line of the log says why, and kernels are launched one by one.
Events are used again, since to create one takes longer than to record it. The driver is asked for
them through ctypes, which releases the GIL, as CuPy does not: where the driver keeps one thread
waiting, and with it all that ask it, the others have to go on in Python, since they see to
deadlines.
"""

import contextlib
import ctypes
import os
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from mirrored._contexts import without_collector
from mirrored._logging import logger
from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.current_card import Entered
from mirrored.backends.cuda.launcher import Launcher
from mirrored.errors import DeviceLostError, ResourceExhaustedError

DONE, NOT_READY = 0, 600  # Of a query. What is neither is an error, numbered as the runtime's are.


@cache
def load_driver() -> Any:
    """Return the driver's library, which is loaded in any process that uses a card."""
    return ctypes.CDLL(nvml.DRIVER)


def query(event: int) -> int:
    """Return what the driver says of an event, given by its handle."""
    return int(load_driver().cuEventQuery(ctypes.c_void_p(event)))


# Events that nobody refers to, kept for the next ones, at most.
_MOST_FREE = 256


class Event:
    """A recorded event of CuPy's, which is free for others once nobody refers to this any more.

    A stream that was told to wait for it waits for what it stood for then, so it need not be kept
    for that.

    Attributes:
        ptr: Its handle.
    """

    __slots__ = ("_event", "_free", "ptr")

    def __init__(self, event: Any, free: deque[Any]) -> None:
        self._event = event
        self._free = free
        self.ptr = event.ptr

    def __del__(self) -> None:
        self._free.append(self._event)

    def synchronize(self) -> None:
        """Let the host wait for it."""
        self._event.synchronize()


class Events:
    """The events of one device.

    Args:
        make: Makes one of CuPy's, of the card that is current, without a clock.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._free: deque[Any] = deque()
        # All that there are. What only an `Event` kept, the garbage collector would let CuPy
        # destroy together with that, which then gives it back.
        self._events: set[Any] = set()

    def recorded(self, stream: Any) -> Event:
        """Return an event at the end of a stream's work so far; its card is the current one."""
        try:
            while len(self._free) > _MOST_FREE:
                self._events.discard(self._free.popleft())
            event = self._free.popleft()
        except IndexError:  # Other threads take some too.
            event = self._make()
            self._events.add(event)
        event.record(stream)
        return Event(event, self._free)


class Capturing(Protocol):
    """What graphs ask of a backend."""

    where: str

    @property
    def xp(self) -> Launcher:
        """What launches kernels."""

    @property
    def stream(self) -> Any:
        """The stream that is captured."""

    def entered(self) -> Entered:
        """Enter the card."""

    def record(self) -> Any:
        """Return an event at the end of the work so far."""

    def is_done(self, event: Any) -> bool:
        """Return whether the device has come to an event."""


# Graphs that nobody launches any more and that may still run, with the event behind them.
_leaving: deque[tuple[Capturing, Any, Any]] = deque()


def _let_go() -> None:
    """Let go of graphs that do not run any more."""
    for _ in range(len(_leaving)):
        try:
            leaving = _leaving.popleft()
        except IndexError:  # Another thread was quicker.
            return
        backend, event, _graph = leaving
        with contextlib.suppress(RuntimeError):
            if not backend.is_done(event):
                _leaving.append(leaving)


class CapturedGraph:
    """A captured function, which a device launches."""

    def __init__(self, backend: Capturing, graph: Any) -> None:
        self._backend = backend
        self._graph = graph

    def __del__(self) -> None:
        # CUDA does not promise that a graph may go while it runs. It is not waited for here, where
        # the garbage collector may have run: it may wait for another card, indefinitely.
        with contextlib.suppress(RuntimeError):  # On a lost card nothing runs.
            _leaving.append((self._backend, self._backend.record(), self._graph))
        _let_go()

    def launch(self) -> None:
        """Let the device do all of it after what it was asked for before."""
        with self._backend.entered():
            self._backend.xp.insist(self._graph.launch, self._backend.stream)


def capture(backend: Capturing, work: Callable[[], object], cupy: Any) -> CapturedGraph | None:
    """Return what a function launches on a backend's stream, None where it cannot be captured.

    Raises:
        DeviceLostError: The card cannot go on.
        ResourceExhaustedError: It has no memory for the graph, or for what the function needs.
    """
    if os.environ.get("MIRRORED_CUDA_GRAPHS", "1") == "0":
        _say_that_graphs_are_off()
        return None
    _let_go()
    try:
        # What a collector would destroy meanwhile, such as another graph, may end the capture.
        with without_collector(), backend.entered(), backend.stream:
            # At a thread's first launch CuPy makes a call that a capture may refuse; here too.
            cupy.cuda.function.LinkState()
            mode = cupy.cuda.runtime.streamCaptureModeThreadLocal
            graph = _captured(backend.stream, work, mode)
            graph.upload(backend.stream)  # Else its first launch takes memory of the card.
    except (DeviceLostError, ResourceExhaustedError):
        raise
    except (RuntimeError, NotImplementedError) as error:
        # What cannot be captured can still be launched.
        logger.debug(
            "%s: a program could not be captured as a CUDA graph, and is replayed kernel by "
            "kernel. The reason: %s",
            backend.where,
            str(error),  # The error would hold the program for as long as somebody keeps the log.
        )
        return None
    return CapturedGraph(backend, graph)


def _captured(stream: Any, work: Callable[[], object], mode: int) -> Any:
    """Return CuPy's graph of what a function launches on a stream that is the current one."""
    stream.begin_capture(mode)
    try:
        work()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # It follows from the exception that is raised.
            stream.end_capture()
        raise
    return stream.end_capture()


@cache
def _say_that_graphs_are_off() -> None:
    logger.debug("MIRRORED_CUDA_GRAPHS=0: programs are replayed kernel by kernel.")
