"""Reads damaged files of every format; as a program it searches for inputs by their coverage.

`python tests/support/fuzzed_readers.py FORMAT SECONDS FOLDER` needs the package `atheris`, and
keeps what it found in the folder.
"""

import json
import os
import resource
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import file_parts
import numpy as np
from file_parts import ARCHIVE, HDF5, TENSORS, Layout

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.layers.layer import walk
from mirrored.training.files.checkpoint_state import collect, find_parts
from mirrored.training.files.keras_weights import _state_of, places
from mirrored.training.files.tensor_tree import named_weights

MOST_MEMORY = 64 << 20  # Bytes that a reader may take, in addition to four times the file's.
Variables = Mapping[str, Any]


class Format(NamedTuple):
    """How files of a format are written and read.

    Attributes:
        ending: Of the files' names.
        layout: Their parts.
        write: Writes the objects of a checkpoint, or its model.
        read: Reads into the objects, or returns a new model.
        variables: What is read, by the names in files.
        errors: What a file may raise whose checksums fit.
    """

    ending: str
    layout: Layout
    write: Callable[[Any, str], object]
    read: Callable[[Any, str], object]
    variables: Callable[[Any], Variables]
    errors: tuple[type[Exception], ...] = (WeightsFileError,)


def _in_hdf5(model: mr.Model) -> Variables:
    return {
        f"{place.path}/vars/{number}".lstrip("/"): variable
        for place in places(model)
        for number, variable in enumerate(_state_of(place.owner, model))
    }


FORMATS = {
    "safetensors": Format(
        *(".safetensors", TENSORS, lambda owner, path: owner.model.save_weights(path)),
        lambda owner, path: owner.model.load_weights(path),
        lambda owner: named_weights(walk(owner.model)),
    ),
    "checkpoint": Format(
        *("", TENSORS, mr.train.Checkpoint.write),
        lambda owner, path: owner.restore(path).expect_partial() and None,
        lambda owner: collect(find_parts(owner.held()))[0],
    ),
    "h5": Format(
        *(".weights.h5", HDF5, lambda owner, path: owner.model.save_weights(path)),
        lambda owner, path: owner.model.load_weights(path),
        lambda owner: _in_hdf5(owner.model),
    ),
    "keras": Format(
        *(".keras", ARCHIVE, lambda owner, path: owner.model.save(path)),
        lambda _, path: mr.keras.models.load_model(path),
        lambda owner: _in_hdf5(owner.model),
        (TypeError, ValueError),
    ),
    "weights in keras": Format(
        *(".keras", ARCHIVE, lambda owner, path: owner.model.save(path)),
        lambda owner, path: owner.model.load_weights(path),
        lambda owner: _in_hdf5(owner.model),
    ),
}


def _objects() -> mr.train.Checkpoint:
    mr.random.set_seed(3)
    model = mr.Sequential(
        [
            mr.layers.Input((2,)),
            mr.layers.Dense(3, "relu"),
            mr.layers.BatchNormalization(),
            mr.layers.Dropout(0.5),
            mr.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    numbers = iter(mr.data.Dataset.range(9).shuffle(3).repeat())
    next(numbers)
    step = mr.Variable(5)
    return mr.train.Checkpoint(model=model, numbers=numbers, step=step, same=[step])


class Reader:
    """Reads files of a format into a small model, and checks what that does.

    Args:
        name: The format.
    """

    def __init__(self, name: str) -> None:
        self.format = FORMATS[name]
        self._all = _objects()
        folder = tempfile.mkdtemp()
        self._good, self._path = (
            os.path.join(folder, f"{part}{self.format.ending}") for part in ("good", "file")
        )
        self.format.write(self._all, self._good)
        self.whole = Path(self._good).read_bytes()
        self.parts = self.format.layout.unpack(self.whole)
        self.read_count = 0
        self._before = self._bits()

    def _bits(self, model: Any = None) -> dict[str, bytes]:
        named = _in_hdf5(model) if model is not None else self.format.variables(self._all)
        return {name: np.asarray(variable).tobytes() for name, variable in named.items()}

    def damaged(self, rng: np.random.Generator) -> tuple[bytes, bool]:
        """Return a damaged file, and whether it is damaged behind its checksums."""
        if rng.random() < 0.4:
            return file_parts.damaged(self.whole, rng), False
        return self.format.layout.pack(file_parts.damaged_behind(self.parts, rng)), True

    def read_both(self, data: bytes) -> None:
        """Read a file as it is, and with checksums that fit; in both cases they may do so."""
        self.read(data, fits=True)
        try:
            packed = self.format.layout.pack(self.format.layout.unpack(data))
        except (ValueError, OverflowError):
            return
        self.read(packed, fits=True)

    def read(self, data: bytes, fits: bool = False) -> None:
        """Read a file of these bytes; AssertionError where it does what it must not.

        Args:
            data: The bytes.
            fits: Whether checksums were computed of what is in it.
        """
        Path(self._path).write_bytes(data)
        new, errors = None, self.format.errors if fits else (WeightsFileError,)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()
        try:
            new = self.format.read(self._all, self._path)
            self.read_count += 1
        except errors:
            assert self._bits() == self._before, "an error has changed the state"
            return
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            most = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most) << 10
            limit = MOST_MEMORY + 4 * len(data)
            assert max(peak, most) <= limit, f"{peak} and {most} bytes for a file of {len(data)}"
        if fits or (self.format.layout is TENSORS and "crc32" not in file_parts.texts_of(data)):
            self._check(data, new)
        else:
            assert self._bits(new) == self._before, "other weights were read"
        if new is None and self._bits() != self._before:
            self.format.read(self._all, self._good)
            assert self._bits() == self._before, "the good file is not read again"

    def _check(self, data: bytes, new: Any) -> None:
        """Compare what was read with what the file holds."""
        texts = file_parts.texts_of(data) if self.format.layout is TENSORS else {}
        aliases = json.loads(texts.get("aliases", "{}"))
        named = _in_hdf5(new) if new is not None else self.format.variables(self._all)
        held = self.format.layout.values(data, named)
        for name, variable in named.items():
            if new is not None and "optimizer" in name:  # Its kind may be another one.
                continue
            array = np.asarray(variable)
            with np.errstate(all="ignore"):
                bits = [
                    held[key].astype(array.dtype).tobytes()
                    for key in (name, aliases.get(name))
                    if key in held
                ]
            # Optimizers of other lengths are left out, and so is what a checkpoint lacks, or has
            # for another object.
            lacks = self.format.ending == "" and (name not in held or name in aliases.values())
            if "optimizer" in name or lacks:
                bits += [self._before.get(name, b""), bytes(array.nbytes)]
            assert array.tobytes() in bits, f"{name} is {array}, in a file with {bits}"


def main(name: str, seconds: str, folder: str) -> None:
    """Search for inputs of a format that do what they must not."""
    import atheris

    reader = Reader(name)
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "whole").write_bytes(reader.whole)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        return reader.damaged(rng)[0][:most]

    atheris.instrument_all()
    options = [f"-max_total_time={seconds}", "-timeout=20", "-max_len=65536", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], folder, *options], reader.read_both, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
