"""Iterators over datasets, of tensors and of NumPy arrays, and their positions in checkpoints.

The elements of a pipeline follow from its iteration. So a position is the iteration and the number
of elements that were taken: an iterator that is restored creates those again, and drops them.
"""

import itertools
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from mirrored._arguments import explained
from mirrored._types import late_type
from mirrored.data.elements import (
    DatasetBase,
    Elements,
    ElementT,
    Succeeding,
    check_arrays,
    succeeded,
    to_numpy,
    to_tensors,
)
from mirrored.data.rng import Iteration, Rng
from mirrored.data.row_transforms import gathered
from mirrored.data.transform import Transform, external_of
from mirrored.program import PeekingIterator

if TYPE_CHECKING:
    from mirrored.data.optional import Optional
else:
    Optional = late_type("mirrored.data.optional", "Optional")


class PositionedIterator(PeekingIterator):
    """An iterator over the elements of a dataset whose position can be saved.

    A subclass counts the elements in `_position.taken`, and continues in `_open`.

    Args:
        dataset: The dataset.
        transform: The last transform of the dataset; None: its position is not known.
        per_step: How many of its elements each of this iterator's is made of.
    """

    def __init__(self, dataset: Any, transform: Transform | None, per_step: int = 1) -> None:
        super().__init__(dataset)
        self._dataset = dataset
        self._position = Position()  # Of what was made; some of that may not be taken yet.
        self._transform, self._per_step = transform, per_step

    def _open(self, position: "Position") -> None:
        """Continue from a position."""
        raise NotImplementedError(f"{type(self).__name__} has no `_open`.")

    @property
    def element_spec(self) -> Any:
        """The structure of an element; see `Dataset.element_spec`."""
        return self._dataset.element_spec

    def get_next_as_optional(self) -> "Optional":
        """Return the next element as an `Optional`, which has no value at the end.

        Example:
            >>> import mirrored as mr
            >>> iterator = iter(mr.data.Dataset.range(1))
            >>> [bool(iterator.get_next_as_optional().has_value()) for _ in range(2)]
            [True, False]
        """
        from mirrored.data.optional import next_as_optional  # Needed here only.

        return next_as_optional(self, lambda: self.element_spec)

    @property
    def _known(self) -> Transform:
        if self._transform is None:
            raise ValueError(
                f"The position of {self!r} cannot be saved: it goes over data that only Python "
                "knows, or that each worker has of its own. Save the number of elements in a "
                "variable, and skip as many."
            )
        return self._transform

    @property
    def state(self) -> tuple[int, ...]:
        """The iterator's position as a checkpoint holds it, as numbers from 0 to 2**64 - 1.

        Raises:
            ValueError: The dataset has a state that only Python knows, as one of a generator has.
        """
        taken = self._position.taken - len(self._ahead) * self._per_step
        return words_of(self._known, Position(taken, self._position.iteration))

    def mark(self) -> Callable[[], None]:
        """Return a function that goes back to the position, on the same pass over the data.

        Raises:
            ValueError: As for `state`.
        """
        transform, taken = self._known, self._position.taken - len(self._ahead) * self._per_step

        def back() -> None:
            # A pass that has begun since is not another one.
            self.restore(words_of(transform, Position(taken, self._position.iteration)))

        return back

    def check(self, state: Sequence[int]) -> None:
        """Raise ValueError if a position is of a dataset that other methods created.

        Args:
            state: What `state` was.
        """
        position_of(self._known, state)

    def restore(self, state: Sequence[int]) -> None:
        """Go to a position. The elements before it are made again when the next one is taken.

        Args:
            state: What `state` was, of this iterator or of one over a dataset made as this one is.

        Raises:
            ValueError: The dataset was made by other methods.
        """
        transform = self._known
        position = position_of(transform, state)
        self.close()
        self._ahead.clear()
        self._position = position
        self._open(position)
        if position.iteration is not None:
            go_on_after(transform, position.iteration)


@explained
class DatasetIterator(PositionedIterator, Generic[ElementT]):
    """Goes over the elements of a dataset, as tensors; it may be an argument of `mr.function`.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: DatasetBase[ElementT]) -> None:
        super().__init__(dataset, dataset._transform)
        self._open(self._position)

    if TYPE_CHECKING:

        def __next__(self) -> ElementT: ...

    def produce(self) -> list[Any]:
        """Return the next element."""
        return [to_tensors(succeeded(self._take()))]

    def _take(self) -> Any:
        item = next(self._elements)
        self._position.taken += 1  # An element that could not be made counts.
        return item

    def _open(self, position: "Position") -> None:
        self._elements = elements_from(self._dataset._transform, position)

    def close(self) -> None:
        """End the threads that work for the iterator."""
        self._elements.close()


@explained
class NumpyIterator(Succeeding):
    """Goes over the elements of a dataset, as arrays that may be written to.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: DatasetBase[Any]) -> None:
        if dataset._transform.known:
            check_arrays(dataset._transform.specs())
        super().__init__(elements_from(dataset._transform, Position()))

    def __next__(self) -> Any:
        """Return the next element; StopIteration at the end."""
        return to_numpy(super().__next__())

    def next(self) -> Any:
        """Do as `next(iterator)` does."""
        return next(self)


