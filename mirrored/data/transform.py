"""Transforms, which datasets are chains of: the base classes, and the rows of arrays.

Elements travel as NumPy arrays, and rows of arrays as chunks where nothing looks at single ones.
"""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from numpy.typing import NDArray

from mirrored import _nest
from mirrored.data.arrays import Rows, reader_of, take
from mirrored.data.elements import Element, Elements, Failure, Form, attempt, specs_of, succeeded
from mirrored.data.leaf_specs import LeafSpec
from mirrored.data.rng import CallDraws, Iteration, Rng
from mirrored.ops.rng_state import drawing_from

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Transform(ABC):
    """Makes elements, from the first one on each time that it is opened.

    Those that take none from others make them of arrays, numbers or what a generator gives.

    Attributes:
        cardinality: How many elements there are, or one of the two constants above.
        known: Whether `specs` knows without making an element.
        sources: The transforms whose elements it takes.
        rng: What it draws from, None where it draws nothing.
        batch_size: How many rows an element joins; None: each is a row.
        external: The method by which elements come from what only Python knows the state of.
        drops_batches: Whether an element that cannot be made drops the whole batch that it is in:
            TensorFlow computes `map` and `batch` as one.
    """

    cardinality: int = UNKNOWN_CARDINALITY
    known: bool = False
    sources: "tuple[Transform, ...]" = ()
    rng: Rng | None = None
    batch_size: int | None = None
    external: str | None = None
    drops_batches: bool = False
    _declared: Any = None

    @property
    def slices(self) -> "Slices | None":
        """The arrays whose rows the elements are, None where they are something else."""
        return None

    @property
    def batched_slices(self) -> "Slices | None":
        """The arrays whose rows the elements join, None where they are something else."""
        return None if self.batch_size is None else self.slices

    def begin(self) -> Iteration:
        """Return the iteration that begins: to be called by the thread that wants it."""
        sources = tuple([source.begin() for source in self.sources])
        rng = self.rng
        if rng is None:
            return Iteration(0, sources)
        return Iteration(rng.number(), sources, seed=rng.seed, base=rng.base)

    @abstractmethod
    def open(self, iteration: Iteration) -> Elements:
        """Return a new iterator, whose `close` ends all that works for it.

        An element that cannot be made is a `Failure`, after which the others come.

        Args:
            iteration: What it draws follows from this, and from nothing else.
        """

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return a function of the rows of the next elements, for transforms with `slices` alone.

        The function returns row numbers and gathers nothing. It returns at most the number of
        elements that it is called with, and none at the end. Before, it returns fewer only for
        batches, where a pass ends.

        Args:
            iteration: As for `open`.
        """
        raise NotImplementedError(f"The elements of {type(self).__name__} are not rows of arrays.")

    def first(self) -> Element:
        """Return an element like the first one, which does not count as an iterator."""
        with closing(self.open(Iteration())) as elements:
            for element in elements:
                return succeeded(element)
        raise ValueError("The structure of the elements of an empty dataset is not known.")

    def declare(self, specs: Any) -> None:
        """Take what is known of the elements, so that none has to be made for it."""
        self._declared, self.known = specs, True

    def specs(self) -> Any:
        """Return the structure of the elements, with a `LeafSpec` for each array."""
        return specs_of(self.first()) if self._declared is None else self._declared


def external_of(transform: Transform) -> str | None:
    """Return the `external` of a transform, or of one that it takes elements from."""
    methods = (external_of(source) for source in transform.sources)
    return transform.external or next(filter(None, methods), None)


class Following(Transform):
    """A transform that makes its elements from those of another one."""

    def __init__(self, source: Transform) -> None:
        self._source, self.sources = source, (source,)
        self.known, self.cardinality = source.known, source.cardinality

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of what `run` makes of the other transform's elements."""
        with closing(self._source.open(iteration.source())) as elements:
            yield from self.run(elements, iteration)

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return what this transform makes of elements, which the caller closes.

        Args:
            elements: The other transform's elements.
            iteration: The iteration of this transform.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `run`.")

    def first(self) -> Element:
        """Return the first result for copies of the other transform's first element."""
        element, size = self._source.first(), self._source.cardinality
        if size >= 0:
            for result in self.run(itertools.repeat(element, max(size, 1)), Iteration()):
                return succeeded(result)
        return succeeded(next(self.run(itertools.repeat(element), Iteration())))


class Derived(Following):
    """A transform whose elements have the structure of those of another one."""

    def first(self) -> Element:
        """Return an element of the other transform."""
        return self._source.first()

    def specs(self) -> Any:
        """Return those of the other transform."""
        return self._source.specs()


