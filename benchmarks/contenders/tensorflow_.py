"""Keras on TensorFlow: plain on one device, in MirroredStrategy's scope on several logical CPUs.

It runs in two forms: arrays given to `fit`, as most programs are written, and the fastest that was
found, datasets that hold each replica's batches in memory and never end.
"""

import contextlib
import functools
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import keras
import tensorflow as tf

from benchmarks.contenders import protocol
from benchmarks.workloads import Array, Layer, Workload, initial_weights


class TensorFlow:
    """A compiled Keras model, with Keras' default of compiling where it judges it worth it.

    Args:
        workload: What is trained.
        replicas: On how many logical CPUs.
        arrays: Whether `fit` is given arrays, which it shuffles, batches and distributes itself.
    """

    def __init__(self, workload: Workload, replicas: int, arrays: bool) -> None:
        """Build it, with the initial weights."""
        self.workload, self.replicas, self.arrays = workload, replicas, arrays
        tf.config.set_visible_devices([], "GPU")
        scope: Any = contextlib.nullcontext()
        if replicas > 1:
            (cpu,) = tf.config.list_physical_devices("CPU")
            parts = [tf.config.LogicalDeviceConfiguration()] * replicas
            tf.config.set_logical_device_configuration(cpu, parts)
            # The default all-reduce is slower between logical CPUs.
            reduction = None if arrays else tf.distribute.ReductionToOneDevice()
            self._strategy = tf.distribute.MirroredStrategy(
                [f"CPU:{i}" for i in range(replicas)], cross_device_ops=reduction
            )
            scope = self._strategy.scope()
        with scope:
            inputs = outputs = keras.Input(shape=workload.shape)
            for layer in workload.layers[:-1]:
                outputs = self._hidden_layer(layer, outputs)
            outputs = keras.layers.Dense(workload.sizes[-1])(flat(outputs))
            self.model = keras.Model(inputs, outputs)
            self.model.compile(
                optimizer=make_optimizer(workload),
                loss="mse"
                if workload.loss == "mse"
                else keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            )
            kinds = (keras.layers.Dense, keras.layers.Conv2D)
            weighted = [layer for layer in self.model.layers if isinstance(layer, kinds)]
            weights = initial_weights(workload)
            for index, target in enumerate(weighted):
                target.set_weights(weights[2 * index : 2 * index + 2])

    def _hidden_layer(self, layer: Layer, inputs: Any) -> Any:
        workload = self.workload
        activation = None if workload.normalized else workload.activation
        if layer.convolves:
            convolve = keras.layers.Conv2D(
                layer.outputs, 3, padding=workload.padding, activation=activation
            )
            outputs = convolve(inputs)
        else:
            outputs = keras.layers.Dense(layer.outputs, activation=activation)(flat(inputs))
        if workload.normalized:
            # On one device `synchronized` finds no strategy to ask.
            normalize = keras.layers.BatchNormalization(synchronized=self.replicas > 1)
            outputs = keras.layers.Activation(workload.activation)(normalize(outputs))
        return keras.layers.MaxPooling2D()(outputs) if layer.pooled else outputs

    def load(self, x: Array, y: Array) -> Any:
        """Return arrays, or the arguments of `fit` with the data in and out of order."""
        if self.arrays or len(x) % self.workload.batch:
            return x, y
        return {
            shuffle: {
                "x": self._dataset(x, y, shuffle),
                "steps_per_epoch": len(x) // self.workload.batch,
            }
            for shuffle in (False, True)
        }

    def _dataset(self, x: Array, y: Array, shuffle: bool) -> Any:
        """Return batches without end. Only their order is shuffled, which is less than rows."""
        size = self.workload.batch // self.replicas
        batches = tuple(array.reshape(-1, size, *array.shape[1:]) for array in (x, y))
        dataset = tf.data.Dataset.from_tensor_slices(batches)
        if shuffle:
            dataset = dataset.shuffle(len(dataset))
        dataset = dataset.repeat()
        if self.replicas == 1:
            return dataset
        # One after the other: each replica takes the next one.
        return self._strategy.distribute_datasets_from_function(lambda context: dataset)

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train, and return the loss of each epoch."""
        if isinstance(data, tuple):
            x, y = data
            options = {"x": x, "y": y, "batch_size": self.workload.batch, "shuffle": shuffle}
        else:
            options = data[shuffle]
        history = self.model.fit(epochs=epochs, verbose=0, **options)
        return [float(loss) for loss in history.history["loss"]]

    def weights(self) -> list[Array]:
        """Return kernel and bias of each layer."""
        return list(self.model.get_weights())


def flat(inputs: Any) -> Any:
    """Return a row for each example."""
    return keras.layers.Flatten()(inputs) if len(inputs.shape) > 2 else inputs


def make_optimizer(workload: Workload) -> Any:
    """Return a workload's optimizer."""
    if workload.optimizer == "adam":
        return keras.optimizers.Adam(workload.learning_rate)
    return keras.optimizers.SGD(workload.learning_rate, momentum=workload.momentum)


def facts() -> dict[str, Any]:
    """Return versions and what the products run on."""
    return {
        "version": tf.__version__,
        "keras": keras.__version__,
        "blas": "Eigen and oneDNN, TensorFlow's own pool of threads",
    }


if __name__ == "__main__":
    arrays = protocol.parse_arguments().arrays
    protocol.run(functools.partial(TensorFlow, arrays=arrays), facts)
