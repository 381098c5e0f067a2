"""Tensors as Python objects: what they print, convert to and compute with operators."""

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.variables import Variable


@pytest.mark.behaviour("tensor-print", "tensor-repr")
def test_str_and_repr() -> None:
    t = ops.constant([[22.0, 28.0], [49.0, 64.0]])
    assert str(t) == "mr.Tensor(\n[[22. 28.]\n [49. 64.]], shape=(2, 2), dtype=float32)"
    assert repr(t) == (
        "<mr.Tensor: shape=(2, 2), dtype=float32, numpy=\n"
        "array([[22., 28.],\n       [49., 64.]], dtype=float32)>"
    )
    assert str(ops.constant([1.0, 2.0])) == "mr.Tensor([1. 2.], shape=(2,), dtype=float32)"
    assert repr(ops.constant([1.0, 2.0])) == (
        "<mr.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    )


@pytest.mark.behaviour("tensor-repr")
@cases(
    ("value", "text"),
    [(3, "dtype=int32, numpy=3>"), (1.5, "dtype=float32, numpy=1.5>"), (True, "bool, numpy=True>")],
)
def test_repr_of_scalars(value: Any, text: str) -> None:
    assert repr(ops.constant(value)).startswith("<mr.Tensor: shape=(), dtype=")
    assert repr(ops.constant(value)).endswith(text)


def test_format() -> None:
    assert f"{ops.constant(0.1)}" == "0.1"
    assert f"{ops.constant(3.14159):.2f}" == "3.14"
    assert f"{ops.constant(7):03d}" == "007"
    assert f"{ops.constant([1.0, 2.0])}" == "[1. 2.]"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(ops.constant([1.0]), ".2f")


@pytest.mark.behaviour("tensor-device")
def test_attributes(simulate: Any) -> None:
    simulate(2)
    with devices.device("GPU:1"):
        t = ops.zeros((2, 3), "int64")
    assert t.device == "/job:localhost/replica:0/task:0/device:GPU:1"
    assert (t.shape, t.ndim, t.size, t.dtype) == ((2, 3), 2, 6, np.dtype("int64"))
    assert t.spec == ((2, 3), np.dtype("int64"))
    scalar = ops.zeros(())
    assert (scalar.shape, scalar.ndim, scalar.size) == ((), 0, 1)


def test_numpy_is_a_copy() -> None:
    t = ops.constant([1.0, 2.0])
    t.numpy()[0] = 9.0
    np.asarray(t)[0] = 9.0
    np.testing.assert_array_equal(t.numpy(), [1.0, 2.0])
    assert isinstance(ops.constant(1.0).numpy(), np.float32)


def test_as_numpy_array() -> None:
    t = ops.constant([1.5, 2.5])
    assert np.asarray(t).dtype == np.float32
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert np.array(t, copy=True).tolist() == [1.5, 2.5]
    assert np.asarray(ops.constant(1.0)).shape == ()
    assert type(ops.constant(1.0).to_numpy()) is type(Variable([1.0]).to_numpy()) is np.ndarray
    assert np.asarray([ops.constant(1.0), ops.constant(2.0)]).tolist() == [1.0, 2.0]


def test_functions_of_numpy_take_its_values() -> None:
    t = ops.constant([1.0, 4.0])
    np.testing.assert_array_equal(np.sqrt(t), [1.0, 2.0])
    assert np.mean(t) == 2.5
    assert type(np.sqrt(t)) is np.ndarray
    array = np.zeros(2, np.float32)
    array += t  # type: ignore[arg-type]
    np.testing.assert_array_equal(array, [1.0, 4.0])


def test_conversions_of_scalars() -> None:
    assert float(ops.constant(1.5)) == 1.5
    assert int(ops.constant(3.7)) == 3
    assert list(range(ops.constant(3))) == [0, 1, 2]  # type: ignore[arg-type]
    assert "abc"[ops.constant(1)] == "b"
    assert bool(ops.constant(0.5)) is True
    assert bool(ops.constant([[0]])) is False
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        operator.index(ops.constant(3.0))


@cases("convert", [float, int, operator.index])
def test_only_scalars_convert(convert: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"Only 0-dimensional tensors .* Received: shape \(1,\)"):
        convert(ops.constant([1]))


@pytest.mark.parametrize("value", [[], [1.0, 2.0]])
def test_truth_needs_one_element(value: Any) -> None:
    with pytest.raises(ValueError, match="The truth value of a tensor"):
        bool(ops.constant(value))


def test_len_and_iteration() -> None:
    t = ops.constant([[1, 2], [3, 4], [5, 6]])
    assert len(t) == 3
    assert [each.numpy().tolist() for each in t] == [[1, 2], [3, 4], [5, 6]]
    assert list(ops.zeros((0, 2))) == []
    with pytest.raises(TypeError, match="Scalar tensor has no `len"):
        len(ops.constant(1))
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        iter(ops.constant(1))


@pytest.mark.parametrize("thing", [lambda: ops.constant(1), lambda: Variable(1)])
def test_unhashable(thing: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(thing())


def test_immutable() -> None:
    t = ops.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        t[0] = 3.0  # type: ignore[index]
    with pytest.raises(AttributeError):
        t.shape = (1, 2)  # type: ignore[misc]


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@cases("symbol", [*ARITHMETIC, *COMPARISONS])
@cases("other", [2, 2.0, np.float32(2.0), np.float64(2.0), np.array([2.0, 0.5])])
@cases("make", [ops.constant, Variable])
def test_operators_on_both_sides(symbol: Any, other: Any, make: Any) -> None:
    array = np.array([1.0, 2.0], np.float32)
    t = make(array)
    other32 = np.asarray(other, np.float32)
    for found, expected in (
        (symbol(t, other), symbol(array, other32)),
        (symbol(other, t), symbol(other32, array)),
    ):
        assert isinstance(found, ops.Tensor)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_operators_of_one_operand() -> None:
    t = ops.constant([1.0, -2.0])
    np.testing.assert_array_equal((-t).numpy(), [-1.0, 2.0])
    np.testing.assert_array_equal(abs(t).numpy(), [1.0, 2.0])


def test_unsupported_operands() -> None:
    with pytest.raises(TypeError, match="Received: 'a'"):
        ops.constant(1.0) + "a"
    with pytest.raises(TypeError, match="unsupported operand"):
        ops.constant(1) << 2  # type: ignore[operator]


def test_copy_to(simulate: Any) -> None:
    simulate(1)
    cpu, gpu = devices.get_device("CPU:0"), devices.get_device("GPU:0")
    t = ops.constant([1.0])
    assert t.copy_to(gpu) is t
    copied = t.copy_to(cpu)
    assert copied.device == cpu.full_name
    assert float(copied[0]) == 1.0


def test_ids_are_never_used_twice() -> None:
    seen = set()
    for _ in range(100):
        seen.add(ops.zeros(())._id)
    assert len(seen) == 100


def test_a_tensor_is_its_own_copy() -> None:
    t = ops.constant([1.0])
    assert copy.copy(t) is t
    assert copy.deepcopy([t])[0] is t


@cases("value", [3, [1.5, -0.0], [[True], [False]], np.zeros((0, 2))])
def test_a_tensor_is_pickled_with_its_device(simulate: Any, value: Any) -> None:
    simulate(2)
    with devices.device("GPU:1"):
        t = ops.constant(value)
    pickled = pickle.dumps(t)
    again = pickle.loads(pickled)
    assert (again.device, again.dtype) == (t.device, t.dtype)
    np.testing.assert_array_equal(again.numpy(), t.numpy(), strict=True)
    devices.reset_devices()
    elsewhere = pickle.loads(pickled)  # As the placement rules have it where it is not there.
    assert elsewhere.device.endswith("CPU:0")
    np.testing.assert_array_equal(elsewhere.numpy(), np.asarray(value, t.dtype), strict=True)
