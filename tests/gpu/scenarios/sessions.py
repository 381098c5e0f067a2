"""Programs of TensorFlow 1 on the card: where they run, and their part of its memory."""

import logging
from typing import Any

import numpy as np

import mirrored as mr
import mirrored.compat.v1 as tf

FRACTION = 0.01


def lines() -> list[str]:
    """Return the list that lines of the log come into from now on."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("mirrored").addHandler(handler)
    return found


def program() -> dict[str, Any]:
    """Run a lesson and train a line in a session with a part of the card's memory."""
    log = lines()
    x, y = (tf.placeholder(tf.float64, [None, 1], name=name) for name in "xy")
    with tf.device("/gpu:0"):
        matrix = tf.random_uniform([300, 300])
        total = tf.reduce_sum(tf.matmul(matrix, tf.transpose(matrix)))
        predicted = tf.layers.dense(x, 1)
        step = tf.train.MomentumOptimizer(0.2, 0.5).minimize(
            tf.losses.mean_squared_error(y, predicted)
        )
    rounded = tf.py_func(np.round, [predicted], tf.float64)
    options = {"per_process_gpu_memory_fraction": FRACTION, "allow_growth": True}
    config = tf.ConfigProto(log_device_placement=True, gpu_options=options)
    points = np.linspace(-1.0, 1.0, 16)[:, None]
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(100):
            session.run(step, {x: points, y: 3.0 * points + 2.0})
        answers = session.run([total, rounded], {x: [[1.0], [2.0]]})
        limit = mr.devices.get_device("GPU:0").pool.limit
        error = ""
        try:
            session.run(predicted, {x: np.zeros((int(limit) // 8, 1))})
        except mr.errors.ResourceExhaustedError as caught:
            error = str(caught)
        after = session.run(rounded, {x: [[0.0]]})
    with tf.device("/gpu:0"):
        tf.Variable(1, name="whole")
    refused = ""
    try:
        tf.Session().run(total)
    except mr.errors.InvalidArgumentError as caught:
        refused = str(caught)
    whole = mr.devices.get_device("GPU:0").physical
    return {
        "log": log,
        "total": answers[0],
        "rounded": answers[1][:, 0],
        "limit": limit,
        "error": error,
        "after": after[0, 0],
        "refused": refused,
        "fraction": mr.config.experimental.get_memory_fraction(whole),
    }
