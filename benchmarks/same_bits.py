"""One training with a fixed number of replicas on several numbers of devices: a hash of each run.

`python -m benchmarks.same_bits` prints the table of docs/explanation/n-equals-one.md. A hash is of
the weights, the optimizer's variables, the history and predictions. It depends on the BLAS and the
processor; that it is the same for all devices and executors does not.
"""

import argparse
import hashlib
import logging
from collections.abc import Iterator, Sequence

import numpy as np

import mirrored as mr
from benchmarks.contenders.blas import blas_facts

REPLICAS = 8
_X = np.random.default_rng(0).normal(size=(200, 10, 10, 1)).astype(np.float32)
_HOW = ("one thread", "a thread per core", "run_eagerly")
_Y = _X.reshape(200, 100)[:, :10].argmax(axis=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 3, 4, 5, 8])
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args(arguments)
    logging.getLogger("mirrored").setLevel(logging.WARNING)
    print(f"NumPy {np.__version__}, {blas_facts()}\n")
    print(f"| policy | devices | {' | '.join(_HOW)} |")
    print(f"| --- | ---: {'| --- ' * len(_HOW)}|")
    for cells in rows(options.devices, options.epochs):
        print(f"| {' | '.join(cells)} |", flush=True)


def rows(devices: Sequence[int], epochs: int) -> Iterator[list[str]]:
    """Yield the cells of each row."""
    for policy in ("float32", "mixed_bfloat16"):
        for count in devices:
            hashes = [_train(count, how, policy, epochs) for how in _HOW]
            yield [policy, str(count), *hashes]


def _train(count: int, how: str, policy: str, epochs: int) -> str:
    mr.config.experimental.reset_devices()
    mr.config.experimental.set_simulated_gpus(count)
    mr.keras.utils.set_random_seed(1)
    executor = "threads" if how == "a thread per core" else "serial"
    options = {"dtype": policy}
    with mr.MirroredStrategy(executor=executor, replicas=REPLICAS).scope():
        model = mr.keras.Sequential(
            [
                mr.layers.Input((10, 10, 1)),
                mr.layers.Conv2D(8, 3, activation="relu", kernel_regularizer="l2", **options),
                mr.layers.BatchNormalization(**options),
                mr.layers.Flatten(),
                mr.layers.Dropout(0.5, **options),
                mr.layers.Dense(10, activation="softmax"),
            ]
        )
        optimizer = mr.optim.Adam(0.01, global_clipnorm=1.0)
        loss = "sparse_categorical_crossentropy"
        model.compile(optimizer, loss, metrics=["accuracy"], run_eagerly=how == "run_eagerly")
    history = model.fit(_X, _Y, batch_size=63, epochs=epochs, verbose=0)
    total = hashlib.sha256(repr(history.history).encode())
    for variable in (*model.weights, *optimizer.variables):
        total.update(np.ascontiguousarray(variable.numpy()).tobytes())
    total.update(model.predict(_X, batch_size=63, verbose=0).tobytes())
    return total.hexdigest()[:10]


if __name__ == "__main__":
    main()