@dataclass(slots=True)
class Position:
    """Where an iterator is.

    Attributes:
        taken: How many elements were taken.
        iteration: The iteration; None: it has not begun.
    """

    taken: int = 0
    iteration: Iteration | None = None


def elements_from(transform: Transform, position: Position) -> Elements:
    """Yield the elements after a position, in which a new iteration is stored.

    It begins with the first element: an iterator without any does not count.
    """
    begin = position.taken
    if position.iteration is None:
        position.iteration = transform.begin()
    slices = transform.batched_slices
    if begin and slices is not None:  # Of what was taken only the numbers of rows are read.
        yield from gathered(transform, slices, position.iteration, begin)
        return
    with closing(transform.open(position.iteration)) as elements:
        for _ in itertools.islice(elements, begin):
            pass
        yield from elements


def elements_of(transform: Transform, position: Position | None = None) -> Succeeding:
    """Return an iterator of elements as read-only arrays, for our own use; to be closed.

    Args:
        transform: The last transform of the pipeline.
        position: The position to begin at, as for `elements_from`; None: the first element.
    """
    return Succeeding(elements_from(transform, position or Position()))


def words_of(
    transform: Transform, position: Position, *, any_source: bool = False
) -> tuple[int, ...]:
    """Return a position as numbers from 0 to 2**64 - 1; their count depends on the pipeline alone.

    Args:
        transform: The last transform of the pipeline.
        position: The position.
        any_source: Whether a generator may be a source, which gives the same elements again.

    Raises:
        ValueError: A transform of the pipeline has a state that is not known here.
    """
    external = None if any_source else external_of(transform)
    if external is not None:
        raise ValueError(
            f"The position of an iterator over a dataset with `{external}` cannot be saved: only "
            "Python knows the state of the generator. Save the number of elements in a variable "
            "and use `skip`, or create the dataset from arrays."
        )
    iteration = position.iteration
    numbers = [0, 0, 0] * sum(stage.rng is not None for stage in _all(transform))
    if iteration is not None:
        drawing = [own for _, own in _drawing(transform, iteration)]
        numbers = [n for own in drawing for n in (own.number, own.seed or 0, own.base or 0)]
    return (_kind(transform), position.taken, iteration is not None, *numbers)


def position_of(transform: Transform, words: Sequence[int]) -> Position:
    """Return the position that `words_of` gave for a pipeline of the same transforms.

    Raises:
        ValueError: It was another pipeline.
    """
    kind, taken, has_begun, *numbers = words
    if has_begun > 1 or taken > sys.maxsize or (not has_begun and any((taken, *numbers))):
        raise ValueError(f"No iterator has the position {list(words)}. The file is damaged.")
    if kind != _kind(transform):
        names = [type(stage).__name__ for stage in _all(transform)]
        raise ValueError(
            "The iterator was saved for a dataset of other methods. Received: a position for an "
            f"iterator over a dataset of {names}. Create the dataset with the same methods as "
            "before."
        )
    if not has_begun:
        return Position()
    return Position(taken, _iteration(transform, iter(numbers)))


def go_on_after(transform: Transform, iteration: Iteration) -> None:
    """Continue the numbers of iterations over a pipeline after one of them."""
    for rng, own in _drawing(transform, iteration):
        rng.go_on_after(own.number)


def _all(transform: Transform) -> Iterator[Transform]:
    yield transform
    for source in transform.sources:
        yield from _all(source)


def _kind(transform: Transform) -> int:
    """Return a number that other pipelines hardly have."""
    parts = [
        f"{type(stage).__name__} {len(stage.sources)} {stage.rng is not None}"
        for stage in _all(transform)
    ]
    return zlib.crc32(" ".join(parts).encode())


def _drawing(transform: Transform, iteration: Iteration) -> Iterator[tuple[Rng, Iteration]]:
    """Yield the seeds of a pipeline's transforms, each with the transform's iteration."""
    if transform.rng is not None:
        yield transform.rng, iteration
    for source, inner in zip(transform.sources, iteration.sources, strict=True):
        yield from _drawing(source, inner)


def _iteration(transform: Transform, numbers: Iterator[int]) -> Iteration:
    number, seed, base = 0, None, None
    if transform.rng is not None:
        number, seed, base = next(numbers), next(numbers), next(numbers)
    sources = tuple([_iteration(source, numbers) for source in transform.sources])
    return Iteration(number, sources, seed=seed, base=base)
