"""Trains towers in a session of TensorFlow 1: a part of the batch on each GPU, averaged on the CPU.

The variables are on the CPU. MirroredStrategy, which needs none of this, ends at the same weights;
the GPUs are simulated where there are none.
"""

import argparse

import numpy as np

import mirrored as mr
import mirrored.compat.v1 as tf

STEPS, RATE, MOMENTUM, ROWS_A_TOWER = 100, 0.125, 0.5, 16


def parse_arguments() -> argparse.Namespace:
    """Return how many GPUs are to be simulated where there are none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--gpus", type=int, default=4, help="GPUs to simulate if there is no real one (default: 4)"
    )
    arguments = parser.parse_args()
    if arguments.gpus < 1:
        parser.error("--gpus must be 1 or more")
    return arguments


def make_data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points, and values to learn, in float64."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(rows, 3))
    return x, np.sin(x @ rng.normal(size=(3, 2)))


def tower_loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Return the mean squared error of a network over a part of the batch.

    Its operations are on the device of the scope that it is called in, its variables on the CPU.
    """

    def dense(inputs: tf.Tensor, units: int, name: str) -> tf.Tensor:
        with tf.variable_scope(name), tf.device("/cpu:0"):
            kernel = tf.get_variable("kernel", [inputs.shape[-1], units], tf.float64)
            bias = tf.get_variable("bias", [units], tf.float64, tf.zeros_initializer())
        return tf.matmul(inputs, kernel) + bias

    outputs = dense(tf.tanh(dense(x, 8, "hidden")), 2, "outputs")
    return tf.reduce_mean(tf.square(outputs - y))


def average(
    towers: list[list[tuple[tf.Tensor, tf.Variable]]],
) -> list[tuple[tf.Tensor, tf.Variable]]:
    """Return the mean of the towers' gradients of each variable, with the variable."""
    averaged = []
    for pairs in zip(*towers, strict=True):
        total = tf.add_n([gradient for gradient, _ in pairs])
        averaged.append((total / float(len(towers)), pairs[0][1]))
    return averaged


def train_towers(x: np.ndarray, y: np.ndarray, count: int) -> tuple[list[np.ndarray], ...]:
    """Train a tower on each of so many GPUs; return the weights before and after it."""
    with tf.device("/cpu:0"):
        xs, ys = tf.placeholder(tf.float64, x.shape), tf.placeholder(tf.float64, y.shape)
        optimizer = tf.train.MomentumOptimizer(RATE, MOMENTUM)
        parts = list(zip(tf.split(xs, count), tf.split(ys, count), strict=True))
    losses, towers = [], []
    for index, part in enumerate(parts):
        with tf.device(f"/gpu:{index}"), tf.name_scope(f"tower_{index}"):
            with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
                losses.append(tower_loss(*part))
            towers.append(optimizer.compute_gradients(losses[-1]))
    with tf.device("/cpu:0"):
        loss = tf.add_n(losses) / float(count)
        train = optimizer.apply_gradients(average(towers))

    feed = {xs: x, ys: y}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        variables = tf.trainable_variables()
        before = session.run(variables)
        print(f"loss before: {session.run(loss, feed):.6f}")
        for _ in range(STEPS):
            session.run(train, feed)
        print(f"loss after {STEPS} steps on {count} towers: {session.run(loss, feed):.6f}")
        return before, session.run(variables)


def train_mirrored(x: np.ndarray, y: np.ndarray, weights: list[np.ndarray]) -> list[np.ndarray]:
    """Train the same network from the same weights under MirroredStrategy; return its weights."""
    with mr.MirroredStrategy().scope():
        model = mr.Sequential(
            [mr.layers.Input((3,)), mr.layers.Dense(8, "tanh"), mr.layers.Dense(2)]
        )
        model.compile(mr.optim.SGD(RATE, momentum=MOMENTUM), "mse")
    model.set_weights(weights)
    model.fit(x, y, batch_size=len(x), epochs=STEPS, shuffle=False, verbose=0)
    return model.get_weights()


def main() -> None:
    """Train both, and print how far apart their weights are."""
    arguments = parse_arguments()
    if not mr.config.list_physical_devices("GPU"):
        print(f"No GPU here: simulating {arguments.gpus} in host memory.")
        mr.config.experimental.set_simulated_gpus(arguments.gpus)
    count = len(mr.config.list_logical_devices("GPU"))
    mr.keras.backend.set_floatx("float64")
    tf.set_random_seed(1)
    x, y = make_data(count * ROWS_A_TOWER)
    before, towers = train_towers(x, y, count)
    mirrored = train_mirrored(x, y, before)
    apart = max(abs(one - other).max() for one, other in zip(towers, mirrored, strict=True))
    print(f"largest difference from MirroredStrategy's weights: {apart:.1e}")


if __name__ == "__main__":
    main()
