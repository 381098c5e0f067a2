"""TensorFlow's guide "Introduction to gradients and automatic differentiation"."""

import numpy as np


def a_scalar(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x**2
    return tape.gradient(y, x)


def a_layer_by_hand(tf):
    w = tf.Variable([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], name="w")
    b = tf.Variable(tf.zeros(2, dtype=tf.float32), name="b")
    x = [[1.0, 2.0, 3.0]]
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean((x @ w + b) ** 2)
    as_list, as_dict = tape.gradient(loss, [w, b]), tape.gradient(loss, {"w": w, "b": b})
    return [loss, as_list, as_dict]


def a_layer(tf):
    layer = tf.keras.layers.Dense(2, activation="relu")
    x = tf.constant([[1.0, 2.0, 3.0]])
    layer.build((1, 3))
    layer.set_weights([np.array([[0.5, -1.0], [0.25, 0.5], [1.0, -1.0]]), np.array([0.0, 0.5])])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(layer(x) ** 2)
    return tape.gradient(loss, layer.trainable_variables)


def what_is_watched(tf):
    one, two = tf.Variable(3.0, name="one"), tf.Variable(3.0, name="two", trainable=False)
    three, four = tf.Variable(2.0, name="three") + 1.0, tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = (one**2) + (two**2) + (three**2) + (four**2)
    return [
        tape.gradient(y, [one, two, three, four]),
        [each.name.split(":")[0] for each in tape.watched_variables()],
    ]


def a_watched_constant(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2
    return tape.gradient(y, x)


def watching_nothing_else(tf):
    one, two = tf.Variable(0.0), tf.Variable(10.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(two)
        total = tf.reduce_sum(tf.math.sin(one) + tf.nn.softplus(two))
    return tape.gradient(total, {"one": one, "two": two})


def what_is_in_between(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    return tape.gradient(z, y)


def more_than_once(tf):
    x = tf.constant([1, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    return [tape.gradient(z, x), tape.gradient(y, x)]


def targets_that_are_no_scalars(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = x**2, 1 / x
        both = x * [3.0, 4.0]
    many = tf.linspace(-10.0, 10.0, 21)
    with tf.GradientTape() as other:
        other.watch(many)
        sigmoid = tf.nn.sigmoid(many)
    slopes = [tape.gradient({"y": y, "z": z}, x), tape.gradient(both, x)]
    return [slopes, other.gradient(sigmoid, many)]


def python_decides(tf):
    x = tf.constant(1.0)
    v0, v1 = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = v0 if x > 0.0 else v1**2
    return [tape.gradient(result, [v0, v1]), tape.gradient(result, x)]


def no_gradient(tf):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = y * y
        again = tf.reduce_mean(np.square(x.numpy())) + 0.0 * y
        whole = tf.cast(x, tf.int32) * 3
    return [
        tape.gradient(z, x),
        tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO),
        tape.gradient(again, x),
        tape.gradient(tf.cast(whole, tf.float32), x),
    ]


def a_variable_that_becomes_a_tensor(tf):
    x, slopes = tf.Variable(2.0), []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x + 1
        slopes.append(tape.gradient(y, x))
        x = x + 1
    return slopes
