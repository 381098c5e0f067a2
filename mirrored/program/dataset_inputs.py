"""The dataset elements that one call of a recorded function takes, matched to its recording.

A function asks for elements in the same order in each run, but a shorter last batch, or the end of
a dataset, is another kind of call.
"""

from collections import Counter
from typing import Any

from mirrored.errors import InvalidArgumentError, OutOfRangeError
from mirrored.program.arguments import Arguments
from mirrored.program.iterator import END, PeekingIterator
from mirrored.program.recorder import GraphRecorder

# For each element that is asked for: from where, and what it is like.
Demand = tuple[tuple[Any, Any], ...]

_MOST = 1000  # Each is recorded by itself: a program of more steps takes long to make.


class DatasetInputs:
    """The elements that one call takes.

    Args:
        iterators: The iterators among the call's arguments.

    Attributes:
        demand: What was asked for while the function was recorded.
        arrays: The values to feed for it.
    """

    def __init__(self, iterators: list[PeekingIterator]) -> None:
        self._iterators = iterators
        # Iterators that the call itself makes, by their dataset and how many of it came before.
        self._created: dict[tuple[int, int], PeekingIterator] = {}
        self._begin()

    def _begin(self) -> None:
        self.demand: Demand = ()
        self.arrays: list[Any] = []
        self._taken: dict[PeekingIterator, int] = {}

    def match(self, demand: Demand) -> bool:
        """Return whether the next elements are such as a demand says, and take note of them."""
        self._begin()
        return all(self._look(self._iterator(source))[0] == like for source, like in demand)

    def record(self, recorder: GraphRecorder) -> None:
        """Give a function that is being recorded what stands for the elements that it asks for."""
        self._begin()
        sources: dict[PeekingIterator, Any] = {item: i for i, item in enumerate(self._iterators)}
        iterators: Counter[int] = Counter()

        def on_pull(asked: PeekingIterator) -> Any:
            if len(self.demand) == _MOST:
                raise InvalidArgumentError(
                    f"A recorded function takes at most {_MOST} elements of datasets in a call, "
                    "since each is recorded by itself. Iterate outside, and call the function "
                    "for each batch."
                )
            if asked not in sources:
                sources[asked] = self._source_of(asked, iterators)
            source = sources[asked]
            like, element = self._look(self._iterator(source))
            self.demand = (*self.demand, (source, like))
            if element is None:
                raise OutOfRangeError("End of sequence")
            return element.with_tensors([recorder.input(*input_) for input_ in element.inputs])[0]

        recorder.on_pull = on_pull

    def take(self) -> None:
        """Take the elements out of their iterators."""
        for iterator, count in self._taken.items():
            iterator.skip(count)

    def close(self) -> None:
        """End the iterators that the call itself made."""
        for iterator in self._created.values():
            iterator.close()

    def _source_of(self, iterator: PeekingIterator, iterators: Counter[int]) -> Any:
        """Return an iterator, or, where the call made it, its dataset and how many came before."""
        if iterator.origin is None:
            return iterator
        number = iterators[id(iterator.origin)]
        iterators[id(iterator.origin)] += 1
        self._created.setdefault((id(iterator.origin), number), iterator)
        return iterator.origin, number

    def _look(self, iterator: PeekingIterator) -> tuple[Any, Arguments | None]:
        """Return what the next element of an iterator is like, and the element if there is one."""
        place = self._taken.get(iterator, 0)
        element = iterator.peek(place)
        if element is END:
            return END, None
        arguments = Arguments(element)
        self._taken[iterator] = place + 1
        self.arrays += arguments.arrays
        return arguments.key, arguments

    def _iterator(self, source: Any) -> PeekingIterator:
        if isinstance(source, int):  # The place among the arguments.
            return self._iterators[source]
        if isinstance(source, PeekingIterator):
            return source
        key = id(source[0]), source[1]
        if key not in self._created:
            self._created[key] = iter(source[0])
        return self._created[key]
