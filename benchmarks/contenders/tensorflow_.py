"""Keras on TensorFlow: plain on one device, in MirroredStrategy's scope on several.

The devices are logical CPUs. The data are batches in memory, of which only the order is shuffled:
less work than the rows of arrays, and faster than what Keras makes of these.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import keras
import tensorflow as tf

from benchmarks.contenders import protocol
from benchmarks.workloads import Array, Workload, initial_weights


class TensorFlow:
    """A compiled Keras model, with Keras' default of compiling where it judges it worth it."""

    def __init__(self, workload: Workload, replicas: int) -> None:
        """Build it, with the initial weights."""
        self.workload = workload
        tf.config.set_visible_devices([], "GPU")
        scope: Any = contextlib.nullcontext()
        if replicas > 1:
            (cpu,) = tf.config.list_physical_devices("CPU")
            parts = [tf.config.LogicalDeviceConfiguration()] * replicas
            tf.config.set_logical_device_configuration(cpu, parts)
            scope = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)]).scope()
        with scope:
            inputs = outputs = keras.Input(shape=(workload.sizes[0],))
            for size in workload.sizes[1:-1]:
                outputs = keras.layers.Dense(size, activation=workload.activation)(outputs)
            self.model = keras.Model(inputs, keras.layers.Dense(workload.sizes[-1])(outputs))
            self.model.compile(
                optimizer=keras.optimizers.SGD(workload.learning_rate, momentum=workload.momentum),
                loss="mse"
                if workload.loss == "mse"
                else keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
            self.model.set_weights(initial_weights(workload))

    def load(self, x: Array, y: Array) -> Any:
        """Return a dataset of batches, or arrays where they do not divide into batches."""
        size = self.workload.batch
        steps, rest = divmod(len(x), size)
        if rest:
            return x, y
        batches = [each.reshape(steps, size, *each.shape[1:]) for each in (x, y)]
        return tf.data.Dataset.from_tensor_slices(tuple(batches))

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train, and return the loss of each epoch."""
        if isinstance(data, tuple):
            x, y = data
            options = {"x": x, "y": y, "batch_size": self.workload.batch, "shuffle": shuffle}
        else:
            options = {"x": data.shuffle(len(data)) if shuffle else data}
        history = self.model.fit(epochs=epochs, verbose=0, **options)
        return [float(each) for each in history.history["loss"]]

    def weights(self) -> list[Array]:
        """Return kernel and bias of each layer."""
        return list(self.model.get_weights())


def facts() -> dict[str, Any]:
    """Return versions and what the products run on."""
    return {
        "version": tf.__version__,
        "keras": keras.__version__,
        "blas": "Eigen and oneDNN, TensorFlow's own pool of threads",
    }


if __name__ == "__main__":
    protocol.run(TensorFlow, facts)
