"""Trains a model on one to eight replicas in TensorFlow, for a notebook that draws the figures.

`python tests/support/tensorflow_replicas.py`, where TensorFlow is installed, writes them to
docs/notebooks/tensorflow-replicas.json. The replicas run on logical CPUs.
"""

import datetime
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).resolve().parents[2] / "docs/notebooks/tensorflow-replicas.json"
COUNTS = (1, 2, 4, 8)


def train(tf: Any, devices: list[str]) -> tuple[list[float], list[Any]]:
    """Return the loss of each epoch, and the weights at the end.

    Args:
        tf: TensorFlow, or mirrored.
        devices: A device per replica.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(503, 16)).astype("float32")
    y = x[:, :4].argmax(axis=1)
    kernels = [rng.normal(size=shape) / 4 for shape in ((16, 32), (32, 4))]
    with tf.distribute.MirroredStrategy(devices).scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Input((16,)),
                tf.keras.layers.Dense(32, activation="tanh"),
                tf.keras.layers.Dense(4),
            ]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.1), loss)
    model.set_weights([kernels[0], np.zeros(32), kernels[1], np.zeros(4)])
    history = model.fit(x, y, batch_size=96, epochs=10, shuffle=False, verbose=0)
    return history.history["loss"], model.get_weights()


def one_count(count: int) -> dict[str, Any]:
    """Return what TensorFlow does on a number of replicas; a process can do so once.

    Args:
        count: The number of replicas, each on a logical CPU.
    """
    import keras
    import tensorflow as tf

    cpus = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    tf.config.set_logical_device_configuration(cpus[0], logical)
    loss, weights = train(tf, [f"CPU:{i}" for i in range(count)])
    versions = (
        f"TensorFlow {tf.__version__}, Keras {keras.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}"
    )
    return {"versions": versions, "loss": loss, "weights": [weight.tolist() for weight in weights]}


def main() -> None:
    """Train on each number of replicas in a process of its own, and write the figures."""
    if len(sys.argv) > 1:
        print(json.dumps(one_count(int(sys.argv[1]))))
        return
    results = {}
    for count in COUNTS:
        command = [sys.executable, __file__, str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results[count] = json.loads(done.stdout.splitlines()[-1])
    figures = {
        "date": datetime.date.today().isoformat(),
        "versions": results[1]["versions"],
        "loss": {count: result["loss"] for count, result in results.items()},
        "weights_differ_by": {
            count: largest_difference(result["weights"], results[1]["weights"])
            for count, result in results.items()
        },
    }
    FILE.write_text(json.dumps(figures, indent=1) + "\n")


def largest_difference(weights: list[Any], others: list[Any]) -> float:
    """Return the largest difference between two models' weights."""
    pairs = zip(weights, others, strict=True)
    return max(float(np.abs(np.subtract(a, b)).max()) for a, b in pairs)


if __name__ == "__main__":
    main()
