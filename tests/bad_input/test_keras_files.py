"""Files in Keras' formats that are spoilt, or made to do harm.

The error names the file, nothing is read that the model does not expect, and it keeps its weights.
"""

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.training.files import hdf5_file

h5py = pytest.importorskip("h5py")

KERNEL = "layers/dense/vars/0"
Spoil = Callable[[Any, Path], None]


def _instead(make: Callable[[Any, Path], Any]) -> Spoil:
    """Return a function that puts something else in the place of the kernel."""

    def spoil(file: Any, path: Path) -> None:
        del file[KERNEL]
        made = make(file, path)
        if made is not None:
            file[KERNEL] = made

    return spoil


def _dataset(**options: Any) -> Spoil:
    return _instead(lambda file, path: file.create_dataset(KERNEL, **options) and None)


def _elsewhere(file: Any, path: Path) -> Any:
    values = np.zeros((2, 3), "f4")
    values.tofile(path.parent / "raw")
    external = [(str(path.parent / "raw"), 0, values.nbytes)]
    file.create_dataset(KERNEL, (2, 3), "f4", external=external)


def _virtual(file: Any, path: Path) -> Any:
    layout = h5py.VirtualLayout((2, 3), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (2, 3))
    file.create_virtual_dataset(KERNEL, layout)


def _soft_group(file: Any, path: Path) -> None:
    file.move("layers/dense", "hidden")
    file["layers/dense"] = h5py.SoftLink("/hidden")


GOOD = np.zeros((2, 3), "f4")
ROWS: dict[str, tuple[Spoil, str]] = {
    "a soft link": (_instead(lambda *_: h5py.SoftLink("/layers/dense/vars/1")), "a link at .*Soft"),
    "a soft link before it": (_soft_group, "a link at 'layers/dense', SoftLink"),
    "another file": (_instead(lambda *_: h5py.ExternalLink("x.h5", "/x")), "ExternalLink"),
    "values outside": (_instead(_elsewhere), "values are in another file"),
    "values of several files": (_instead(_virtual), "values are in another file"),
    "compressed": (_dataset(data=GOOD, compression="gzip"), "in chunks, or compressed"),
    "a large chunk": (
        _dataset(shape=(2, 3), maxshape=(None, 3), dtype="f4", chunks=(1 << 27, 3)),
        "in chunks, or compressed",
    ),
    "no values": (_dataset(shape=(2, 3), dtype="f4"), "whose values are not all in the file"),
    "a huge shape": (
        _dataset(shape=(1 << 40, 3), dtype="f4"),
        "whose values are not all in the file",
    ),
    "objects": (
        _dataset(shape=(2, 3), dtype=h5py.special_dtype(vlen=bytes)),
        "is not a numeric type",
    ),
    "arrays of arrays": (_dataset(shape=(2,), dtype=np.dtype(("f4", 3))), "is not a numeric type"),
    "references": (_dataset(shape=(2, 3), dtype=h5py.ref_dtype), "is not a numeric type"),
    "records": (_dataset(shape=(2, 3), dtype=[("a", "f4")]), "is not a numeric type"),
    "text": (_instead(lambda *_: "text"), "is not a numeric type"),
    "complex numbers": (_instead(lambda *_: np.zeros((2, 3), "c8")), "is not a numeric type"),
    "pairs of bytes": (_instead(lambda *_: np.zeros((2, 3), "V2")), "is not a numeric type"),
    "no shape": (_instead(lambda *_: h5py.Empty("f4")), "without a shape"),
    "a group": (
        _instead(lambda file, _: file.create_group(KERNEL) and None),
        "a group instead of an array",
    ),
    "an array for a group": (
        lambda file, _: (file.pop("layers/dense/vars"), file.update({"layers/dense/vars": 1})),
        "which is not a group",
    ),
    "another shape": (_instead(lambda *_: GOOD.T), "value.shape=.3, 2."),
    "another name": (_instead(lambda file, _: file.update({"layers/dense/vars/x": GOOD})), "'0'"),
    "one less": (_instead(lambda *_: None), "expected 2 variables, but received 1 variables"),
    "nothing": (lambda file, _: file.pop("layers"), "but received 0 variables"),
}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices stay from row to row."""


@pytest.fixture(scope="module")
def model() -> mr.Model:
    return mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3)])


def _refused(model: mr.Model, path: Path, message: str) -> None:
    before = [each.tobytes() for each in model.get_weights()]
    with pytest.raises(WeightsFileError, match=f"(?s)^The weights file '{path}'.*{message}"):
        model.load_weights(path)
    assert [each.tobytes() for each in model.get_weights()] == before


@pytest.mark.behaviour("keras-weights")
@pytest.mark.parametrize(("spoil", "message"), ROWS.values(), ids=ROWS)
def test_what_is_not_read(spoil: Spoil, message: str, model: mr.Model, tmp_path: Path) -> None:
    path = tmp_path / "x.weights.h5"
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        spoil(file, path)
    _refused(model, path, message)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_file_that_is_cut(part: float, model: mr.Model, tmp_path: Path) -> None:
    path = tmp_path / "x.weights.h5"
    model.save_weights(path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    _refused(model, path, "truncated, corrupt, or not in the HDF5 format")


def test_what_is_no_file(model: mr.Model, tmp_path: Path) -> None:
    path = tmp_path / "x.weights.h5"
    with pytest.raises(FileNotFoundError, match=r"x\.weights\.h5"):
        model.load_weights(path)
    path.mkdir()
    _refused(model, path, "is a folder. Pass the path of a file in it")


class Breaks:
    """A file in which the n-th read or write raises."""

    def __init__(self, file: Any, number: int, error: BaseException) -> None:
        self.file, self.left, self.error = file, number, error

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.file, name)
        return self.broken(method) if name in ("readinto", "write") else method

    def broken(self, method: Any) -> Any:
        def call(*args: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise self.error
            return method(*args)

        return call


def _written(file: Any) -> None:
    with hdf5_file.writing(file) as group_of:
        for i in range(9):
            group_of(f"layers/dense_{i}", "dense")["0"] = np.zeros((9, 9))


def _read(file: Any) -> None:
    with hdf5_file.reading(file, "The file") as reader:
        for i in range(9):
            assert reader.group(f"layers/dense_{i}")["0"].shape == (9, 9)


@cases("error", [OSError(5, "broken"), KeyboardInterrupt()], ids=repr, clean=False)
@cases("number", [1, 2, 5, 8], clean=False)
def test_a_disk_that_breaks(number: int, error: BaseException) -> None:
    """The error is that of the file, or the interrupt, and no word of HDF5's."""
    file = io.BytesIO()
    _written(file)
    _read(file)
    for use, broken in ((_written, io.BytesIO()), (_read, file)):
        with pytest.raises(type(error)) as caught:
            use(Breaks(broken, number, error))
        assert caught.value is error


