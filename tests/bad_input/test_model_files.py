"""Files of whole models that are spoilt, or made to do harm: refused before memory is taken."""

import io
import json
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.training.files import model_files, zip_members

pytest.importorskip("h5py")

WEIGHTS, CONFIG = "model.weights.h5", "config.json"


class Parts(dict[str, bytes]):
    """The members of an archive; what fails does not print them all."""

    def __repr__(self) -> str:
        return f"Parts({[*self]})"


def packed(parts: dict[str, bytes], **kinds: Any) -> bytes:
    """Return an archive; of a name only what stands before "#" is in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, data in parts.items():
            info = zipfile.ZipInfo(name.partition("#")[0])
            for key, value in kinds.items():
                setattr(info, key, value)
            archive.writestr(info, data)
    return file.getvalue()


def _with(**more: bytes) -> Callable[[Parts], bytes]:
    return lambda parts: packed({**parts, **more})


def _named(name: str, **kinds: Any) -> Callable[[Parts], bytes]:
    """Return what adds a member with a name, whatever the name is."""

    def pack(parts: Parts) -> bytes:
        whole = packed({**parts, "x" * len(name): b"1"}, **kinds)
        return whole.replace(b"x" * len(name), name.encode())

    return pack


def _without(*names: str) -> Callable[[Parts], bytes]:
    return lambda parts: packed({k: v for k, v in parts.items() if k not in names})


def _config(change: Callable[[Any], Any]) -> Callable[[Parts], bytes]:
    def pack(parts: Parts) -> bytes:
        text = json.dumps(change(json.loads(parts[CONFIG])))
        return packed({**parts, CONFIG: text.encode()})

    return pack


def _patched(place: int, size: int, value: int, mark: bytes = b"PK\1\2") -> Any:
    """Return what changes a number in the header of the weights, in the archive's directory."""

    def pack(parts: Parts) -> bytes:
        data = bytearray(packed(parts, compress_type=zipfile.ZIP_DEFLATED))
        start = data.rindex(mark, 0, data.rindex(WEIGHTS.encode()))
        data[start + place : start + place + size] = value.to_bytes(size, "little")
        return bytes(data)

    return pack


