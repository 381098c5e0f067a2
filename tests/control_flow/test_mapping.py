"""Functions over the elements of tensors. The numbers are TensorFlow 2.21's."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases
from listing import listed

import mirrored as mr
from mirrored.errors import InvalidArgumentError, OutOfRangeError

F32, I32 = mr.float32, mr.int32
Function = Callable[[Any], Any]


def both(total: Any, x: Any) -> Any:
    return total[0] + x, total[1] * x


def less(total: Any, x: Any) -> Any:
    return total - x


def row_sum(total: Any, row: Any) -> Any:
    return total + mr.reduce_sum(row)


PAIR = (0.0, 1.0)
# Functions of [1, 2, 3], and what they return; or the error and a part of its text.
TABLE: dict[str, tuple[Function, Any]] = {
    "map": (lambda x: mr.map_fn(lambda e: e * 2.0, x), [2.0, 4.0, 6.0]),
    "map numbers": (lambda x: mr.map_fn(lambda e: 3, x), [3.0, 3.0, 3.0]),
    "map rows": (lambda x: mr.map_fn(mr.reduce_sum, mr.stack([x, x])), [6.0, 6.0]),
    "map structures": (
        lambda x: mr.map_fn(lambda e: (e["b"][0], e["a"]), {"a": x, "b": [-x]}, (F32, F32)),
        [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]],
    ),
    "map dtype": (
        lambda x: mr.map_fn(lambda e: mr.cast(e, I32), x, fn_output_signature=I32),
        [1, 2, 3],
    ),
    "map spec": (
        lambda x: mr.map_fn(lambda e: [e, e], x, fn_output_signature=[mr.TensorSpec([])] * 2),
        [[1.0, 2.0, 3.0]] * 2,
    ),
    "map nothing": (
        lambda x: mr.map_fn(lambda e: e, x[:0], fn_output_signature=mr.TensorSpec([2], I32)),
        [],
    ),
    "map other dtype": (
        lambda x: mr.map_fn(lambda e: mr.cast(e, I32), x),
        (InvalidArgumentError, "trying to write dtype int32"),
    ),
    "map other shape": (
        lambda x: mr.map_fn(lambda e: e, x, fn_output_signature=mr.TensorSpec([2])),
        (ValueError, r"Incompatible shape for value \(\(\)\), expected \(\(2,\)\)"),
    ),
    "map growing": (
        lambda x: mr.map_fn(lambda e: mr.ones(e.numpy().astype(int)), mr.constant([1.0, 2.0])),
        (ValueError, "Incompatible shape"),
    ),
    "map other structure": (
        lambda x: mr.map_fn(lambda e: (e, e), x),
        (ValueError, "same nested structure"),
    ),
    "map list for tuple": (
        lambda x: mr.map_fn(lambda e: [e], x, fn_output_signature=(F32,)),
        (TypeError, "same nested structure"),
    ),
    "map None": (lambda x: mr.map_fn(lambda e: None, x), (ValueError, "unsupported type")),
    "map scalars": (lambda x: mr.map_fn(less, [1, 2]), (ValueError, "not scalars")),
    "map no tensor": (lambda x: mr.map_fn(less, []), (ValueError, "does not contain any")),
    "map lengths": (
        lambda x: mr.map_fn(lambda e: e, (x, x[:2])),
        (ValueError, "Dimensions 3 and 2 are not compatible"),
    ),
    "map nothing callable": (lambda x: mr.map_fn(3, x), (TypeError, "is not callable")),
    "vectorized": (
        lambda x: mr.vectorized_map(lambda e: [e[0] * e[1], None, 5], (x, mr.constant([2.0]))),
        [[2.0, 4.0, 6.0], None, [5, 5, 5]],
    ),
    "vectorized nothing": (lambda x: mr.vectorized_map(mr.reduce_sum, mr.ones((0, 2))), []),
    "vectorized scalars": (lambda x: mr.vectorized_map(less, [1, 2]), (IndexError, "not scalars")),
    "scan": (lambda x: mr.scan(less, x), [1.0, -1.0, -4.0]),
    "scan from": (lambda x: mr.scan(less, x, 10.0), [9.0, 7.0, 4.0]),
    "scan back": (lambda x: mr.scan(less, x, reverse=True), [0.0, 1.0, 3.0]),
    "scan back from": (lambda x: mr.scan(less, x, 10.0, reverse=True), [4.0, 5.0, 7.0]),
    "scan structures": (lambda x: mr.scan(both, x, PAIR), [[1.0, 3.0, 6.0], [1.0, 2.0, 6.0]]),
    "scan rows": (lambda x: mr.scan(row_sum, mr.stack([x, x]), 0.0), [6.0, 12.0]),
    "scan nothing": (lambda x: mr.scan(less, x[:0], mr.ones(2)), []),
    "scan nothing at all": (
        lambda x: mr.scan(less, x[:0]),
        (OutOfRangeError, "array size is: 0"),
    ),
    "scan dtypes": (lambda x: mr.scan(less, x, 10), (InvalidArgumentError, "Sub")),
    "scan list for tuple": (
        lambda x: mr.scan(lambda t, e: list(both(t, e)), x, PAIR),
        (TypeError, "same nested structure"),
    ),
    "scan scalars": (lambda x: mr.scan(less, [1, 2]), (IndexError, "not scalars")),
    "foldl": (lambda x: mr.foldl(less, x), -4.0),
    "foldl from": (lambda x: mr.foldl(less, x, 10), 4.0),
    "foldl structures": (lambda x: mr.foldl(both, x, PAIR), [6.0, 6.0]),
    "foldl nothing": (lambda x: mr.foldl(less, x[:0], 5.0), 5.0),
    "foldr": (lambda x: mr.foldr(less, x), 0.0),
    "foldr order": (lambda x: mr.foldr(lambda t, e: t * 2.0 + e, x, 0.0), 17.0),
    "foldr nothing": (lambda x: mr.foldr(less, x[:0]), (OutOfRangeError, "`initializer`")),
}


@cases(("function", "expected"), TABLE.values(), ids=TABLE)
def test_values(function: Function, expected: Any) -> None:
    x = mr.constant([1.0, 2.0, 3.0])
    if isinstance(expected, tuple):
        with pytest.raises(expected[0], match=expected[1]):
            function(x)
    else:
        assert listed(function(x)) == expected
        assert listed(mr.function(function)(x)) == expected


@cases("recorded", [False, True])
@cases(
    ("function", "expected"),
    [
        (lambda x: mr.map_fn(lambda e: e * e, x), [2.0, 4.0, 6.0]),
        (lambda x: mr.vectorized_map(lambda e: e * e, x), [2.0, 4.0, 6.0]),
        (lambda x: mr.scan(lambda t, e: t * e, x), [9.0, 4.0, 2.0]),
        (lambda x: mr.scan(lambda t, e: t * e, x, reverse=True), [6.0, 6.0, 5.0]),
        (lambda x: mr.foldl(lambda t, e: t * e, x), [6.0, 3.0, 2.0]),
        (lambda x: mr.foldr(lambda t, e: t / e, x), [-1.5, -0.75, 0.5]),
        (lambda x: mr.foldl(lambda t, e: t, x), [1.0, 0.0, 0.0]),
    ],
)
def test_gradients(function: Function, expected: list[float], recorded: bool) -> None:
    def step(x: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    found = (mr.function(step) if recorded else step)(mr.constant([1.0, 2.0, 3.0]))
    assert listed(found) == expected
