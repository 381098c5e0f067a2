"""Files come back bit for bit or are refused whole, and no failure to write harms the old one."""

import errno
import os
import pathlib
import stat
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from mirrored.errors import WeightsFileError
from mirrored.training.weights_file import (
    CHECKPOINT,
    WEIGHTS,
    Kind,
    load_tensors,
    read_checkpoint,
    read_checkpoint_metadata,
    save_tensors,
)

TENSORS: dict[str, np.ndarray] = {
    "dense/kernel": np.array([[1.5, -0.0], [np.pi, np.nan]], np.float32),
    "dense/bias": np.array([1e-300, np.inf]),
    "steps": np.array(7, np.int64),
    "ids": np.array([-1, 2], np.int32),
    "mask": np.array([True, False, True]),
    "empty": np.zeros((0, 3), np.float32),
}
EXPECTED = {name: (array.shape, array.dtype) for name, array in TENSORS.items()}


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


def test_round_trip(written: pathlib.Path) -> None:
    assert same(load_tensors(written, EXPECTED))
    assert same(load_tensors(str(written), EXPECTED))


def test_loaded_arrays_do_not_depend_on_the_file(written: pathlib.Path) -> None:
    loaded = load_tensors(written, EXPECTED)
    with open(written, "r+b") as file:
        file.write(bytes(written.stat().st_size))
    assert same(loaded)
    assert all(array.flags.writeable for array in loaded.values())


def test_arrays_in_any_layout_are_stored_as_they_read(path: pathlib.Path) -> None:
    whole = np.arange(24.0).reshape(4, 6)
    given = {"t": whole.T, "s": whole[::2, ::3], "f": np.asfortranarray(whole)}
    given["big"] = whole.astype(">f8")
    save_tensors(path, given)
    loaded = load_tensors(path, {name: (array.shape, "float64") for name, array in given.items()})
    for name, array in given.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_nothing_to_store(path: pathlib.Path) -> None:
    save_tensors(path, {})
    assert load_tensors(path, {}) == {}


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
    assert same(load_tensors(path, EXPECTED))


def test_truncated_anywhere(written: pathlib.Path) -> None:
    data = written.read_bytes()
    for size in range(len(data)):
        written.write_bytes(data[:size])
        with pytest.raises(WeightsFileError) as caught:
            load_tensors(written, EXPECTED)
        assert f"Received: {size} bytes" in str(caught.value)
        assert str(written) in str(caught.value)


def test_any_flipped_bit_is_found(path: pathlib.Path) -> None:
    """Wherever it is: in lengths, names, shapes, texts, padding or data."""
    save_tensors(path, TENSORS, {"sequence": "12"}, kind=CHECKPOINT)
    data = bytearray(path.read_bytes())
    harmless = []
    with open(path, "r+b") as file:
        for position in range(len(data)):
            for bit in range(8):
                write_byte(file, position, data[position] ^ (1 << bit))
                try:
                    read_checkpoint(path)
                except WeightsFileError:
                    continue
                harmless.append((position, bit))
            write_byte(file, position, data[position])
    assert harmless == []
    assert read_checkpoint(path).metadata == {"sequence": "12"}


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
        load_tensors(written, EXPECTED)


@pytest.mark.parametrize("metadata", [{"crc32": "[1]"}, {"format": "mirrored"}])
def test_marks_of_ours_without_checksums(path: pathlib.Path, metadata: dict[str, str]) -> None:
    save_file(TENSORS, path, metadata=metadata)
    with pytest.raises(WeightsFileError, match="corrupt: the checksum of its header does not fit"):
        load_tensors(path, EXPECTED)


def test_all_of_a_checkpoint_is_read(path: pathlib.Path) -> None:
    save_tensors(path, TENSORS, {"sequence": "12"}, kind=CHECKPOINT)
    contents = read_checkpoint(path)
    assert same({name: contents.tensors[name] for name in TENSORS})
    assert len(contents.tensors) == len(TENSORS)
    assert contents.metadata == read_checkpoint_metadata(path) == {"sequence": "12"}


READERS: dict[str, Callable[[pathlib.Path], Any]] = {
    "load_tensors": lambda path: load_tensors(path, EXPECTED),
    "read_checkpoint": read_checkpoint,
    "read_checkpoint_metadata": read_checkpoint_metadata,
}


@pytest.mark.parametrize(
    ("kind", "reader", "message"),
    [
        (CHECKPOINT, "load_tensors", "is no weights file. Received: a file of the kind 'check"),
        (WEIGHTS, "read_checkpoint", "is no checkpoint. Received: a file of the kind 'weights'"),
        (WEIGHTS, "read_checkpoint_metadata", "Weights are read by `load_weights`"),
    ],
)
def test_files_of_another_kind(path: pathlib.Path, kind: Kind, reader: str, message: str) -> None:
    save_tensors(path, TENSORS, kind=kind)
    with pytest.raises(WeightsFileError, match=message):
        READERS[reader](path)


