"""What `input_signature` converts and refuses."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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
    alone = mr.function(lambda x: x + 1.0, input_signature=NUMBER)
    assert float(alone(1)) == 2.0


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


@pytest.mark.parametrize(
    ("signature", "args", "match"),
    [
        ([VECTOR], ([[1.0]],), r"Received: an argument of shape \(1, 1\)"),
        ([mr.TensorSpec([2], mr.float32)], ([1.0],), r"Received: an argument of shape \(1,\)"),
        ([VECTOR, NUMBER], ([1.0],), "takes 2 arguments by its `input_signature`. Received: 1"),
        ([NUMBER], (1.0, 2.0, 3.0), "takes 1 arguments by its `input_signature`. Received: 3"),
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


@pytest.mark.parametrize("signature", [[mr.float32], "x", [[VECTOR, None]]])
def test_what_is_no_signature(signature: Any) -> None:
    with pytest.raises(TypeError, match=r"`input_signature` is a list of mr\.TensorSpec"):
        mr.function(lambda x: x, input_signature=signature)
