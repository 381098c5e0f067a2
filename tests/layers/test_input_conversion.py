"""What a layer may be called on."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.distribute import PerReplica
from mirrored.layers import Activation, Dense, Input
from mirrored.layers.input_conversion import as_input
from mirrored.variables import Variable


@cases(
    "values",
    [
        [[1, 2]],
        ((1.0, 2.0),),
        np.array([[1, 2]], dtype=np.float16),
        np.array([[1, 2]], dtype=np.float64),
        np.array([[2, 1]], dtype=np.float32)[:, ::-1],
    ],
)
@cases("dtype", [ops.float32, ops.float64])
def test_numbers_become_tensors_of_the_dtype(values: Any, dtype: Any) -> None:
    tensor = as_input(values, dtype, "dense")
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), [[1, 2]])


@cases("dtype", [np.uint8, np.int64, np.bool_])
def test_integers_of_a_dtype_keep_it_as_in_keras(dtype: Any) -> None:
    values = np.array([[2, 1]], dtype)[:, ::-1]
    for inputs in (values, ops.constant(values)):
        tensor = as_input(inputs, ops.float32, "dense")
        np.testing.assert_array_equal(tensor.numpy(), values, strict=True)
        assert as_input(inputs, ops.float32, "dense", casts_all=True).dtype == ops.float32
    assert Dense(2)(values).dtype == ops.float32


def test_booleans_become_zeros_and_ones() -> None:
    assert as_input([[True, False]], ops.float32, "dense").numpy().tolist() == [[1.0, 0.0]]


def test_tensors_are_cast_and_those_of_the_dtype_pass_as_they_are() -> None:
    tensor = ops.constant([[1.0, 2.0]])
    assert as_input(tensor, ops.float32, "dense") is tensor
    assert as_input(tensor, ops.float64, "dense").dtype == ops.float64


def test_a_variable_is_read() -> None:
    variable = Variable([[1.0, 2.0]])
    np.testing.assert_array_equal(as_input(variable, ops.float32, "d").numpy(), [[1, 2]])


@cases(
    "values",
    [
        np.array([[None, 1]], dtype=object),
        np.array([["a", "b"]]),
        np.ones((2, 2), dtype=complex),
        np.zeros((2, 2), dtype="datetime64[s]"),
        "text",
        None,
    ],
)
def test_other_values_are_refused_by_the_layers_name(values: Any) -> None:
    with pytest.raises(TypeError, match='Layer "act" computes with real numbers only'):
        Activation("relu", name="act")(values)


def test_sparse_matrices_are_made_dense_by_the_caller() -> None:
    matrix = pytest.importorskip("scipy.sparse").csr_matrix([[1.0, 0.0]])
    for function in (Activation("relu", name="act"), ops.convert_to_tensor):
        with pytest.raises(TypeError, match=r"Make it dense first, as with \.toarray\(\)"):
            function(matrix)


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(ValueError, match='Layer "act" cannot make an array of its input'):
        Activation("relu", name="act")([[1.0], [1.0, 2.0]])


@cases(
    "make",
    [
        lambda: [np.ones((2, 2)), np.ones((2, 2))],
        lambda: (ops.ones((2, 2)), ops.ones((2, 2))),
        lambda: {"a": np.ones((2, 2)), "b": np.ones((2, 2))},
        lambda: [Input((2,)), Input((2,))],
    ],
)
def test_several_inputs_are_refused(make: Any) -> None:
    text = r'Layer "head" expects 1 input\(s\), but it received 2 input tensors'
    with pytest.raises(ValueError, match=text):
        Dense(1, name="head")(make())


def test_a_value_of_several_replicas_is_refused() -> None:
    with pytest.raises(ValueError, match="one per replica, cannot be used as one tensor"):
        Dense(1)(PerReplica([np.ones((2, 2)), np.ones((2, 2))]))
