"""TensorFlow's guide "Introduction to tensors"."""

import numpy as np
from guides import error_of


def ranks(tf):
    made = [
        tf.constant(4),
        tf.constant([2.0, 3.0, 4.0]),
        tf.constant([[1, 2], [3, 4], [5, 6]], dtype=tf.float16),
        tf.constant([[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]),
    ]
    return [made, [np.array(each) for each in made], [each.numpy() for each in made]]


def arithmetic(tf):
    a, b = tf.constant([[1, 2], [3, 4]]), tf.ones([2, 2], dtype=tf.int32)
    return [tf.add(a, b), tf.multiply(a, b), tf.matmul(a, b), a + b, a * b, a @ b]


def what_is_largest(tf):
    c = tf.constant([[4.0, 5.0], [10.0, 1.0]])
    return [tf.reduce_max(c), tf.math.argmax(c), tf.nn.softmax(c), tf.argmin(c, axis=1)]


def shapes(tf):
    x = tf.zeros([3, 2, 4, 5])
    return {
        "ndim": x.ndim,
        "shape": tuple(x.shape),
        "along axis 0": x.shape[0],
        "along the last axis": x.shape[-1],
        "size": tf.size(x),
        "rank": tf.rank(x),
        "as a tensor": tf.shape(x),
        "as a list": x.shape.as_list(),
        "known": x.shape.rank,
    }


def indexing(tf):
    x = tf.constant([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
    m = tf.constant([[1, 2], [3, 4], [5, 6]])
    parts = [x[0], x[1], x[-1], x[:], x[:4], x[4:], x[2:7], x[::2], x[::-1]]
    return [parts, m[1, 1], m[1, :], m[:, 1], m[-1, :], m[0, :], m[1:, :]]


def reshaping(tf):
    x = tf.constant(
        [[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]]
    )
    return [
        tf.reshape(x, [-1]),
        tf.reshape(x, [2 * 2, 5]),
        tf.reshape(x, [2, -1]),
        tf.transpose(x, [1, 0, 2]),
        error_of(tf.reshape, x, [7, -1]),
    ]


def dtypes(tf):
    x = tf.constant([2.2, 3.3, 4.4], dtype=tf.float64)
    half = tf.cast(x, dtype=tf.float16)
    return [half, tf.cast(half, dtype=tf.uint8), error_of(lambda: x + tf.constant([1.0, 2.0, 3.0]))]


def broadcasting(tf):
    x = tf.constant([1, 2, 3])
    row, column = tf.reshape(x, [1, 3]), tf.reshape(tf.range(1, 5), [4, 1])
    return [
        tf.multiply(x, 2),
        x * tf.constant([2, 2, 2]),
        column * row,
        tf.broadcast_to(x, [3, 3]),
        error_of(lambda: tf.zeros([3, 2]) + tf.zeros([2, 3])),
    ]