def batches_of(cardinality: int, size: int, drop_remainder: bool) -> int:
    """Return how many batches elements make; the constants stay as they are."""
    if cardinality <= 0:
        return cardinality
    whole, rest = divmod(cardinality, size)
    return whole + (rest > 0 and not drop_remainder)


@contextmanager
def named(method: str, index: int) -> Iterator[None]:
    """Within this context, an exception of a user's function is noted to be of this element."""
    try:
        yield
    except Exception as error:
        _noted(Failure(error), method, index)
        raise


def _noted(failure: Failure, method: str, index: int) -> Failure:
    failure.error.add_note(f"In Dataset.{method}, at element {index} (counted from 0).")
    return failure


def results_of(
    elements: Iterable[Element],
    step: Callable[[int, Element], Iterable[Element] | None],
    method: str = "",
    draws: CallDraws | None = None,
) -> Elements:
    """Yield what a step makes of each element, and a `Failure` for those of which it raises.

    Args:
        elements: The elements; those that could not be made are handed on.
        step: From an element's number and the element to what is yielded; None: all of it ends.
        method: The dataset's method, where the step calls a user's function.
        draws: What that function draws from.
    """

    def call(index: int, element: Element) -> Iterable[Element] | None:
        if draws is None:
            return step(index, element)
        with drawing_from(draws):
            return step(index, element)

    for index, element in enumerate(elements):
        results = (element,) if type(element) is Failure else attempt(call, index, element)
        if results is None:
            return
        if draws is not None and type(element) is not Failure:
            draws.number += 1
        if type(results) is Failure:
            yield results if draws is None else _noted(results, method, index)
        else:
            yield from results


def joined_rows(
    elements: Iterable[Element],
    size: int,
    join: Callable[[list[Element], int], Element],
    drop_remainder: bool,
    drops_batches: bool = False,
) -> Elements:
    """Yield batches of elements; one that could not be made takes the place of its batch.

    Args:
        elements: The elements.
        size: How many a batch has.
        join: From the elements of a batch, and the number of the first, to the batch.
        drop_remainder: Whether to leave out a last batch that has fewer.
        drops_batches: Whether the rest of the batch is dropped too; else the next one begins.
    """
    rows: list[Element] = []
    failed: Failure | None = None
    index = -1
    for index, element in enumerate(elements):
        rows.append(element)
        if type(element) is Failure:
            failed = failed or element
        if len(rows) == size or (failed and not drops_batches):
            yield failed or attempt(join, rows, index + 1 - len(rows))
            rows, failed = [], None
    if rows and (failed or not drop_remainder):
        yield failed or attempt(join, rows, index + 1 - len(rows))


class Slices(Transform):
    """The rows of arrays."""

    known = True

    def __init__(self, arrays: Element, size: int) -> None:
        self.cardinality = size
        self._arrays = arrays

    @functools.cached_property
    def form(self) -> Form:
        """The structure of the rows."""
        return Form(self._arrays)

    @functools.cached_property
    def leaves(self) -> list[NDArray[Any]]:
        """The arrays, in the order of the structure."""
        return _nest.flatten(self._arrays)

    @property
    def row_bytes(self) -> int:
        """How many bytes a row has, in all arrays together."""
        return sum(leaf.nbytes for leaf in self.leaves) // max(self.cardinality, 1)

    @property
    def slices(self) -> "Slices":
        """Itself."""
        return self

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of rows, which are views."""
        pack, leaves = self.form.pack, self.leaves
        for i in range(self.cardinality):
            yield pack([leaf[i, ...] for leaf in leaves])

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return a reader of slices."""
        return reader_of(slice(0, self.cardinality))

    def rows(self, which: Rows) -> Element:
        """Return some rows: views where they are a slice."""
        return self.form.pack(self.take(which))

    def take(self, which: Rows) -> list[NDArray[Any]]:
        """Return some rows of each array; see `rows`."""
        return [take(leaf, which) for leaf in self.leaves]

    def part(self, start: int, stop: int) -> "Slices":
        """Return the rows from `start` to before `stop`, as far as there are such."""
        start, stop, _ = slice(start, stop).indices(self.cardinality)
        return Slices(self.rows(slice(start, stop)), max(stop - start, 0))

    def specs(self) -> Any:
        """Return the structure of a row."""
        return self.form.pack([LeafSpec(leaf.shape[1:], leaf.dtype) for leaf in self.leaves])
