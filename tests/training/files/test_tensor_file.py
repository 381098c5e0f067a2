"""Files come back bit for bit or are refused whole, and no failure to write harms the old one."""

import json
import os
import pathlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.training.files.tensor_file import (
    CHECKPOINT,
    NO_CHECKSUM,
    WEIGHTS,
    Kind,
    _header_checksum,
    header_bytes,
    load_tensors,
    open_tensors,
    save_tensors,
)

TENSORS: dict[str, np.ndarray] = {
    "dense/kernel": np.array([[1.5, -0.0], [np.pi, np.nan]], np.float32),
    "dense/bias": np.array([1e-300, np.inf]),
    "steps": np.array(7, np.int64),
    "ids": np.array([-1, 2], np.int32),
    "mask": np.array([True, False, True]),
    "bytes": np.array([0, 200, 255], np.uint8),
    "empty": np.zeros((0, 3), np.float32),
}
EXPECTED = {name: (array.shape, array.dtype) for name, array in TENSORS.items()}


def all_of(path: Any, expected: Any) -> dict[str, np.ndarray]:
    """Return what a file has by name."""
    return dict(load_tensors(path, expected))


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "model.weights.safetensors"


@pytest.fixture
def written(path: pathlib.Path) -> pathlib.Path:
    save_tensors(path, TENSORS)
    return path


def same(loaded: dict[str, np.ndarray]) -> bool:
    return list(loaded) == list(TENSORS) and all(
        loaded[name].dtype == array.dtype
        and loaded[name].shape == array.shape
        and loaded[name].tobytes() == array.tobytes()
        for name, array in TENSORS.items()
    )


def read_checkpoint(path: pathlib.Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    with open_tensors(path, CHECKPOINT) as file:
        return dict(file.read(file.specs)), file.texts


def read_texts(path: pathlib.Path) -> dict[str, str]:
    with open_tensors(path, CHECKPOINT) as file:
        return file.texts


def test_round_trip(written: pathlib.Path) -> None:
    assert same(all_of(written, EXPECTED))
    assert same(all_of(str(written), EXPECTED))


def test_loaded_arrays_do_not_depend_on_the_file(written: pathlib.Path) -> None:
    loaded = all_of(written, EXPECTED)
    with open(written, "r+b") as file:
        file.write(bytes(written.stat().st_size))
    assert same(loaded)
    assert all(array.flags.writeable for array in loaded.values())


def test_arrays_in_any_layout_are_stored_as_they_read(path: pathlib.Path) -> None:
    whole = np.arange(24.0).reshape(4, 6)
    given = {"t": whole.T, "s": whole[::2, ::3], "f": np.asfortranarray(whole)}
    given["big"] = whole.astype(">f8")
    save_tensors(path, given)
    loaded = all_of(path, {name: (array.shape, "float64") for name, array in given.items()})
    for name, array in given.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_nothing_to_store(path: pathlib.Path) -> None:
    save_tensors(path, {})
    assert all_of(path, {}) == {}


def test_metadata_is_readable_by_other_programs(path: pathlib.Path) -> None:
    from safetensors import safe_open

    save_tensors(path, TENSORS, {"step": "12"})
    with safe_open(path, framework="np") as file:
        assert file.metadata()["step"] == "12"
        np.testing.assert_array_equal(file.get_tensor("ids"), TENSORS["ids"])


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"kind": "rope"}])
def test_files_of_other_programs_are_read(
    path: pathlib.Path, metadata: dict[str, str] | None
) -> None:
    save_file(TENSORS, path, metadata=metadata)
    assert same(all_of(path, EXPECTED))


def test_truncated_anywhere(written: pathlib.Path) -> None:
    for size in reversed(range(written.stat().st_size)):
        os.truncate(written, size)
        with pytest.raises(WeightsFileError) as caught:
            all_of(written, EXPECTED)
        assert f"Received: {size} bytes" in str(caught.value)
        assert str(written) in str(caught.value)


