"""Threads that make what is asked for next, in the order in which it is asked for.

They end with the iterator that they work for, however that ends.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from queue import SimpleQueue
from typing import Any

from mirrored._threads import new_thread, start

_PATIENCE = 1.0  # Seconds, for which an end waits for what a thread is still making.
_Box = SimpleQueue[tuple[bool, Any]]


def made_in_order(
    make: Callable[[Any], Any], given: Iterable[Any], workers: int, most: int
) -> Generator[Any, None, None]:
    """Yield what a function makes of values, which threads make before it is asked for.

    Args:
        make: Called with one value, on any of the threads.
        given: The values; as many are read as are worked on.
        workers: How many threads there are, at least 1.
        most: How many are worked on or waiting at most, at least 1.

    Raises:
        Exception: What `make` raised, where its result would have been.

    Example:
        >>> from mirrored.data.workers import made_in_order
        >>> list(made_in_order(abs, [-3, -1, -2], workers=2, most=2))
        [3, 1, 2]
    """
    tasks: SimpleQueue[tuple[Any, _Box] | None] = SimpleQueue()
    stopped = threading.Event()
    threads = [new_thread("mirrored-worker", _work, make, tasks, stopped) for _ in range(workers)]
    values, waiting = iter(given), deque[_Box]()
    try:
        for thread in threads:
            start(thread)
        while True:
            for value in itertools.islice(values, most - len(waiting)):
                waiting.append(SimpleQueue())
                tasks.put((value, waiting[-1]))
            if not waiting:
                return
            is_made, result = waiting.popleft().get()
            if not is_made:
                try:
                    raise result
                finally:
                    del result  # Its traceback leads here: a cycle would keep the arrays.
            yield result
    finally:
        stopped.set()
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            if thread.is_alive():
                thread.join(_PATIENCE)


def _work(
    make: Callable[[Any], Any],
    tasks: "SimpleQueue[tuple[Any, _Box] | None]",
    stopped: threading.Event,
) -> None:
    """Make what there is to make; what goes wrong takes the place of the result."""
    while (task := tasks.get()) is not None and not stopped.is_set():
        value, box = task
        try:
            box.put((True, make(value)))
        except BaseException as error:
            box.put((False, error))
        del task, value, box
