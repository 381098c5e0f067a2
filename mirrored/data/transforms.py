"""What a dataset's methods make of its elements: calls, choices, numbers, caches, work ahead.

None of these transforms writes into an element: many may hold it, a cache among them.
"""

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import closing
from queue import SimpleQueue
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored._threads import new_thread, start
from mirrored.data.rng import Iteration, Rng
from mirrored.data.sources import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Derived,
    Following,
    Transform,
    named,
)
from mirrored.data.spec import Element, Elements, Form, LeafSpec, call_with, to_element
from mirrored.devices import hold_devices
from mirrored.errors import DevicesResetError
from mirrored.ops.rng_state import drawing_from

# ---------------------------------------------------------------------------- users' functions


class Mapped(Following):
    """What a function makes of each element."""

    rng: Rng

    def __init__(self, source: Transform, function: Callable[..., Any]) -> None:
        super().__init__(source)
        self._function = function
        self.rng = Rng()

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of the results."""
        form: Form | None = None
        stream = self.rng.stream(iteration)
        with closing(self._source.open(iteration.source())) as elements:
            for index, element in enumerate(elements):
                with named("map", index), drawing_from(stream):
                    result = self._result(element)
                    form = form or Form(result)
                    form.leaves(result, "What `map_func` returned")
                yield result

    def _result(self, element: Element) -> Element:
        value = call_with(self._function, element)
        # A list is a tuple of results, as in TensorFlow.
        value = tuple(value) if isinstance(value, list) else value
        return to_element(value, "What `map_func` returned")

    def first(self) -> Element:
        """Return the result for an element."""
        element = self._source.first()
        with named("map", 0), drawing_from(self.rng.stream(Iteration())):
            return self._result(element)


class Filtered(Derived):
    """The elements of which a predicate is true."""

    rng: Rng

    def __init__(self, source: Transform, predicate: Callable[..., Any]) -> None:
        super().__init__(source)
        self._predicate = predicate
        self.rng = Rng()
        if source.cardinality != 0:
            self.cardinality = UNKNOWN_CARDINALITY

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        stream = self.rng.stream(iteration)
        with closing(self._source.open(iteration.source())) as elements:
            for index, element in enumerate(elements):
                with named("filter", index), drawing_from(stream):
                    kept = np.asarray(call_with(self._predicate, element))
                    if kept.shape != () or kept.dtype != np.bool_:
                        raise ValueError(
                            "Invalid `predicate`. `predicate` must return a `mr.bool` scalar "
                            f"tensor, but its return type is shape={kept.shape}, "
                            f"dtype={kept.dtype.name}. Return a comparison, as in `x > 0`."
                        )
                if kept:
                    yield element


# ---------------------------------------------------------------------------- which elements


class Chosen(Derived):
    """The elements from one number to before another, or to the end, or every `step`-th of them."""

    def __init__(self, source: Transform, start: int, stop: int | None, step: int = 1) -> None:
        super().__init__(source)
        self._which = start, stop, step
        if source.cardinality >= 0:
            self.cardinality = len(range(source.cardinality)[start:stop:step])
        elif source.cardinality == INFINITE_CARDINALITY and stop is not None:
            self.cardinality = len(range(start, stop, step))
        elif stop == 0:
            self.cardinality = 0

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        if self._which[1] == 0:
            return
        with closing(self._source.open(iteration.source())) as elements:
            yield from itertools.islice(elements, *self._which)


class Concatenated(Derived):
    """The elements of one transform, then of another; TypeError where they differ in kind."""

    def __init__(self, source: Transform, other: Transform) -> None:
        super().__init__(source)
        self.sources = source, other
        self.known = source.known and other.known
        if self.known:
            self._specs = _common_specs(source.specs(), other.specs())
        sizes = (source.cardinality, other.cardinality)
        if INFINITE_CARDINALITY in sizes:
            self.cardinality = INFINITE_CARDINALITY
        elif UNKNOWN_CARDINALITY in sizes:
            self.cardinality = UNKNOWN_CARDINALITY
        else:
            self.cardinality = sum(sizes)

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of both."""
        for index, transform in enumerate(self.sources):
            with closing(transform.open(iteration.source(index))) as elements:
                yield from elements

    def specs(self) -> Any:
        """Return what both have in common, or those of the first."""
        return self._specs if self.known else super().specs()


