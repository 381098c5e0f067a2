"""Sizes and shapes as programs of TensorFlow 1 see them, and placeholders of any shape."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def names() -> dict[str, Any]:
    return {
        "tf": tf,
        "np": np,
        "x": tf.placeholder(tf.float32, [None, 3], name="x"),
        "u": tf.placeholder(tf.float32, name="u"),
        "i": tf.placeholder(tf.int32, [3], name="i"),
        "w": tf.Variable(tf.zeros([3, 2]), name="w"),
    }


# What TensorFlow 2.21 shows of each.
TEXTS = [
    ("x.shape", "TensorShape([Dimension(None), Dimension(3)])"),
    ("str(x.shape)", "'(?, 3)'"),
    ("x.get_shape().as_list()", "[None, 3]"),
    ("x.shape[1].value", "3"),
    ("x.shape[0].value", "None"),
    ("x.shape[1] * 2", "Dimension(6)"),
    ("x.shape[0] * 2", "Dimension(None)"),
    ("x.shape[0] < 3", "None"),
    ("x.shape.ndims", "2"),
    ("x.shape[1:]", "TensorShape([Dimension(3)])"),
    ("x.shape.merge_with([2, None])", "TensorShape([Dimension(2), Dimension(3)])"),
    ("tf.zeros(w.shape)", "<tf.Tensor 'zeros_1:0' shape=(3, 2) dtype=float32>"),
    ("tf.reshape(w, [-1, w.shape[1]]).shape.as_list()", "[3, 2]"),
    ("u.shape", "TensorShape(None)"),
    ("u.shape.ndims", "None"),
    ("u", "<tf.Tensor 'u:0' shape=<unknown> dtype=float32>"),
    ("str(u)", "'Tensor(\"u:0\", dtype=float32)'"),
    ("(u + 1.0).shape", "TensorShape(None)"),
    ("tf.nn.relu(u).shape", "TensorShape(None)"),
    ("tf.reduce_sum(u).shape", "TensorShape([])"),
    ("tf.reshape(u, [-1, 3]).shape", "TensorShape([Dimension(None), Dimension(3)])"),
    ("tf.shape(u).shape", "TensorShape([Dimension(None)])"),
    ("tf.Dimension(None)", "Dimension(None)"),
    ("x.shape[0].merge_with(x.shape[1])", "Dimension(3)"),
    ("x.shape[1].is_compatible_with(4)", "False"),
    ("u.shape.with_rank_at_least(2)", "TensorShape(None)"),
]


@pytest.mark.parametrize(("code", "text"), TEXTS)
def test_what_programs_see(code: str, text: str) -> None:
    assert repr(eval(code, names())) == text


WRONG = [
    ("len(u.shape)", "Cannot take the length of shape with unknown rank."),
    ("u.shape.as_list()", "as_list() is not defined on an unknown TensorShape."),
    (
        "x.set_shape([2, 4])",
        "Dimension 1 in both shapes must be equal, but are 3 and 4.",
    ),
    ("x.shape[1].merge_with(4)", "Dimensions 3 and 4 are not compatible"),
    ("x.shape.with_rank_at_most(1)", "Shape (?, 3) must have rank at most 1"),
    ("x.shape.assert_is_fully_defined()", "Shape (?, 3) is not fully defined"),
    ("x.shape.with_rank(3)", "Shape (?, 3) must have rank 3"),
    ("tf.Variable(u)", 'initial_value must have a shape specified: Tensor("u:0", dtype=float32)'),
    ("tf.Dimension(-1)", "Dimension -1 must be >= 0"),
]


@pytest.mark.parametrize(("code", "text"), WRONG)
def test_what_is_wrong(code: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        eval(code, names())


def test_a_placeholder_of_any_shape_is_recorded_for_each_that_is_fed() -> None:
    x = tf.placeholder(tf.float32)
    w = tf.Variable(2.0)
    loss = tf.reduce_mean(tf.square(x * w))
    (by_w,) = tf.gradients(loss, w)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fed in (3.0, [3.0, 3.0], [[3.0], [3.0]]):
            assert session.run([loss, by_w], {x: fed}) == [36.0, 36.0]
        session.run(train, {x: [1.0]})
        assert session.run(w) == 0.0


def test_more_may_be_said_of_a_shape() -> None:
    x = tf.placeholder(tf.float32)
    x.set_shape([None, 2])
    assert tf.layers.dense(x, 3).shape.as_list() == [None, 3]
    with tf.Session() as session, pytest.raises(ValueError, match=r"which has shape \(\?, 2\)"):
        session.run(x, {x: [1.0]})