@cases("error", [OverflowError("far"), ValueError("far"), OSError(22, "far")], clean=False)
def test_a_place_that_no_file_has(error: Exception) -> None:
    """A spoilt file leads there."""
    file = io.BytesIO()
    _written(file)
    with pytest.raises(WeightsFileError, match=r"^The file is truncated, corrupt, .*far"):
        _read(Breaks(file, 5, error))


@pytest.mark.slow
def test_errors_that_are_kept(tmp_path: Path) -> None:
    """At the end of a program they take no crash with them."""
    program = """
import sys
import mirrored as mr
model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
kept = []
for name in sys.argv[1:]:
    try:
        model.load_weights(name)
    except ValueError as error:
        kept.append(error)
print(len(kept))
"""
    bad, archive = tmp_path / "x.weights.h5", tmp_path / "x.keras"
    bad.write_text("hello")
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model.weights.h5", "hello")
    ran = subprocess.run(
        [sys.executable, "-c", program, bad, archive], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout) == (0, "2\n"), ran.stderr


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6))
def test_bytes_that_are_others(
    model: mr.Model, tmp_path_factory: Any, changes: list[tuple[int, int]]
) -> None:
    """A file is refused with our error, or read."""
    path = tmp_path_factory.mktemp("fuzz") / "x.weights.h5"
    model.save_weights(path)
    data = bytearray(path.read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    path.write_bytes(data)
    before = [each.tobytes() for each in model.get_weights()]
    refused: Any = None
    try:
        model.load_weights(path)
    except WeightsFileError as error:
        refused = error
    if refused is not None:
        assert str(path) in str(refused)
        assert [each.tobytes() for each in model.get_weights()] == before


@pytest.mark.behaviour("keras-weights")
def test_a_flipped_bit(model: mr.Model, tmp_path: Path) -> None:
    """The file is refused, or read as it was: checksums are of values, places and types."""
    path = tmp_path / "x.weights.h5"
    model.save_weights(path)
    data = path.read_bytes()
    with h5py.File(path) as file:
        start = file[KERNEL].id.get_offset() * 8
    saved = [each.tobytes() for each in model.get_weights()]
    others = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3)])
    before = others.get_weights()
    anywhere = np.random.default_rng(0).choice(len(data) * 8, 60, replace=False)
    for bit in [*range(start, start + 32), *anywhere.tolist()]:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        others.set_weights(before)
        try:
            others.load_weights(path)
        except WeightsFileError:
            continue
        assert not start <= bit < start + 32
        assert [each.tobytes() for each in others.get_weights()] == saved, bit


def test_a_program_that_changes_values_deletes_their_checksum(
    model: mr.Model, tmp_path: Path
) -> None:
    path = tmp_path / "x.weights.h5"
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        file[KERNEL][0, 0] = 5.0
    _refused(model, path, r"checksum of 'layers/dense/vars/0' does not fit .* attribute 'crc32'")
    with h5py.File(path, "r+") as file:
        file[KERNEL].attrs["crc32"] = "text"
    _refused(model, path, "checksum of 'layers/dense/vars/0' does not fit")
    with h5py.File(path, "r+") as file:
        del file[KERNEL].attrs["crc32"]
    others = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3)])
    others.load_weights(path)
    assert others.get_weights()[0][0, 0] == 5.0
