"""Dropout and batch normalization of `tf.layers`: TensorFlow's numbers, names and updates."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        yield graph


# The shape of the inputs, then TensorFlow 2.21's losses of three steps, the loss of moving
# averages, gamma, beta and both averages. Its fused kernel computes inputs of four axes.
STEPS: list[Any] = [
    (
        [None, 3],
        [1.3084179, 0.5882277, 0.26790607, 0.15837382],
        [
            [0.25854316, 0.3956536, 0.35266256],
            [0.3368498, 0.49652314, 0.4822508],
            [0.45375344, 0.46286255, 0.5412148],
            [0.9292702, 1.0524669, 1.0293574],
        ],
    ),
    (
        [None, 2, 2, 3],
        [1.4272124, 0.67540836, 0.34088412, 0.15472524],
        [
            [0.2664916, 0.25138873, 0.3150757],
            [0.38287345, 0.36511192, 0.40517023],
            [0.29736665, 0.31650624, 0.38306916],
            [0.91536033, 0.94636035, 0.9059214],
        ],
    ),
]


@pytest.mark.parametrize(
    ("shape", "losses", "weights", "fed"),
    [(*STEPS[0], True), (*STEPS[1], True), (*STEPS[0], False)],
)
def test_batches_are_normalized_as_in_tensorflow(
    shape: list[int | None], losses: list[float], weights: list[list[float]], fed: bool
) -> None:
    rng = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, shape)
    training = tf.placeholder(tf.bool) if fed else True
    y = tf.layers.batch_normalization(x, training=training, momentum=0.9, name="norm")
    evaluated = tf.layers.batch_normalization(x, name="norm", reuse=True)
    targets = rng.rand(4, *shape[1:]).astype("float32")
    loss, of_averages = (tf.reduce_mean(tf.square(outputs - targets)) for outputs in (y, evaluated))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    with tf.control_dependencies(updates):
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    names = ["norm/gamma:0", "norm/beta:0", "norm/moving_mean:0", "norm/moving_variance:0"]
    assert [variable.name for variable in tf.global_variables()] == names
    assert [variable.name for variable in tf.trainable_variables()] == names[:2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows = rng.rand(4, *shape[1:]) * 3
        flags = [{training: True}, {training: False}] if fed else [{}, {}]
        values = [session.run([loss, train], {x: rows, **flags[0]})[0] for _ in range(3)]
        last = loss if fed else of_averages
        values.append(session.run(last, {x: rows, **flags[1]}))
        np.testing.assert_allclose(values, losses, rtol=1e-5)
        kept = session.run(tf.global_variables())
        np.testing.assert_allclose(kept, weights, rtol=1e-5)
        if fed:  # An evaluation moves nothing, also where the updates are run.
            session.run(updates, {x: rows, **flags[1]})
            np.testing.assert_array_equal(session.run(tf.global_variables()), kept)


@pytest.mark.parametrize(
    ("shape", "axis", "sizes"),
    [
        ((2, 3, 4, 5), 1, (3,)),
        ((2, 3, 4, 5), [1, -2], (1, 3, 4, 1)),
        ((3, 4, 2), 1, (4,)),
    ],
)
def test_features_may_be_on_any_axis(shape: Any, axis: Any, sizes: Any) -> None:
    rows = np.random.RandomState(0).rand(*shape)
    x = tf.constant(rows)
    y = tf.layers.batch_normalization(x, axis, scale=False, center=False, training=True)
    assert [variable._shape for variable in tf.global_variables()] == [sizes, sizes]
    kept = [i for i in range(len(shape)) if i not in (1, *([2] if axis == [1, -2] else []))]
    mean, variance = rows.mean(tuple(kept), keepdims=True), rows.var(tuple(kept), keepdims=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(y), (rows - mean) / np.sqrt(variance + 1e-3))


def test_half_floats_have_parameters_of_float32() -> None:
    y = tf.layers.batch_normalization(tf.ones([4, 2], tf.float16), training=True)
    assert y.dtype == tf.float16
    assert {variable.dtype.name for variable in tf.global_variables()} == {"float32"}


@pytest.mark.usefixtures("hardware")
def test_a_tensor_says_whether_dropout_drops() -> None:
    x, training = tf.ones([200, 5]), tf.placeholder_with_default(False, [])
    y = tf.layers.dropout(x, 0.4, seed=3, training=training)
    (slope,) = tf.gradients(y, x)
    assert y.name == "dropout/cond/Merge:0"
    with tf.Session() as session:
        dropped, by_x = session.run([y, slope], {training: True})
        assert {round(float(x), 5) for x in np.unique(dropped)} == {0.0, round(1 / 0.6, 5)}
        assert abs(dropped.mean() - 1.0) < 0.1
        np.testing.assert_array_equal(by_x, dropped)
        again = session.run(y, {training: True})
        assert not np.array_equal(again, dropped)
        for fed in ({}, {training: False}):
            assert all((array == 1.0).all() for array in session.run([y, slope], fed))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(y, {training: True}), dropped)


def test_masks_are_recorded_by_their_shape() -> None:
    flag, mask = tf.placeholder_with_default(True, []), tf.placeholder(tf.bool)
    y = tf.cond(flag, lambda: tf.logical_not(mask), lambda: mask)
    with tf.Session() as session:
        for row in ([True, False], [False, False], [True, True]):
            assert session.run(y, {mask: row}).tolist() == [not value for value in row]
        (plan,) = session._plans.values()
        assert len(plan._traces) == 1


def test_fed_flags_are_recorded_for_each_of_their_values() -> None:
    flag, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32, [None])
    y = tf.cond(flag, lambda: x * 2.0, lambda: x + 1.0)
    with tf.Session() as session:
        for value in (True, False, True, False):
            expected = [6.0] if value else [4.0]
            assert session.run(y, {x: [3.0], flag: value}).tolist() == expected
        (plan,) = session._plans.values()
        assert (plan._by_python, len(plan._traces)) == (False, 2)
        with pytest.raises(ValueError, match="ambiguous"):
            session.run(y, {x: [3.0], flag: [True, False]})


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("batch_normalization(x, renorm=True)", ValueError, "`renorm`, `renorm_clipping`,"),
        ("batch_normalization(x, 3)", ValueError, "Invalid axis: 3. The inputs have 2 axes."),
        ("batch_normalization(x, [1, -1])", ValueError, "Duplicate axis: [1, 1]"),
        ("batch_normalization(x, 1.5)", TypeError, "axis must be int or list, type given:"),
        ("batch_normalization(x, 0)", ValueError, "Input has undefined `axis` dimension."),
        (
            "batch_normalization(tf.placeholder(tf.float32))",
            ValueError,
            "Input has undefined rank: <unknown>.",
        ),
        ("dropout(x, training=2)", TypeError, "`pred` must be a Tensor, or a Python bool,"),
        ("BatchNormalization", AttributeError, "Use the function, with `name` and `reuse`"),
    ],
)
def test_what_is_wrong(code: str, kind: type[Exception], text: str) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    with pytest.raises(kind, match=re.escape(text)):
        eval(f"tf.layers.{code}", {"tf": tf, "x": x})
    assert tf.global_variables() == []
