"""`tf.train.ExponentialMovingAverage` of variables and of tensors: TensorFlow 2.21's numbers."""

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


def test_statistics_of_batches_are_kept() -> None:
    """The batch normalization of books: the batch's mean in training, and the kept one after it."""
    x = tf.placeholder(tf.float32, [None, 3])
    training = tf.placeholder(tf.bool)
    means = tf.train.ExponentialMovingAverage(decay=0.5)
    (mean, variance) = tf.nn.moments(x, [0])

    def updated() -> Any:
        with tf.control_dependencies([means.apply([mean, variance])]):
            return tf.identity(mean), tf.identity(variance)

    used = tf.cond(training, updated, lambda: (means.average(mean), means.average(variance)))
    expected = [[1.5, 2.25], [0.75, 1.125], [1.5, 2.25], [1.125, 1.6875]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step, numbers in enumerate(expected):
            fed = {x: np.arange(6.0).reshape(2, 3), training: step % 2 == 0}
            assert [float(each[0]) for each in session.run(used, fed)] == numbers


def test_a_mean_begins_with_the_value_of_its_variable() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    means = tf.train.ExponentialMovingAverage(0.5)
    apply = means.apply([v])
    with tf.control_dependencies([v.assign_add([2.0, 2.0])]):
        later = means.apply([v])
    assert (means.average(v).name, apply.type) == ("v/ExponentialMovingAverage:0", "NoOp")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(apply)
        assert session.run(means.average(v)).tolist() == [1.0, 2.0]
        session.run(later)
        assert session.run(means.average(v)).tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("tf.constant(1)", TypeError, "must be half, float, or double"),
        ("tf.placeholder(tf.float32)", ValueError, r"[Mm]ean"),
    ],
)
def test_what_is_wrong(code: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        tf.train.ExponentialMovingAverage(0.5).apply([eval(code, {"tf": tf})])