def test_a_flipped_bit_is_found_anywhere(path: pathlib.Path) -> None:
    """Two of each byte: in lengths, names, shapes, texts, padding and data."""
    save_tensors(path, TENSORS, {"sequence": "12"}, kind=CHECKPOINT)
    data = bytearray(path.read_bytes())
    harmless = []
    with open(path, "r+b") as file:
        for position in range(len(data)):
            for bit in (position % 8, (position + 3) % 8):
                write_byte(file, position, data[position] ^ (1 << bit))
                try:
                    read_checkpoint(path)
                except WeightsFileError:
                    continue
                harmless.append((position, bit))
            write_byte(file, position, data[position])
    assert harmless == []
    assert read_texts(path) == {"sequence": "12"}


def write_byte(file: IO[bytes], position: int, byte: int) -> None:
    file.seek(position)
    file.write(bytes([byte]))
    file.flush()


@pytest.mark.parametrize("name", [name for name, array in TENSORS.items() if array.size])
def test_corrupt_data_is_named(written: pathlib.Path, name: str) -> None:
    data = bytearray(written.read_bytes())
    data[data.index(TENSORS[name].tobytes())] ^= 1
    written.write_bytes(data)
    with pytest.raises(WeightsFileError, match=f"corrupt: the checksum of '{name}' does not fit"):
        all_of(written, EXPECTED)


@pytest.mark.parametrize("metadata", [{"crc32": "[1]"}, {"format": "mirrored"}])
def test_marks_of_ours_without_checksums(path: pathlib.Path, metadata: dict[str, str]) -> None:
    save_file(TENSORS, path, metadata=metadata)
    with pytest.raises(WeightsFileError, match="corrupt: the checksum of its header does not fit"):
        all_of(path, EXPECTED)


def test_all_of_a_checkpoint_is_read(path: pathlib.Path) -> None:
    save_tensors(path, TENSORS, {"sequence": "12"}, kind=CHECKPOINT)
    tensors, texts = read_checkpoint(path)
    assert same({name: tensors[name] for name in TENSORS})
    assert len(tensors) == len(TENSORS)
    assert texts == {"sequence": "12"}


READERS: dict[str, Callable[[pathlib.Path], Any]] = {
    "load_tensors": lambda path: all_of(path, EXPECTED),
    "read_checkpoint": read_checkpoint,
    "read_texts": read_texts,
}


@pytest.mark.parametrize(
    ("kind", "reader", "message"),
    [
        (CHECKPOINT, "load_tensors", "is no weights file. Received: a file of the kind 'check"),
        (WEIGHTS, "read_checkpoint", "is no checkpoint. Received: a file of the kind 'weights'"),
        (WEIGHTS, "read_texts", "Read weights with `load_weights`"),
    ],
)
def test_files_of_another_kind(path: pathlib.Path, kind: Kind, reader: str, message: str) -> None:
    save_tensors(path, TENSORS, kind=kind)
    with pytest.raises(WeightsFileError, match=message):
        READERS[reader](path)


def test_another_program_writes_no_checkpoint(path: pathlib.Path) -> None:
    save_file(TENSORS, path)
    with pytest.raises(
        WeightsFileError, match=r"is no checkpoint: it has no mark of that kind\. Pass the"
    ):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"\x89HDF\r\n\x1a\n" + bytes(600), b"PK\x03\x04" + bytes(600), b"weights\n" * 99],
    ids=["empty", "two bytes", "HDF5", "zip", "text"],
)
def test_not_safetensors(path: pathlib.Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(WeightsFileError, match=r"truncated, corrupt, or not in the safetensors"):
        all_of(path, EXPECTED)


def test_load_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(WeightsFileError, match=r"is a folder\. Pass the path of a file in it"):
        all_of(tmp_path, EXPECTED)


def test_load_missing(path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.weights\.safetensors"):
        all_of(path, EXPECTED)


Expected = dict[str, tuple[tuple[int, ...], Any]]


def without(name: str) -> Callable[[Expected], Expected]:
    return lambda expected: {key: value for key, value in expected.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: {**e, "dense_1/kernel": ((3,), "float32")}, r"model: no 'dense_1/kernel'\. Bu"),
        (without("ids"), r"belongs to another model: unexpected 'ids'\. Build the model"),
        (
            lambda e: {**e, "dense/kernel": ((4,), "float32")},
            r"'dense/kernel' has shape \(2, 2\), the model's has \(4,\)",
        ),
        (lambda e: {**e, "steps": ((1,), "int64")}, r"'steps' has shape \(\), .* \(1,\)"),
        (
            lambda e: {**e, "dense/bias": ((2,), np.float32)},
            r"'dense/bias' is float64, the model's is float32",
        ),
        (lambda e: {}, r"unexpected 'dense/bias'; (unexpected '\w+'; |.)*; and 2 more\. Build"),
    ],
    ids=["missing", "unexpected", "shape", "rank", "dtype", "many"],
)
def test_another_model(
    written: pathlib.Path, change: Callable[[Expected], Expected], message: str
) -> None:
    with pytest.raises(WeightsFileError, match=message):
        all_of(written, change(dict(EXPECTED)))


