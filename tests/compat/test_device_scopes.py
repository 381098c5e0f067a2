"""`tf.device` with functions, by which lessons on several GPUs keep variables on the CPU."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def variables_on(where: str, others: str) -> Callable[[Any], str]:
    def chosen(op: Any) -> str:
        node = op if isinstance(op, tf.NodeDef) else op.node_def
        return where if node.op in ("Variable", "VariableV2") else others

    return chosen


def test_where_operations_go() -> None:
    with tf.device(variables_on("/cpu:0", "/gpu:1")):
        v = tf.Variable([1.0, 2.0], name="v")
        doubled = v * 2.0
        with tf.device("/gpu:0"):
            inner = v + 1.0
        with tf.device(lambda op: "/gpu:2" if op.type == "Sum" else None):
            total, root = tf.reduce_sum(v), tf.sqrt(v)
    with tf.device("/gpu:3"), tf.Graph().as_default() as other, other.device(lambda _: ""):
        left = tf.constant(1.0)
    devices = [each.device for each in (v, v.initializer, v.initial_value, doubled, inner)]
    assert devices == [f"/device:{each}" for each in ("CPU:0", "CPU:0", "GPU:1", "GPU:1", "GPU:0")]
    assert [each.device[-5:] for each in (total, root, left)] == ["GPU:2", "GPU:1", "GPU:3"]
    assert doubled.op.node_def == tf.NodeDef("mul", "Mul", "/device:GPU:1", ["v:0", "mul/y:0"])


def test_towers_of_a_lesson_are_one_device() -> None:
    """Each tower's gradients on a GPU, by a function that keeps the variables on the CPU."""
    rng = np.random.default_rng(0)
    xs, ys = rng.normal(size=(8, 3)), rng.normal(size=(8, 1))
    x, y = tf.placeholder(tf.float64, [None, 3]), tf.placeholder(tf.float64, [None, 1])

    def loss(x: Any, y: Any) -> Any:
        with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [3, 1], tf.float64, tf.ones_initializer())
        return tf.reduce_mean(tf.square(tf.matmul(x, w) - y))

    mr.config.experimental.set_simulated_gpus(4)
    with tf.device("/cpu:0"):
        optimizer = tf.train.AdamOptimizer(0.1)
        towers = []
        for i in range(4):
            with tf.device(variables_on("/cpu:0", f"/gpu:{i}")):
                part = slice(i * 2, (i + 1) * 2)
                towers.append(optimizer.compute_gradients(loss(x[part], y[part])))
        averaged = []
        for pairs in zip(*towers, strict=True):
            parts = [tf.expand_dims(gradient, 0) for gradient, _ in pairs]
            averaged.append((tf.reduce_mean(tf.concat(parts, axis=0), 0), pairs[0][1]))
        train = optimizer.apply_gradients(averaged)
    whole = tf.train.AdamOptimizer(0.1).minimize(loss(x, y))
    (w,) = tf.trainable_variables()
    assert [gradient.device[-5:] for ((gradient, _),) in towers] == [f"GPU:{i}" for i in range(4)]
    found = []
    for step in (train, whole):
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(step, {x: xs, y: ys})
            found.append(session.run(w))
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)


def test_colocation() -> None:
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0)
    free = tf.constant(1.0)
    with tf.device("/gpu:0"), tf.device(lambda operation: "/gpu:1"):
        with tf.colocate_with(v):
            on_cpu = tf.square(v)
        with tf.colocate_with(free.op, ignore_existing=True):
            anywhere = tf.square(free)
    assert (on_cpu.device, anywhere.device) == ("/device:CPU:0", "")
    with pytest.raises(ValueError, match="colocate with None"), tf.colocate_with(None):
        pass
