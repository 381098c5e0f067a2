"""`get_file`: a file is fetched once, by its hash, and archives are extracted; all of it local."""

import hashlib
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import mirrored as mr

CONTENT = b"1,2\n3,4\n"
SHA, MD5 = hashlib.sha256(CONTENT).hexdigest(), hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    path = tmp_path / "rows.csv"
    path.write_bytes(CONTENT)
    return path


def fetched(*args: Any, **options: Any) -> Path:
    return Path(mr.keras.utils.get_file(*args, **options))


def test_a_file_is_fetched_once(origin: Path, tmp_path: Path) -> None:
    path = fetched("kept.csv", origin.as_uri(), file_hash=SHA)
    assert path == tmp_path / "keras" / "datasets" / "kept.csv"
    assert path.read_bytes() == CONTENT
    origin.write_bytes(b"5")
    assert fetched("kept.csv", origin, file_hash=SHA).read_bytes() == CONTENT
    assert fetched("kept.csv", origin, md5_hash=MD5).read_bytes() == CONTENT
    assert fetched("kept.csv", origin).read_bytes() == CONTENT
    assert fetched("kept.csv", origin, force_download=True).read_bytes() == b"5"
    origin.write_bytes(CONTENT)
    assert fetched("kept.csv", origin, file_hash=MD5).read_bytes() == CONTENT  # Is another one.
    path = fetched(origin=str(origin), cache_dir=tmp_path, cache_subdir="own")
    assert path == tmp_path / "own" / "rows.csv"


def test_another_hash_leaves_nothing(origin: Path) -> None:
    with pytest.raises(ValueError, match="Incomplete or corrupted file detected"):
        fetched("kept.csv", origin, file_hash="0" * 64)
    with pytest.raises(ValueError, match="The md5 file hash does not match"):
        fetched("kept.csv", origin, file_hash=SHA, hash_algorithm="md5")
    assert not list((origin.parent / "keras" / "datasets").iterdir())


def test_archives(origin: Path, tmp_path: Path) -> None:
    packed, zipped = tmp_path / "rows.tar.gz", tmp_path / "rows.zip"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(origin, "inner/rows.csv")
    with zipfile.ZipFile(zipped, "w") as other:
        other.write(origin, "rows.csv")
    folder = tmp_path / "keras" / "datasets"
    assert fetched("a", packed, untar=True) == folder / "a"
    assert (folder / "a" / "inner" / "rows.csv").read_bytes() == CONTENT
    assert (folder / "a_archive").exists()
    assert fetched("b.zip", zipped, extract=True) == folder / "b_extracted"
    assert (folder / "b_extracted" / "rows.csv").read_bytes() == CONTENT
    assert fetched(origin=zipped, extract=True) == folder / "rows.zip"
    with pytest.raises(ValueError, match="no archive that can be extracted"):
        fetched(origin=origin, extract=True)


def test_an_archive_stays_in_its_folder(origin: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.add(origin, "../../outside.csv")
    with pytest.raises(tarfile.OutsideDestinationError):
        fetched("bad", tmp_path / "bad.tar", extract=True)
    assert not list(tmp_path.rglob("outside.csv"))


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no origin": ({}, ValueError, '"origin" argument'),
    "folders": ({"fname": "a/b", "origin": "rows.csv"}, ValueError, "without folders"),
    "no name": ({"origin": "https://localhost/"}, ValueError, "name of a file"),
    "no file": ({"origin": "file:///no/such/file"}, OSError, "URL fetch failure on file:"),
    "unknown": ({"origin": "gs://bucket/x"}, OSError, "URL fetch failure on gs://bucket/x"),
    "no path": ({"origin": 3}, TypeError, "at a path"),
    "algorithm": (
        {"origin": __file__, "file_hash": MD5, "hash_algorithm": "crc"},
        ValueError,
        "`hash_algorithm` is one of",
    ),
}


@pytest.mark.parametrize(("options", "kind", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("origin")
def test_what_is_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        fetched(**options)
