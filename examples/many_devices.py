"""Trains a small network on four devices; one_device.py is the same script on one.

Compare them with ``diff examples/one_device.py examples/many_devices.py``.
"""

import argparse

import numpy as np

import mirrored as mr

argparse.ArgumentParser(description=__doc__).parse_args()  # It takes --help alone.

mr.config.experimental.set_simulated_gpus(4)  # Leave this out where there are real ones.


def build_model() -> mr.Model:
    """Return a compiled network that tells which of four quadrants a point is in."""
    inputs = mr.layers.Input(shape=(2,))
    hidden = mr.layers.Dense(32, activation="tanh")(inputs)
    outputs = mr.layers.Dense(4, activation="softmax")(hidden)
    model = mr.Model(inputs, outputs)
    model.compile(
        optimizer=mr.optim.SGD(learning_rate=0.2, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


mr.random.set_seed(1)
points = np.random.default_rng(1).uniform(-1.0, 1.0, size=(1001, 2)).astype(np.float32)
quadrants = 2 * (points[:, 0] > 0) + (points[:, 1] > 0)

with mr.MirroredStrategy().scope():
    model = build_model()

model.fit(points, quadrants, batch_size=64, epochs=5, verbose=0)
loss, accuracy = model.evaluate(points, quadrants, verbose=0)
weights = np.concatenate([weight.ravel() for weight in model.get_weights()])
print(f"loss {loss:.5f}, accuracy {accuracy:.3f}, weights' norm {np.linalg.norm(weights):.4f}")
