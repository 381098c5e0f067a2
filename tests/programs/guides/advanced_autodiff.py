"""TensorFlow's guide "Advanced automatic differentiation"."""

import numpy as np


def recording_that_stops(tf):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * x
        with tape.stop_recording():
            z = z + y * y
    return tape.gradient(z, {"x": x, "y": y})


def a_tape_that_begins_anew(tf):
    x, y, reset = tf.Variable(2.0), tf.Variable(3.0), True
    with tf.GradientTape() as tape:
        z = y * y
        if reset:
            tape.reset()
        z = z + x * x
    return tape.gradient(z, {"x": x, "y": y})


def a_gradient_that_does_not_flow(tf):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * x + tf.stop_gradient(y * y)
    return tape.gradient(z, {"x": x, "y": y})


def gradients_of_ones_own(tf):
    @tf.custom_gradient
    def clipped(y):
        def backward(dy):
            return tf.clip_by_norm(dy, 0.5)

        return y, backward

    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def backward(dy):
            return dy * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), backward

    v, x = tf.Variable(2.0), tf.constant(100.0)
    with tf.GradientTape() as tape:
        output = clipped(v * v)
    with tf.GradientTape() as other:
        other.watch(x)
        y = log1pexp(x)
    return [tape.gradient(output, v), other.gradient(y, x)]


def two_tapes(tf):
    x0, x1 = tf.constant(0.0), tf.constant(0.0)
    with tf.GradientTape() as tape0, tf.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        both = tf.math.sin(x0) + tf.nn.sigmoid(x1)
    return [tape0.gradient(both, x0), tape1.gradient(both, x1)]


def gradients_of_gradients(tf):
    x = tf.Variable(1.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        first = inner.gradient(y, x)
    return [first, outer.gradient(first, x)]


def a_penalty_on_slopes(tf):
    x = tf.constant(np.linspace(-1, 1, 14, dtype=np.float32).reshape(7, 2))
    layer = tf.keras.layers.Dense(3, activation="relu")
    layer.build((7, 2))
    layer.set_weights([np.array([[1.0, -0.5, 0.25], [0.5, 1.0, -1.0]]), np.array([0.1, 0.2, 0.3])])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            out = tf.reduce_sum(layer(x) ** 2)
        slopes = inner.gradient(out, x)
        size = tf.norm(slopes)
    return [size, outer.gradient(size, layer.trainable_variables)]


def jacobians(tf):
    x, delta = tf.linspace(-10.0, 10.0, 21), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.nn.sigmoid(x + delta)
    by_scalar = tape.jacobian(y, delta)
    w = tf.Variable(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))
    x = tf.constant(np.linspace(0, 1, 20, dtype=np.float32).reshape(4, 5))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.relu(x @ w)
    slopes = tape.jacobian(y, w)
    same = tf.reduce_sum(slopes, axis=[0, 1]) - tape.gradient(y, w)
    return [by_scalar, slopes, tf.reduce_max(abs(same)) < 1e-5]


def a_hessian(tf):
    x = tf.Variable([0.5, -1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x**3) + x[0] * x[1] * x[2]
        slope = inner.gradient(y, x)
    hessian = outer.jacobian(slope, x)
    step = tf.linalg.solve(hessian + 10.0 * tf.eye(3), slope[..., tf.newaxis])
    return [hessian, step]


def a_jacobian_an_example(tf):
    x = tf.constant(np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2))
    layer = tf.keras.layers.Dense(3, activation="elu")
    layer.build((5, 2))
    layer.set_weights([np.array([[1.0, -0.5, 0.25], [0.5, 1.0, -1.0]]), np.array([0.1, 0.2, 0.3])])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = layer(x)
    return [tape.batch_jacobian(y, x), tape.jacobian(y, x)]
