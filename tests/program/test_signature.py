"""What `input_signature` converts and refuses."""

import functools
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

NUMBER = mr.TensorSpec([], mr.float32)
VECTOR = mr.TensorSpec([None], mr.float32)


class Counted:
    """A function that counts how often Python runs."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.runs = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.runs += 1
            return function(*args, **kwargs)

        functools.update_wrapper(counted, function)
        self.recorded = mr.function(counted, input_signature=signature)


def test_one_recording_serves_all_numbers() -> None:
    scaled = Counted(lambda x, y: x * y, [VECTOR, NUMBER])
    assert scaled.recorded([1, 2], 3).numpy().tolist() == [3.0, 6.0]
    assert scaled.recorded(np.array([1.0, 2.0]), np.float64(4)).numpy().tolist() == [4.0, 8.0]
    assert scaled.recorded(y=2.0, x=[1.0, 1.0]).numpy().tolist() == [2.0, 2.0]
    assert scaled.runs == 1
    assert scaled.recorded([1.0], 1.0).numpy().tolist() == [1.0]
    assert scaled.runs == 2  # Another size.


def test_methods_and_decorators() -> None:
    class Model:
        factor = 2.0

        @mr.function(input_signature=[VECTOR])
        def __call__(self, x: Any) -> Any:
            return x * self.factor

    assert Model()([1, 2]).numpy().tolist() == [2.0, 4.0]
    more = mr.function(mr.function(lambda x: x + 1.0), input_signature=[NUMBER])
    assert float(more(1)) == 2.0


def test_structures_and_per_replica_values(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    rows = np.arange(7, dtype=np.float32)
    dataset = mr.data.Dataset.from_tensor_slices((rows, {"w": rows})).batch(3)
    batches = strategy.experimental_distribute_dataset(dataset)

    @mr.function(input_signature=[batches.element_spec])
    def total(batch: Any) -> Any:
        x, named = batch
        parts = strategy.run(lambda a, b: mr.reduce_sum(a * b), args=(x, named["w"]))
        return strategy.reduce("sum", parts, axis=None)

    assert [float(total(batch)) for batch in batches] == [5.0, 50.0, 36.0]
    assert float(total(([1, 2], {"w": [3, 4]}))) == 22.0  # Each replica gets all of it.


def test_a_specification_without_a_shape_takes_all() -> None:
    double = mr.function(lambda x: 2 * x, input_signature=[mr.TensorSpec(None, mr.float32)])
    assert [double(x).shape for x in (1.0, [1.0, 2.0])] == [(), (2,)]


def test_dicts_keep_their_type() -> None:
    given = OrderedDict(b=[1.0], a=2.0)
    signature = [{"a": NUMBER, "b": VECTOR}]
    for function in (mr.function(lambda x: x), mr.function(lambda x: x, input_signature=signature)):
        result = function(given)
        assert type(result) is OrderedDict
        assert list(result) == ["b", "a"]


@cases(
    ("signature", "args", "match"),
    [
        ([VECTOR], ([[1.0]],), r"Received: an argument of shape \(1, 1\)"),
        ([mr.TensorSpec([2], mr.float32)], ([1.0],), r"Received: an argument of shape \(1,\)"),
        ([VECTOR, NUMBER], ([1.0],), "due to `missing a required argument: 'args_1'`. Received a"),
        ([NUMBER], (1.0, 2.0, 3.0), "due to `too many positional arguments`. Received args: "),
        ([mr.TensorSpec([], mr.int32)], (1.5,), "Received: 1.5"),
        ([NUMBER], ("a",), "Received: 'a'"),
        ([NUMBER], (None,), "Received: None"),
        ([(VECTOR, NUMBER)], (([1.0],),), "Received: a tuple of another structure"),
        ([{"a": NUMBER}], ({"b": 1.0},), "Received: a dict of another structure"),
        ([{"a": NUMBER}], ([1.0],), "Received: a list of another structure"),
    ],
)
def test_arguments_that_do_not_fit(signature: Any, args: Any, match: str) -> None:
    def function(*args: Any) -> None:
        pytest.fail("the function was called")

    with pytest.raises(TypeError, match=match):
        mr.function(function, input_signature=signature)(*args)


def test_a_tensor_of_another_dtype() -> None:
    recorded = mr.function(lambda x: x, input_signature=[NUMBER])
    with pytest.raises(TypeError, match=r"takes TensorSpec.*Received: <mr.Tensor.*dtype int32"):
        recorded(mr.constant(1))


@pytest.mark.parametrize("signature", [[mr.float32], [[VECTOR, None]]])
def test_what_is_no_signature(signature: Any) -> None:
    with pytest.raises(TypeError, match=r"`input_signature` must be a list of mr\.TensorSpec"):
        mr.function(lambda x: x, input_signature=signature)


@cases("signature", [NUMBER, "x", {"x": NUMBER}])
def test_what_is_no_list(signature: Any) -> None:
    with pytest.raises(TypeError, match="must be either a tuple or a list, got"):
        mr.function(lambda x: x, input_signature=signature)


def two(x: Any, y: Any) -> Any:
    return x + y


def with_default(x: Any, y: float = 2.0) -> Any:
    return x + y


def with_keyword(x: Any, *, y: float = 2.0) -> Any:
    return x + y


def asks_for_keyword(x: Any, *, y: float) -> Any:
    return x + y


def takes_all(x: Any, *args: Any, **kwargs: Any) -> Any:
    return x + sum(args) + sum(kwargs.values())


def plain_self(self: Any, x: Any) -> Any:
    return x


class Adds:
    def __call__(self, x: Any, y: Any) -> Any:
        return x + y

    def method(self, x: Any) -> Any:
        return x


# What TensorFlow 2.21 says of the function and how many numbers it is said to take.
DEFINED: list[tuple[Any, int, str]] = [
    (two, 0, "missing type constraint for x"),
    (two, 1, "missing type constraint for y"),
    (two, 3, "contains 1 extra type constraints"),
    (with_default, 0, "missing type constraint for x"),
    (with_default, 4, "contains 2 extra type constraints"),
    (asks_for_keyword, 1, "keyword-only parameter `y` must have a default value"),
    (plain_self, 2, "contains 1 extra type constraints"),
    (Adds(), 1, "missing type constraint for y"),
    (Adds().method, 2, "contains 1 extra type constraints"),
    (lambda this, x, y: x, 2, "missing type constraint for y"),
]


@pytest.mark.behaviour("input-signature")
@cases(("function", "count", "text"), DEFINED)
def test_a_signature_of_another_function(function: Any, count: int, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        mr.function(function, input_signature=[NUMBER] * count)


def test_a_signature_of_another_method() -> None:
    with pytest.raises(TypeError, match="missing type constraint for y"):

        class Model:
            @mr.function(input_signature=[NUMBER])
            def add(self, x: Any, y: Any) -> Any:
                return x + y


CALLS: list[tuple[Any, int, tuple[Any, ...], dict[str, Any], Any]] = [
    (two, 2, (1, 2), {}, 3.0),
    (two, 2, (), {"y": 1, "x": 2}, 3.0),
    (two, 2, (1,), {}, "missing a required argument: 'y'"),
    (two, 2, (1, 2, 3), {}, "too many positional arguments"),
    (two, 2, (1, 2), {"z": 3}, "got an unexpected keyword argument 'z'"),
    (two, 2, (1,), {"x": 1}, "multiple values for argument 'x'"),
    (with_default, 1, (1,), {}, 3.0),
    (with_default, 1, (1, 2.0), {}, 3.0),
    (with_default, 1, (1, 5.0), {}, "y has no type constraint and stays 2.0"),
    (with_default, 1, (1,), {"y": 5.0}, "y has no type constraint and stays 2.0"),
    (with_default, 2, (1,), {}, 3.0),
    (with_default, 2, (), {"x": 1}, 3.0),
    (with_default, 2, (1, 5), {}, 6.0),
    (with_keyword, 1, (1,), {}, 3.0),
    (with_keyword, 1, (1,), {"y": 2.0}, 3.0),
    (with_keyword, 1, (1,), {"y": 3.0}, "y has no type constraint and stays 2.0"),
    (takes_all, 3, (1, 2, 3), {}, 6.0),
    (takes_all, 3, (1, 2), {}, "missing a required argument: 'args_1'"),
    (takes_all, 1, (1, 2), {}, "too many positional arguments"),
    (takes_all, 1, (1,), {"z": 2}, "got an unexpected keyword argument 'z'"),
    (plain_self, 1, (1,), {}, "missing a required argument: 'x'"),
    (plain_self, 1, (), {}, "missing a required argument: 'self'"),
    (Adds(), 2, (1, 2), {}, 3.0),
    (Adds().method, 1, (1,), {}, 1.0),
    (lambda: mr.constant(1.0), 0, (), {}, 1.0),
]


@pytest.mark.behaviour("input-signature")
@cases(("function", "count", "args", "kwargs", "expected"), CALLS)
def test_calls(function: Any, count: int, args: Any, kwargs: Any, expected: Any) -> None:
    recorded = mr.function(function, input_signature=[NUMBER] * count)
    for _ in range(2):
        if isinstance(expected, float):
            assert float(recorded(*args, **kwargs)) == expected
        else:
            with pytest.raises(TypeError, match=re.escape(expected)):
                recorded(*args, **kwargs)


def test_a_function_that_is_run_by_a_strategy(simulate: Callable[..., Any]) -> None:
    """Its arguments are converted too, also those of a replica."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    added = Counted(two, [NUMBER, NUMBER])
    parts = mr.distribute.PerReplica([1, 2])
    for y in (1, 2.0):
        result = strategy.run(added.recorded, (parts, y))
        assert [float(each) for each in result.values] == [1.0 + y, 2.0 + y]
    assert added.runs == 2  # Once a replica.
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        strategy.run(added.recorded, (parts,))
