"""The order of elements, and batches of them: shuffle, repeat, batch, unbatch, rebatch.

For rows of arrays these transforms only return the numbers of rows, which are gathered later; see
`Transform.open_rows`. Other elements are stacked.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored.data.arrays import Rows, count_of, joined, reader_of, rows_from, take
from mirrored.data.elements import Element, Elements, Failure, Form, as_count, attempt, spec_of
from mirrored.data.rng import Iteration, Rng
from mirrored.data.transform import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Derived,
    Following,
    Slices,
    Transform,
    batches_of,
    joined_rows,
    results_of,
)
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import is_tensor

_AT_ONCE = 256  # Random numbers.
# Batches whose rows are read together, and bytes of theirs that stay in a cache once gathered.
_BATCHES_AT_ONCE, _BYTES_AT_ONCE = 32, 1 << 14
_OVER = object()


class Shuffled(Derived):
    """Elements in random order, each picked from a buffer of those that come next.

    With `anew` each iterator, and each pass of `repeat`, has another order.
    """

    rng: Rng

    def __init__(self, source: Transform, buffer_size: int, rng: Rng, anew: bool = True) -> None:
        super().__init__(source)
        self._buffer_size = buffer_size
        self._anew = anew
        self.rng = rng

    @property
    def slices(self) -> Slices | None:
        """The arrays, where their rows are shuffled."""
        return self._source if isinstance(self._source, Slices) else None

    def _generator(self, iteration: Iteration) -> "np.random.Generator":
        return self.rng.stream(iteration if self._anew else iteration.first()).generator()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator in the iteration's order."""
        return _picked(elements, self._buffer_size, self._generator(iteration))

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return a reader of the numbers of rows, in random order."""
        size = self.cardinality
        if size <= self._buffer_size:
            # What `_picked` does, without its steps.
            return reader_of(self._generator(iteration).permutation(size))
        order = _picked(iter(range(size)), self._buffer_size, self._generator(iteration))
        return lambda most: np.fromiter(itertools.islice(order, most), np.int64)


def _picked(items: Iterator[Any], buffer_size: int, generator: "np.random.Generator") -> Elements:
    """Yield items in random order: one of a full buffer each time, whose place the next takes."""
    buffer: list[Any] = []
    while len(buffer) < buffer_size and (item := next(items, _OVER)) is not _OVER:
        if type(item) is Failure:
            yield item
        else:
            buffer.append(item)
    ahead = list(itertools.islice(items, 1))
    items = itertools.chain(ahead, items)
    while ahead:
        # Many numbers at once: drawing each by itself would take most of the time.
        for place in generator.integers(len(buffer), size=_AT_ONCE).tolist():
            item = next(items, _OVER)
            if item is _OVER:
                ahead = []
                break
            yield buffer[place]
            if type(item) is Failure:
                while type(item) is Failure:
                    yield item
                    item = next(items, _OVER)
                if item is _OVER:
                    del buffer[place]
                    ahead = []
                    break
            buffer[place] = item
    for place in generator.permutation(len(buffer)).tolist():
        yield buffer[place]


class Batched(Following):
    """Elements stacked into batches along a new first axis.

    A last batch that has fewer may be left out.
    """

    def __init__(self, source: Transform, size: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self.size, self._drop = size, drop_remainder
        if source.batch_size is None and source.slices is not None:
            self.batch_size = size
        self.cardinality = batches_of(self.cardinality, size, drop_remainder)

    @property
    def slices(self) -> Slices | None:
        """The arrays whose rows are joined."""
        return None if self.batch_size is None else self._source.slices

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of batches."""
        slices = self.slices
        return super().open(iteration) if slices is None else gathered(self, slices, iteration)

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return a reader of the rows of batches."""
        read, size = self._source.open_rows(iteration.source()), self.size

        def read_batches(most: int) -> Rows:
            rows = read(most * size)
            rest = count_of(rows) % size if self._drop else 0
            return rows_from(rows, 0, count_of(rows) - rest) if rest else rows

        return read_batches

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of batches whose arrays are stacked."""
        form: Form | None = None

        def stacked(rows: list[Element], first: int) -> Element:
            nonlocal form
            form = form or _form_of_arrays(rows[0])
            return _stacked(form, rows, first)

        return joined_rows(elements, self.size, stacked, self._drop, self._source.drops_batches)

    def specs(self) -> Any:
        """Return those of the elements with the size of a batch, where all have it, before."""
        size = self.size if self._drop else None
        return _nest.map_structure(lambda leaf: leaf.batched(size), self._source.specs())


