"""Optimizers, losses, scopes and layers: what is expected is what TensorFlow 2.21 computes."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf

RNG = np.random.RandomState(0)
X, Y, LABELS = RNG.randn(8, 3), RNG.randn(8, 2), RNG.randint(0, 2, 8)

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


# Of each optimizer the loss before the sixth step, two weights after it and the slots' names.
OPTIMIZERS: list[tuple[str, float, list[float], list[str]]] = [
    ("GradientDescentOptimizer(0.1)", 1.9861323124, [0.61180314967, 0.23358506289], []),
    ("MomentumOptimizer(0.05, 0.9)", 1.3335230907, [0.30758641491, -0.31719222627], ["Momentum"]),
    (
        "MomentumOptimizer(0.05, 0.9, use_nesterov=True)",
        1.1797259431,
        [0.37188875008, -0.27868253739],
        ["Momentum"],
    ),
    ("AdamOptimizer(0.01)", 6.3524799132, [0.94018953396, 0.940101418], ["Adam", "Adam_1"]),
    (
        "AdamOptimizer(0.1, 0.8, 0.95, 1e-3)",
        2.7587980355,
        [0.48204861007, 0.42943630565],
        ["Adam", "Adam_1"],
    ),
    (
        "RMSPropOptimizer(0.01, 0.8, 0.5, 1e-6)",
        5.7916898615,
        [0.89266052486, 0.86841781049],
        ["RMSProp", "RMSProp_1"],
    ),
    (
        "RMSPropOptimizer(0.01, 0.8, 0.5, 1e-6, centered=True)",
        5.5675115557,
        [0.87107834004, 0.82935451173],
        ["RMSProp", "RMSProp_1", "RMSProp_2"],
    ),
    ("AdagradOptimizer(0.1)", 3.957890046, [0.70727416195, 0.67273789151], ["Adagrad"]),
]


@pytest.mark.parametrize(("made", "loss", "weights", "slots"), OPTIMIZERS)
def test_optimizers(made: str, loss: float, weights: list[float], slots: list[str]) -> None:
    x, y = (tf.placeholder(tf.float64, [None, size]) for size in (3, 2))
    w = tf.Variable(np.ones((3, 2)), name="w")
    b = tf.Variable(np.zeros(2), name="b")
    unused = tf.Variable(1.0, name="unused")
    error = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    optimizer = eval(f"tf.train.{made}", {"tf": tf})
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(error, global_step=step)
    names = [each.name for each in optimizer.variables() if "power" not in each.name]
    assert names == [f"{name}/{slot}:0" for name in ("b", "w") for slot in slots]
    assert (train.name, train.type) == (made.partition("Optimizer")[0], "AssignAdd")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([error, train], {x: X, y: Y})[0] for _ in range(6)]
        np.testing.assert_allclose(losses[-1], loss, rtol=1e-9)
        np.testing.assert_allclose(session.run(w)[0], weights, rtol=1e-9)
        assert session.run([step, unused]) == [6, 1.0]


# Losses of rows of two numbers, with their values.
LOSSES = [
    ("mean_squared_error(y, x)", 2.04564),
    ("mean_squared_error(y, x, w)", 1.62641),
    ("mean_squared_error(y, x, w, reduction=R.MEAN)", 1.39407),
    ("mean_squared_error(y, x, w, reduction=R.SUM)", 19.517),
    ("mean_squared_error(y, x, w, reduction=R.SUM_OVER_BATCH_SIZE)", 1.21981),
    ("mean_squared_error(y, x, 0.0)", 0.0),
    ("absolute_difference(y, x)", 1.26595),
    ("sigmoid_cross_entropy(tf.nn.sigmoid(y), x, label_smoothing=0.2)", 0.7996),
    ("softmax_cross_entropy(tf.nn.softmax(y), x, label_smoothing=0.2)", 0.689738),
    ("sparse_softmax_cross_entropy(labels, x)", 0.805285),
    ("sparse_softmax_cross_entropy(tf.expand_dims(labels, 1), x)", 0.805285),
    ("sparse_softmax_cross_entropy(labels, x, tf.to_float(labels))", 0.98548),
]


@pytest.mark.parametrize(("made", "value"), LOSSES)
def test_losses(made: str, value: float) -> None:
    names = {
        "tf": tf,
        "R": tf.losses.Reduction,
        "x": tf.constant(X[:, :2], tf.float32),
        "y": tf.constant(Y, tf.float32),
        "w": tf.constant([[1.0], [0.0], [2.0], [1.0], [0.0], [1.0], [1.0], [1.0]]),
        "labels": tf.constant(LABELS),
    }
    loss = eval(f"tf.losses.{made}", names)
    assert tf.losses.get_losses() == [loss]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(loss), value, rtol=1e-5)
        np.testing.assert_allclose(session.run(tf.losses.get_total_loss()), value, rtol=1e-5)


def test_layers_make_their_variables_in_scopes_of_their_own() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    hidden = tf.layers.dense(x, 3, tf.nn.relu, kernel_initializer=tf.ones_initializer())
    out = tf.layers.dense(hidden, 1, use_bias=False, kernel_initializer=tf.ones_initializer)
    again = tf.layers.dense(x, 3, name="dense", reuse=True)
    assert [each.name for each in tf.trainable_variables()] == [
        "dense/kernel:0",
        "dense/bias:0",
        "dense_1/kernel:0",
    ]
    assert (hidden.name, out.name, again.name) == (
        "dense/Relu:0",
        "dense_1/MatMul:0",
        "dense_2/BiasAdd:0",
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([out, again], {x: [[1.0, 2.0], [-3.0, 1.0]]})
        assert first.tolist() == [[9.0], [0.0]]
        assert second.tolist() == [[3.0] * 3, [-2.0] * 3]


@pytest.mark.parametrize(
    ("made", "expected"),  # TensorFlow 2.21's.
    [("GradientDescentOptimizer(0.1)", [0.8, 0.0]), ("AdamOptimizer(0.1)", [0.9, 0.0])],
)
@pytest.mark.parametrize("shared", [False, True])
def test_constraints_follow_a_step(made: str, expected: list[float], shared: bool) -> None:
    with tf.Graph().as_default():
        start, positive = [1.0, -1.0], lambda x: tf.maximum(x, 0.0)
        if shared:
            v = tf.get_variable("v", initializer=start, constraint=positive)
        else:
            v = tf.Variable(start, constraint=positive)
        step = eval(f"tf.train.{made}", {"tf": tf}).minimize(tf.reduce_sum(v * v))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            np.testing.assert_allclose(session.run(v), expected, rtol=1e-6)


def test_variables_are_shared_where_the_scope_says_so() -> None:
    with tf.variable_scope("a") as scope:
        v = tf.get_variable("v", [2])
        with pytest.raises(ValueError, match="Variable a/v already exists, disallowed"):
            tf.get_variable("v", [2])
        scope.reuse_variables()
        assert tf.get_variable("v", [2]) is v
        with pytest.raises(ValueError, match="Variable a/w does not exist, or was not created"):
            tf.get_variable("w", [2])
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE), tf.variable_scope("b"):
        w = tf.get_variable("w", [3], initializer=tf.constant_initializer([1.0, 2.0]))
        assert w.name == "a/b/w:0"
        assert tf.get_variable("w", [3]) is w
        with pytest.raises(ValueError, match=r"specified shape \(2,\) and found shape \(3,\)"):
            tf.get_variable("w", [2])
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("v") is v
    with pytest.raises(ValueError, match="w2 did not get an initializer, so its `shape` argum"):
        tf.get_variable("w2")
    with pytest.raises(ValueError, match="If initializer is a constant, do not specify shape"):
        tf.get_variable("w3", [2], initializer=tf.constant([1.0, 2.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(w).tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize(("staircase", "value"), [(False, 0.01767767), (True, 0.025)])
def test_a_rate_decays_by_the_step(staircase: bool, value: float) -> None:
    step = tf.train.create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 100, 0.5, staircase)
    with tf.Session() as session:
        assert session.run(rate, {step: 250}) == pytest.approx(value, rel=1e-6)


# Rates in step 5, as TensorFlow 2.21 computes them.
RATES = [
    ("piecewise_constant(step, [3, 7], [1.0, 0.5, 0.1])", 0.5),
    ("polynomial_decay(0.1, step, 10)", 0.05005),
    ("polynomial_decay(0.1, step, 2, 0.01, 2.0, cycle=True)", 0.0125),
    ("inverse_time_decay(0.1, step, 10, 0.5)", 0.08),
    ("natural_exp_decay(0.1, step, 10, 0.5)", 0.07788008),
]


@pytest.mark.parametrize(("made", "value"), RATES)
def test_other_rates(made: str, value: float) -> None:
    step = tf.train.create_global_step()
    rate = eval(f"tf.train.{made}", {"tf": tf, "step": step})
    with tf.Session() as session:
        assert session.run(rate, {step: 5}) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("sgd.minimize(tf.constant(1.0))", "No gradients provided for any variable, check your gr"),
        ("sgd.minimize(v * v, var_list=[])", "No variables to optimize."),
        ("sgd.minimize(v, gate_gradients=5)", "gate_gradients must be one of: Optimizer.GATE_NO"),
        ("sgd.apply_gradients([])", "No variables provided."),
        ("sgd.apply_gradients([(None, v)])", "No gradients provided for any variable: "),
        ("tf.losses.mean_squared_error([1.0], [1.0, 2.0])", "Shapes (2,) and (1,) are incompatib"),
        ("tf.losses.mean_squared_error(v, v, [1.0, 2.0])", "weights can not be broadcast to valu"),
        ("tf.losses.mean_squared_error(v, v, reduction='no')", "Invalid Reduction Key no."),
        ("tf.train.exponential_decay(0.1, None, 100, 0.5)", "global_step is required for expone"),
        ("tf.nn.dropout(v)", "`rate` must be provided. Received: rate=None"),
        ("tf.nn.dropout(v, 0.5, rate=0.5)", "Cannot specify both 'keep_prob' and 'rate'."),
        ("tf.gradients(v, v, [1.0, 2.0])", "Length mismatch. Passed 2 grad_ys for 1 ys"),
        ("tf.gradients(v, other)", "must be from the same graph as"),
        ("tf.get_variable('a', [2], partitioner=id)", "`partitioner` and `custom_getter` are not"),
        ("tf.get_variable('a', [2], custom_getter=id)", "are not provided here. Leave them out."),
        ("tf.get_variable('a', [None, 2])", "(a) must be fully defined, but instead was (?, 2)."),
        ("tf.get_variable('a', tf.TensorShape(None))", "(a) must be fully defined, but instead"),
    ],
)
def test_what_is_wrong(code: str, text: str) -> None:
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    names: dict[str, Any] = {
        "tf": tf,
        "other": other,
        "v": tf.Variable([[1.0], [2.0]]),
        "sgd": tf.train.GradientDescentOptimizer(0.1),
    }
    with pytest.raises(ValueError, match=re.escape(text)):
        eval(code, names)
