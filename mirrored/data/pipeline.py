"""How a dataset is looked at: iteration, the number of its elements and what they are made of.

Users see tensors or copies; what works for them inside sees the arrays themselves.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic, Self

import numpy as np

from mirrored._arguments import explained
from mirrored.data.failures import Succeeding, succeeded
from mirrored.data.leaf_specs import public_specs
from mirrored.data.positions import Position, elements_from, go_on_after, position_of, words_of
from mirrored.data.sources import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Transform
from mirrored.data.spec import Nested, check_arrays, to_numpy, to_tensors
from mirrored.devices import get_device
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops import Tensor, transfer
from mirrored.ops.hooks import active_recorder
from mirrored.program import PeekingIterator

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from mirrored.data.optional import Optional
    from mirrored.data.options import Options

    # What elements are, where type checkers know it. (In Python itself defaults came with 3.13.)
    ElementT = TypeVar("ElementT", default=Any, covariant=True)
else:
    from typing import TypeVar

    ElementT = TypeVar("ElementT", covariant=True)


@explained
class Pipeline(Nested, Generic[ElementT]):
    """Elements that are made while they are iterated over, anew each time.

    Args:
        transform: What makes them.
    """

    _transform: Transform

    def __init__(self, transform: Transform) -> None:
        self._transform = transform

    def __iter__(self) -> "DatasetIterator[ElementT]":
        """Return an iterator of tensors; its `close` ends the threads that work for it."""
        return DatasetIterator(self)

    def as_numpy_iterator(self) -> "NumpyIterator":
        """Return an iterator of NumPy arrays, and NumPy's scalars, that may be written to.

        Raises:
            TypeError: Elements have datasets as parts; where that is not known before, it is an
                error of the iteration.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(2).as_numpy_iterator())
            [np.int64(0), np.int64(1)]
        """
        return NumpyIterator(self)

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """Return the last of the states that a function makes, one of another and an element.

        Gradients do not go through it.

        Args:
            initial_state: The first state: arrays or numbers, or a tuple or dict of such.
            reduce_func: From a state and an element to the next state, of the same structure and
                dtypes. A tuple is one argument.
            name: Accepted for compatibility.

        Raises:
            ValueError: `reduce_func` is not callable.
            TypeError: A new state has other dtypes.
            InvalidArgumentError: A new state has another number of parts.
            OperatorNotAllowedInGraphError: A function is being recorded.

        Example:
            >>> import mirrored as mr
            >>> zero = mr.constant(0, mr.int64)
            >>> int(mr.data.Dataset.range(5).reduce(zero, lambda total, x: total + x))
            10
        """
        if active_recorder() is not None:
            raise OperatorNotAllowedInGraphError(
                "`Dataset.reduce` is run by Python, which a recorded function does not run again. "
                "Received: a call while a function was being recorded. Call it outside, and give "
                "the function the result; or loop over the dataset in the function."
            )
        from mirrored.data.states import States, reduced  # Few programs need it.

        states = States(initial_state, "reduce_func", reduce_func)
        return to_tensors(reduced(self._host_elements(), states))

    def get_single_element(self, name: str | None = None) -> ElementT:
        """Return the one element of the dataset.

        Args:
            name: Accepted for compatibility.

        Raises:
            InvalidArgumentError: There is none, or more than one.

        Example:
            >>> import mirrored as mr
            >>> mr.data.Dataset.range(3).batch(5).get_single_element().numpy().tolist()
            [0, 1, 2]
        """
        with closing(iter(self)) as elements:
            found = list(itertools.islice(elements, 2))
        if len(found) != 1:
            wrong = "had more than one element" if found else "was empty"
            raise InvalidArgumentError(
                f"Dataset {wrong}. Received: {self!r}. `get_single_element` is for datasets of "
                "one element; others are iterated over."
            )
        return found[0]

    def options(self) -> "Options":
        """Return what `with_options` has set, here and where the elements come from.

        Example:
            >>> import mirrored as mr
            >>> mr.data.Dataset.range(3).options().deterministic is None
            True
        """
        from mirrored.data.options_transform import merged_options  # Needed here only.

        options = merged_options(self._transform)
        options._freeze()
        return options

    def _of(self, transform: Transform) -> Self:
        """Return the dataset that a transform makes."""
        raise NotImplementedError(f"{type(self).__name__} has no `_of`.")

    def _host_elements(self) -> Succeeding:
        """Return an iterator of the elements as read-only arrays, for our own use; to be closed."""
        return Succeeding(elements_from(self._transform, Position()))

    def _known_spec(self) -> Any:
        """Return `element_spec` where no element has to be made for it, else None."""
        return self.element_spec if self._transform.known else None

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a `TensorSpec` for each tensor.

        A size that differs between elements is None, as the first one of batches is. After `map`,
        and after `from_generator` without a signature, it is that of the first element, which is
        made to find out.
        """
        return public_specs(self._transform.specs())

    def cardinality(self) -> Tensor:
        """Return the number of elements as an int64 scalar, or one of the constants.

        They are INFINITE_CARDINALITY and UNKNOWN_CARDINALITY.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.range(5)
            >>> int(dataset.cardinality()), int(dataset.repeat().cardinality())
            (5, -1)
        """
        return transfer(np.array(self._transform.cardinality, np.int64), get_device("CPU:0"))

    def __len__(self) -> int:
        """Return the number of elements; TypeError where there is none."""
        size = self._transform.cardinality
        if size == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if size == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return size

    def __bool__(self) -> bool:
        """Return True, as TensorFlow does, whether or not there is a length."""
        return True

    def __repr__(self) -> str:
        return f"<mr.data.Dataset: {type(self._transform).__name__}, {self._size_text()}>"

    def _size_text(self) -> str:
        size = self._transform.cardinality
        words = {INFINITE_CARDINALITY: "without end", UNKNOWN_CARDINALITY: "of unknown length"}
        return words.get(size, f"{size} elements")


@explained
class DatasetIterator(PeekingIterator, Generic[ElementT]):
    """Goes over the elements of a dataset, as tensors; it may be an argument of `mr.function`.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Pipeline[ElementT]) -> None:
        super().__init__(dataset)
        self._dataset = dataset
        self._position = Position()  # Of what was made; some of that may not be taken yet.
        self._elements = elements_from(dataset._transform, self._position)

    if TYPE_CHECKING:

        def __next__(self) -> ElementT: ...

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

    def __init__(self, dataset: Pipeline[Any]) -> None:
        if dataset._transform.known:
            check_arrays(dataset._transform.specs())
        self._elements = dataset._host_elements()

    def __iter__(self) -> Self:
        """Return the iterator."""
        return self

    def __next__(self) -> Any:
        """Return the next element; StopIteration at the end."""
        return to_numpy(next(self._elements))

    def next(self) -> Any:
        """Do as `next(iterator)` does."""
        return next(self)

    def close(self) -> None:
        """End the threads that work for the iterator."""
        self._elements.close()
