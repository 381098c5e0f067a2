"""The stages between a dataset's source and its end: those that call, cut, join, repeat or keep.

None of them writes into an element: many may hold it, a cache among them.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.adapters import Rows, count_of, joined
from mirrored.data.draws import Draws, Turn
from mirrored.data.elements import Element, Elements, Form, LeafSpec, call_with, to_element
from mirrored.data.stages import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Derived,
    Following,
    Slices,
    Stage,
    named,
)
from mirrored.errors import InvalidArgumentError
from mirrored.ops.rng_state import drawing_from

# ---------------------------------------------------------------------------- users' functions


class Mapped(Following):
    """What a function makes of each element.

    Args:
        source: The elements.
        function: The function.
    """

    draws: Draws

    def __init__(self, source: Stage, function: Callable[..., Any]) -> None:
        super().__init__(source)
        self._function = function
        self.draws = Draws()

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of the results."""
        form: Form | None = None
        stream = self.draws.stream(turn)
        with closing(self._source.open(turn.source())) as elements:
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
        with named("map", 0), drawing_from(self.draws.stream(Turn())):
            return self._result(element)


class Filtered(Derived):
    """The elements of which a predicate is true.

    Args:
        source: The elements.
        predicate: The predicate.
    """

    draws: Draws

    def __init__(self, source: Stage, predicate: Callable[..., Any]) -> None:
        super().__init__(source)
        self._predicate = predicate
        self.draws = Draws()
        if source.cardinality != 0:
            self.cardinality = UNKNOWN_CARDINALITY

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of those elements."""
        stream = self.draws.stream(turn)
        with closing(self._source.open(turn.source())) as elements:
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


# ---------------------------------------------------------------------------- batches


class Batched(Following):
    """Elements joined, so many at a time, along a new first axis.

    Args:
        source: The elements.
        size: How many.
        drop_remainder: Whether to leave out a last batch that has fewer.
    """

    def __init__(self, source: Stage, size: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self._size, self._drop = size, drop_remainder
        if source.batch_size is None and source.slices is not None:
            self.batch_size = size
        self.known = source.known
        if self.cardinality > 0:
            whole, rest = divmod(self.cardinality, size)
            self.cardinality = whole + (rest > 0 and not drop_remainder)

    @property
    def slices(self) -> Slices | None:
        """The arrays whose rows are joined."""
        return None if self.batch_size is None else self._source.slices

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of batches."""
        return self._joined(turn) if self.slices is None else self._gathered(self.slices, turn)

    def open_rows(self, turn: Turn) -> Callable[[int], Rows]:
        """Return what gives the rows of batches."""
        read, size = self._source.open_rows(turn.source()), self._size

        def read_batches(most: int) -> Rows:
            rows = read(most * size)
            rest = count_of(rows) % size if self._drop else 0
            if not rest:
                return rows
            whole = count_of(rows) - rest
            return (
                slice(rows.start, rows.start + whole) if isinstance(rows, slice) else rows[:whole]
            )

        return read_batches

    def _gathered(self, slices: Slices, turn: Turn) -> Elements:
        read = self.open_rows(turn)
        while count_of(rows := read(1)):
            yield slices.rows(rows)

    def _joined(self, turn: Turn) -> Elements:
        form: Form | None = None
        with closing(self._source.open(turn.source())) as elements:
            for first in itertools.count(step=self._size):
                rows = list(itertools.islice(elements, self._size))
                if len(rows) == self._size or (rows and not self._drop):
                    form = form or Form(rows[0])
                    yield _stacked(form, rows, first)
                if len(rows) < self._size:
                    return

    def first(self) -> Element:
        """Return a batch of one element, over and over."""
        known = self._source.cardinality
        size = self._size if self._drop or known < 0 else min(self._size, known)
        return _nest.map_structure(lambda leaf: np.stack([leaf] * size), self._source.first())

    def specs(self) -> Any:
        """Return those of the elements with the size of a batch, where all have it, before."""
        size = self._size if self._drop else None
        return _nest.map_structure(
            lambda leaf: replace(leaf, shape=None if leaf.shape is None else (size, *leaf.shape)),
            self._source.specs(),
        )


def _stacked(form: Form, rows: list[Element], first: int) -> Element:
    """Return the batch of some elements, of which the first one has the number `first`."""
    leaves = [form.leaves(row, f"Element {first + i}") for i, row in enumerate(rows)]
    for i, each in enumerate(leaves):
        for number, (leaf, expected) in enumerate(zip(each, leaves[0], strict=True)):
            if leaf.shape != expected.shape:
                raise InvalidArgumentError(
                    f"Cannot batch tensors with different shapes in component {number}. First "
                    f"element had shape {list(expected.shape)} and element {i} had shape "
                    f"{list(leaf.shape)}. It is element {first + i} of the dataset, counted "
                    "from 0. Give all elements of a batch one shape."
                )
    return form.pack([np.stack(column) for column in zip(*leaves, strict=True)])


