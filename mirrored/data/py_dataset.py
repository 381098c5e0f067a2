"""Datasets that are a class of the user's, which makes a batch of its number: Keras' `PyDataset`.

Training asks for the batches, in an order of its own, from several threads where that is wanted.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from queue import SimpleQueue
from typing import Any

from mirrored._arguments import explained
from mirrored._logging import warn_caller
from mirrored._numbers import check_count
from mirrored._threads import join_all, new_thread, start

_DEFAULTS = {"workers": 1, "use_multiprocessing": False, "max_queue_size": 10}


@explained
class PyDataset:
    """What makes batches by their numbers: subclasses define `__getitem__` and `__len__`.

    `__getitem__(index)` returns a whole global batch: x, (x,), (x, y) or (x, y, sample_weight),
    each an array or a list, tuple or dict of arrays. `__len__` returns how many batches there are;
    a subclass without it has a property `num_batches` instead, which is None where there is no end.
    In `fit` with `shuffle=True` the batches come in another order in each pass, by the global seed.

    Args:
        workers: How many threads make batches; up to 1 they are made between two steps.
        use_multiprocessing: Whether one worker is a thread of its own too. Processes are not used,
            which could not share devices: what is slow should be NumPy's or reading files, which
            run side by side in threads.
        max_queue_size: How many batches threads make ahead, at most; 0 is any number.

    Raises:
        ValueError: A number is negative, or none.

    Example:
        >>> import numpy as np
        >>> import mirrored as mr
        >>> class Squares(mr.keras.utils.PyDataset):
        ...     def __len__(self):
        ...         return 3
        ...
        ...     def __getitem__(self, index):
        ...         x = np.arange(4.0) + 4 * index
        ...         return x, x**2
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> len(model.fit(Squares(workers=2), epochs=2, verbose=0).history["loss"])
        2
    """

    def __init__(
        self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10
    ) -> None:
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    @property
    def workers(self) -> int:
        """How many threads make batches."""
        return int(self._setting("workers"))

    @workers.setter
    def workers(self, value: int) -> None:
        self._workers = check_count("workers", value, least=0)

    @property
    def use_multiprocessing(self) -> bool:
        """Whether one worker is a thread of its own."""
        return bool(self._setting("use_multiprocessing"))

    @use_multiprocessing.setter
    def use_multiprocessing(self, value: bool) -> None:
        self._use_multiprocessing = value

    @property
    def max_queue_size(self) -> int:
        """How many batches threads make ahead, at most."""
        return int(self._setting("max_queue_size"))

    @max_queue_size.setter
    def max_queue_size(self, value: int) -> None:
        self._max_queue_size = check_count("max_queue_size", value, least=0)

    def _setting(self, name: str) -> Any:
        if any(f"_{setting}" not in vars(self) for setting in _DEFAULTS):
            warn_caller(
                "Your `PyDataset` class should call `super().__init__(**kwargs)` in its "
                "constructor. `**kwargs` can include `workers`, `use_multiprocessing`, "
                "`max_queue_size`. Do not pass these arguments to `fit()`: it does not have them.",
            )
            vars(self).update(
                {f"_{k}": v for k, v in _DEFAULTS.items() if f"_{k}" not in vars(self)}
            )
        return vars(self)[f"_{name}"]

    def __getitem__(self, index: int) -> Any:
        """Return a batch; to be defined by subclasses.

        Args:
            index: The number of the batch, from 0 on.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no `__getitem__`. Define it to return the batch with an "
            "index, as in `return self.x[begin:end], self.y[begin:end]`."
        )

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches in order, without threads."""
        try:
            count = self.num_batches
        except NotImplementedError:
            count = None
        for index in itertools.count() if count is None else range(count):
            yield self[index]

    @property
    def num_batches(self) -> int | None:
        """The number of batches; None where there is no end."""
        if hasattr(self, "__len__"):
            return len(self)
        raise NotImplementedError(
            "You need to implement the `num_batches` property:\n\n"
            "@property\ndef num_batches(self):\n  return ..."
        )

    def on_epoch_begin(self) -> None:
        """Called before each epoch; subclasses may define it."""

    def on_epoch_end(self) -> None:
        """Called after each epoch, as to put what there is in another order."""


def batches_of(data: PyDataset, order: Iterable[int]) -> Generator[Any, None, None]:
    """Return an iterator of batches, which threads make ahead where that is wanted.

    Args:
        data: What makes them.
        order: Their numbers.
    """
    workers, processes = data.workers, data.use_multiprocessing
    if workers > 1 or (workers and processes):
        return parallel_map(data.__getitem__, order, workers, data.max_queue_size or _ANY)
    return (data[number] for number in order)


_ANY = 1 << 16


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
        >>> from mirrored.data.py_dataset import parallel_map
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
        join_all(workers, _PATIENCE)


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
