"""uint8: what TensorFlow 2.21 computes with it, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError

A, B = np.uint8([200, 3, 0, 255]), np.uint8([100, 5, 1, 255])
M = np.uint8([[200, 100], [3, 4]])
Function = Callable[..., Any]


def u8(values: Any) -> mr.Tensor:
    return mr.constant(np.asarray(values, np.uint8))


# The function of A and B, the dtype that TensorFlow 2.21 gives, and its numbers.
VALUES: dict[str, tuple[Function, str, Any]] = {
    "+": (lambda a, b: a + b, "uint8", [44, 8, 1, 254]),
    "-": (lambda a, b: a - b, "uint8", [100, 254, 255, 0]),
    "*": (lambda a, b: a * b, "uint8", [32, 15, 0, 1]),
    "/": (lambda a, b: a / b, "float32", np.float32([2.0, 0.6, 0.0, 1.0])),
    "/ 2": (lambda a, b: a / 2, "float32", [100.0, 1.5, 0.0, 127.5]),
    "/ of NumPy": (lambda a, b: a / np.float32(200), "float32", np.float32([1, 0.015, 0, 1.275])),
    "divide": (lambda a, b: mr.divide(A, 2), "float32", [100.0, 1.5, 0.0, 127.5]),
    "+ 1": (lambda a, b: a + 1, "uint8", [201, 4, 1, 0]),
    "1 +": (lambda a, b: 1 + a, "uint8", [201, 4, 1, 0]),
    "array -": (lambda a, b: B - a, "uint8", [156, 2, 1, 0]),
    "square": (lambda a, b: mr.square(a), "uint8", [64, 9, 0, 1]),
    "maximum": (lambda a, b: mr.maximum(a, b), "uint8", [200, 5, 1, 255]),
    "minimum": (lambda a, b: mr.minimum(a, b), "uint8", [100, 3, 0, 255]),
    "add_n": (lambda a, b: mr.add_n([a, b]), "uint8", [44, 8, 1, 254]),
    "clip": (lambda a, b: mr.clip_by_value(a, 1, 100), "uint8", [100, 3, 1, 100]),
    "<": (lambda a, b: a < b, "bool", [False, True, True, False]),
    ">=": (lambda a, b: a >= b, "bool", [True, False, False, True]),
    "==": (lambda a, b: a == b, "bool", [False, False, False, True]),
    "== 3": (lambda a, b: a == 3, "bool", [False, True, False, False]),
    "!=": (lambda a, b: a != b, "bool", [True, True, True, False]),
    "sum": (lambda a, b: mr.reduce_sum(a), "uint8", 202),
    "mean": (lambda a, b: mr.reduce_mean(a), "uint8", 114),
    "mean along an axis": (lambda a, b: mr.reduce_mean(u8(M), axis=0), "uint8", [101, 52]),
    "max": (lambda a, b: mr.reduce_max(a), "uint8", 255),
    "max of nothing": (lambda a, b: mr.reduce_max(a[:0]), "uint8", 0),
    "argmax": (lambda a, b: mr.argmax(a), "int64", 3),
    "min": (lambda a, b: mr.reduce_min(a), "uint8", 0),
    "argmin": (lambda a, b: mr.math.argmin(b), "int64", 2),
    "prod": (lambda a, b: mr.reduce_prod(b), "uint8", 12),
    "bias_add": (lambda a, b: mr.nn.bias_add(u8(M), B[:2]), "uint8", [[44, 105], [103, 9]]),
    "relu": (lambda a, b: mr.nn.relu(a), "uint8", [200, 3, 0, 255]),
    "reversed": (lambda a, b: a[::-1], "uint8", [255, 0, 3, 200]),
    "concat": (lambda a, b: mr.concat([a, b], 0), "uint8", [*A.tolist(), *B.tolist()]),
    "transpose": (lambda a, b: mr.transpose(u8(M)), "uint8", [[200, 3], [100, 4]]),
    "zeros_like": (lambda a, b: mr.zeros_like(a), "uint8", [0, 0, 0, 0]),
    "ones": (lambda a, b: mr.ones((2,), mr.uint8), "uint8", [1, 1]),
    "fill": (lambda a, b: mr.fill((2,), np.uint8(9)), "uint8", [9, 9]),
    "beside floats": (lambda a, b: mr.constant([1.0, 2.0]) + A[:2], "float32", [201.0, 5.0]),
    "beside int32": (lambda a, b: mr.constant([1, 2]) + A[:2], "int32", [201, 5]),
    "to float32": (lambda a, b: mr.cast(a, mr.float32), "float32", [200.0, 3.0, 0.0, 255.0]),
    "to bool": (lambda a, b: mr.cast(a, mr.bool), "bool", [True, True, False, True]),
    "to int64": (lambda a, b: mr.cast(a, mr.int64), "int64", [200, 3, 0, 255]),
    "of integers": (
        lambda a, b: mr.cast([256, -1, 300, -300], "uint8"),
        "uint8",
        [0, 255, 44, 212],
    ),
    "of floats": (
        lambda a, b: mr.cast([1.7, 255.9, 256.0, 300.0, -1.0, -0.5, -129.5, 65613.0], mr.uint8),
        "uint8",
        [1, 255, 0, 44, 255, 0, 127, 77],
    ),
    "of bools": (lambda a, b: mr.cast([True, False], mr.uint8), "uint8", [1, 0]),
}


@pytest.mark.behaviour("uint8", "integer-division")
@cases(("function", "dtype", "expected"), VALUES.values(), ids=VALUES)
def test_values(function: Function, dtype: str, expected: Any) -> None:
    result = function(u8(A), u8(B))
    assert result.dtype == result.numpy().dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result.numpy(), expected)


REFUSED: dict[str, tuple[Function, type[Exception], str]] = {
    **{
        name: (function, InvalidArgumentError, "Value for attr 'T' of uint8 is not in the list of")
        for name, function in {
            "negative": lambda a: -a,
            "abs": abs,
            "sign": mr.sign,
            "pow": lambda a: a**2,
            "sqrt": mr.sqrt,
            "exp": mr.exp,
            "log": mr.math.log,
            "sigmoid": mr.sigmoid,
            "tanh": mr.tanh,
            "softmax": mr.nn.softmax,
            "logsumexp": mr.reduce_logsumexp,
            "rsqrt": mr.math.rsqrt,
            "matmul": lambda a: mr.matmul(u8(M), M),
            "matmul of batches": lambda a: mr.matmul(u8(M)[None], M),
            "labels": lambda a: mr.nn.sparse_softmax_cross_entropy_with_logits(a, np.ones((4, 2))),
            "logical_and": lambda a: a & a,
        }.items()
    },
    **{
        name: (function, InvalidArgumentError, "to be a uint8 tensor but is a ")
        for name, function in {
            "+ 1.5": lambda a: a + 1.5,
            "* 1.0": lambda a: a * 1.0,
            "== 3.5": lambda a: a == 3.5,
            "int32": lambda a: a + mr.constant([1, 2, 3, 4]),
            "floats": lambda a: a == mr.constant([1.0]),
        }.items()
    },
    **{
        name: (function, TypeError, "`x` and `y` must have the same dtype, got ")
        for name, function in {
            "/ 255.0": lambda a: a / 255.0,
            "255.0 /": lambda a: 255.0 / a,
            "/ floats": lambda a: a / mr.constant([1.0]),
            "divide": lambda a: mr.divide(A, 2.0),
        }.items()
    },
    "an index": (lambda a: a[a[1]], TypeError, "scalar int32 or int64 tensors are valid indices"),
    "argmax's dtype": (
        lambda a: mr.argmax(a, output_type="uint8"),
        InvalidArgumentError,
        "attr 'output_type' of uint8",
    ),
    "uniform": (lambda a: mr.random.uniform((2,), 0, 9, "uint8"), ValueError, "value uint8"),
    "normal": (lambda a: mr.random.normal((2,), dtype="uint8"), TypeError, "dtype=uint8"),
    "another dtype": (lambda a: mr.convert_to_tensor(a, "int32"), ValueError, "for Tensor with"),
    "no mean": (lambda a: mr.reduce_mean(a[:0]), InvalidArgumentError, "The mean of 0 integers"),
}


@pytest.mark.behaviour("uint8", "integer-division")
@cases(("function", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(function: Function, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        function(u8(A))
    assert text in str(caught.value)


@pytest.mark.behaviour("uint8")
def test_variables() -> None:
    """The numbers are TensorFlow 2.21's."""
    v = mr.Variable(np.uint8([250, 3]))
    assert v.dtype == mr.uint8 == mr.dtypes.uint8 == mr.as_dtype("uint8")
    assert v.assign_add([10, 1]).numpy().tolist() == [4, 4]
    assert v.assign_sub(np.uint8([200, 10])).numpy().tolist() == [60, 250]
    for wrong in ([300, 1], [1.5, 1]):
        with pytest.raises((TypeError, InvalidArgumentError)):
            v.assign(wrong)
    with pytest.raises((ValueError, InvalidArgumentError)):
        v.assign_add(mr.constant([1, 1]))
    assert v.numpy().tolist() == [60, 250]


def test_tapes_do_not_follow_them() -> None:
    v = mr.Variable(np.uint8([1, 2]))
    with mr.GradientTape() as tape:
        y = mr.cast(v, mr.float32) * 2.0
    assert tape.gradient(y, v) is None


def test_recorded_functions_take_them() -> None:
    @mr.function(input_signature=[mr.TensorSpec((None,), mr.uint8)])
    def doubled(x: mr.Tensor) -> mr.Tensor:
        return x + x

    for given in (A, A.tolist(), u8(A)):
        result = doubled(given)
        assert result.dtype == mr.uint8
        assert result.numpy().tolist() == [144, 6, 0, 254]
    with pytest.raises(TypeError, match="requested dtype uint8 for Tensor with dtype int32"):
        doubled(mr.constant([1, 2]))
    with pytest.raises(TypeError, match="Integers of dtype uint8 cannot hold"):
        doubled([300])
