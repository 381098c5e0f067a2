"""Values that may not be there, of iterators and by themselves."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr

Dataset = mr.data.Dataset
Optional = mr.experimental.Optional


def test_iterators_give_optionals_to_the_end() -> None:
    dataset = Dataset.from_tensor_slices(([1, 2], {"a": [3.0, 4.0]}))
    iterator = iter(dataset)
    assert isinstance(iterator, mr.data.Iterator)
    for number in (1, 2):
        optional = iterator.get_next_as_optional()
        has_value = optional.has_value()
        assert (has_value.dtype, bool(has_value)) == (mr.bool, True)
        x, y = optional.get_value()
        assert (int(x), float(y["a"])) == (number, number + 2)
        assert optional.element_spec == dataset.element_spec
    for _ in range(2):
        optional = mr.data.experimental.get_next_as_optional(iterator)
        assert not optional.has_value()
        assert optional.element_spec == iterator.element_spec == dataset.element_spec
    with pytest.raises(mr.errors.InvalidArgumentError, match="does not have a value"):
        optional.get_value()


def test_values_of_ones_own() -> None:
    kind = mr.TensorSpec([2], mr.int32)
    given = Optional.from_value(([1, 2], {"a": 1.0}))
    assert given.has_value()
    assert given.element_spec == (kind, {"a": mr.TensorSpec([], mr.float32)})
    assert [each.numpy().tolist() for each in (given.get_value()[0],)] == [[1, 2]]
    assert not Optional.empty(kind).has_value()
    assert Optional.empty(kind).element_spec == kind
    assert Optional.from_value(Dataset.range(3)).element_spec == mr.data.DatasetSpec(
        mr.TensorSpec([], mr.int64)
    )
    with pytest.raises(TypeError, match="abstract class Optional"):
        Optional()  # type: ignore[abstract]


def test_a_recorded_function_may_ask() -> None:
    """The end of a dataset is another recording, as for loops."""
    iterator = iter(Dataset.range(5))

    @mr.function
    def pair(iterator: Any) -> Any:
        total = mr.constant(100, mr.int64)
        for _ in range(2):
            optional = iterator.get_next_as_optional()
            if optional.has_value():
                total += optional.get_value()
        return total

    assert [int(pair(iterator)) for _ in range(4)] == [101, 105, 104, 100]


def test_replicas_get_optionals(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    iterator = iter(strategy.experimental_distribute_dataset(Dataset.range(4).batch(4)))
    optional = iterator.get_next_as_optional()
    assert optional.has_value()
    parts = strategy.experimental_local_results(optional.get_value())
    assert [part.numpy().tolist() for part in parts] == [[0, 1], [2, 3]]
    assert not iterator.get_next_as_optional().has_value()
    assert iterator.element_spec == mr.TensorSpec([None], mr.int64)


def test_arrays_have_an_iterator_of_their_own() -> None:
    iterator = Dataset.range(3).prefetch(1).as_numpy_iterator()
    assert isinstance(iterator, mr.data.NumpyIterator)
    assert (iter(iterator) is iterator, int(next(iterator)), int(iterator.next())) == (True, 0, 1)
    iterator.close()
    with pytest.raises(StopIteration):
        next(iterator)
