"""Weights files that are missing, spoilt or of another model.

The error names the file, the model keeps its weights, and the good file still loads.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mirrored as mr
from mirrored.errors import WeightsFileError

CLASSES = 3


def _cut(part: float) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])


def _flip(position: int) -> Callable[[Path], Any]:
    """Return a function that flips a bit of the byte at `position`, counted from the end."""

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(data)

    return flip


def _of(*layers: Callable[[], mr.layers.Layer], features: int = 5) -> Callable[[Path], Any]:
    """Return a function that writes the weights of another model."""

    def write(path: Path) -> None:
        model = mr.Sequential([mr.layers.Input(shape=(features,)), *(make() for make in layers)])
        model.save_weights(path)

    return write


def dense(units: int, **options: Any) -> Callable[[], mr.layers.Layer]:
    return lambda: mr.layers.Dense(units, **options)


CORRUPT = "truncated, corrupt, or not in the safetensors format"
ANOTHER = "belongs to another model: "
FILES: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "empty": (_cut(0), WeightsFileError, CORRUPT),
    "truncated in the header": (_cut(0.1), WeightsFileError, CORRUPT),
    "truncated in the data": (_cut(0.9), WeightsFileError, CORRUPT),
    "a byte short": (
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        WeightsFileError,
        CORRUPT,
    ),
    "a flipped bit": (_flip(-3), WeightsFileError, "is corrupt: the checksum of"),
    "a flipped bit in the header": (_flip(9), WeightsFileError, "weights file"),
    "text": (lambda path: path.write_text("hello"), WeightsFileError, CORRUPT),
    "NumPy's format": (
        lambda path: path.write_bytes(b"\x93NUMPY\x01\x00" + bytes(120)),
        WeightsFileError,
        CORRUPT,
    ),
    "fewer layers": (_of(dense(4)), WeightsFileError, f"{ANOTHER}no '2.dense.kernel'"),
    "more layers": (
        _of(dense(4), dense(CLASSES), dense(1)),
        WeightsFileError,
        "unexpected '3.dense.bias'",
    ),
    "other shapes": (
        _of(dense(4), dense(CLASSES), features=6),
        WeightsFileError,
        "'1.dense.kernel' has shape (6, 4), the model's has (5, 4)",
    ),
    "other dtypes": (
        _of(dense(4, dtype="float64"), dense(CLASSES)),
        WeightsFileError,
        "is float64, the model's is float32",
    ),
    "a folder": (
        lambda path: (path.unlink(), path.mkdir()),
        WeightsFileError,
        "is a folder. Pass the path of a file in it",
    ),
    "no file": (lambda path: path.unlink(), FileNotFoundError, "w.safetensors"),
}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


@pytest.mark.parametrize(("spoil", "error", "message"), FILES.values(), ids=FILES)
def test_weights_files(
    spoil: Callable[[Path], Any],
    error: type[Exception],
    message: str,
    strategy: mr.MirroredStrategy,
    tmp_path: Path,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    good, bad = tmp_path / "good.safetensors", tmp_path / "w.safetensors"
    model = make_model(strategy)
    for path in (good, bad):
        model.save_weights(path)
    spoil(bad)
    check_refused(model, lambda model: model.load_weights(bad), error, message, str(bad))
    model.load_weights(good)
    assert [a.tobytes() for a in model.get_weights()] == [
        b.tobytes() for b in make_model(strategy).get_weights()
    ]
