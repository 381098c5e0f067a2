"""TensorFlow's guide "Random number generation"."""

import tempfile

from guides import error_of


def a_generator(tf):
    g = tf.random.Generator.from_seed(1)
    return [g.normal(shape=[2, 3]), g.uniform([4]), g.uniform([3], maxval=10, dtype=tf.int32)]


def from_a_state(tf):
    g = tf.random.Generator.from_seed(1, alg="philox")
    before = g.state.numpy()
    other = tf.random.Generator.from_state(state=[1, 2, 3], alg="philox")
    return [before, g.normal([]), g.state.numpy(), other.uniform([2], dtype=tf.float64)]


def split_into_several(tf):
    g = tf.random.Generator.from_seed(1)
    g.normal([])
    several = g.split(3)
    return [each.normal([]) for each in (g, *several)]


def begun_anew(tf):
    g = tf.random.Generator.from_seed(1234)
    first = g.uniform([2])
    g.reset_from_seed(1234)
    return [first, g.uniform([2])]


def within_a_function(tf):
    g = tf.random.Generator.from_seed(1)

    @tf.function
    def draw():
        return g.normal([])

    return [draw(), draw(), g.normal([])]


def in_a_checkpoint(tf):
    g = tf.random.Generator.from_seed(1)
    checkpoint = tf.train.Checkpoint(generator=g)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.write(f"{folder}/checkpoint")
        before = g.normal([])
        checkpoint.restore(path)
    return [before, g.normal([])]


def without_a_state(tf):
    return [
        tf.random.stateless_normal(shape=[2, 3], seed=[1, 2]),
        tf.random.stateless_uniform([3], seed=[1, 2], minval=0, maxval=5, dtype=tf.int32),
        tf.random.stateless_uniform([3], seed=[1, 2]),
        tf.random.stateless_truncated_normal([4], seed=[3, 4]),
        error_of(tf.random.stateless_uniform, [3], 5),
    ]


def of_one_seed(tf):
    tf.random.set_seed(5)
    first = tf.random.uniform([2])
    tf.random.set_seed(5)
    again = tf.random.uniform([2])
    return [bool(tf.reduce_all(first == again)), tuple(first.shape)]
