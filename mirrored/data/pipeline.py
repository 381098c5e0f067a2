"""How a dataset is looked at: iteration, the number of its elements and what they are made of.

Users see tensors or copies; what works for them inside sees the arrays themselves.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from mirrored._arguments import explained
from mirrored.data.leaf_specs import public_specs
from mirrored.data.sources import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Transform
from mirrored.data.spec import Elements, Nested, to_numpy, to_tensors
from mirrored.devices import get_device
from mirrored.ops import Tensor, transfer
from mirrored.program import PeekingIterator

if TYPE_CHECKING:
    from typing_extensions import TypeVar

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

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Return an iterator of NumPy arrays, and NumPy's scalars, that may be written to.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(2).as_numpy_iterator())
            [np.int64(0), np.int64(1)]
        """
        with closing(self._host_elements()) as elements:
            for element in elements:
                yield to_numpy(element)

    def _host_elements(self) -> Elements:
        """Yield the elements as read-only arrays, for our own use; to be closed.

        It begins when the first is asked for: an iterator that nobody takes from does not count.
        """
        with closing(self._transform.open(self._transform.begin())) as elements:
            yield from elements

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


class DatasetIterator(PeekingIterator, Generic[ElementT]):
    """Goes over the elements of a dataset, as tensors; it may be an argument of `mr.function`.

    Args:
        dataset: The dataset.
    """

    def __init__(self, dataset: Pipeline[ElementT]) -> None:
        super().__init__(dataset)
        self._elements = dataset._host_elements()

    if TYPE_CHECKING:

        def __next__(self) -> ElementT: ...

    def produce(self) -> list[Any]:
        """Return the next element."""
        return [to_tensors(next(self._elements))]

    def close(self) -> None:
        """End the threads that work for the iterator."""
        self._elements.close()
