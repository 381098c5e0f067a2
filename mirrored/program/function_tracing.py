"""Records what a Python function computes as a trace, for users and for `fit`.

A function may ask datasets for elements, in the same order in each run; but a shorter last batch,
or the end of a dataset, is another kind of call.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from mirrored._contexts import without_collector
from mirrored._naming import name_scope
from mirrored.errors import InvalidArgumentError, OutOfRangeError
from mirrored.ops.hooks import RecordedTensor
from mirrored.ops.tensor import Tensor
from mirrored.program.dataflow import SHARED
from mirrored.program.function_arguments import Arguments, Input, Results
from mirrored.program.iterator import END, PeekingIterator
from mirrored.program.recorder import GraphRecorder
from mirrored.program.trace_cache import Trace
from mirrored.program.variable_access import refuse, ruled_by

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
                    f"A recorded function takes at most {_MOST} dataset elements per call, "
                    "because each element is recorded separately. Iterate outside, and call the "
                    "function for each batch."
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


def trace(
    name: str,
    inputs: Sequence[Input],
    function: Callable[[list[Tensor]], Any],
    *,
    dataset_inputs: DatasetInputs | None = None,
    returns: type[Tensor] = RecordedTensor,
    replicas: int | None = None,
    purpose: str | None = None,
    may_make: bool = True,
    labels_checked: bool = False,
) -> Trace:
    """Record a function once its variables are where it leaves them.

    Args:
        name: What it is called.
        inputs: What it is fed.
        function: From what stands for that to what it returns, in nested lists, tuples and dicts.
        dataset_inputs: Gives it elements of datasets, of which it may come to the end.
        returns: Which leaves each run gives values of its own: constants may stay as they are.
        replicas: How many run in it; None: as many as have something to do.
        purpose: What errors call its memory; None: that of the function of its name.
        may_make: Whether it may make variables.
        labels_checked: Whether somebody looked at all labels before, so that no op has to.

    Raises:
        ValueError: It makes variables where it may not.
    """

    @without_collector()
    def record(*, logs: bool) -> Trace:
        recorder = GraphRecorder(name, logs=logs, labels_checked=labels_checked)
        recorder.graph.purpose = purpose or recorder.graph.purpose
        fed = [recorder.input(*input_) for input_ in inputs]
        results: Results | None = None
        if dataset_inputs is not None:
            dataset_inputs.record(recorder)
        try:
            with recorder.recording(), name_scope(""):
                results = Results(function(fed), lambda part: isinstance(part, returns))
        except OutOfRangeError:
            if dataset_inputs is None:
                raise
        recorder.on_pull = None  # What is kept of the recording must not keep its first elements.
        graph = recorder.finish([] if results is None else results.parts)
        # Replicas are known by their numbers: one without a node counts too.
        used = {node.replica for node in graph.nodes} - {SHARED}
        return Trace(graph, replicas or max(used, default=0) + 1, results)

    variables: list[str] = []
    with ruled_by(variables.append if may_make else refuse):
        first = record(logs=True)
    if first.graph.is_current() and not variables:
        return first
    # Again where it made variables, and then must make none; and where it brought some together.
    with ruled_by(refuse):
        return record(logs=False)
