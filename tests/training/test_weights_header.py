"""Whatever a file says, reading it ends in a WeightsFileError, and it hides no other file."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.training.weights_file import load_tensors, save_tensors
from mirrored.training.weights_header import (
    CHECKPOINT,
    NO_CHECKSUM,
    _header_checksum,
    checked_texts,
    header_bytes,
)

DEEP = "[" * 100_000
Texts = dict[str, str]


def test_a_header_is_as_long_whatever_the_checksums_are() -> None:
    specs = {"b": ((2, 3), "bool"), "a": ((1,), "int64"), "ä": ((), "float32")}
    texts = checked_texts({"step": "3"}, CHECKPOINT)
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


@pytest.mark.parametrize("change", {**CHECKSUMS, **ALIASES}.values(), ids={**CHECKSUMS, **ALIASES})
def test_what_a_checkpoint_says(change: Callable[[Texts], Any], tmp_path: Path) -> None:
    crafted(tmp_path / "ckpt-9", change)
    variable = mr.Variable([0.0, 0.0])
    with pytest.raises(WeightsFileError, match="ckpt-9'") as caught:
        mr.train.Checkpoint(a=variable).restore(tmp_path / "ckpt-9").expect_partial()
    assert len(str(caught.value)) < 500
    assert variable.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("change", CHECKSUMS.values(), ids=CHECKSUMS)
def test_what_a_weights_file_says(change: Callable[[Texts], Any], tmp_path: Path) -> None:
    path = tmp_path / "w"
    crafted(path, lambda texts: (texts.update(kind="weights"), change(texts)))
    expected = {"a": ((2,), "float32"), STATE: ((2,), "int64")}
    with pytest.raises(WeightsFileError, match="/w' is corrupt: "):
        load_tensors(path, expected)


@pytest.mark.parametrize("change", SEQUENCES.values(), ids=SEQUENCES)
def test_one_bad_file_hides_no_good_one(
    change: Callable[[Texts], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = mr.train.Checkpoint(a=mr.Variable([0.0, 0.0]))
    good = checkpoint.save(tmp_path / "ckpt")
    crafted(tmp_path / "ckpt-9", change)
    assert mr.train.latest_checkpoint(tmp_path) == good
    (message,) = (each for each in caplog.messages if "left out" in each)
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
    "a table": {STATE: np.zeros((2, 2), np.int64)},
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_state_of_random_numbers(state: dict[str, np.ndarray], tmp_path: Path) -> None:
    save_tensors(tmp_path / "c", {"a": np.float32([1, 1]), **state}, kind=CHECKPOINT)
    variable = mr.Variable([0.0, 0.0])
    with pytest.raises(WeightsFileError, match="no state of random numbers"):
        mr.train.Checkpoint(a=variable).restore(tmp_path / "c")
    assert variable.numpy().tolist() == [0.0, 0.0]
