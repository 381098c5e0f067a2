"""`keras.ops`: dtypes of results, and what is more than an operation, as Keras 3.15 has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.keras_functions import promotion

K = mr.keras.ops
C = mr.constant

# The dtype of two values: for each first one, those of all second ones in the same order.
PROMOTED = {
    "bool": "bool uint8 int32 int64 bfloat16 float32 float64 int32 float32",
    "uint8": "uint8 uint8 int32 int64 bfloat16 float32 float64 uint8 float32",
    "int32": "int32 int32 int32 int64 bfloat16 float32 float64 int32 float32",
    "int64": "int64 int64 int64 int64 bfloat16 float32 float64 int64 float32",
    "bfloat16": "bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 float64 bfloat16 bfloat16",
    "float32": "float32 float32 float32 float32 float32 float32 float64 float32 float32",
    "float64": "float64 float64 float64 float64 float64 float64 float64 float64 float64",
    "2": "int32 uint8 int32 int64 bfloat16 float32 float64 int32 float32",
    "2.5": "float32 float32 float32 float32 bfloat16 float32 float64 float32 float32",
}


def value(kind: str) -> Any:
    return float(kind) if "." in kind else int(kind) if kind.isdigit() else mr.cast(1, kind)


@cases("first", PROMOTED)
def test_two_dtypes_have_one(first: str) -> None:
    for second, expected in zip(PROMOTED, PROMOTED[first].split(), strict=True):
        given = [value(kind) for kind in (first, second)]
        assert {each.dtype.name for each in promotion.promoted(*given)} == {expected}, second


RESULTS: list[tuple[Callable[[], Any], Any, str]] = [
    (lambda: K.divide(1, 2), 0.5, "float32"),
    (lambda: K.floor_divide(7, 2), 3, "int32"),
    (lambda: K.mod(-7, 3), 2, "int32"),
    (lambda: K.power(C([3, 5], "uint8"), 4), [81, 113], "uint8"),
    (lambda: K.greater([1, 2], 1.5), [False, True], "bool"),
    (lambda: K.logical_xor([1, 0], [2.0, 3.0]), [False, True], "bool"),
    (lambda: K.matmul([1.0, 2.0], [[1, 2], [3, 4]]), [7, 10], "float32"),
    (lambda: K.matmul([[1, 2], [3, 4]], [1.0, 2.0]), [5, 11], "float32"),
    (lambda: K.matmul([1.0, 2.0], [3.0, 4.0]), 11, "float32"),
    (lambda: K.where([1, 0], 1, 2.5), [1.0, 2.5], "float32"),
    (lambda: K.where([[True, False], [True, True]])[1], [0, 0, 1], "int32"),
    (lambda: K.sqrt(C(4, "int64")), 2.0, "float32"),
    (lambda: K.floor(True), 1.0, "float32"),
    (lambda: K.absolute(C([1], "uint8")), [1], "uint8"),
    (lambda: K.sign(C([3], "uint8")), [1], "uint8"),
    (lambda: K.square([True, False]), [1, 0], "int32"),
    (lambda: K.round(C([1.25, 2.5]), 1), np.float32([1.2, 2.5]), "float32"),
    (lambda: K.round(C([15, 24]), -1), [20, 20], "int32"),
    (lambda: K.round(C([15, 24]), 2), [15, 24], "int32"),
    (lambda: K.isnan([1, 2]), [False, False], "bool"),
    (lambda: K.isfinite([1, 2]), [True, True], "bool"),
    (lambda: K.sum([True, True]), 2, "int32"),
    (lambda: K.mean([[1, 2], [3, 4]], axis=0), [2.0, 3.0], "float32"),
    (lambda: K.max([True, False]), True, "bool"),
    (lambda: K.min([1, 2], initial=0), 0, "int32"),
    (lambda: K.max(mr.zeros((0,)), initial=3), 3.0, "float32"),
    (lambda: K.argmax([[1, 9], [8, 7]]), 1, "int32"),
    (lambda: K.argmin([[1, 9], [8, 7]], axis=1, keepdims=True), [[0], [1]], "int32"),
    (lambda: K.argmax([[True], [False]], keepdims=True), [[0]], "int32"),
    (lambda: K.softmax([[0.0], [0.0]], axis=None), [[0.5], [0.5]], "float32"),
    (lambda: K.expand_dims([1, 2], (0, -1)), [[[1], [2]]], "int32"),
    (lambda: K.stack([1, 2.5]), [1.0, 2.5], "float32"),
    (lambda: K.swapaxes([[1, 2]], 0, -1), [[1], [2]], "int32"),
    (lambda: K.full((2,), 2.5, "int32"), [2, 2], "int32"),
    (lambda: K.arange(3), [0, 1, 2], "int32"),
    (lambda: K.arange(1, 2, 0.5), [1.0, 1.5], "float32"),
    (lambda: K.arange(C(1, "int64"), 4, 2), [1, 3], "int64"),
    (lambda: K.arange(start=2, stop=0, step=-1, dtype="int8"), [2, 1], "int8"),
    (lambda: K.convert_to_tensor(C([1.5]), "int32"), [1], "int32"),
    (lambda: K.one_hot(C([1.9, -1.0]), 2, dtype="int32"), [[0, 1], [0, 0]], "int32"),
]


@cases(("compute", "expected", "dtype"), RESULTS)
def test_results(compute: Callable[[], Any], expected: Any, dtype: str) -> None:
    result = compute()
    assert (result.numpy().tolist(), result.dtype.name) == (np.asarray(expected).tolist(), dtype)


@cases(
    ("call", "error", "text"),
    [
        (
            lambda: K.moments([1.0], 0, synchronized=True),
            NotImplementedError,
            "only the values of one replica",
        ),
        (lambda: K.array_split([1.0], [1]), TypeError, "of type `int`"),
        (lambda: K.ldexp(1.0, 2.0), TypeError, "exponent must be an integer"),
        (lambda: K.scatter_update([1], [[0]], [2], "div"), ValueError, "Unsupported reduction"),
        (lambda: K.quantile([1.0], 0.5, method="mean"), ValueError, "Valid methods are linear"),
        (lambda: K.norm([[1.0]], "nuclear"), ValueError, "for matrix norm"),
        (lambda: K.rearrange([1], "a -> b"), ValueError, "before and after the arrow"),
        (lambda: K.rearrange([[1]], "a -> a"), ValueError, "name each axis"),
        (lambda: K.rearrange([[1]], "a b -> (b a"), ValueError, "Parentheses do not fit"),
        (lambda: K.layer_normalization([1.0], rms_scaling=True), TypeError, "rms_normalization"),
        (lambda: K.bincount([1], sparse=True), ValueError, "not sparse"),
        (lambda: K.histogram([[1.0]]), ValueError, "1-dimensional"),
        (lambda: K.scan(lambda a, b: (a, b), 0), ValueError, "`length` not provided"),
        (lambda: K.normalize([1.0], order=0), ValueError, "an int >= 1"),
        (lambda: K.multi_hot([1]), ValueError, "must be specified"),
        (lambda: K.binary_crossentropy([1.0], [[1.0]]), ValueError, "same rank"),
        (lambda: K.max(mr.zeros((0,))), mr.errors.InvalidArgumentError, "max of an empty tensor"),
        (lambda: K.squeeze(mr.ones((2,)), 0), ValueError, "Cannot squeeze axis=0"),
        (lambda: K.expand_dims(mr.ones((2,)), 7), ValueError, "axis 7 is out of bounds"),
        (lambda: K.where([True], 1), ValueError, "either both"),
        (lambda: K.one_hot([1], 2, sparse=True), ValueError, "not sparse"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_layer_is_written_with_them() -> None:
    class Centred(mr.keras.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return inputs - K.mean(inputs, axis=-1, keepdims=True)

    model = mr.Sequential([mr.layers.Input((2,)), Centred()])
    assert model.predict(np.array([[1.0, 3.0]]), verbose=0).tolist() == [[-1.0, 1.0]]
