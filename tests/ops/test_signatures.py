"""The parameters of the public op functions: TensorFlow's names, order and defaults.

A script that names its arguments runs here only while these stay as they are.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

ONE = "(x, name=None)"
TWO = "(x, y, name=None)"
FLOAT32, INT32, INT64 = "dtype('float32')", "dtype('int32')", "dtype('int64')"

# As TensorFlow 2.21 has them; `*` stands where it has parameters that we lack. `log` is its
# `math.log`.
SIGNATURES = {
    "abs": ONE,
    "acos": ONE,
    "acosh": ONE,
    "add": TWO,
    "add_n": "(inputs, name=None)",
    "argmax": f"(input, axis=None, output_type={INT64}, name=None)",
    "argmin": f"(input, axis=None, output_type={INT64}, name=None)",
    "as_dtype": "(type_value)",
    "asin": ONE,
    "asinh": ONE,
    "atan": ONE,
    "atan2": "(y, x, name=None)",
    "atanh": ONE,
    "broadcast_to": "(input, shape, name=None)",
    "cast": "(x, dtype, name=None)",
    "clip_by_global_norm": "(t_list, clip_norm, use_norm=None, name=None)",
    "clip_by_norm": "(t, clip_norm, axes=None, name=None)",
    "clip_by_value": "(t, clip_value_min, clip_value_max, name=None)",
    "concat": "(values, axis, name='concat')",
    "constant": "(value, dtype=None, shape=None, name='Const')",
    "convert_to_tensor": "(value, dtype=None, *, name=None)",
    "cos": ONE,
    "cosh": ONE,
    "divide": TWO,
    "ensure_shape": "(x, shape, name=None)",
    "equal": TWO,
    "exp": ONE,
    "expand_dims": "(input, axis, name=None)",
    "eye": f"(num_rows, num_columns=None, batch_shape=None, dtype={FLOAT32}, name=None)",
    "fill": "(dims, value, name=None)",
    "floor": ONE,
    "greater": TWO,
    "greater_equal": TWO,
    "identity": "(input, name=None)",
    "less": TWO,
    "less_equal": TWO,
    "linalg.eye": f"(num_rows, num_columns=None, batch_shape=None, dtype={FLOAT32}, name=None)",
    "linalg.global_norm": "(t_list, name=None)",
    "linalg.l2_normalize": "(x, axis=None, epsilon=1e-12, name=None)",
    "linalg.matmul": "(a, b, transpose_a=False, transpose_b=False, *, name=None)",
    "linspace": "(start, stop, num, name=None, axis=0)",
    "log": ONE,
    "logical_and": TWO,
    "logical_not": ONE,
    "logical_or": TWO,
    "math.accumulate_n": "(inputs, shape=None, tensor_dtype=None, name=None)",
    "math.ceil": ONE,
    "math.count_nonzero": f"(input, axis=None, keepdims=None, dtype={INT64}, name=None)",
    "math.expm1": ONE,
    "math.floordiv": TWO,
    "math.floormod": TWO,
    "math.is_finite": ONE,
    "math.is_inf": ONE,
    "math.is_nan": ONE,
    "math.l2_normalize": "(x, axis=None, epsilon=1e-12, name=None)",
    "math.log1p": ONE,
    "math.log_softmax": "(logits, axis=None, name=None)",
    "math.logical_xor": "(x, y, name='LogicalXor')",
    "math.mod": TWO,
    "math.reciprocal": ONE,
    "math.reduce_std": "(input_tensor, axis=None, keepdims=False, name=None)",
    "math.reduce_variance": "(input_tensor, axis=None, keepdims=False, name=None)",
    "math.rint": ONE,
    "math.rsqrt": ONE,
    "math.softmax": "(logits, axis=None, name=None)",
    "math.softplus": "(features, name=None)",
    "math.squared_difference": TWO,
    "matmul": "(a, b, transpose_a=False, transpose_b=False, *, name=None)",
    "maximum": TWO,
    "meshgrid": "(*args, indexing='xy', name=None)",
    "minimum": TWO,
    "multiply": TWO,
    "negative": ONE,
    "nn.bias_add": "(value, bias, *, name=None)",
    "nn.l2_normalize": "(x, axis=None, epsilon=1e-12, name=None)",
    "nn.log_softmax": "(logits, axis=None, name=None)",
    "nn.moments": "(x, axes, shift=None, keepdims=False, name=None)",
    "nn.relu": "(features, name=None)",
    "nn.sigmoid": ONE,
    "nn.sigmoid_cross_entropy_with_logits": "(labels, logits, name=None)",
    "nn.softmax": "(logits, axis=None, name=None)",
    "nn.softmax_cross_entropy_with_logits": "(labels, logits, axis=-1, name=None)",
    "nn.softplus": "(features, name=None)",
    "nn.sparse_softmax_cross_entropy_with_logits": "(labels, logits, name=None)",
    "nn.tanh": ONE,
    "not_equal": TWO,
    "numpy_function": "(func, inp, Tout, *, name=None)",
    "one_hot": "(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None)",
    "ones": f"(shape, dtype={FLOAT32}, name=None)",
    "ones_like": "(input, dtype=None, name=None)",
    "pad": "(tensor, paddings, mode='CONSTANT', constant_values=0, name=None)",
    "pow": TWO,
    "random.normal": f"(shape, mean=0.0, stddev=1.0, dtype={FLOAT32}, seed=None, name=None)",
    "random.set_seed": "(seed)",
    "random.uniform": f"(shape, minval=0, maxval=None, dtype={FLOAT32}, seed=None, name=None)",
    "range": "(start, limit=None, delta=1, dtype=None, name='range')",
    "rank": "(input, name=None)",
    "reduce_all": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_any": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_logsumexp": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_max": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_mean": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_min": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_prod": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reduce_sum": "(input_tensor, axis=None, keepdims=False, name=None)",
    "reshape": "(tensor, shape, name=None)",
    "reverse": "(tensor, axis, name=None)",
    "roll": "(input, shift, axis, name=None)",
    "round": ONE,
    "scalar_mul": "(scalar, x, name=None)",
    "sequence_mask": "(lengths, maxlen=None, dtype=<class 'bool'>, name=None)",
    "shape": f"(input, out_type={INT32}, name=None)",
    "sigmoid": ONE,
    "sign": ONE,
    "sin": ONE,
    "sinh": ONE,
    "size": f"(input, out_type={INT32}, name=None)",
    "split": "(value, num_or_size_splits, axis=0, num=None, name='split')",
    "sqrt": ONE,
    "square": ONE,
    "squeeze": "(input, axis=None, name=None)",
    "stack": "(values, axis=0, name='stack')",
    "stop_gradient": "(input, name=None)",
    "subtract": TWO,
    "tan": ONE,
    "tanh": ONE,
    "tile": "(input, multiples, name=None)",
    "transpose": "(a, perm=None, *, name='transpose')",
    "truediv": "(x, y, name=None)",
    "unstack": "(value, num=None, axis=0, name='unstack')",
    "where": "(condition, x=None, y=None, name=None)",
    "zeros": f"(shape, dtype={FLOAT32}, name=None)",
    "zeros_like": "(input, dtype=None, name=None)",
}


def public_functions() -> dict[str, Callable[..., Any]]:
    """Return the op functions of `mr` and of its modules of ops, by the name users write."""
    homes = {"linalg.": mr.linalg, "math.": mr.math, "nn.": mr.nn, "random.": mr.random, "": mr}
    return {
        prefix + name: value
        for prefix, home in homes.items()
        for name, value in vars(home).items()
        if inspect.isfunction(value)
        and value.__module__.startswith("mirrored.ops")
        and not name.startswith("_")
        and not (home is mr.math and hasattr(mr, name))
    }


def without_annotations(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [each.replace(annotation=empty) for each in signature.parameters.values()]
    return str(inspect.Signature(parameters))


def test_signatures() -> None:
    assert {n: without_annotations(f) for n, f in public_functions().items()} == SIGNATURES


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (mr.reduce_sum, {"input_tensor": [[1, 2], [3, 4]], "axis": 0, "keepdims": True}, [[4, 6]]),
        (mr.reduce_mean, {"input_tensor": [1.0, 2.0]}, 1.5),
        (mr.reduce_max, {"input_tensor": [1.0, 2.0]}, 2.0),
        (mr.argmax, {"input": [1, 5, 2]}, 1),
        (mr.reshape, {"tensor": [1, 2], "shape": (2, 1)}, [[1], [2]]),
        (mr.transpose, {"a": [[1], [2]], "perm": (1, 0)}, [[1, 2]]),
        (mr.expand_dims, {"input": [1, 2], "axis": 0}, [[1, 2]]),
        (mr.squeeze, {"input": [[1, 2]], "axis": 0}, [1, 2]),
        (mr.broadcast_to, {"input": 1, "shape": (2,)}, [1, 1]),
        (mr.concat, {"values": [[1], [2]], "axis": 0}, [1, 2]),
        (mr.identity, {"input": 1}, 1),
        (mr.stop_gradient, {"input": 1}, 1),
        (mr.zeros_like, {"input": [1.0]}, [0.0]),
        (mr.ones_like, {"input": [2.0]}, [1.0]),
        (mr.matmul, {"a": [[1, 2]], "b": [[3, 4]], "transpose_b": True}, [[11]]),
        (mr.add, {"x": 1, "y": 2}, 3),
        (mr.numpy_function, {"func": np.negative, "inp": [1], "Tout": mr.int32}, -1),
        (mr.nn.relu, {"features": [-1.0, 1.0]}, [0.0, 1.0]),
        (mr.nn.softmax, {"logits": [0.0, 0.0], "axis": None}, [0.5, 0.5]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_arguments_by_keyword(
    function: Callable[..., Any], arguments: dict[str, Any], expected: Any
) -> None:
    result = function(**arguments, name="ignored")
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(("like", "value"), [(mr.zeros_like, 0), (mr.ones_like, 1)])
def test_like_with_another_dtype(like: Callable[..., Any], value: int) -> None:
    result = like(mr.constant([[1.5, 2.5]]), dtype=mr.int32)
    assert result.dtype == mr.int32
    np.testing.assert_array_equal(result.numpy(), [[value, value]])


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_cross_entropy_along_another_axis(axis: int) -> None:
    """As that of the transposed inputs; the last axis under its own number is no other axis."""
    labels = np.array([[0.25, 1.0, 0.0], [0.75, 0.0, 1.0]], np.float32)
    logits = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]], np.float32)
    rows = (labels, logits) if axis == 1 else (labels.T, logits.T)
    loss = mr.nn.softmax_cross_entropy_with_logits
    np.testing.assert_array_equal(
        loss(labels=labels, logits=logits, axis=axis).numpy(), loss(*rows).numpy()
    )


def test_cross_entropy_along_an_axis_that_is_not_there() -> None:
    with pytest.raises(mr.errors.InvalidArgumentError, match="Invalid axis 2"):
        mr.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, 0.0]], axis=2)
