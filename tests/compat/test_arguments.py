"""What TensorFlow 1's functions are called with, by position and by older names."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf
from mirrored.compat.v1.call_table import ROWS

X = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


# A call, what it returns, and how the names of its results begin.
CALLS: list[tuple[str, Any, str]] = [
    ("tf.add(x, 1.0, 'n')", X + 1.0, "n"),
    ("tf.reduce_sum(x, 0, True, 'n')", [[9.0, 18.0, 36.0]], "n"),
    ("tf.reduce_max(x, None, None, 'n', 1, True)", [[4.0], [32.0]], "n"),
    ("tf.reduce_all(x > 1.0, reduction_indices=[1])", [False, True], "All"),
    ("tf.argmax(x, None, 'n', 1, tf.int32)", [2, 2], "n"),
    ("tf.arg_min(x, 1, tf.int32, 'n')", [0, 0], "n"),
    ("tf.confusion_matrix([0, 1], [0, 1], 2, tf.int32, 'n', [2, 3])", [[2, 0], [0, 3]], "n"),
    ("tf.count_nonzero(input_tensor=x, axis=0, keep_dims=True)", [[2, 2, 2]], "count_nonzero"),
    ("tf.expand_dims([1.0], None, 'n', 1)", [[1.0]], "n"),
    ("tf.gather(x, [1, 0], None, 'n', 1)", X[:, [1, 0]], "n"),
    ("tf.gather_nd(x, [[1, 0]], 'n')", [8.0], "n"),
    ("tf.shape(tf.multinomial([[1.0, 2.0]], 4, 7, 'n', tf.int32), 'm')", [1, 4], "m"),
    ("tf.nn.l2_normalize([3.0, 4.0], None, 1e-12, 'n', 0)", [0.6, 0.8], "n"),
    ("tf.nn.softmax([0.0, 0.0], -1, 'n')", [0.5, 0.5], "n"),
    ("tf.nn.log_softmax([[0.0], [0.0]], dim=0)", [[-np.log(2.0)]] * 2, "LogSoftmax"),
    ("tf.nn.moments(x, [1], None, 'n', True)[0]", [[7.0 / 3.0], [56.0 / 3.0]], "n"),
    (
        "tf.nn.weighted_cross_entropy_with_logits(targets=1.0, logits=0.0, pos_weight=2.0)",
        2.0 * np.log(2.0),
        "logistic_loss",
    ),
    ("tf.norm([3.0, 4.0], 'euclidean', None, None, 'n', True)", [5.0], "n"),
    ("tf.zeros_like(tensor=x, name='n')", 0.0 * X, "n"),
    ("tf.ones([2], tf.int32, 'n')", [1, 1], "n"),
    ("tf.pad([1.0], [[1, 0]], 'CONSTANT', 'n', 5.0)", [5.0, 1.0], "n"),
    ("tf.space_to_depth([[[[1.0], [2.0]]] * 2], 2, 'n', 'NHWC')", [[[[1.0, 2.0] * 2]]], "n"),
    ("tf.nn.depth_to_space([[[[1.0] * 4]]], 2)", [[[[1.0]] * 2] * 2], "DepthToSpace"),
    ("tf.reverse_sequence(x, [1, 2], seq_dim=1)", [[1, 2, 4], [16, 8, 32]], "ReverseSequence"),
    ("tf.shape(x, 'n', tf.int64)", [2, 3], "n"),
    ("tf.squeeze([[1.0]], squeeze_dims=[0])", [1.0], "Squeeze"),
    ("tf.transpose(x, [1, 0], 'n', False)", X.T, "n"),
    ("tf.nn.embedding_lookup([x], [1], 'div', 'n')", X[1:], "n"),
    ("tf.clip_by_global_norm([None, [3.0, 4.0]], 1.0)[0][1]", [0.6, 0.8], "clip_by_global_norm"),
    ("tf.ensure_shape(p, [2, 3], 'n')", X, "n"),
    ("x[:, tf.constant(1)]", X[:, 1], "strided_slice"),
    ("tf.reshape(p, [tf.shape(p)[0] * 3])", X.reshape(-1), "Reshape"),
    ("tf.tensor_scatter_update([1.0, 2.0], [[0]], [5.0])", [5.0, 2.0], "TensorScatterUpdate"),
]


@pytest.mark.parametrize(("code", "value", "name"), CALLS)
def test_calls(code: str, value: Any, name: str) -> None:
    p = tf.placeholder(tf.float32, [None, 3])
    found = eval(code, {"tf": tf, "x": tf.constant(X), "p": p})
    assert found.name.partition(":")[0] == name
    with tf.Session() as session:
        got = session.run(found, {p: X})
    np.testing.assert_allclose(got, value, rtol=1e-5)
    assert found.shape.is_compatible_with(got.shape)


WRONG: list[tuple[str, type[Exception], str]] = [
    (
        "tf.reduce_sum(x, axis=1, reduction_indices=1)",
        ValueError,
        "Cannot specify both 'reduction_",
    ),
    ("tf.reduce_sum(x, keepdims=True, keep_dims=True)", ValueError, "'keep_dims' and 'keepdims'."),
    ("tf.argmax(x, 1, dimension=1)", ValueError, "Cannot specify both 'dimension' and 'axis'."),
    ("tf.square(x, 'n', 1)", TypeError, "square() takes 2 arguments. Received: 3"),
    ("tf.square(x, x=x)", TypeError, "square() got multiple values for argument 'x'"),
    ("tf.square(x, y=x)", TypeError, "square() got an unexpected keyword argument 'y'"),
    ("tf.transpose()", TypeError, "transpose() missing 1 required positional argument: 'a'"),
    ("tf.concat(axis=0)", TypeError, "concat() missing 1 required positional argument: 'values'"),
    ("tf.nn.embedding_lookup([x, x], [0])", ValueError, "`params` must be one tensor. Received: 2"),
    ("tf.nn.embedding_lookup(x, [0], 'all')", ValueError, "Unrecognized partition strategy: all"),
    ("tf.name_scope(None, None, [x]).__enter__()", ValueError, "At least one of name (None) and d"),
    ("tf.ensure_shape(x, [2, 4])", ValueError, "Shapes (2, 3) and (2, 4) are not compatible"),
]


@pytest.mark.parametrize(("code", "kind", "text"), WRONG)
def test_what_is_wrong(code: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        eval(code, {"tf": tf, "x": tf.constant(X)})
    assert text in str(caught.value)


def test_names_of_today_are_those_of_functions() -> None:
    """Each older name stands for an argument that the function has."""
    import inspect

    for name, row in ROWS.items():
        home, _, last = name.rpartition(".")
        function = getattr(getattr(tf, home) if home else tf, last)
        there = inspect.signature(function).parameters
        assert {each for each in row.arguments.values() if each} <= {*there, "name"}, name