def _common_specs(first: Any, second: Any) -> Any:
    """Return specs with None for sizes that differ; raises where more than sizes do."""

    def common(x: LeafSpec, y: LeafSpec) -> LeafSpec:
        if x.dtype != y.dtype:
            raise ValueError(f"{x.dtype.name} is not {y.dtype.name}.")
        if x.shape is None or y.shape is None or len(x.shape) != len(y.shape):
            return LeafSpec(None, x.dtype)
        sizes = zip(x.shape, y.shape, strict=True)
        return LeafSpec(tuple(a if a == b else None for a, b in sizes), x.dtype)

    try:
        return _nest.map_structure(common, first, second, each="dataset")
    except ValueError as error:
        specs = [_nest.map_structure(LeafSpec.public, each) for each in (first, second)]
        raise TypeError(
            f"Incompatible dataset elements: {specs[0]} vs. {specs[1]}. {error} Give the elements "
            "of both one structure and the same dtypes, as with `map` and mr.cast."
        ) from None


class Enumerated(Following):
    """Pairs of a number and an element."""

    def __init__(self, source: Transform, start: int) -> None:
        super().__init__(source)
        self._start = start
        self.known = source.known

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of pairs."""
        with closing(self._source.open(iteration.source())) as elements:
            for number, element in enumerate(elements, self._start):
                yield np.array(number, np.int64), element

    def first(self) -> Element:
        """Return a pair."""
        return np.array(self._start, np.int64), self._source.first()

    def specs(self) -> Any:
        """Return those of a pair."""
        return LeafSpec((), np.dtype(np.int64)), self._source.specs()


# ---------------------------------------------------------------------------- when they are made


class Cached(Derived):
    """Elements that are made once and then kept."""

    def __init__(self, source: Transform) -> None:
        super().__init__(source)
        self._elements: list[Element] | None = None
        self._iteration: Iteration | None = None

    def begin(self) -> Iteration:
        """Return the same one to all: whichever comes to the end keeps what each of them met."""
        self._iteration = self._iteration or super().begin()
        return self._iteration

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator; the first one that comes to the end keeps what it met."""
        if self._elements is not None:
            yield from self._elements
            return
        met = []
        with closing(self._source.open(iteration.sources[0])) as elements:  # In any pass the same.
            for element in elements:
                met.append(element)
                yield element
        self._elements = met


Items = SimpleQueue[tuple[str, Any]]


_PATIENCE = 1.0  # Seconds.
_LOST = (
    "This iterator of a dataset with `prefetch` is of before mr.config.experimental."
    "reset_devices(), which has ended its thread. Iterate over the dataset again."
)


class Prefetched(Derived):
    """Elements of another transform, so many of which are made before they are asked for."""

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
    """The thread, and the queue that it fills with at most so many elements."""

    def __init__(self, transform: Transform, iteration: Iteration, most: int) -> None:
        self._process = os.getpid()
        self._items: Items = SimpleQueue()
        self._room = threading.Semaphore(most)
        stopped = threading.Event()
        thread = new_thread(
            "mirrored-prefetch", _work, transform, iteration, self._items, self._room, stopped
        )
        # At exit too: a thread must not run Python code while the interpreter goes away. Before
        # the start, which an interrupt may end.
        self.stop = weakref.finalize(self, _stop, thread, self._room, stopped, self._process)
        start(thread)
        hold_devices(self)

    def lose_devices(self) -> None:
        """End the thread, and say so to whoever waits for an element."""
        self.stop()
        self._items.put(("error", DevicesResetError(_LOST)))

    def next(self) -> tuple[str, Any]:
        """Wait for the next item."""
        if os.getpid() != self._process:
            raise RuntimeError(
                "An iterator of a dataset with `prefetch` cannot be continued in a forked "
                "process, which has not got its thread. Received: an iterator made before the "
                "fork. Iterate over the dataset again."
            )
        item = self._items.get()
        self._room.release()
        return item


def _work(
    transform: Transform,
    iteration: Iteration,
    items: Items,
    room: threading.Semaphore,
    stopped: threading.Event,
) -> None:
    """Make elements while there is room; what goes wrong reaches the consumer as an item."""
    try:
        with closing(transform.open(iteration)) as elements:
            while True:
                room.acquire()
                if stopped.is_set():
                    return
                element = next(elements, _END)
                if element is _END:
                    break
                items.put(("element", element))
        items.put(("end", None))
    except BaseException as error:
        items.put(("error", error))


_END = object()


def _stop(
    thread: threading.Thread,
    room: threading.Semaphore,
    stopped: threading.Event,
    process: int,
) -> None:
    """End the thread after the element that it is making."""
    if process != os.getpid():
        return
    stopped.set()
    room.release()
    # The garbage collector may call it anywhere, in the thread itself too.
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(_PATIENCE)  # What makes the element may wait for something that never comes.