def _flipped(parts: Parts) -> bytes:
    data = bytearray(packed(parts))
    data[data.index(parts[WEIGHTS]) + len(parts[WEIGHTS]) // 2] ^= 1
    return bytes(data)


def _larger(config: Any) -> Any:
    config["config"]["layers"][1]["config"]["units"] = 1 << 28
    return config


def _small_bomb(parts: Parts) -> bytes:
    """Return an archive whose configuration says that it has 99 bytes, and expands to 128 MiB."""
    size = (1 << 27) + 12_345  # Four bytes that are nowhere else.
    whole = packed({**parts, CONFIG: b" " * size}, compress_type=zipfile.ZIP_DEFLATED)
    return whole.replace(size.to_bytes(4, "little"), (99).to_bytes(4, "little"))


def _stored_above_end(parts: Parts) -> bytes:
    """Return an archive whose configuration is not compressed, and says that 512 MiB are."""
    data = bytearray(packed(parts))
    start = data.rindex(b"PK\1\2", 0, data.rindex(CONFIG.encode()))
    data[start + 20 : start + 24] = (1 << 29).to_bytes(4, "little")
    return bytes(data)


def _continued(parts: Parts) -> bytes:
    """Return an archive whose weights have a header that goes on with 4 GiB, before the file."""
    data = bytearray(parts[WEIGHTS])
    place = data.rindex(b"\x10\0\x10\0\0\0\0\0") + 8  # A place and a size, of 8 bytes each.
    data[place + 4 : place + 12] = b"\xff" * 8
    return packed({**parts, WEIGHTS: bytes(data)})


def _lost(parts: Parts) -> bytes:
    """Return an archive whose weights have a group that lists arrays, but none is found."""
    data = bytearray(parts[WEIGHTS])
    last = data.rindex(b"TREE") + 40  # The last name in it, by which it is searched.
    data[last : last + 8] = b"\xff" * 8
    return packed({**parts, WEIGHTS: bytes(data)})


def _deep(parts: Parts) -> bytes:
    return packed({**parts, CONFIG: b"[" * 100_000})


ROWS: dict[str, tuple[Callable[[Parts], bytes], str]] = {
    "no archive": (lambda _: b"hello", "not a zip file"),
    "nothing": (lambda _: b"", "not a zip file"),
    "a member twice": (lambda parts: packed({**parts, f"{CONFIG}#": b"{}"}), "'config.json' twice"),
    "a folder above": (_named("../x"), "leads out of the archive"),
    "an absolute path": (_named("/etc"), "leads out of the archive"),
    "a drive": (_named("C:/x"), "leads out of the archive"),
    "another separator": (_named("a\\..\\b"), "leads out of the archive"),
    "a link": (_named("l", external_attr=0o120777 << 16), "is not a regular file"),
    "encrypted": (_patched(8, 2, 1), "is encrypted"),
    "another compression": (_patched(10, 2, 12), "neither stored nor deflated"),
    "a bomb": (_patched(24, 4, 1 << 31), "claims to expand to 2147483648 bytes"),
    "a size above the file's": (_patched(20, 4, 1 << 29), "lacks a part of 'model.weights.h5'"),
    "more members than there are": (_with(**{f"{i}": b"" for i in range(8)}), "it has 11 members"),
    "a member elsewhere": (_patched(42, 4, 7), "truncated, corrupt"),
    "no configuration": (_without(CONFIG), "it has no 'config.json'"),
    "a long configuration": (_with(**{CONFIG: b" " * 10_000}), "more than 9999 bytes"),
    "no weights": (_without(WEIGHTS), "has no 'model.weights.h5'"),
    "no JSON": (_with(**{CONFIG: b"{"}), "is no configuration of a model"),
    "other JSON": (_with(**{CONFIG: b"[1]"}), "is no configuration of a model"),
    "JSON without end": (_deep, "is no configuration of a model|more than 9999 bytes"),
    "a flipped bit": (_flipped, "the checksum of 'model.weights.h5' does not fit"),
    "names that are not found": (_lost, "it lists 'layers/dense/vars/0', which is not there"),
    "other weights": (_with(**{WEIGHTS: b"x" * 99}), "not in the HDF5 format"),
    "a layer": (
        _config(lambda config: config["config"]["layers"][1]),
        "does not contain a model, but <Dense name=dense",
    ),
}
CONFIGS: dict[str, tuple[Callable[[Parts], bytes], type[Exception], str]] = {
    "larger weights than it has": (_config(_larger), ValueError, "larger weights than its file"),
    "a class that there is not": (
        _config(lambda config: {**config, "class_name": "Popen", "module": "subprocess"}),
        TypeError,
        "Could not locate class 'Popen'",
    ),
}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices stay from row to row."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: Any) -> Parts:
    path = tmp_path_factory.mktemp("good") / "m.keras"
    mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3)]).save(path)
    with zipfile.ZipFile(path) as archive:
        return Parts({name: archive.read(name) for name in archive.namelist()})


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches."""
    monkeypatch.setattr(zip_members, "_MOST", 10)
    monkeypatch.setattr(model_files, "_MOST_TEXT", 9999)


@pytest.mark.behaviour("keras-models")
@pytest.mark.parametrize(("spoil", "message"), ROWS.values(), ids=ROWS)
def test_what_is_not_read(spoil: Any, message: str, parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    path.write_bytes(spoil(parts))
    with pytest.raises(WeightsFileError, match=f"(?s)^The model file '{path}'.*({message})"):
        mr.keras.models.load_model(path)


@pytest.mark.parametrize("spoil", [_small_bomb, _stored_above_end, _continued])
def test_sizes_that_are_made_up_take_no_memory(spoil: Any, parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    path.write_bytes(spoil(parts))
    tracemalloc.start()
    try:
        with pytest.raises(WeightsFileError, match="truncated, corrupt"):
            mr.keras.models.load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.behaviour("keras-models")
@pytest.mark.parametrize(("spoil", "error", "message"), CONFIGS.values(), ids=CONFIGS)
def test_configurations(
    spoil: Any, error: type[Exception], message: str, parts: Parts, tmp_path: Path
) -> None:
    path = tmp_path / "m.keras"
    path.write_bytes(spoil(parts))
    tracemalloc.start()
    try:
        with pytest.raises(error, match=message):
            mr.keras.models.load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def _graph(function: Callable[[Any], Any]) -> mr.Model:
    begin = mr.layers.Input((3,))
    return mr.Model(begin, function(begin))


def _measured() -> mr.Model:
    model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3)])
    model.compile("sgd", "mse", metrics=[mr.metrics.MeanIoU(num_classes=7)])
    return model


OPS = mr.keras.ops
LARGE: dict[str, tuple[Callable[[], mr.Model], str, str]] = {
    "OneHot": (
        lambda: _graph(lambda x: OPS.one_hot(OPS.cast(x, "int32"), 7)),
        '"num_classes": 7',
        "constants",
    ),
    "Linspace": (lambda: _graph(lambda x: OPS.linspace(x, 2.0, 7)), '"num": 7', "constants"),
    "Pad": (lambda: _graph(lambda x: OPS.pad(x, ((0, 0), (0, 7)))), "[0, 7]", "constants"),
    "ArraySplit": (
        lambda: _graph(lambda x: OPS.array_split(x, 7, axis=1)[0]),
        '"indices_or_sections": 7',
        "constants",
    ),
    "Diff": (
        lambda: _graph(lambda x: OPS.diff(OPS.broadcast_to(x[0, 0], (1 << 30,)), 7)),
        '"n": 7',
        "constants",
    ),
    "Vander": (lambda: _graph(lambda x: OPS.vander(x[0], 7)), '"N": 7', "constants"),
    "MeanIoU": (_measured, '"num_classes": 7', "metrics"),
}


@pytest.mark.parametrize(("make", "setting", "kind"), LARGE.values(), ids=LARGE)
def test_sizes_that_files_may_not_ask_for(
    make: Callable[[], mr.Model], setting: str, kind: str, tmp_path: Path
) -> None:
    make().save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members[CONFIG].decode()
    assert setting in text
    changed = text.replace(setting, setting.replace("7", f"{1 << 28}"))
    members[CONFIG] = changed.encode()
    (tmp_path / "m.keras").write_bytes(packed(members))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"needs larger {kind} than"):
            mr.keras.models.load_model(tmp_path / "m.keras")
        if kind == "constants":
            with pytest.raises(ValueError, match="needs larger constants than"):
                mr.keras.models.model_from_json(changed)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_lists_that_take_more_memory_than_their_text(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "_MOST_VALUES", 999)
    config = json.loads(parts[CONFIG])
    for values, fits in ([[]] * 300, True), ([[]] * 600, False):
        text = json.dumps({**config, "beside": values}).encode()
        path = tmp_path / "m.keras"
        path.write_bytes(packed({**parts, CONFIG: text}))
        if fits:
            assert mr.keras.models.load_model(path).layers
            continue
        with pytest.raises(WeightsFileError, match="is no configuration of a model"):
            mr.keras.models.load_model(path)


def test_what_other_programs_pack(parts: Parts, tmp_path: Path) -> None:
    """Compressed, in another order, or with a folder's own entry: it is read all the same."""
    path = tmp_path / "m.keras"
    other = {"assets/": b"", **dict(reversed(parts.items()))}
    path.write_bytes(packed(other, compress_type=zipfile.ZIP_DEFLATED))
    model = mr.keras.models.load_model(path)
    (tmp_path / "n.keras").write_bytes(packed(parts))
    other = mr.keras.models.load_model(tmp_path / "n.keras")
    for one, same in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(one, same)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_bytes_that_are_others(
    parts: Parts, tmp_path_factory: Any, changes: list[tuple[int, int]]
) -> None:
    """A file is refused, or read as it was: all that matters in it has a checksum."""
    path = tmp_path_factory.mktemp("fuzz") / "m.keras"
    data = bytearray(packed(parts))
    for place, byte in changes:
        data[place % len(data)] = byte
    path.write_bytes(data)
    refused: Any = None
    try:
        loaded = mr.keras.models.load_model(path)
    except WeightsFileError as error:
        refused = error
    if refused is not None:
        assert str(path) in str(refused)
    else:
        path.write_bytes(packed(parts))
        good = mr.keras.models.load_model(path)
        assert loaded.to_json() == good.to_json()
        assert [each.tobytes() for each in loaded.get_weights()] == [
            each.tobytes() for each in good.get_weights()
        ]
