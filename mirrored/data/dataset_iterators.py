"""Iterators over datasets: of tensors, with a position for checkpoints, and of NumPy arrays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Self

from mirrored._arguments import explained
from mirrored.data.failures import succeeded
from mirrored.data.leaf_specs import public_specs
from mirrored.data.positions import (
    Position,
    elements_from,
    go_on_after,
    position_of,
    words_of,
)
from mirrored.data.spec import DatasetBase, ElementT, check_arrays, to_numpy, to_tensors
from mirrored.program import PeekingIterator

if TYPE_CHECKING:
    from mirrored.data.optional import Optional


@explained
class DatasetIterator(PeekingIterator, Generic[ElementT]):
    """Goes over the elements of a dataset, as tensors; it may be an argument of `mr.function`.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: DatasetBase[ElementT]) -> None:
        super().__init__(dataset)
        self._dataset = dataset
        self._position = Position()  # Of what was made; some of that may not be taken yet.
        self._elements = elements_from(dataset._transform, self._position)

    if TYPE_CHECKING:

        def __next__(self) -> ElementT: ...

    @property
    def element_spec(self) -> Any:
        """The structure of an element; see `Dataset.element_spec`."""
        return public_specs(self._dataset._transform.specs())

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

    def produce(self) -> list[Any]:
        """Return the next element."""
        return [to_tensors(succeeded(self._take()))]

    def _take(self) -> Any:
        item = next(self._elements)
        self._position.taken += 1  # An element that could not be made counts.
        return item

    @property
    def state(self) -> tuple[int, ...]:
        """The iterator's position as a checkpoint holds it, as numbers from 0 to 2**64 - 1.

        Raises:
            ValueError: The dataset has a state that only Python knows, as one of a generator has.
        """
        taken = self._position.taken - len(self._ahead)
        position = Position(taken, self._position.iteration)
        return words_of(self._dataset._transform, position)

    def check(self, state: Sequence[int]) -> None:
        """Raise ValueError where a position is one in a dataset that was made by other methods.

        Args:
            state: What `state` was.
        """
        position_of(self._dataset._transform, state)

    def restore(self, state: Sequence[int]) -> None:
        """Go to a position. The elements before it are made again when the next one is taken.

        Args:
            state: What `state` was, of this iterator or of one over a dataset made as this one is.

        Raises:
            ValueError: The dataset was made by other methods.
        """
        transform = self._dataset._transform
        position = position_of(transform, state)
        self._elements.close()
        self._ahead.clear()
        self._position = position
        self._elements = elements_from(transform, position)
        if position.iteration is not None:
            go_on_after(transform, position.iteration)

    def close(self) -> None:
        """End the threads that work for the iterator."""
        self._elements.close()


@explained
class NumpyIterator:
    """Goes over the elements of a dataset, as arrays that may be written to.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: DatasetBase[Any]) -> None:
        if dataset._transform.known:
            check_arrays(dataset._transform.specs())
        self._elements = elements_from(dataset._transform, Position())

    def __iter__(self) -> Self:
        """Return the iterator."""
        return self

    def __next__(self) -> Any:
        """Return the next element; StopIteration at the end."""
        return to_numpy(succeeded(next(self._elements)))

    def next(self) -> Any:
        """Do as `next(iterator)` does."""
        return next(self)

    def close(self) -> None:
        """End the threads that work for the iterator."""
        self._elements.close()
