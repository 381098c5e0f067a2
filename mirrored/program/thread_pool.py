"""The threads that run a program's replicas concurrently, and their barriers."""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any

from mirrored._threads import new_thread, start
from mirrored.devices import hold_devices


class Stopped(Exception):
    """Ends a thread's part of a program because another thread's part has failed or stopped."""


class _Idle:
    """Pools that run nothing now, for programs of a lone device; they end with the devices."""

    def __init__(self) -> None:
        self._pools: dict[int, list[ThreadPool]] = {}
        hold_devices(self)

    @contextlib.contextmanager
    def taken(self, size: int) -> "Iterator[ThreadPool]":
        """Return a pool of N threads that nobody else uses at the same time."""
        pools = self._pools.setdefault(size, [])
        try:
            pool = pools.pop()
        except IndexError:
            pool = ThreadPool(size)
        try:
            yield pool
        finally:
            pools.append(pool)

    def lose_devices(self) -> None:
        """End the threads."""
        for pools in self._pools.values():
            while pools:
                pools.pop().close()


class ThreadPool:
    """Threads that wait for work; the caller is the first of them.

    They start with the first work, and end with `close`, with the interpreter, or when the pool
    is collected. A forked child has none of them and starts its own.

    Args:
        size: How many threads work, the caller included.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._workers: list[_Worker] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _end, self._workers, self._process)

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run one task a thread at the same time; raise what the first to fail of them raised.

        Args:
            tasks: As many as there are threads.

        Raises:
            RuntimeError: The system refuses a thread; nothing was run.
        """
        with self._lock:
            self._complete()
            errors: list[BaseException | None] = [None] * len(tasks)
            for i, worker in enumerate(self._workers, start=1):
                worker.give(_keeping_errors(tasks[i], errors, i))
            _keeping_errors(tasks[0], errors, 0)()
            interrupt = _wait_for(self._workers)
        if interrupt is not None:
            errors.insert(0, interrupt)
        for error in errors:
            if error is not None and not isinstance(error, Stopped):
                try:
                    raise error
                finally:
                    errors.clear()
                    del error  # Its traceback leads here: a cycle would keep the step's arrays.

    def start(self) -> None:
        """Start the threads now, before work whose beginning cannot be taken back.

        Raises:
            RuntimeError: The system refuses a thread.
        """
        with self._lock:
            self._complete()

    def close(self) -> None:
        """End the threads; the next work starts new ones."""
        with self._lock:
            self._end_all()

    def _complete(self) -> None:
        """Start the threads that are missing; where one is refused none stays."""
        if self._process != os.getpid():  # After a fork only the thread that forked is left.
            self._finalizer.detach()
            self._workers, self._process = [], os.getpid()
            self._finalizer = weakref.finalize(self, _end, self._workers, self._process)
        try:
            while len(self._workers) < self.size - 1:
                self._workers.append(_Worker(len(self._workers) + 1))
                self._workers[-1].start()
        except BaseException:
            self._end_all()
            raise

    def _end_all(self) -> None:
        for worker in _end(self._workers, self._process):
            worker.join()


idle_pools = _Idle()


def _end(workers: "list[_Worker]", process: int) -> "list[_Worker]":
    """Tell the threads of this process to end, and return them.

    It does not wait for them: the garbage collector may call it anywhere, also where waiting for a
    thread would be forever. A forked child's list is of threads that it has not.
    """
    ended = []
    while workers:
        worker = workers.pop()
        if process == os.getpid():
            worker.end()
            ended.append(worker)
    return ended


def _wait_for(workers: "Sequence[_Worker]") -> BaseException | None:
    """Wait for all workers; an interrupt must not leave one of them running."""
    interrupt = None
    for worker in workers:
        while True:
            try:
                worker.wait()
                break
            except KeyboardInterrupt as error:
                interrupt = error
    return interrupt


def _keeping_errors(
    task: Callable[[], None], errors: list[BaseException | None], number: int
) -> Callable[[], None]:
    def run() -> None:
        try:
            task()
        except BaseException as error:
            errors[number] = error

    return run


class _Worker:
    """A thread that runs what it is given, one task at a time."""

    def __init__(self, number: int) -> None:
        # Written in C: semaphores take longer than a short step, and cannot be used by what the
        # garbage collector calls.
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: SimpleQueue[None] = SimpleQueue()
        # The thread must not hold the worker, or neither would ever be collected.
        self._thread = new_thread(f"mirrored-worker-{number}", _work, self._tasks, self._done)

    def start(self) -> None:
        start(self._thread)

    def give(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def wait(self) -> None:
        self._done.get()

    def end(self) -> None:
        self._tasks.put(None)

    def join(self) -> None:
        # There is nothing to wait for where the start was refused, or interrupted.
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()


def _work(tasks: "SimpleQueue[Callable[[], None] | None]", done: "SimpleQueue[None]") -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # It holds a program's arrays.
        done.put(None)


class Barrier:
    """Where the threads of one run wait for each other, and the first one does what is shared.

    Args:
        size: How many threads meet.
    """

    def __init__(self, size: int) -> None:
        # Plain locks: they are the quickest thing that Python has to hand over with.
        self._arrived = [_taken() for _ in range(size - 1)]
        self._go = [_taken() for _ in range(size - 1)]
        self._gone = [False] * (size - 1)
        self.stopping = False

    def lead(self, shared: Callable[[], Any] | None = None) -> None:
        """Wait for all others, do the shared work, and let them go on. The first thread calls it.

        Raises:
            Stopped: Another thread ended early.
        """
        for i, arrived in enumerate(self._arrived):
            if not self._gone[i]:
                arrived.acquire()
        if any(self._gone):
            self.stopping = True
            raise Stopped
        if shared is not None:
            shared()
        for go in self._go:
            go.release()

    def follow(self, number: int) -> None:
        """Wait until the first thread has done the shared work. The others call it.

        Args:
            number: The number of the thread, from 1.

        Raises:
            Stopped: The run ends early.
        """
        self._arrived[number - 1].release()
        self._go[number - 1].acquire()
        if self.stopping:
            raise Stopped

    def leave(self, number: int) -> None:
        """Say that a thread will not come again.

        Args:
            number: The number of the thread, from 1.
        """
        self._gone[number - 1] = True
        _release(self._arrived[number - 1])

    def dismiss(self) -> None:
        """End the run early for all others, who may be waiting or still on their way."""
        self.stopping = True
        for go in self._go:
            _release(go)


def _release(lock: Any) -> None:
    """Release a lock that may be free already."""
    with contextlib.suppress(RuntimeError):
        lock.release()


def _taken() -> Any:
    lock = threading.Lock()
    lock.acquire()
    return lock
