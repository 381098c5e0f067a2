"""What a call takes from datasets: a plan of it, which other calls match or not, and the taking."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError, OutOfRangeError
from mirrored.ops.hooks import recorded_by
from mirrored.program import GraphRecorder, PeekingIterator
from mirrored.program.function_tracing import DatasetInputs, Demand


class Numbers(PeekingIterator):
    """Gives tensors of so many numbers each.

    Args:
        sizes: How many.
        origin: See `PeekingIterator`.
    """

    def __init__(self, *sizes: int, origin: Any = None) -> None:
        super().__init__(origin)
        self.left = iter(sizes)
        self.closed = False

    def produce(self) -> list[mr.Tensor]:
        return [mr.constant(np.arange(float(next(self.left))))]

    def close(self) -> None:
        self.closed = True

    def sizes(self) -> list[int]:
        """Return how many numbers the elements have that are still to come."""
        return [each.shape[0] for each in self]


class Dataset:
    """Makes an iterator for each loop over it, and keeps them."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.made: list[Numbers] = []

    def __iter__(self) -> Iterator[Any]:
        self.made.append(Numbers(*self.sizes, origin=self))
        return self.made[-1]


def planned(function: Callable[..., Any], *streams: Any) -> tuple[Demand, list[Any]]:
    """Return the plan and the arrays of a call that is recorded, and takes its elements."""
    recorder = GraphRecorder()
    arguments = [each for each in streams if isinstance(each, PeekingIterator)]
    with closing(DatasetInputs(arguments)) as dataset_inputs:
        dataset_inputs.record(recorder)
        with recorded_by(recorder):
            function(*streams)
        dataset_inputs.take()
        return dataset_inputs.demand, dataset_inputs.arrays


def matches(plan: Demand, *streams: PeekingIterator) -> bool:
    """Return whether another call's elements are such, and take them where they are."""
    with closing(DatasetInputs(list(streams))) as dataset_inputs:
        found = dataset_inputs.match(plan)
        if found:
            dataset_inputs.take()
        return found


def pair(stream: Any) -> None:
    next(stream)
    next(stream)


def test_elements_stay_until_they_are_taken() -> None:
    stream, recorder = Numbers(3, 2, 1), GraphRecorder()
    dataset_inputs = DatasetInputs([stream])
    dataset_inputs.record(recorder)
    with recorded_by(recorder):
        first, second = next(stream), next(stream)
    assert (first.shape, second.shape) == ((3,), (2,))
    assert [each.tolist() for each in dataset_inputs.arrays] == [[0.0, 1.0, 2.0], [0.0, 1.0]]
    assert [value.spec.shape for value in recorder.graph.inputs] == [(3,), (2,)]
    dataset_inputs.take()
    assert stream.sizes() == [1]


def test_elements_of_one_that_failed_stay() -> None:
    stream = Numbers(3, 2)

    def fail(stream: Any) -> None:
        next(stream)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        planned(fail, stream)
    assert stream.sizes() == [3, 2]


@cases(
    ("sizes", "matching", "left"),
    [
        ((3, 2, 5), True, [5]),
        ((3, 2), True, []),
        ((3, 3), False, [3, 3]),
        ((2, 3), False, [2, 3]),
        ((3,), False, [3]),
        ((), False, []),
    ],
)
def test_which_calls_a_recording_serves(sizes: Any, matching: bool, left: list[int]) -> None:
    plan, _ = planned(pair, Numbers(3, 2))
    other = Numbers(*sizes)
    assert matches(plan, other) is matching
    assert other.sizes() == left


def test_the_end_is_another_kind_of_element() -> None:
    def all_of(stream: Any) -> None:
        for _ in stream:
            pass

    plan, arrays = planned(all_of, Numbers(2, 2))
    assert (len(plan), len(arrays)) == (3, 2)
    assert matches(plan, Numbers(2, 2))
    assert not matches(plan, Numbers(2, 2, 2))
    assert not matches(plan, Numbers(2))
    assert not matches(planned(pair, Numbers(2, 2))[0], Numbers(2))


def test_an_end_that_is_not_caught_is_an_error() -> None:
    stream = Numbers(3)
    with pytest.raises(OutOfRangeError, match="End of sequence"):
        planned(pair, stream)
    assert stream.sizes() == [3]


def test_arguments_are_known_by_their_place() -> None:
    def crosswise(a: Any, b: Any) -> None:
        next(b)
        next(a)

    plan, arrays = planned(crosswise, Numbers(1), Numbers(2))
    assert [array.shape for array in arrays] == [(2,), (1,)]
    assert matches(plan, Numbers(1), Numbers(2))
    assert not matches(plan, Numbers(2), Numbers(1))
    both = Numbers(2, 1)
    assert matches(planned(crosswise, both, both)[0], *[Numbers(2, 1)] * 2)


def test_what_is_closed_over_is_known_by_itself() -> None:
    kept, other = Numbers(2, 2, 2), Numbers(2)
    plan, _ = planned(lambda: next(kept))
    assert matches(plan)
    assert kept.sizes() == [2]
    assert not matches(plan)  # It has ended; the other one is not its.
    assert other.sizes() == [2]


def test_each_call_goes_over_a_dataset_anew() -> None:
    dataset = Dataset(3, 2)

    def twice() -> None:
        for _ in dataset:
            for _ in dataset:
                break

    plan, arrays = planned(twice)
    assert [array.shape for array in arrays] == [(3,), (3,), (2,), (3,)]
    assert len(dataset.made) == 3
    for _ in range(3):
        assert matches(plan)
    assert len(dataset.made) == 12
    assert all(each.closed for each in dataset.made)
    dataset.sizes = (3, 3)
    assert not matches(plan)
    assert all(each.closed for each in dataset.made)


def test_another_dataset_is_another_kind() -> None:
    first, second = Dataset(2), Dataset(2)
    chosen = [first]
    plan, _ = planned(lambda: list(chosen[0]))
    assert matches(plan)
    assert not second.made


def test_a_function_takes_no_more_elements_than_are_sensible() -> None:
    def many(count: int) -> None:
        for _ in range(count):
            next(stream)

    stream = Numbers(*[1] * 1001)
    with pytest.raises(InvalidArgumentError, match="takes at most 1000 dataset elements per"):
        planned(lambda _: many(1001), stream)
    assert len(planned(lambda _: many(1000), stream)[0]) == 1000
    assert stream.sizes() == [1]
