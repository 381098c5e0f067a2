"""Elements that a thread creates ahead of their use: `prefetch`.

The thread ends with the iterator that it works for, however that ends.
"""

import os
import threading
import weakref
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any

from mirrored._threads import new_thread, start
from mirrored.data.elements import Elements, Failure
from mirrored.data.rng import Iteration
from mirrored.data.transform import Derived, Transform
from mirrored.devices import hold_devices
from mirrored.devices.work_timing import Work, observers
from mirrored.errors import DevicesResetError

Items = SimpleQueue[tuple[str, Any]]


_PATIENCE = 1.0  # Seconds.
_LOST = (
    "This iterator of a dataset with `prefetch` was created before "
    "mr.config.experimental.reset_devices(), which ended its thread. Iterate over the dataset "
    "again."
)


class Prefetched(Derived):
    """Elements of another transform, of which a thread creates some ahead of their use."""

    def __init__(self, source: Transform, buffer_size: int) -> None:
        super().__init__(source)
        self._buffer_size = buffer_size

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator, whose thread starts with its first element."""
        worker = _Worker(self._source, iteration.source(), self._buffer_size)
        try:
            while True:
                kind, value = worker.next()
                if kind == "end":
                    return
                if kind == "error":
                    try:
                        raise value
                    finally:
                        del value  # Its traceback leads here: a cycle would keep the arrays.
                yield value
        finally:
            worker.stop()


class _Worker:
    """The thread, and the bounded queue that it fills."""

    def __init__(self, transform: Transform, iteration: Iteration, most: int) -> None:
        self._process = os.getpid()
        self._items: Items = SimpleQueue()
        self._room = threading.Semaphore(most)
        self._elements = transform.open(iteration)
        self._start()
        hold_devices(self)

    def _start(self) -> None:
        self._is_paused = False
        stopped = threading.Event()
        thread = new_thread(
            "mirrored-prefetch", _work, self._elements, self._items, self._room, stopped
        )
        # At exit too: a thread must not run Python code while the interpreter goes away. Before
        # the start, which an interrupt may end.
        self.stop = weakref.finalize(self, _stop, thread, self._room, stopped, self._process)
        self._thread = thread
        start(thread)

    def lose_devices(self) -> None:
        """End the thread, and say so to whoever waits for an element."""
        self.stop()
        self._items.put(("error", DevicesResetError(_LOST)))

    def next(self) -> tuple[str, Any]:
        """Wait for the next item."""
        if os.getpid() != self._process:
            raise RuntimeError(
                "An iterator of a dataset with `prefetch` cannot be used in a forked process, "
                "which does not have its thread. Received: an iterator created before the fork. "
                "Iterate over the dataset again."
            )
        if self._is_paused:
            self.stop.detach()
            self._start()
        item = self._items.get()
        self._room.release()
        self._is_paused = type(item[1]) is Failure
        if self._is_paused:
            self._thread.join()
        return item


def _work(
    elements: Elements, items: Items, room: threading.Semaphore, stopped: threading.Event
) -> None:
    """Make elements while there is room, up to one that cannot be made.

    What goes wrong reaches the consumer as an item; where that is a `Failure`, another thread goes
    on if the consumer asks for more.
    """
    try:
        while True:
            room.acquire()
            if stopped.is_set():
                elements.close()
                return
            element = _timed(elements) if observers else next(elements, _END)
            if element is _END:
                break
            items.put(("element", element))
            if type(element) is Failure:
                return
        items.put(("end", None))
    except BaseException as error:
        items.put(("error", error))


_END = object()
_WORK = Work("Prefetch", "data", "Prefetch", "dataset")


def _timed(elements: Elements) -> Any:
    """Return the next element, and tell observers how long it took."""
    begin = perf_counter_ns()
    element = next(elements, _END)
    for observer in observers:
        observer.add(_WORK, None, begin, perf_counter_ns())
    return element


def _stop(
    thread: threading.Thread, room: threading.Semaphore, stopped: threading.Event, process: int
) -> None:
    """End the thread after the element that it is making."""
    if process != os.getpid():
        return
    stopped.set()
    room.release()
    # The garbage collector may call it anywhere, in the thread itself too.
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(_PATIENCE)  # What makes the element may wait for something that never comes.
