"""TensorFlow's guides of its core API: regressions, a perceptron, a factorization, optimizers."""

import numpy as np

ROWS = np.array([[np.sin(3 * i + j) for j in range(4)] for i in range(24)], np.float32)
TARGET = (ROWS @ np.array([1.0, -2.0, 0.5, 3.0], np.float32) + 0.3)[:, None]
LABELS = (TARGET[:, 0] > 0).astype(np.float32)


def normalized(tf):
    mean, std = tf.math.reduce_mean(ROWS, axis=0), tf.math.reduce_std(ROWS, axis=0)
    return [mean, std, (ROWS - mean) / std]


def a_linear_regression(tf):
    class Linear(tf.Module):
        def __init__(self):
            self.w, self.b = tf.Variable(tf.zeros([4, 1])), tf.Variable(tf.zeros([1]))

        @tf.function
        def __call__(self, x):
            return tf.add(tf.matmul(x, self.w), self.b)

    model, losses = Linear(), []
    data = tf.data.Dataset.from_tensor_slices((ROWS, TARGET)).batch(8)
    for _ in range(5):
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.math.squared_difference(model(x), y))
            slopes = tape.gradient(loss, [model.w, model.b])
            for slope, variable in zip(slopes, [model.w, model.b], strict=True):
                variable.assign_sub(0.1 * slope)
        losses.append(loss)
    return [losses, model(ROWS[:3])]


def a_logistic_regression(tf):
    w, b = tf.Variable(np.linspace(-0.1, 0.1, 4, dtype=np.float32)[:, None]), tf.Variable([[0.0]])
    losses = []
    for _ in range(6):
        with tf.GradientTape() as tape:
            z = tf.squeeze(tf.matmul(ROWS, w) + b, axis=1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(LABELS, z))
        for slope, variable in zip(tape.gradient(loss, [w, b]), [w, b], strict=True):
            variable.assign_sub(0.5 * slope)
        losses.append(loss)
    chosen = tf.cast(tf.squeeze(tf.sigmoid(ROWS @ w + b), 1) > 0.5, tf.float32)
    confusion = tf.math.confusion_matrix(tf.cast(LABELS, tf.int32), tf.cast(chosen, tf.int32))
    return [losses, tf.reduce_mean(tf.cast(tf.equal(chosen, LABELS), tf.float32)), confusion]


def a_perceptron(tf):
    classes = (np.arange(24) % 3).astype(np.int64)
    shapes = [(4, 6), (6, 3)]
    weights = [
        tf.Variable(np.cos(np.arange(a * b, dtype=np.float32)).reshape(a, b)) for a, b in shapes
    ]
    biases = [tf.Variable(tf.zeros(b)) for _, b in shapes]
    losses, optimizer = [], tf.keras.optimizers.Adam(0.05)
    for _ in range(5):
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(ROWS @ weights[0] + biases[0]) @ weights[1] + biases[1]
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
            )
        pairs = zip(tape.gradient(loss, weights + biases), weights + biases, strict=True)
        optimizer.apply_gradients(pairs)
        losses.append(loss)
    right = tf.equal(classes, tf.argmax(tf.nn.softmax(logits), axis=1))
    return [losses, tf.reduce_mean(tf.cast(right, tf.float32))]


def a_matrix_of_low_rank(tf):
    s, u, v = tf.linalg.svd(ROWS)
    kept = tf.matmul(u[:, :2] * s[:2], v[:, :2], transpose_b=True)
    by_einsum = tf.einsum("s,us,vs->uv", s[:2], u[:, :2], v[:, :2])
    share = tf.math.cumsum(s**2) / tf.reduce_sum(s**2)
    return [s, kept, tf.norm(by_einsum - kept) < 1e-4, share, tf.norm(ROWS - kept)]


def optimizers_of_ones_own(tf):
    class Momentum(tf.Module):
        def __init__(self, rate=1e-2, momentum=0.5):
            self.rate, self.momentum, self.change = rate, momentum, 0.0

        def apply(self, slopes, variables):
            for slope, variable in zip(slopes, variables, strict=True):
                self.change = self.rate * slope + self.momentum * self.change
                variable.assign_sub(self.change)

    class Adam(tf.Module):
        def __init__(self):
            self.step, self.m, self.v = 1, None, None

        def apply(self, slopes, variables):
            if self.m is None:
                self.m = [tf.Variable(tf.zeros(each.shape)) for each in variables]
                self.v = [tf.Variable(tf.zeros(each.shape)) for each in variables]
            for i, (slope, variable) in enumerate(zip(slopes, variables, strict=True)):
                self.m[i].assign(0.9 * self.m[i] + 0.1 * slope)
                self.v[i].assign(0.999 * self.v[i] + 0.001 * tf.pow(slope, 2))
                m = self.m[i] / (1.0 - tf.pow(0.9, self.step))
                v = self.v[i] / (1.0 - tf.pow(0.999, self.step))
                variable.assign_sub(0.2 * m / (tf.sqrt(v) + 1e-7))
            self.step = self.step + 1

    found = []
    for optimizer in (Momentum(), Adam()):
        x = tf.Variable(2.0)
        for _ in range(8):
            with tf.GradientTape() as tape:
                loss = 2 * (x**4) + 3 * (x**3) + 2
            optimizer.apply([tape.gradient(loss, x)], [x])
            found.append(tf.convert_to_tensor(x))
    return found
