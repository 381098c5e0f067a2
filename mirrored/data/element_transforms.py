"""Transforms of single elements: calls, choices, numbers, caches.

None of these transforms writes into an element: many may hold it, a cache among them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored._logging import logger
from mirrored.data.failures import Failure, succeeded
from mirrored.data.leaf_specs import LeafSpec, NestedSpec
from mirrored.data.rng import Iteration, Rng
from mirrored.data.spec import Element, Elements, FormCheck, call_with, specs_of, to_element
from mirrored.data.transform import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Derived,
    Following,
    Slices,
    Transform,
    results_of,
)
from mirrored.errors import InvalidArgumentError

# ---------------------------------------------------------------------------- users' functions


class Mapped(Following):
    """What a function makes of each element."""

    drops_batches = True
    rng: Rng

    def __init__(self, source: Transform, function: Callable[..., Any]) -> None:
        super().__init__(source)
        self._function = function
        self.rng = Rng()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of the results."""
        label, check = "What `map_func` returned", FormCheck()

        def step(_: int, element: Element) -> Iterable[Element]:
            value = call_with(self._function, element)
            # A list is a tuple of results, as in TensorFlow.
            value = tuple(value) if isinstance(value, list) else value
            return (check(to_element(value, label), label),)

        return results_of(elements, step, "map", self.rng.call_draws(iteration))


class Filtered(Derived):
    """The elements of which a predicate is true."""

    rng: Rng
    _method, _ends = "filter", False  # The second: whether nothing comes after one that is not.

    def __init__(self, source: Transform, predicate: Callable[..., Any]) -> None:
        super().__init__(source)
        self._predicate = predicate
        self.rng = Rng()
        if source.cardinality != 0:
            self.cardinality = UNKNOWN_CARDINALITY

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""

        def step(_: int, element: Element) -> Iterable[Element] | None:
            if self._is_kept(element):
                return (element,)
            return None if self._ends else ()

        return results_of(elements, step, self._method, self.rng.call_draws(iteration))

    def _is_kept(self, element: Element) -> bool:
        kept = np.asarray(call_with(self._predicate, element))
        if kept.shape != () or kept.dtype != np.bool_:
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `mr.bool` scalar tensor, but its "
                f"return type is shape={kept.shape}, dtype={kept.dtype.name}. Return a "
                "comparison, as in `x > 0`."
            )
        return bool(kept)


class TakenWhile(Filtered):
    """The elements before the first one of which a predicate is not true."""

    _method, _ends = "take_while", True

    def __init__(self, source: Transform, predicate: Callable[..., Any]) -> None:
        super().__init__(source, predicate)
        self.cardinality = UNKNOWN_CARDINALITY


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

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        start, stop, step = self._which
        left = None if stop is None else len(range(start, stop, step))
        if left == 0:
            return
        to_skip = between = start
        for element in elements:
            if type(element) is Failure:  # It has no number; skipping begins again after it.
                to_skip = between if to_skip else 0
                yield element
            elif to_skip:
                to_skip -= 1
            else:
                yield element
                to_skip = between = step - 1
                left = None if left is None else left - 1
                if left == 0:
                    return


def chosen(source: Transform, start: int, stop: int | None) -> Transform:
    """Return the elements from one number to before another; rows of arrays stay rows of arrays."""
    if isinstance(source, Slices):
        return source.part(start, source.cardinality if stop is None else stop)
    return Chosen(source, start, stop)


class Ignored(Following):
    """The elements that are made without an error.

    Args:
        source: What gives the elements.
        logs: Whether each error is a warning of the log.
    """

    # What a program that is wrong raises: TensorFlow would when it builds the dataset.
    _wrong = (NameError, AttributeError, TypeError, ImportError)

    def __init__(self, source: Transform, *, logs: bool) -> None:
        super().__init__(source)
        self.cardinality = UNKNOWN_CARDINALITY
        self.known = source.known
        self._logs = logs

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        for element in elements:
            if type(element) is not Failure or isinstance(element.error, self._wrong):
                yield element
            elif self._logs:
                logger.warning("Error raised with error message %s", element.error)

    def first(self) -> Element:
        """Return the first of them; without any, raise the error of the first that was tried."""
        with closing(self.open(_first_iteration(self))) as elements:
            for element in elements:
                return succeeded(element)
        return self._source.first()

    def specs(self) -> Any:
        """Return those of the other transform, or the structure of the first of them."""
        return self._source.specs() if self.known else super().specs()


def _first_iteration(transform: Transform) -> Iteration:
    """Return the first iteration over a transform, which counts as none."""
    return Iteration(sources=tuple(map(_first_iteration, transform.sources)))


class Unique(Derived):
    """The elements that differ from all before them: of one array of integers."""

    def __init__(self, source: Transform) -> None:
        super().__init__(source)
        self.cardinality = UNKNOWN_CARDINALITY
        if source.known:
            _check_unique(source.specs())

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        met: set[Any] = set()

        def step(_: int, element: Element) -> Iterable[Element]:
            _check_unique(specs_of(element))
            (leaf,) = _nest.flatten(element)
            key = leaf.shape, leaf.tobytes()
            if key in met:
                return ()
            met.add(key)
            return (element,)

        return results_of(elements, step)


def _check_unique(specs: Any) -> None:
    leaves = _nest.flatten(specs)
    for leaf in leaves:
        if isinstance(leaf, NestedSpec) or leaf.dtype not in (np.int32, np.int64):
            kind = "of datasets" if isinstance(leaf, NestedSpec) else leaf.dtype.name
            raise TypeError(
                f"`tf.data.Dataset.unique` does not support type {kind} -- only `mr.int32` and "
                "`mr.int64` are supported. Use `filter` with a function that remembers."
            )
    if len(leaves) > 1:
        raise InvalidArgumentError(
            "`unique` only supports inputs with a single component. Received: elements of "
            f"{len(leaves)}."
        )


class Enumerated(Following):
    """Pairs of a number and an element."""

    def __init__(self, source: Transform, start: int) -> None:
        super().__init__(source)
        self._start = start
        self.known = source.known

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of pairs."""
        for number, element in enumerate(elements, self._start):
            failed = type(element) is Failure
            yield element if failed else (np.array(number, np.int64), element)

    def specs(self) -> Any:
        """Return those of a pair."""
        return LeafSpec((), np.dtype(np.int64)), self._source.specs()


class Asserted(Derived):
    """Elements that are said to be so many."""

    def __init__(self, source: Transform, cardinality: int) -> None:
        super().__init__(source)
        self.cardinality = cardinality

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return their iterator, which raises where they are more or fewer."""
        said, count = self.cardinality, 0
        for element in elements:
            if type(element) is not Failure:
                if count == said:
                    raise _miscounted(said, f"at least {count + 1}")
                count += 1
            yield element
        if count != said:
            raise _miscounted(said, str(count))


def _miscounted(said: int, count: str) -> InvalidArgumentError:
    text = "an infinite number of" if said == INFINITE_CARDINALITY else said
    return InvalidArgumentError(
        f"Input dataset was expected to contain {text} elements but contained {count} elements. "
        "Give `assert_cardinality` their number."
    )


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
        # One that a checkpoint has brought may be another one, or be the first.
        self._iteration = self._iteration or replace(iteration, passes=())
        is_kept = iteration.sources == self._iteration.sources
        if self._elements is not None and is_kept:
            yield from self._elements
            return
        met = []
        with closing(self._source.open(iteration.sources[0])) as elements:  # In any pass the same.
            for element in elements:
                if type(element) is not Failure:
                    met.append(element)
                yield element
        if is_kept:
            self._elements = met
