"""Files of which bytes were changed by chance: readers raise documented errors, in little memory.

The seconds of the search are `MIRRORED_TEST_SECONDS` where it is marked long: an hour by default.
"""

import os
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr

_DOCUMENTED = (ValueError, TypeError, NotImplementedError, OSError)
_SPARE = 64 << 20


def _model() -> mr.Model:
    mr.keras.utils.set_random_seed(1)
    model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(4), mr.layers.Dense(2)])
    model.compile("adam", "mse")
    return model


_KINDS: dict[str, Callable[[mr.Model, str], Any]] = {
    "a.safetensors": lambda model, path: model.load_weights(path),
    "a.weights.h5": lambda model, path: model.load_weights(path),
    "a.keras": lambda model, path: mr.keras.models.load_model(path),
}


def _mutated(data: bytes, chance: random.Random) -> bytes:
    """Return bytes of which some were changed, left out, repeated or added."""
    new = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(new))
        kind = chance.randrange(4)
        if kind == 0:
            new[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del new[at : at + chance.choice((1, 8, 4096))]
        elif kind == 2:
            new[at : at + 8] = chance.choice((b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7))
        else:
            new[at:at] = new[at : at + chance.choice((1, 8, 64))]
        if not new:
            return b""
    return bytes(new)


def _search(name: str, folder: Path, seconds: float, most: int | None) -> None:
    model, path, chance = _model(), str(folder / name), random.Random(name)
    save = model.save if name.endswith(".keras") else model.save_weights
    save(path)
    data = Path(path).read_bytes()
    unpacked = sum(v.numpy().nbytes for v in [*model.variables, *model.optimizer.variables])
    _KINDS[name](model, path)
    end, done = time.monotonic() + seconds, 0
    tracemalloc.start()
    try:
        while time.monotonic() < end and done != most:
            Path(path).write_bytes(changed := _mutated(data, chance))
            before = [value.copy() for value in model.get_weights()]
            tracemalloc.reset_peak()
            try:
                _KINDS[name](model, path)
            except _DOCUMENTED:
                for value, expected in zip(model.get_weights(), before, strict=True):
                    np.testing.assert_array_equal(value, expected)
            peak = tracemalloc.get_traced_memory()[1]
            assert peak < _SPARE + 4 * unpacked, (done, changed)
            done += 1
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", _KINDS)
def test_changed_files_are_refused(name: str, tmp_path: Path) -> None:
    _search(name, tmp_path, 60.0, 60)


@pytest.mark.long
@pytest.mark.parametrize("name", _KINDS)
def test_changed_files_are_refused_for_long(name: str, tmp_path: Path) -> None:
    _search(name, tmp_path, float(os.environ.get("MIRRORED_TEST_SECONDS", "3600")), None)
