"""What becomes a tensor, of which dtype, and where."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import is_tensor
from mirrored.variables import Variable


# As TensorFlow 2.21 has them.
@pytest.mark.behaviour("constant-dtype")
@cases(
    ("value", "dtype"),
    [
        (1.5, "float32"),
        ([1, 2.5], "float32"),
        (3, "int32"),
        (2**40, "int64"),
        ([1, -(2**31) - 1], "int64"),
        (True, "bool"),
        ([], "float32"),
        (np.float64(1.5), "float64"),
        ([np.float64(1.5)], "float64"),
        (np.arange(3), "int64"),
        (np.float16([1.0]), "float16"),
        ([np.float16(1.0), 2.0], "float16"),
        (np.int8(3), "int8"),
        ([np.int8(3)], "int32"),
        (np.uint64([2**64 - 1]), "uint64"),
        (np.float32([[1.0]]), "float32"),
        ((np.int32(3), np.int32(4)), "int32"),
        (np.uint8(3), "uint8"),
        (np.uint8([[3], [200]]), "uint8"),
        ([np.uint8(200), 3], "int32"),
        ([np.uint8([200])], "int32"),
        ([np.int64(3)], "int32"),
        ([np.int64(2**40)], "int64"),
        ([1, np.uint8(2)], "int32"),
        ([np.uint8(1), 1.5], "float32"),
        ([1.5, np.float64(2.0)], "float32"),
        ([np.float32(1.5), np.float64(2.0)], "float32"),
        ([np.float64(1.5), np.float32(2.0)], "float64"),
        (range(3), "int32"),
    ],
)
def test_constant_dtype(value: Any, dtype: str) -> None:
    for tensor in (ops.constant(value), ops.convert_to_tensor(value)):
        assert tensor.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(tensor.numpy(), np.asarray(value, dtype))


def test_constant_of_tensors_keeps_the_dtype() -> None:
    x = ops.constant(np.float64([1.0, 2.0]))
    assert ops.constant(x).dtype == ops.float64
    assert ops.constant([x, x]).dtype == ops.float64
    assert ops.constant(Variable(np.float64(3.0))).dtype == ops.float64


@cases(
    ("value", "dtype", "expected"),
    [
        ([1, 2], "float64", [1.0, 2.0]),
        (True, "float32", 1.0),
        (True, "int32", 1),
        (np.array([1.7]), "int32", [1]),
        (np.array([0.0, 2.0]), "bool", [False, True]),
        (np.uint8([255]), "int32", [255]),
        ([0, 255], "uint8", [0, 255]),
        (np.array([1.7, 300.0, -1.0]), "uint8", [1, 44, 255]),
        (True, "uint8", 1),
        (1e300, "float32", np.inf),
        ([], "int32", []),
    ],
)
def test_constant_of_a_given_dtype(value: Any, dtype: str, expected: Any) -> None:
    for tensor in (ops.constant(value, dtype), ops.convert_to_tensor(value, dtype)):
        assert tensor.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.behaviour("absent-dtypes")
@cases(
    ("value", "dtype", "text"),
    [
        (1.5, "int32", "Cannot convert 1.5 to a tensor of dtype int32"),
        ([1, 2], "bool", "Cannot convert [1, 2] to a tensor of dtype bool"),
        (2**40, "int32", "Integers of dtype int32 cannot hold all of the values"),
        (np.array([2**40]), "int32", "Integers of dtype int32 cannot hold all of the values"),
        (2**70, None, "Cannot make a tensor of dtype object"),
        ("text", None, "int8, uint16, uint32, uint64, uint8. Received: 'te"),
        ([1, "a"], None, "Cannot make a tensor of dtype"),
        (None, None, "Cannot make a tensor of dtype object"),
        (1j, None, "Cannot make a tensor of dtype complex128"),
        (np.longdouble([1.0]), None, "Cannot make a tensor of dtype float128"),
        (np.complex64([1]), None, "Convert it first, as with .astype('float32')"),
        (300, "uint8", "Integers of dtype uint8 cannot hold all of the values"),
        (-1, "uint8", "mr.cast lets integers wrap around"),
        (np.array([-1, 2]), "uint8", "Integers of dtype uint8 cannot hold all of the values"),
        (1.5, "uint8", "Cannot convert 1.5 to a tensor of dtype uint8"),
        (object(), None, "Cannot make a tensor of dtype object"),
        (1.0, "complex64", "Received: 'complex64'"),
    ],
)
def test_what_cannot_be_a_tensor(value: Any, dtype: Any, text: str) -> None:
    for function in (ops.constant, ops.convert_to_tensor):
        with pytest.raises(TypeError) as caught:
            function(value, dtype)
        assert text in str(caught.value)


@cases("value", [1e39, [1.0, -1e300], [np.float32(1.0), 1e300]])
def test_floats_out_of_range(value: Any) -> None:
    # As in TensorFlow 2.21: an error without a dtype, and infinity where somebody asks for one.
    for function in (ops.constant, ops.convert_to_tensor, ops.reduce_sum):
        with pytest.raises(ValueError, match=r"out of range for float32\. Received: .*mr.float64"):
            function(value)
    assert np.isinf(ops.constant(value, ops.float32)).any()
    assert np.isfinite(ops.constant(value, ops.float64)).all()


@cases("value", [np.inf, [np.nan, -np.inf], np.array([np.inf])])
def test_infinities_are_in_range(value: Any) -> None:
    np.testing.assert_array_equal(ops.constant(value).numpy(), value)


def test_constant_copies() -> None:
    array = np.ones(2, np.float32)
    tensor = ops.constant(array)
    array[0] = 5.0
    np.testing.assert_array_equal(tensor.numpy(), [1.0, 1.0])


@pytest.mark.behaviour("constant-shape")
@cases(
    ("value", "shape", "expected"),
    [
        (2.0, (2, 2), np.full((2, 2), 2.0)),
        ([7], (3,), [7, 7, 7]),
        ([1, 2, 3, 4], (2, 2), [[1, 2], [3, 4]]),
        (1, (), 1),
        (1, (0, 2), np.zeros((0, 2))),
        ([], (2, 0), np.zeros((2, 0))),
        (1, 3, [1, 1, 1]),
    ],
)
def test_constant_of_a_given_shape(value: Any, shape: Any, expected: Any) -> None:
    np.testing.assert_array_equal(ops.constant(value, shape=shape).numpy(), expected)


@pytest.mark.behaviour("constant-shape")
def test_constant_of_another_count() -> None:
    with pytest.raises(TypeError) as caught:
        ops.constant([1, 2, 3], shape=(2, 2))
    assert "has 3 elements, but got `shape` (2, 2) with 4 elements" in str(caught.value)


def test_convert_to_tensor() -> None:
    x = ops.constant([1.0])
    assert ops.convert_to_tensor(x) is x
    assert ops.convert_to_tensor(x, "float32") is x
    assert isinstance(ops.convert_to_tensor(Variable(2.0)), ops.Tensor)
    with pytest.raises(ValueError, match="requested dtype float64 for Tensor with dtype float32"):
        ops.convert_to_tensor(x, "float64")


@pytest.mark.behaviour("numbers-adopt")
@cases(
    ("dtype", "other"),
    [
        ("float32", 1),
        ("float32", 1.5),
        ("float32", True),
        ("float32", np.float64(1.5)),
        ("float32", np.ones(2)),
        ("float32", [1.5, 2]),
        ("float32", np.uint8([1, 2])),
        ("float64", 0.1),
        ("int32", 1),
        ("int32", True),
        ("int32", np.arange(2)),
        ("int64", 2**40),
        ("uint8", 255),
        ("uint8", np.arange(2)),
        ("uint8", np.array([1.0, 2.0])),
    ],
)
def test_numbers_adopt_the_dtype_of_the_tensor(dtype: str, other: Any) -> None:
    x = ops.constant([1, 2], dtype)
    expected = x.numpy() + np.asarray(other, dtype)
    for total in (x + other, other + x):
        assert total.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(total.numpy(), expected)


def test_whole_numpy_floats_become_integers() -> None:
    total = ops.constant([1, 2]) + np.array([1.0, 2.0])
    assert total.dtype == ops.int32
    np.testing.assert_array_equal(total.numpy(), [2, 4])


def test_python_floats_keep_their_digits() -> None:
    assert (ops.constant(0.0, "float64") + 0.1).numpy() == 0.1


@cases(
    ("dtype", "other"),
    [
        ("int32", 1.5),
        ("int32", np.array([1.0, 0.5])),
        ("bool", 1),
        ("int64", [0.5]),
        ("int64", 1.0),
        ("uint8", 1.5),
    ],
)
def test_numbers_that_cannot_adopt_it(dtype: str, other: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"input #1\(zero-based\) was expected to be a"):
        ops.equal(ops.constant([1, 0], dtype) if dtype != "bool" else ops.constant(True), other)


@pytest.mark.behaviour("numbers-adopt")
def test_integers_that_do_not_fit() -> None:
    """TensorFlow lets them wrap around without a word."""
    with pytest.raises(TypeError, match="int32 cannot hold all of the values"):
        ops.constant(1) + 2**40
    for number in (256, -1):
        with pytest.raises(TypeError, match="uint8 cannot hold all of the values"):
            ops.equal(ops.constant(np.uint8(3)), number)


@pytest.mark.behaviour("ragged-lists")
def test_lists_that_mix_booleans_and_numbers() -> None:
    """Where the first is a boolean, as TensorFlow 2.21 has it."""
    for mixed in ([True, 1], [True, 1.5], [np.bool_(True), 1], [[True], [2]]):
        with pytest.raises(ValueError, match="Can't convert Python sequence with mixed types to T"):
            ops.constant(mixed)
    assert ops.constant([1, True]).dtype == ops.int32


@pytest.mark.behaviour("tensors-keep-their-dtype")
def test_tensors_are_not_converted_by_the_way() -> None:
    x = ops.constant([1.5])
    with pytest.raises(TypeError, match=r"Expected tensor .* with dtype int32, but got dtype floa"):
        ops.constant(x, "int32")
    for wrong in (x, lambda: x, Variable(x)):
        with pytest.raises(ValueError, match="requested dtype float64 for Tensor with dtype float"):
            Variable(wrong, dtype="float64")
    assert ops.constant(Variable(x), "float64").dtype == ops.float64
    assert Variable(np.array([1.5]), dtype="float32").dtype == ops.float32


RAGGED = [[[1, 2], [3]], [1, [2]], ([1.0], [1.0, 2.0]), [np.zeros(2), np.zeros(3)], [[[1]], [2]]]


@pytest.mark.behaviour("ragged-lists")
@cases("value", RAGGED, ids=str)
def test_rows_that_differ_in_length(value: Any) -> None:
    for function in (
        ops.constant,
        lambda given: ops.constant(given, "float32"),
        ops.convert_to_tensor,
        lambda given: ops.add(given, 1),
        lambda given: ops.constant([1.0]) + given,
        Variable,
    ):
        with pytest.raises(ValueError, match="Can't convert non-rectangular Python sequence to T"):
            function(value)


def test_lists_of_tensors_become_one_that_is_differentiable() -> None:
    x, v = ops.constant([1.0, 2.0], "float64"), Variable(np.float64(3.0))
    with GradientTape() as tape:
        tape.watch(x)
        packed = ops.reduce_sum(ops.square([[x[0], v], [0.5, x[1]]]))
    assert packed.dtype == ops.float64
    by_x, by_v = tape.gradient(packed, [x, v])
    np.testing.assert_array_equal(by_x.numpy(), [2.0, 4.0])
    assert float(by_v) == 6.0
    assert ops.convert_to_tensor([x, x]).shape == (2, 2)
    with pytest.raises(InvalidArgumentError, match=r"values\[0\].shape = \[\] != values\[1\]"):
        ops.convert_to_tensor([x[0], x])


def test_transfer(simulate: Any) -> None:
    simulate(2)
    array = np.arange(6.0).reshape(2, 3)[:, ::2]
    tensor = ops.transfer(array, devices.get_device("GPU:1"))
    assert tensor.device.endswith("GPU:1")
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_is_tensor() -> None:
    assert is_tensor(ops.constant(1))
    assert is_tensor(Variable(1))
    assert not is_tensor(np.ones(1))
