"""Reads damaged files of every format; as a program it searches for inputs by their coverage.

`python tests/support/fuzzed_readers.py FORMAT SECONDS FOLDER` needs the package `atheris`, and
keeps what it found in the folder.
"""

import os
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import mirrored as mr
from mirrored.errors import WeightsFileError

MOST_MEMORY = 64 << 20  # Bytes that a reader may take, in addition to four times the file's.


class Format(NamedTuple):
    """How files of a format are written and read."""

    ending: str
    write: Callable[[mr.Model, str], object]
    read: Callable[[mr.Model, str], object]


def _checkpoint(model: mr.Model, path: str) -> None:
    mr.train.Checkpoint(model=model).write(path)


def _restore(model: mr.Model, path: str) -> None:
    mr.train.Checkpoint(model=model).restore(path).expect_partial()


FORMATS = {
    "safetensors": Format(".safetensors", mr.Model.save_weights, mr.Model.load_weights),
    "h5": Format(".weights.h5", mr.Model.save_weights, mr.Model.load_weights),
    "checkpoint": Format("", _checkpoint, _restore),
    "keras": Format(".keras", mr.Model.save, lambda _, path: mr.keras.models.load_model(path)),
}


class Reader:
    """Reads files of a format into a small model, and checks what that does.

    Args:
        name: The format.
    """

    def __init__(self, name: str) -> None:
        self.format = FORMATS[name]
        mr.random.set_seed(3)
        layers = [mr.layers.Dense(3, "relu"), mr.layers.BatchNormalization(), mr.layers.Dense(1)]
        self.model = mr.Sequential([mr.layers.Input((2,)), *layers])
        self.model.compile("adam", "mse")
        self.model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
        self._before = self._bits(self.model)
        self._folder = tempfile.mkdtemp()
        self._path = os.path.join(self._folder, f"file{self.format.ending}")
        self.format.write(self.model, self._path)
        self.whole = Path(self._path).read_bytes()
        self.read_count = 0

    def _bits(self, model: mr.Model) -> list[bytes]:
        return [weight.tobytes() for weight in model.get_weights()]

    def read(self, data: bytes) -> None:
        """Read a file of these bytes; AssertionError where it does what it must not."""
        Path(self._path).write_bytes(data)
        tracemalloc.start()
        try:
            read = self.format.read(self.model, self._path)
            self.read_count += 1
            new = read if isinstance(read, mr.Model) else self.model
            assert self._bits(new) == self._before, "other weights were read"
        except WeightsFileError:
            assert self._bits(self.model) == self._before, "an error has changed the weights"
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        self.model.set_weights(
            [
                np.frombuffer(bits, np.float32).reshape(weight.shape)
                for bits, weight in zip(self._before, self.model.weights, strict=True)
            ]
        )
        assert peak <= MOST_MEMORY + 4 * len(data), f"{peak} bytes for a file of {len(data)}"


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with a few random changes: of bits, bytes, lengths, parts and the end."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, max(1, len(changed))))
        size = int(rng.integers(1, 17))
        kind = int(rng.integers(0, 6))
        if kind == 0 and changed:
            changed[place % len(changed)] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            changed[place : place + size] = rng.bytes(size)
        elif kind == 2:
            del changed[place : place + size]
        elif kind == 3:
            source = int(rng.integers(0, max(1, len(changed))))
            changed[place:place] = changed[source : source + size]
        elif kind == 4:
            changed[place : place + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"9" * 8]).ljust(8)
        else:
            del changed[place:]
    return bytes(changed)


def main(name: str, seconds: str, folder: str) -> None:
    """Search for inputs of a format that do what they must not."""
    import atheris

    reader = Reader(name)
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "whole").write_bytes(reader.whole)

    def test(data: bytes) -> None:
        reader.read(data)

    atheris.instrument_all()
    options = [f"-max_total_time={seconds}", "-timeout=20", "-max_len=65536", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], folder, *options], test)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
