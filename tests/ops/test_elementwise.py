"""Arithmetic by its public names."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
Y = np.array([2.0, 1.0, 0.5])


@cases(
    ("name", "expected"),
    [
        ("add", X + Y),
        ("subtract", X - Y),
        ("multiply", X * Y),
        ("divide", X / Y),
        ("pow", X**Y),
        ("maximum", np.fmax(X, Y)),
        ("minimum", np.fmin(X, Y)),
    ],
)
def test_two_inputs(name: str, expected: Any) -> None:
    function = getattr(ops, name)
    np.testing.assert_allclose(function(X, Y).numpy(), expected, rtol=1e-15)
    for x, y in ((X, ops.constant(Y)), (X.tolist(), ops.constant(Y)), (ops.constant(X), list(Y))):
        found = function(x, y)
        assert found.dtype == ops.float64  # Lists take the dtype of the tensor beside them.
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)


@cases(
    ("name", "expected"),
    [
        ("negative", -Y),
        ("abs", Y),
        ("sign", np.ones(3)),
    ],
)
def test_one_input(name: str, expected: Any) -> None:
    np.testing.assert_allclose(getattr(ops, name)(Y).numpy(), expected, rtol=1e-15)


def test_special_values_are_results_and_no_warnings() -> None:
    x = ops.constant([-1.0, 0.0])
    np.testing.assert_array_equal(ops.log(x).numpy(), [np.nan, -np.inf])
    np.testing.assert_array_equal(ops.sqrt(x).numpy(), [np.nan, 0.0])
    np.testing.assert_array_equal((x / 0.0).numpy(), [-np.inf, np.nan])
    np.testing.assert_array_equal(ops.exp([1000.0]).numpy(), [np.inf])


@pytest.mark.behaviour("integer-division")
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_division_of_integers_gives_float64(dtype: str) -> None:
    x, y = ops.constant([1, 2], dtype), ops.constant([2, 4], dtype)
    for quotient in (x / y, ops.divide(x, y), 1 / y, ops.divide(1, y)):
        assert quotient.dtype == ops.float64
        assert quotient.numpy()[0] == 0.5


@pytest.mark.behaviour("integer-division")
@cases(
    ("divide", "dtypes"),
    [
        (lambda x: x / 2.0, "int32 != float32"),
        (lambda x: 2.0 / x, "float32 != int32"),
        (lambda x: ops.divide([1], 2.0), "int32 != float32"),
        (lambda x: ops.divide(x, 2.0), "int32 != float32"),
        (lambda x: x / np.array([1.5]), "int32 != float64"),
        (lambda x: x / ops.constant([2.0]), "int32 != float32"),
        (lambda x: ops.constant([2.0]) / x, "float32 != int32"),
        (lambda x: x / ops.constant([1], "int64"), "int32 != int64"),
        (lambda x: x / ops.constant([True]), "int32 != bool"),
    ],
)
def test_division_of_two_dtypes(divide: Any, dtypes: str) -> None:
    """Integers beside floats are TensorFlow's error: a quotient in float64 was nobody's wish."""
    with pytest.raises(TypeError, match=f"`x` and `y` must have the same dtype, got {dtypes}"):
        divide(ops.constant([1]))


def gradient(function: Any, *inputs: Any) -> list[Any]:
    tensors = [ops.constant(each) for each in inputs]
    with GradientTape() as tape:
        tape.watch(tensors)
        target = function(*tensors)
    return [each.numpy().tolist() for each in tape.gradient(target, tensors)]


def test_gradients_where_there_is_a_choice() -> None:
    """The values that TensorFlow gives at the points where there is no derivative."""
    x = [1.0, 2.0, 3.0]
    assert gradient(ops.maximum, x, [2.0] * 3) == [[0, 1, 1], [1, 0, 0]]
    assert gradient(ops.minimum, x, [2.0] * 3) == [[1, 1, 0], [0, 0, 1]]
    assert gradient(ops.abs, [-1.0, 0.0, 1.0]) == [[-1, 0, 1]]
    assert gradient(ops.sign, [-1.0, 0.0]) == [[0, 0]]
    assert gradient(ops.pow, [0.0, -1.0], [2.0, 2.0]) == [[0, -2], [0, 0]]


@pytest.mark.behaviour("two-dtypes", "numbers-adopt")
@cases(
    ("function", "text"),
    [
        (lambda: ops.add(np.ones((2, 3)), np.ones((2, 4))), "Incompatible shapes: [2,3] vs. [2,4]"),
        (lambda: ops.constant(1.0) + ops.constant(X), "a float tensor but is a double tensor"),
        (lambda: ops.constant(1) + 1.5, "to be a int32 tensor but is a float tensor [Op:AddV2]"),
        (lambda: ops.constant(1) + np.array([0.5]), "to be a int32 tensor but is a double tensor"),
        (lambda: ops.exp([1]), "Value for attr 'T' of int32 is not in the list of allowed"),
        (lambda: -ops.constant(True), "Value for attr 'T' of bool is not in the list of allowed"),
        (lambda: ops.add_n([X, Y]), "Input 0: [2,3] != input 1: [3] [Op:AddN]"),
    ],
)
def test_errors(function: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        function()
    assert text in str(caught.value)


def test_a_factor_takes_the_dtype_of_what_it_scales() -> None:
    x = ops.constant([1, 2], ops.int64)
    assert ops.scalar_mul(3, x).dtype == ops.int64
    assert ops.scalar_mul(np.float64(0.5), [2.0, 4.0]).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"Only scalar multiply works, got shape \(1,\)"):
        ops.scalar_mul([3], x)


@cases(("dtype", "wide"), [("int32", "float64"), ("int64", "float64"), ("uint8", "float32")])
def test_integers_are_divided_as_floats(dtype: str, wide: str) -> None:
    found = ops.divide_no_nan(np.array([1, 2], dtype), np.array([4, 0], dtype))
    assert found.dtype.name == wide
    assert found.numpy().tolist() == [0.25, 0.0]


@pytest.mark.parametrize(("x", "y"), [([1], 2.0), (ops.constant([1.0]), ops.constant(2))])
def test_integers_beside_floats(x: Any, y: Any) -> None:
    with pytest.raises(TypeError, match="must have the same dtype"):
        ops.divide_no_nan(x, y)


def test_the_others_take_floats() -> None:
    for function in (ops.multiply_no_nan, ops.xdivy, ops.xlogy, ops.xlog1py):
        with pytest.raises(InvalidArgumentError, match="attr 'T' of int32"):
            function(1, 2)
    with pytest.raises(InvalidArgumentError, match="attr 'T' of int32"):
        ops.reciprocal_no_nan([1, 2])


@pytest.mark.parametrize("recorded", [False, True])
def test_pieces_are_what_the_whole_is(recorded: bool, bits: Any) -> None:
    """Of more elements than a piece has, and no multiple of them."""
    x = np.random.default_rng(7).normal(size=(3, 11_003)).astype(np.float32)
    erf = mr.function(ops.erf) if recorded else ops.erf
    rows = [ops.erf(row).numpy() for row in x]
    assert bits([erf(ops.constant(x)).numpy()]) == bits([np.stack(rows)])
