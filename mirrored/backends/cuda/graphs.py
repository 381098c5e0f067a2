"""CUDA graphs: captures the launches of a function once, and launches them as one.

Where that is not possible a line of the log says why, and its kernels are launched one by one.
"""

import contextlib
import gc
import os
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from mirrored._logging import logger
from mirrored.backends.cuda.current_card import Entered
from mirrored.errors import DeviceLostError, ResourceExhaustedError


class Capturing(Protocol):
    """What graphs ask of a backend."""

    where: str

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
            self._graph.launch(self._backend.stream)


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
    collects = gc.isenabled()
    gc.disable()  # What it would destroy meanwhile, such as another graph, may end the capture.
    try:
        with backend.entered(), backend.stream:
            # At a thread's first launch CuPy makes a call that a capture may refuse; here too.
            cupy.cuda.function.LinkState()
            mode = cupy.cuda.runtime.streamCaptureModeThreadLocal
            graph = _captured(backend.stream, work, mode)
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
    finally:
        if collects:
            gc.enable()
    return CapturedGraph(backend, graph)


def _captured(stream: Any, work: Callable[[], object], mode: int) -> Any:
    """Return CuPy's graph of what a function launches on a stream that is the current one."""
    stream.begin_capture(mode)
    try:
        work()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # It follows from what was raised, which is told.
            stream.end_capture()
        raise
    return stream.end_capture()


@cache
def _say_that_graphs_are_off() -> None:
    logger.debug("MIRRORED_CUDA_GRAPHS=0: programs are replayed kernel by kernel.")
