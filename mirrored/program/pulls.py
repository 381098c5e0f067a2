"""What one call of a recorded function takes from datasets, compared with what was recorded.

A function asks for elements in the same order in each run, but a shorter last batch, or the end of
a dataset, is another kind of call.
"""

from collections import Counter
from typing import Any

from mirrored.errors import InvalidArgumentError, OutOfRangeError
from mirrored.program.arguments import Arguments
from mirrored.program.recorder import GraphRecorder
from mirrored.program.streams import END, Stream

# For each element that is asked for: from where, and what it is like.
Plan = tuple[tuple[Any, Any], ...]

_MOST = 1000  # Each is recorded by itself: a program of more steps takes long to make.


class Pulls:
    """The elements that one call takes.

    Args:
        streams: The iterators among the call's arguments.

    Attributes:
        plan: What was asked for while the function was recorded.
        arrays: The values to feed for it.
    """

    def __init__(self, streams: list[Stream]) -> None:
        self._streams = streams
        # Iterators that the call itself makes, by their dataset and how many of it came before.
        self._made: dict[tuple[int, int], Stream] = {}
        self._begin()

    def _begin(self) -> None:
        self.plan: Plan = ()
        self.arrays: list[Any] = []
        self._taken: dict[Stream, int] = {}

    def match(self, plan: Plan) -> bool:
        """Return whether the next elements are such as a plan says, and take note of them.

        Args:
            plan: What another call asked for.
        """
        self._begin()
        return all(self._look(self._stream(source))[0] == like for source, like in plan)

    def record(self, recorder: GraphRecorder) -> None:
        """Give a function that is being recorded what stands for the elements that it asks for.

        Args:
            recorder: Who records it.
        """
        self._begin()
        sources: dict[Stream, Any] = {each: i for i, each in enumerate(self._streams)}
        iterators: Counter[int] = Counter()

        def on_pull(asked: Stream) -> Any:
            if len(self.plan) == _MOST:
                raise InvalidArgumentError(
                    f"A recorded function takes at most {_MOST} elements of datasets in a call, "
                    "since each is recorded by itself. Iterate outside, and call the function "
                    "for each batch."
                )
            if asked not in sources:
                sources[asked] = self._source_of(asked, iterators)
            source = sources[asked]
            like, element = self._look(self._stream(source))
            self.plan = (*self.plan, (source, like))
            if element is None:
                raise OutOfRangeError("End of sequence")
            return element.with_tensors([recorder.input(*each) for each in element.inputs])

        recorder.on_pull = on_pull

    def take(self) -> None:
        """Take the elements out of their iterators."""
        for stream, count in self._taken.items():
            stream.skip(count)

    def close(self) -> None:
        """End the iterators that the call itself made."""
        for stream in self._made.values():
            stream.close()

    def _source_of(self, stream: Stream, iterators: Counter[int]) -> Any:
        """Return an iterator, or, where the call made it, its dataset and how many came before."""
        if stream.origin is None:
            return stream
        number = iterators[id(stream.origin)]
        iterators[id(stream.origin)] += 1
        self._made.setdefault((id(stream.origin), number), stream)
        return stream.origin, number

    def _look(self, stream: Stream) -> tuple[Any, Arguments | None]:
        """Return what the next element of an iterator is like, and the element if there is one."""
        place = self._taken.get(stream, 0)
        element = stream.peek(place)
        if element is END:
            return END, None
        found = Arguments(element)
        self._taken[stream] = place + 1
        self.arrays += found.arrays
        return found.key, found

    def _stream(self, source: Any) -> Stream:
        if isinstance(source, int):  # The place among the arguments.
            return self._streams[source]
        if isinstance(source, Stream):
            return source
        key = id(source[0]), source[1]
        if key not in self._made:
            self._made[key] = iter(source[0])
        return self._made[key]
