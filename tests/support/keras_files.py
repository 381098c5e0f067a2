"""Writes files with Keras itself, for the tests that read them without it.

    KERAS_BACKEND=numpy python tests/support/keras_files.py

It needs the packages keras and jax. `outputs.json` has what the models make of the same inputs,
before and after a step; `optimizers.json` what optimizers keep, in the order of Keras' files.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_suffix("")


def _pack(save: Callable[[Path], Any], path: Path) -> None:
    """Write a file, compressed: HDF5 takes much room for little groups."""
    save(path)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def unpacked(name: str, folder: Path) -> Path:
    """Return a file of Keras', brought to a folder."""
    path = folder / name
    path.write_bytes(gzip.decompress((FOLDER / f"{name}.gz").read_bytes()))
    return path


def main() -> None:
    """Write all files anew."""
    import keras
    import keras_models
    import numpy as np

    FOLDER.mkdir(exist_ok=True)
    numbers = {}
    for name in keras_models.MODELS:
        keras.utils.set_random_seed(0)
        model = keras_models.compiled(name, keras)
        _pack(model.save_weights, FOLDER / f"{name}.weights.h5")
        if name == "zoo":
            _pack(model.save, FOLDER / f"{name}.keras")
        before = model.predict(keras_models.inputs_of(name), verbose=0)
        keras_models.step(model, 3)
        after = model.predict(keras_models.inputs_of(name), verbose=0)
        numbers[name] = {"before": before.tolist(), "after": after.tolist()}
    (FOLDER / "outputs.json").write_text(f"{json.dumps(numbers)}\n")
    orders = {}
    for name, optimizer in keras_models.optimizers(keras).items():
        model = keras_models.dense(keras, optimizer)
        orders[name] = [np.asarray(each).tolist() for each in model.optimizer.variables]
    (FOLDER / "optimizers.json").write_text(f"{json.dumps(orders)}\n")


if __name__ == "__main__":
    main()