def _form_of_arrays(element: Element) -> Form:
    """Return the form of elements that are joined; TypeError where they have datasets in them."""
    for leaf in _nest.flatten(element):
        spec_of(leaf).batched(None)
    return Form(element)


def _stacked(form: Form, rows: list[Element], first: int) -> Element:
    """Return the batch of some elements, of which the first one has the number `first`."""
    leaves = [form.leaves(row, f"Element {first + i}") for i, row in enumerate(rows)]
    for i, row in enumerate(leaves):
        for number, (leaf, expected) in enumerate(zip(row, leaves[0], strict=True)):
            if leaf.shape != expected.shape:
                raise InvalidArgumentError(
                    f"Cannot batch tensors with different shapes in component {number}. First "
                    f"element had shape {list(expected.shape)} and element {i} had shape "
                    f"{list(leaf.shape)}. It is element {first + i} of the dataset, counted from "
                    "0. Use one shape for all elements of a batch."
                )
    return form.pack([np.stack(column) for column in zip(*leaves, strict=True)])


def gathered(
    transform: Transform, slices: Slices, iteration: Iteration, after: int = 0
) -> Elements:
    """Yield batches of rows; see `open_batches`."""
    size = transform.batch_size or 1
    for leaves, rows in open_batches(transform, slices, iteration, after):
        for begin in range(0, count_of(rows), size):
            batch = rows_from(rows, begin, size)
            yield slices.form.pack([take(leaf, batch) for leaf in leaves])


def open_batches(
    transform: Transform, slices: Slices, iteration: Iteration, after: int = 0
) -> Iterator[tuple[Sequence[NDArray[Any]], Rows]]:
    """Yield arrays, and which of their rows the next batches are; all have one size but the last.

    Small batches are gathered here, many at a time: to gather each by itself takes longer.

    Args:
        transform: What gives the batches.
        slices: Its `batched_slices`.
        iteration: As for `Transform.open`.
        after: How many batches to leave out, of which nothing is gathered.
    """
    read = transform.open_rows(iteration)
    size = transform.batch_size or 1
    skip_batches(read, size, after)
    at_once = _BYTES_AT_ONCE // (size * slices.row_bytes or 1)
    are_small = at_once > 1
    most = min(at_once, _BATCHES_AT_ONCE) if are_small else _BATCHES_AT_ONCE
    while count := count_of(rows := read(most)):
        if are_small and not isinstance(rows, slice):
            yield slices.take(rows), slice(0, count)
        else:
            yield slices.leaves, rows