def test_dtype_that_the_library_lacks(path: pathlib.Path) -> None:
    save_file({"a": np.zeros(2, np.complex64)}, path)
    with pytest.raises(WeightsFileError, match="'a' is C64, the model's is float32"):
        all_of(path, {"a": ((2,), "float32")})


@pytest.mark.parametrize("dtype", ["complex128", "object", "float128"])
def test_save_other_dtype(path: pathlib.Path, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"Received: 'a' with dtype {dtype}. Convert it first"):
        save_tensors(path, {"a": np.zeros(2, dtype)})
    assert not path.exists()


DEEP = "[" * 100_000
Texts = dict[str, str]


def test_a_header_is_as_long_whatever_the_checksums_are() -> None:
    specs = {"b": ((2, 3), "bool"), "a": ((1,), "int64"), "ä": ((), "float32")}
    texts = {"step": "3"}
    headers = [header_bytes(specs, texts, dict.fromkeys(specs, x)) for x in (NO_CHECKSUM, "f" * 8)]
    assert headers[0] != headers[1]
    assert len(headers[0]) == len(headers[1])
    assert len(headers[0]) % 8 == 0
    # Wide elements come first, so that each tensor is aligned.
    offsets = {name: json.loads(headers[0][8:])[name]["data_offsets"] for name in specs}
    assert offsets == {"a": [0, 8], "ä": [8, 12], "b": [12, 18]}


def crafted(path: Path, change: Callable[[Texts], Any], *, kind: Any = CHECKPOINT) -> None:
    """Write a file whose metadata are changed, and whose header's checksum fits them."""
    save_tensors(path, {"a": np.ones(2, np.float32), STATE: STREAM}, METADATA, kind=kind)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    texts = header["__metadata__"]
    change(texts)
    shapes = {key: each for key, each in header.items() if key != "__metadata__"}
    dtypes = {"F32": "float32", "I64": "int64"}
    specs = {key: (tuple(each["shape"]), dtypes[each["dtype"]]) for key, each in shapes.items()}
    texts["header_crc32"] = _header_checksum(texts, specs)
    new = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(new)) + new + data[8 + length :])


STATE, STREAM = "global_random_state", np.array([1, 0])
METADATA = {"sequence": "7"}


def put(**texts: str) -> Callable[[Texts], Any]:
    return lambda found: found.update(texts)


def drop(key: str) -> Callable[[Texts], Any]:
    return lambda found: found.pop(key)