class Unbatched(Following):
    """The rows of each element.

    Args:
        source: The elements.
    """

    def __init__(self, source: Stage) -> None:
        super().__init__(source)
        if source.cardinality > 0:
            self.cardinality = UNKNOWN_CARDINALITY
        self.known = source.known

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of rows."""
        with closing(self._source.open(turn.source())) as elements:
            for index, element in enumerate(elements):
                sizes = {leaf.shape[:1] for leaf in _nest.flatten(element)}
                if len(sizes) > 1 or () in sizes:
                    shapes = [leaf.shape for leaf in _nest.flatten(element)]
                    raise InvalidArgumentError(
                        "`unbatch` needs arrays of one first size. Received: element "
                        f"{index} (counted from 0) with the shapes {shapes}. Batch it first."
                    )
                yield from Slices(element, *sizes.pop()).open(Turn())

    def first(self) -> Element:
        """Return a row."""
        return _nest.map_structure(lambda leaf: leaf[0, ...], self._source.first())

    def specs(self) -> Any:
        """Return those of a row."""

        def row(leaf: LeafSpec) -> LeafSpec:
            return replace(leaf, shape=None if leaf.shape is None else leaf.shape[1:])

        return _nest.map_structure(row, self._source.specs())


# ---------------------------------------------------------------------------- which elements


class Chosen(Derived):
    """The elements from one number to before another, or every `step`-th of them.

    Args:
        source: The elements.
        start: The first one's number.
        stop: The number before which it ends; None: where the elements end.
        step: How many numbers it is from one to the next.
    """

    def __init__(self, source: Stage, start: int, stop: int | None, step: int = 1) -> None:
        super().__init__(source)
        self._which = start, stop, step
        if source.cardinality >= 0:
            self.cardinality = len(range(source.cardinality)[start:stop:step])
        elif source.cardinality == INFINITE_CARDINALITY and stop is not None:
            self.cardinality = len(range(start, stop, step))
        elif stop == 0:
            self.cardinality = 0

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of those elements."""
        if self._which[1] == 0:
            return
        with closing(self._source.open(turn.source())) as elements:
            yield from itertools.islice(elements, *self._which)


class Repeated(Derived):
    """The elements again and again.

    Args:
        source: The elements.
        count: How often; None: for ever.
    """

    def __init__(self, source: Stage, count: int | None) -> None:
        super().__init__(source)
        self._count = count
        self.batch_size = source.batch_size
        if count == 0:
            self.cardinality = 0
        elif count is None and self.cardinality != 0:
            self.cardinality = INFINITE_CARDINALITY
        elif count is not None and self.cardinality > 0:
            self.cardinality *= count

    @property
    def slices(self) -> Slices | None:
        """Those of the elements."""
        return self._source.slices

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of all passes; one without elements ends it."""
        for number in self._passes():
            is_empty = True
            with closing(self._source.open(turn.source().in_pass(number))) as elements:
                for element in elements:
                    is_empty = False
                    yield element
            if is_empty:
                return

    def _passes(self) -> Iterator[int]:
        return itertools.count() if self._count is None else iter(range(self._count))

    def open_rows(self, turn: Turn) -> Callable[[int], Rows]:
        """Return what gives the rows of one pass after another; it joins rows, but no batches."""
        opened = (
            self._source.open_rows(turn.source().in_pass(number)) for number in self._passes()
        )
        read = next(opened, None)

        def read_on(most: int) -> Rows:
            nonlocal read
            parts: list[Rows] = []
            is_new = False
            while most and read is not None:
                rows = read(most)
                if not count_of(rows):
                    read = None if is_new else next(opened, None)
                    is_new = True
                    continue
                if self.batch_size is not None:
                    return rows
                parts.append(rows)
                most -= count_of(rows)
                is_new = False
            return joined(parts)

        return read_on


class Concatenated(Derived):
    """The elements of one stage and then those of another.

    Args:
        source: The first stage.
        other: The second one.

    Raises:
        TypeError: Their elements are known, and differ in structure or dtypes.
    """

    def __init__(self, source: Stage, other: Stage) -> None:
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

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of both."""
        for index, stage in enumerate(self.sources):
            with closing(stage.open(turn.source(index))) as elements:
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


class Numbered(Following):
    """Pairs of a number and an element.

    Args:
        source: The elements.
        start: The first number.
    """

    def __init__(self, source: Stage, start: int) -> None:
        super().__init__(source)
        self._start = start
        self.known = source.known

    def open(self, turn: Turn) -> Elements:
        """Return an iterator of pairs."""
        with closing(self._source.open(turn.source())) as elements:
            for number, element in enumerate(elements, self._start):
                yield np.array(number, np.int64), element

    def first(self) -> Element:
        """Return a pair."""
        return np.array(self._start, np.int64), self._source.first()

    def specs(self) -> Any:
        """Return those of a pair."""
        return LeafSpec((), np.dtype(np.int64)), self._source.specs()


class Kept(Derived):
    """Elements that are made once and then kept.

    Args:
        source: The elements.
    """

    def __init__(self, source: Stage) -> None:
        super().__init__(source)
        self._elements: list[Element] | None = None
        self._turn: Turn | None = None

    def begin(self) -> Turn:
        """Return the same turn to all: whichever comes to the end keeps what each of them met."""
        self._turn = self._turn or super().begin()
        return self._turn

    def open(self, turn: Turn) -> Elements:
        """Return an iterator; the first one that comes to the end keeps what it met."""
        if self._elements is not None:
            yield from self._elements
            return
        met = []
        with closing(self._source.open(turn.sources[0])) as elements:  # In any pass the same.
            for element in elements:
                met.append(element)
                yield element
        self._elements = met