def test_another_program_writes_no_checkpoint(path: pathlib.Path) -> None:
    save_file(TENSORS, path)
    with pytest.raises(WeightsFileError, match=r"is no checkpoint: it does not say so\. Pass the"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"\x89HDF\r\n\x1a\n" + bytes(600), b"PK\x03\x04" + bytes(600), b"weights\n" * 99],
    ids=["empty", "two bytes", "HDF5", "zip", "text"],
)
def test_not_safetensors(path: pathlib.Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(WeightsFileError, match=r"truncated, corrupt, or not in the safetensors"):
        load_tensors(path, EXPECTED)


def test_load_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(WeightsFileError, match=r"is a folder\. Pass the path of a file in it"):
        load_tensors(tmp_path, EXPECTED)


def test_load_missing(path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.weights\.safetensors"):
        load_tensors(path, EXPECTED)


Expected = dict[str, tuple[tuple[int, ...], Any]]


def without(name: str) -> Callable[[Expected], Expected]:
    return lambda expected: {key: value for key, value in expected.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: {**e, "dense_1/kernel": ((3,), "float32")}, r"model: no 'dense_1/kernel'\. Bu"),
        (without("ids"), r"of another model: unexpected 'ids'\. Build the model"),
        (
            lambda e: {**e, "dense/kernel": ((4,), "float32")},
            r"'dense/kernel' has shape \(2, 2\), the model's has \(4,\)",
        ),
        (lambda e: {**e, "steps": ((1,), "int64")}, r"'steps' has shape \(\), .* \(1,\)"),
        (
            lambda e: {**e, "dense/bias": ((2,), np.float32)},
            r"'dense/bias' is float64, the model's is float32",
        ),
        (lambda e: {}, r"unexpected 'dense/bias'; (unexpected '\w+'; |.)*; and 1 more\. Build"),
    ],
    ids=["missing", "unexpected", "shape", "rank", "dtype", "many"],
)
def test_another_model(
    written: pathlib.Path, change: Callable[[Expected], Expected], message: str
) -> None:
    with pytest.raises(WeightsFileError, match=message):
        load_tensors(written, change(dict(EXPECTED)))


def test_dtype_that_the_library_lacks(path: pathlib.Path) -> None:
    save_file({"a": np.zeros(2, np.float16)}, path)
    with pytest.raises(WeightsFileError, match="'a' is F16, the model's is float32"):
        load_tensors(path, {"a": ((2,), "float32")})


def fail_with(error: BaseException) -> Callable[..., None]:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    return fail


class FullDisk:
    """A file that takes half of what is written and then has no space."""

    def __init__(self, descriptor: int, mode: str) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def write(self, data: bytes) -> None:
        os.write(self._descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


FAILURES: dict[str, tuple[str, Callable[..., Any], type[BaseException]]] = {
    "write": ("fdopen", FullDisk, OSError),
    "fsync": ("fsync", fail_with(OSError(errno.EIO, "Input/output error")), OSError),
    "replace": ("replace", fail_with(OSError(errno.EIO, "Input/output error")), OSError),
    "interrupted write": ("fsync", fail_with(KeyboardInterrupt()), KeyboardInterrupt),
    "interrupted rename": ("replace", fail_with(KeyboardInterrupt()), KeyboardInterrupt),
    "open": ("open", fail_with(PermissionError(errno.EACCES, "No")), PermissionError),
}


@pytest.mark.parametrize(("call", "failure", "error"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("existing", [True, False], ids=["existing file", "no file"])
def test_failure_changes_nothing(
    path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    failure: Callable[..., Any],
    error: type[BaseException],
    existing: bool,
) -> None:
    if existing:
        save_tensors(path, TENSORS)
    before = path.read_bytes() if existing else None
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failure)
        with pytest.raises(error):
            save_tensors(path, {"other": np.ones(1000)})
    assert os.listdir(path.parent) == ([path.name] if existing else [])
    if existing:
        assert path.read_bytes() == before
    save_tensors(path, TENSORS)  # The next correct call works.
    assert same(load_tensors(path, EXPECTED))


def test_data_is_on_disk_before_the_name_and_the_name_before_the_end(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def log_fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "data"
        events.append(f"sync {kind}")
        fsync(descriptor)

    def log_replace(old: str, new: str) -> None:
        events.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", log_fsync)
    monkeypatch.setattr(os, "replace", log_replace)
    save_tensors(path, TENSORS)
    assert events == ["sync data", "rename", "sync folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_file_systems_that_cannot_sync_a_folder(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fsync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    save_tensors(path, TENSORS)
    assert same(load_tensors(path, EXPECTED))


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002, 0o000])
def test_permissions_of_a_new_file(path: pathlib.Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        save_tensors(path, TENSORS)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_permissions_of_an_existing_file_stay(written: pathlib.Path) -> None:
    written.chmod(0o640)
    save_tensors(written, TENSORS)
    assert stat.S_IMODE(written.stat().st_mode) == 0o640


def test_read_only_file_is_not_replaced(
    written: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root could always write.
    with pytest.raises(PermissionError, match="The weights file is read-only"):
        save_tensors(written, {})
    assert written.read_bytes() == before


def test_link_is_followed(tmp_path: pathlib.Path, written: pathlib.Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(written)
    save_tensors(link, {"a": np.ones(1)})
    assert link.is_symlink()
    assert load_tensors(written, {"a": ((1,), "float64")})["a"].tolist() == [1.0]


def test_path_without_folder(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    save_tensors(path.name, TENSORS)
    assert same(load_tensors(path.name, EXPECTED))
    assert os.listdir() == [path.name]


def test_save_over_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(IsADirectoryError, match="cannot replace a folder; add a file name"):
        save_tensors(tmp_path, TENSORS)
    assert os.listdir(tmp_path) == []


def test_save_into_missing_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"create it first.*missing"):
        save_tensors(tmp_path / "missing" / "w", TENSORS)


@pytest.mark.parametrize("dtype", ["float16", "complex128", "object", "uint8"])
def test_save_other_dtype(path: pathlib.Path, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"Received: 'a' with dtype {dtype}. Convert it first"):
        save_tensors(path, {"a": np.zeros(2, dtype)})
    assert not path.exists()


@pytest.mark.parametrize("metadata", [{"crc32": "x"}, {"kind": "x"}, {"step": 3}])
def test_save_other_metadata(path: pathlib.Path, metadata: Any) -> None:
    with pytest.raises(ValueError, match="Metadata must be texts under keys other than"):
        save_tensors(path, TENSORS, metadata)
