"""TensorFlow's guide "Introduction to variables"."""

import numpy as np
from guides import error_of


def creating(tf):
    m = tf.Variable(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    flags, whole = tf.Variable([False, False, False, True]), tf.Variable([5, 4])
    return {
        "shape": tuple(m.shape),
        "values": [m.numpy(), flags.numpy(), whole.numpy()],
        "dtypes": [m.dtype == tf.float32, flags.dtype == tf.bool, whole.dtype == tf.int32],
        "as a tensor": tf.convert_to_tensor(m),
        "index of the highest": tf.math.argmax(m),
        "a copy of another shape": tf.reshape(m, [1, 4]),
    }


def assigning(tf):
    a = tf.Variable([2.0, 3.0])
    a.assign([1, 2])
    return [a.numpy(), error_of(a.assign, [1.0, 2.0, 3.0])]


def copies(tf):
    a = tf.Variable([2.0, 3.0])
    b = tf.Variable(a)
    a.assign([5, 6])
    return [a.numpy(), b.numpy(), a.assign_add([2, 3]).numpy(), a.assign_sub([7, 9]).numpy()]


def a_part(tf):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[0].assign([9.0, 8.0])
    v[:, 1].assign([7.0, 6.0])
    v[1, 0].assign(-1.0)
    return v.numpy()


def rows(tf):
    v = tf.Variable(np.zeros((3, 2), np.float32))
    v.scatter_update(tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1])))
    v.scatter_add(tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([2, 2])))
    v.scatter_nd_add([[0, 1]], [5.0])
    return v.numpy()


def names_and_training(tf):
    a, b = tf.Variable([[1]], name="Mark"), tf.Variable([[2]], name="Mark", trainable=False)
    return [a.name, b.name, a == b, a.trainable, b.trainable]


def placed(tf):
    with tf.device("CPU:0"):
        a, b = tf.Variable([[1.0, 2.0, 3.0]]), tf.constant([[4.0], [5.0], [6.0]])
        c = tf.matmul(a, b)
    return [c, c.device.endswith("CPU:0")]