def skip_batches(read: Callable[[int], Rows], batch_size: int, count: int) -> None:
    """Read the rows of batches that are not used.

    Args:
        read: What `Transform.open_rows` returned.
        batch_size: The number of rows in a batch.
        count: The number of batches.
    """
    while count and (rows := count_of(read(min(count, _BATCHES_AT_ONCE)))):
        count -= -(-rows // batch_size)


class Repeated(Derived):
    """The elements repeated, `count` times or indefinitely."""

    def __init__(self, source: Transform, count: int | None) -> None:
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
        """The slices of the other transform."""
        return self._source.slices

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of all passes; one without elements ends it."""
        for number in self._passes():
            is_empty = True
            with closing(self._source.open(iteration.source().in_pass(number))) as elements:
                for element in elements:
                    is_empty = False
                    yield element
            if is_empty:
                return

    def _passes(self) -> Iterator[int]:
        return itertools.count() if self._count is None else iter(range(self._count))

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return a reader of the rows of one pass after another; it joins rows, but no batches."""
        opened = (
            self._source.open_rows(iteration.source().in_pass(number)) for number in self._passes()
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


class Unbatched(Following):
    """The rows of each element."""

    def __init__(self, source: Transform) -> None:
        super().__init__(source)
        size = _common_size(source.specs()) if source.known else None
        if source.cardinality > 0:
            self.cardinality = UNKNOWN_CARDINALITY if size is None else source.cardinality * size

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of rows."""

        def rows(index: int, element: Element) -> Elements:
            for leaf in _nest.flatten(element):
                spec_of(leaf).row()
            return Slices(element, _row_count(element, "unbatch", index)).open(Iteration())

        return results_of(elements, rows)

    def specs(self) -> Any:
        """Return those of a row."""
        return _nest.map_structure(lambda leaf: leaf.row(), self._source.specs())


class Rebatched(Following):
    """Batches of other sizes, of the same rows in the same order.

    Args:
        source: What gives batches.
        sizes: The sizes, which take turns.
        drop_remainder: Whether to leave out a last batch that has fewer rows.
    """

    def __init__(self, source: Transform, sizes: Sequence[int], drop_remainder: bool) -> None:
        super().__init__(source)
        self._sizes, self._drop = sizes, drop_remainder
        self.cardinality = UNKNOWN_CARDINALITY
        if source.known:
            self.specs()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of batches."""
        sizes = itertools.cycle(self._sizes)
        want, have = next(sizes), 0
        parts: list[list[NDArray[Any]]] = []
        form: Form | None = None

        def leaves_of(index: int, element: Element) -> tuple[int, list[NDArray[Any]]]:
            nonlocal form
            count = _row_count(element, "rebatch", index)
            form = form or Form(element)
            return count, form.leaves(element, f"Element {index}")

        for index, element in enumerate(elements):
            is_failure = type(element) is Failure
            checked = element if is_failure else attempt(leaves_of, index, element)
            if type(checked) is Failure or form is None:
                yield checked
                continue
            (count, leaves), begin = checked, 0
            while have + count - begin >= want:
                end = begin + want - have
                yield form.pack(_ended(parts, [leaf[begin:end] for leaf in leaves]))
                parts, have, begin, want = [], 0, end, next(sizes)
            if begin < count:
                parts.append([leaf[begin:] for leaf in leaves])
                have += count - begin
        if parts and form is not None and not self._drop:
            yield form.pack(_ended(parts[:-1], parts[-1]))

    def specs(self) -> Any:
        """Return those of batches, with their size where all have it."""
        batches = self._source.specs()
        rows = _nest.map_structure(lambda leaf: leaf.row(), batches)
        shapes = [leaf.shape for leaf in _nest.flatten(batches)]
        if () in shapes:
            raise ValueError(
                "Invalid `batch_size`. Expected dataset with rank of >= 1 but found a dataset with "
                "scalar elements. Fix the issue by adding the `batch` transformation to it."
            )
        size = self._sizes[0] if len({*self._sizes}) == 1 else None
        known = [shape[0] for shape in shapes if shape is not None and shape[0] is not None]
        if size is not None and not self._drop and (not known or known[0] % size):
            size = None
        return _nest.map_structure(lambda leaf: leaf.batched(size), rows)


def sizes_of(batch_size: Any) -> list[int]:
    """Return the sizes that `rebatch` is given: one, or several that take turns."""
    sizes = batch_size.numpy() if is_tensor(batch_size) else batch_size
    if np.ndim(sizes) > 1 or np.size(sizes) == 0:
        raise InvalidArgumentError(
            "Invalid `batch_size`. Expected `batch_size` to be a scalar or a vector. Received "
            f"`batch_size` of shape {np.shape(sizes)}."
        )
    listed = sizes if np.ndim(sizes) else [sizes]
    return [as_count("batch_size", size, least=1) for size in listed]


def _ended(parts: list[list[NDArray[Any]]], last: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return rows of each array joined; where there is one part it is that, which is a view."""
    columns = zip(*parts, last, strict=True)
    return [np.concatenate(column) for column in columns] if parts else last


def _common_size(specs: Any) -> int | None:
    """Return how many rows each batch has, where that is known; ValueError where it is none."""
    leaves = _nest.flatten(specs)
    for leaf in leaves:
        leaf.row()  # Of a dataset there is none, and it says so.
    sizes = {leaf.shape[:1] for leaf in leaves if leaf.shape is not None}
    if () in sizes:
        raise ValueError(
            "Cannot unbatch an input with scalar components. Received: elements of "
            f"{_nest.map_structure(lambda leaf: leaf.public(), specs)}. Batch them first."
        )
    known = {size for (size,) in sizes if size is not None}
    if len(known) > 1:
        raise ValueError(
            "`unbatch()` is only supported for datasets of elements whose components have a "
            f"matching leading dimension. Encountered {sorted(known)}."
        )
    return next(iter(known), None)


def _row_count(element: Element, method: str, index: int) -> int:
    """Return how many rows an element has; raises where it is no batch."""
    sizes: set[tuple[int, ...]] = {leaf.shape[:1] for leaf in _nest.flatten(element)}
    if len(sizes) > 1 or () in sizes:
        shapes = [leaf.shape for leaf in _nest.flatten(element)]
        raise InvalidArgumentError(
            f"`{method}` needs arrays with the same first size. Received: element {index} "
            f"(counted from 0) with the shapes {shapes}. Batch it first."
        )
    ((count,),) = sizes
    return count
