"""A function mapped over values by threads, with the results in the order of the values.

The threads end with the iterator that they work for, however that ends.
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


def parallel_map(
    function: Callable[[Any], Any], values: Iterable[Any], threads: int, most: int
) -> Generator[Any, None, None]:
    """Yield a function's results for values, which threads compute ahead of their use.

    Args:
        function: Called with one value, on any of the threads.
        values: As many are read as are worked on.
        threads: The number of threads, at least 1.
        most: How many values are worked on or waiting at most, at least 1.

    Raises:
        Exception: What `function` raised, instead of its result.

    Example:
        >>> from mirrored.data.parallel_map import parallel_map
        >>> list(parallel_map(abs, [-3, -1, -2], threads=2, most=2))
        [3, 1, 2]
    """
    tasks: SimpleQueue[tuple[Any, _Box] | None] = SimpleQueue()
    stopped = threading.Event()
    workers = [
        new_thread("mirrored-worker", _work, function, tasks, stopped) for _ in range(threads)
    ]
    remaining, waiting = iter(values), deque[_Box]()
    try:
        for thread in workers:
            start(thread)
        while True:
            for value in itertools.islice(remaining, most - len(waiting)):
                waiting.append(SimpleQueue())
                tasks.put((value, waiting[-1]))
            if not waiting:
                return
            is_result, result = waiting.popleft().get()
            if not is_result:
                try:
                    raise result
                finally:
                    del result  # Its traceback leads here: a cycle would keep the arrays.
            yield result
    finally:
        stopped.set()
        for _ in workers:
            tasks.put(None)
        for thread in workers:
            if thread.is_alive():
                thread.join(_PATIENCE)


def _work(
    function: Callable[[Any], Any],
    tasks: "SimpleQueue[tuple[Any, _Box] | None]",
    stopped: threading.Event,
) -> None:
    """Compute results until there is no task; an error is returned instead of a result."""
    while (task := tasks.get()) is not None and not stopped.is_set():
        value, box = task
        try:
            box.put((True, function(value)))
        except BaseException as error:
            box.put((False, error))
        del task, value, box