CHECKSUMS: dict[str, Callable[[Texts], Any]] = {
    "no checksums": drop("crc32"),
    "empty checksums": put(crc32=""),
    "a list of checksums": put(crc32="[1]"),
    "a number": put(crc32="1"),
    "null": put(crc32="null"),
    "broken JSON": put(crc32="{"),
    "deep checksums": put(crc32=DEEP),
    "deep objects": put(crc32='{"a":' * 100_000),
    "a number too long": put(crc32="1" * 5000),
    "no text": put(crc32='{"a": 1, "global_random_state": null}'),
    "without one": put(crc32="{}"),
}
ALIASES: dict[str, Callable[[Texts], Any]] = {
    "no aliases": put(aliases=""),
    "a list of aliases": put(aliases='["a"]'),
    "deep aliases": put(aliases=DEEP),
    "an alias of nothing": put(aliases='{"b": "c"}'),
    "an alias of a number": put(aliases='{"b": 5}'),
    "an alias of a list": put(aliases='{"b": ["a"]}'),
    "an alias that is a tensor": put(aliases='{"a": "a"}'),
    "an alias of an alias": put(aliases='{"b": "c", "c": "b"}'),
    "an alias for the random state": put(aliases='{"global_random_state": "a"}'),
}
SEQUENCES: dict[str, Callable[[Texts], Any]] = {
    "no number": put(sequence="first"),
    "an empty sequence": put(sequence=""),
    "a fraction": put(sequence="1.5"),
    "less than nothing": put(sequence="-1"),
    "other digits": put(sequence="\u0663"),
    "a long number": put(sequence="9" * 5000),
    "spaces": put(sequence=" 7 "),
}


@pytest.mark.behaviour("crafted-files")
@pytest.mark.parametrize("change", {**CHECKSUMS, **ALIASES}.values(), ids={**CHECKSUMS, **ALIASES})
def test_what_a_checkpoint_says(change: Callable[[Texts], Any], tmp_path: Path) -> None:
    crafted(tmp_path / "ckpt-9", change)
    variable = mr.Variable([0.0, 0.0])
    with pytest.raises(WeightsFileError, match="ckpt-9'") as caught:
        mr.train.Checkpoint(a=variable).restore(tmp_path / "ckpt-9").expect_partial()
    assert len(str(caught.value)) < 500
    assert variable.numpy().tolist() == [0.0, 0.0]


@pytest.mark.behaviour("crafted-files")
@pytest.mark.parametrize("change", CHECKSUMS.values(), ids=CHECKSUMS)
def test_what_a_weights_file_says(change: Callable[[Texts], Any], tmp_path: Path) -> None:
    path = tmp_path / "w"
    crafted(path, lambda texts: (texts.update(kind="weights"), change(texts)))
    expected = {"a": ((2,), "float32"), STATE: ((2,), "int64")}
    with pytest.raises(WeightsFileError, match="/w' is corrupt: "):
        all_of(path, expected)


@pytest.mark.behaviour("crafted-files")
@pytest.mark.parametrize("change", SEQUENCES.values(), ids=SEQUENCES)
def test_one_bad_file_hides_no_good_one(
    change: Callable[[Texts], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = mr.train.Checkpoint(a=mr.Variable([0.0, 0.0]))
    good = checkpoint.save(tmp_path / "ckpt")
    crafted(tmp_path / "ckpt-9", change)
    assert mr.train.latest_checkpoint(tmp_path) == good
    (message,) = (each for each in caplog.messages if "Skipped" in each)
    assert "ckpt-9' is corrupt: its place among others is a number" in message
    assert len(message) < 500
    assert checkpoint.save(tmp_path / "ckpt") == str(tmp_path / "ckpt-2")
    assert mr.train.CheckpointManager(checkpoint, tmp_path, 3).checkpoints[-1].endswith("ckpt-2")


STATES: dict[str, dict[str, np.ndarray]] = {
    "none": {},
    "a scalar": {STATE: np.array(1)},
    "half a pair": {STATE: np.arange(3)},
    "nothing in it": {STATE: np.arange(0)},
    "floats": {STATE: np.arange(2.0)},
    "a seed twice": {STATE: np.array([1, 0, 5, 1, 5, 2])},
    "a table": {STATE: np.zeros((2, 2), np.int64)},
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_state_of_random_numbers(state: dict[str, np.ndarray], tmp_path: Path) -> None:
    save_tensors(tmp_path / "c", {"a": np.float32([1, 1]), **state}, kind=CHECKPOINT)
    variable = mr.Variable([0.0, 0.0])
    with pytest.raises(WeightsFileError, match="no state of random numbers"):
        mr.train.Checkpoint(a=variable).restore(tmp_path / "c")
    assert variable.numpy().tolist() == [0.0, 0.0]
