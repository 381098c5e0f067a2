"""TensorFlow's guide "Better performance with tf.function"."""

import numpy as np
from guides import error_of


def a_function_and_its_gradient(tf):
    @tf.function
    def add(a, b):
        return a + b

    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        result = add(v, 1.0)
    return [add(tf.ones([2, 2]), tf.ones([2, 2])), tape.gradient(result, v)]


def functions_in_functions(tf):
    @tf.function
    def add(a, b):
        return a + b

    @tf.function
    def layer(x, w, b):
        return add(tf.matmul(x, w), b)

    return layer(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2]))


def how_often_it_is_traced(tf):
    traced = []

    @tf.function
    def double(a):
        traced.append(a)
        return a + a

    counts = []
    for value in (tf.constant(1), tf.constant(2), tf.constant(1.1), 3, 3, 4, tf.constant([1, 2])):
        double(value)
        counts.append(len(traced))
    return counts


def a_signature(tf):
    traced = []

    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def next_collatz(x):
        traced.append(x)
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    return [
        next_collatz(tf.constant([1, 2])),
        error_of(next_collatz, tf.constant([[1, 2], [3, 4]])),
        error_of(next_collatz, tf.constant([1.0, 2.0])),
    ]


def a_concrete_function(tf):
    @tf.function
    def power(a, b):
        return a**b

    square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    return [square(tf.constant(10.0)), error_of(square, tf.constant([1], tf.int32))]


def steps_that_are_pythons_numbers(tf):
    traced = []

    @tf.function
    def train(steps):
        traced.append(steps)
        return steps * 2

    for _ in range(2):
        train(steps=10)
        train(10)
    train(tf.constant(10))
    train(tf.constant(11))
    return len(traced)


def what_python_does_is_done_once(tf):
    said = []
    v = tf.Variable(0)

    @tf.function
    def f(x):
        said.append("traced")
        v.assign_add(x)
        return v.read_value()

    return [f(1), f(1), f(1), len(said)]


def variables_are_made_once(tf):
    class Count(tf.Module):
        def __init__(self):
            self.count = None

        @tf.function
        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(0)
            return self.count.assign_add(1)

    count = Count()

    @tf.function
    def wrong(x):
        return tf.Variable(1.0) + x

    return [count(), count(), error_of(wrong, tf.constant(1.0))]


def lists_and_what_surrounds(tf):
    amount = tf.Variable(2.0)

    @tf.function
    def scaled(xs):
        return {"sum": tf.add_n(xs) * amount, "parts": [x * amount for x in xs]}

    first = scaled([tf.constant([1.0]), tf.constant([2.0])])
    amount.assign(3.0)
    return [first, scaled([tf.constant([1.0]), tf.constant([2.0])])]


def loops_that_are_known(tf):
    @tf.function
    def f(x):
        for _ in range(3):
            x = tf.tanh(x) + 0.5
        return x

    return f(tf.constant([0.1, -0.3]))


def branches_and_loops_as_functions(tf):
    x = tf.constant(3.0)
    return [
        tf.cond(x > 2.0, lambda: x * 2.0, lambda: x - 1.0),
        tf.case([(x < 1.0, lambda: x), (x > 2.5, lambda: -x)], default=lambda: x * 0.0),
        tf.switch_case(tf.constant(1), [lambda: x + 1.0, lambda: x + 2.0]),
        tf.while_loop(
            lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (tf.constant(0), tf.constant(0))
        ),
        tf.map_fn(lambda row: tf.reduce_sum(row**2), tf.constant([[1.0, 2.0], [3.0, 4.0]])),
        tf.vectorized_map(lambda row: row * row[0], tf.constant([[1.0, 2.0], [3.0, 4.0]])),
        tf.scan(lambda a, b: a + b, tf.constant([1, 2, 3, 4])),
        tf.foldl(lambda a, b: a * 10 + b, tf.constant([1, 2, 3])),
        tf.foldr(lambda a, b: a * 10 + b, tf.constant([1, 2, 3])),
    ]


def eagerly_on_request(tf):
    said = []

    @tf.function
    def f(x):
        said.append(1)
        return x * 2

    tf.config.run_functions_eagerly(True)
    try:
        results = [f(tf.constant(1)), f(tf.constant(2))]
    finally:
        tf.config.run_functions_eagerly(False)
    return [results, len(said)]


def a_method(tf):
    class Weighted:
        def __init__(self):
            self.weight = tf.Variable(np.float32(1.5))

        @tf.function
        def evaluate(self, x):
            return x * self.weight

    one, other = Weighted(), Weighted()
    other.weight.assign(3.0)
    return [one.evaluate(tf.constant(2.0)), other.evaluate(tf.constant(2.0))]


def a_tensor_that_leaks(tf):
    kept = []

    @tf.function
    def leaky(x):
        kept.append(x + 1)
        return x

    leaky(tf.constant(1))
    return [
        error_of(lambda: kept[0].numpy()),
        error_of(lambda: kept[0] + 1),
        error_of(float, kept[0]),
    ]


def an_optimizer_as_an_argument(tf):
    """It makes its slots when the function is recorded."""
    optimizer = tf.keras.optimizers.Adam(learning_rate=1e-2)
    w, x, y = tf.Variable(2.0), tf.constant([-1.0]), tf.constant([2.0])

    @tf.function
    def step(w, x, y, optimizer):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(w * x - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w], strict=True))

    step(w, x, y, optimizer)
    return w.numpy()
