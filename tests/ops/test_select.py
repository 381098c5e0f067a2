"""`where`, by its two forms."""

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError


def test_a_choice_of_each_element() -> None:
    condition, x, y = [[True], [False]], [1.0, 2.0], ops.constant(9.0)
    for choose in (ops.where, mr.function(lambda *args: ops.where(*args))):
        found = choose(ops.constant(condition), ops.constant(x), y)
        assert found.numpy().tolist() == [[1.0, 2.0], [9.0, 9.0]]


def test_the_gradient_is_that_of_what_was_taken() -> None:
    """Also where the other one's is not finite, as in front of a root."""
    x = ops.constant([-1.0, 0.0, 4.0])
    with mr.GradientTape() as tape:
        tape.watch(x)
        result = ops.where(x > 0.0, ops.sqrt(ops.where(x > 0.0, x, 1.0)), 3.0)
    assert result.numpy().tolist() == [3.0, 3.0, 2.0]
    assert tape.gradient(result, x).numpy().tolist() == [0.0, 0.0, 0.25]


def test_the_places_where_it_holds() -> None:
    assert ops.where([[0, 2], [3, 0]]).numpy().tolist() == [[0, 1], [1, 0]]
    assert ops.where([np.nan, -0.0]).numpy().tolist() == [[0]]
    found = ops.where(ops.zeros((0, 3), ops.bool_))
    assert found.dtype == ops.int64
    assert found.shape == (0, 2)
    with pytest.raises(InvalidArgumentError, match="Unhandled input dimensions: 0"):
        ops.where(True)
    with pytest.raises(OperatorNotAllowedInGraphError):
        mr.function(ops.where)(ops.constant([True]))


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="both be non-None or both be None"):
        ops.where([True], [1])
    with pytest.raises(InvalidArgumentError, match="expected to be a bool tensor"):
        ops.where([1], [1], [2])
    with pytest.raises(InvalidArgumentError, match="expected to be a int32 tensor"):
        ops.where([True], ops.constant([1]), ops.constant([2.0]))
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\]"):
        ops.where([True, False], [1, 2, 3], 0)
