"""What weights begin with: the spread of what is drawn, and its bounds."""

import math
import re
from collections.abc import Iterator

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        tf.set_random_seed(1)
        yield made


# An initializer, the standard deviation of weights of 300 inputs and 100 outputs, and their bound.
SPREADS = [
    ("variance_scaling_initializer()", math.sqrt(1 / 300), 2.0 / 0.87962566),
    ("variance_scaling_initializer(2.0, 'fan_out', 'uniform')", math.sqrt(2 / 100), math.sqrt(3)),
    ("variance_scaling_initializer(1.0, 'fan_avg', 'untruncated_normal')", math.sqrt(1 / 200), 9.0),
    ("initializers.he_normal()", math.sqrt(2 / 300), 2.0 / 0.87962566),
    ("initializers.lecun_uniform()", math.sqrt(1 / 300), math.sqrt(3)),
    ("glorot_uniform_initializer()", math.sqrt(1 / 200), math.sqrt(3)),
    ("initializers.glorot_normal()", math.sqrt(1 / 200), 2.0 / 0.87962566),
    ("contrib.layers.xavier_initializer()", math.sqrt(1 / 200), math.sqrt(3)),
    (
        "contrib.layers.xavier_initializer(False, seed=3)",
        math.sqrt(1.3 / 200) * 0.87962566,
        2.0 / 0.87962566,
    ),
]


@pytest.mark.parametrize(("made", "deviation", "bound"), SPREADS)
def test_spreads(made: str, deviation: float, bound: float) -> None:
    w = tf.get_variable("w", [300, 100], initializer=eval(f"tf.{made}", {"tf": tf}))
    with tf.Session() as session:
        session.run(w.initializer)
        values = session.run(w)
    assert values.std() == pytest.approx(deviation, rel=0.02)
    assert np.abs(values).max() <= bound * deviation * 1.0001


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("0.0", "Argument `scale` must be a positive float. Received: 0.0"),
        (
            "1.0, 'fan'",
            "Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). Received",
        ),
        (
            "1.0, 'fan_in', 'even'",
            "Argument `distribution` should be one of ('normal', 'uniform', ",
        ),
    ],
)
def test_what_is_wrong(code: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        eval(f"tf.variance_scaling_initializer({code})", {"tf": tf})


def test_names_of_the_module() -> None:
    v = tf.get_variable("v", [2], initializer=tf.initializers.constant(3.0))
    w = tf.get_variable("w", [2], initializer=tf.initializers.ones())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [each.tolist() for each in session.run([v, w])] == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("layers.conv2d", AttributeError, "Use `tf.layers.conv2d`, with `tf.nn.relu`"),
        ("layers.fully_connected", AttributeError, "Use `tf.layers.dense`, with `tf.nn.relu`"),
        (
            "layers.no_such_name",
            AttributeError,
            "docs/howto/from-tensorflow-1.md lists the supported names. Use `tf.layers`.",
        ),
        ("slim", AttributeError, "TensorFlow 2 has no `tf.contrib`, and only"),
        (
            "layers.xavier_initializer(dtype=tf.int32)",
            TypeError,
            "Cannot create initializer for non-floating point type.",
        ),
    ],
)
def test_what_contrib_does_not_have(code: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        eval(f"tf.contrib.{code}", {"tf": tf})


def test_initializers_of_keras() -> None:
    with tf.variable_scope("scope", initializer=mr.initializers.Constant(3.0)):
        v = tf.get_variable("v", [2])
    w = tf.get_variable("w", [2, 3], initializer=mr.initializers.GlorotUniform(seed=1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run([v, w])
    assert values[0].tolist() == [3.0, 3.0]
    expected = mr.keras.initializers.GlorotUniform(seed=1)((2, 3))
    assert values[1].tolist() == expected.numpy().tolist()
