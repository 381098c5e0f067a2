"""TensorFlow's guide "Introduction to tensor slicing"."""

import numpy as np
from guides import error_of


def slices(tf):
    t = tf.constant([0, 1, 2, 3, 4, 5, 6, 7])
    m = tf.reshape(tf.range(20), [4, 5])
    c = tf.reshape(tf.range(24), [2, 3, 4])
    return [
        tf.slice(t, begin=[1], size=[3]),
        t[1:4],
        t[-3:],
        tf.slice(m, begin=[0, 0], size=[2, 3]),
        tf.slice(m, [1, 2], [-1, 2]),
        m[:-1, 1:3],
        tf.slice(c, begin=[1, 1, 0], size=[1, 1, 2]),
        tf.strided_slice(t, [0], [7], [2]),
        error_of(tf.slice, t, [6], [4]),
    ]


def gathers(tf):
    t = tf.constant([0, 1, 2, 3, 4, 5, 6, 7])
    m = tf.reshape(tf.range(20), [4, 5])
    return [
        tf.gather(t, indices=[0, 3, 6]),
        t[::3],
        tf.gather(m, [3, 0, 0]),
        tf.gather(m, [4, 1], axis=1),
        tf.gather(m, [[1, 1], [0, 4], [2, 2], [3, 0]], batch_dims=1),
        tf.gather_nd(m, indices=[[0], [3], [1]]),
        tf.gather_nd(m, [[2, 3], [0, 4]]),
        tf.gather_nd(
            tf.reshape(tf.range(18), [2, 3, 3]), [[[0, 0, 0], [0, 0, 2]], [[1, 2, 1], [0, 1, 1]]]
        ),
        error_of(tf.gather, t, [8]),
        error_of(tf.gather_nd, m, [[4, 0]]),
    ]


def scatters(tf):
    made = tf.scatter_nd(
        tf.constant([[1], [3], [5], [7]]), tf.constant([2, 4, 6, 8]), tf.constant([10])
    )
    squares = tf.constant([[0, 7], [0, 8], [3, 0]])
    m = tf.constant([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    at = [[0, 1], [1, 2], [2, 0]]
    return [
        made,
        tf.gather_nd(made, [[1], [3], [5], [7]]),
        tf.scatter_nd(squares[:, :1], tf.gather_nd(m, at), [5]),
        tf.tensor_scatter_nd_add(m, at, [10, 20, 30]),
        tf.tensor_scatter_nd_sub(m, at, [1, 2, 3]),
        tf.tensor_scatter_nd_update(m, [[1]], [[-1, -2, -3]]),
        tf.tensor_scatter_nd_max(m, at, [5, 5, 5]),
        tf.tensor_scatter_nd_min(m, at, [5, 5, 5]),
        tf.scatter_nd([[0], [0]], np.array([1.5, 2.0], np.float32), [2]),
        error_of(tf.scatter_nd, [[4]], [1], [3]),
    ]


def slopes(tf):
    """Which elements a gradient reaches, and how often."""
    x = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))
    with tf.GradientTape(persistent=True) as tape:
        rows = tf.reduce_sum(tf.gather(x, [0, 2, 2]) ** 2)
        places = tf.reduce_sum(tf.gather_nd(x, [[1, 1], [1, 1], [3, 0]]))
        part = tf.reduce_sum(tf.slice(x, [1, 0], [2, 2]) * 3.0)
    return [tf.convert_to_tensor(tape.gradient(each, x)) for each in (rows, places, part)]
