"""Keras' data sets: read from where Keras keeps them, and nothing is run that is in a file."""

import gzip
import hashlib
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.keras.datasets import (
    boston_housing,
    california_housing,
    cifar10,
    cifar100,
    fashion_mnist,
    mnist,
)

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (7, 28, 28), np.uint8)
LABELS = RNG.integers(0, 10, 7).astype(np.uint8)
X = np.arange(1400.0).reshape(700, 2)
Y = np.arange(700.0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return Keras' folder of data sets."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    made = tmp_path / "datasets"
    (made / "fashion-mnist").mkdir(parents=True)
    return made


def digits(path: Path, **change: Any) -> None:
    arrays = {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES[:3], "y_test": LABELS[:3]}
    np.savez(path, **{**arrays, **change})


def idx(path: Path, array: np.ndarray) -> None:
    header = struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


def fashion(folder: Path) -> None:
    for name, count in (("train", 7), ("t10k", 3)):
        idx(folder / "fashion-mnist" / f"{name}-images-idx3-ubyte.gz", IMAGES[:count])
        idx(folder / "fashion-mnist" / f"{name}-labels-idx1-ubyte.gz", LABELS[:count])


def test_another_file_than_keras_is_read_with_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    digits(folder / "mnist.npz")
    mnist.load_data()
    assert "mnist.npz is not the one that Keras reads, whose sha256 is 731c5" in caplog.text
    caplog.clear()
    sums = {"mnist.npz": hashlib.sha256((folder / "mnist.npz").read_bytes()).hexdigest()}
    monkeypatch.setattr("mirrored.data.keras_files._SUMS", sums)
    mnist.load_data()
    assert caplog.text == ""


def test_images(folder: Path, tmp_path: Path) -> None:
    digits(folder / "mnist.npz")
    digits(tmp_path / "mine.npz")
    fashion(folder)
    for given in (
        mnist.load_data(),
        mnist.load_data(tmp_path / "mine.npz"),
        fashion_mnist.load_data(),
    ):
        (x, y), (x_test, y_test) = given
        assert x.dtype == y.dtype == np.uint8
        assert (x.tolist(), y.tolist()) == (IMAGES.tolist(), LABELS.tolist())
        assert (x_test.tolist(), y_test.tolist()) == (IMAGES[:3].tolist(), LABELS[:3].tolist())


def test_houses(folder: Path) -> None:
    np.savez(folder / "boston_housing.npz", x=X[:506], y=Y[:506])
    np.savez(folder / "california_housing.npz", x=X, y=Y)
    for load, count, options in (
        (boston_housing.load_data, 506, {}),
        (california_housing.load_data, 700, {"test_split": 0.3, "seed": 5}),
        (california_housing.load_data, 600, {"version": "small", "test_split": 0}),
    ):
        (x, y), (x_test, y_test) = load(**options)
        order = np.arange(count)
        np.random.RandomState(options.get("seed", 113)).shuffle(order)
        end = int(count * (1 - options.get("test_split", 0.2)))
        assert (y.tolist(), y_test.tolist()) == (Y[order[:end]].tolist(), Y[order[end:]].tolist())
        assert (x.tolist(), x_test.tolist()) == (X[order[:end]].tolist(), X[order[end:]].tolist())


LOADERS = {
    "mnist": (mnist.load_data, r"tf-keras-datasets/mnist.npz, of sha256 731c5ac6"),
    "fashion": (fashion_mnist.load_data, "tf-keras-datasets/train-images-idx3-ubyte.gz, and store"),
    "boston": (boston_housing.load_data, "boston_housing.npz, of sha256 f5538"),
    "california": (california_housing.load_data, "california_housing.npz, of sha256 1a2e3"),
}


@pytest.mark.parametrize(("load", "message"), LOADERS.values(), ids=LOADERS)
def test_what_is_not_there(load: Any, message: str, folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=message) as caught:
        load()
    assert str(folder) in str(caught.value)


class Runs:
    """What would run, if it were unpickled."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("It was unpickled.",))


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def save(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, array)


WRONG: dict[str, tuple[Any, str]] = {
    "no archive": (lambda path: write(path, b"text"), "does not have the arrays"),
    "empty": (lambda path: write(path, b""), "does not have the arrays"),
    "a pickle": (lambda path: write(path, pickle.dumps(Runs())), "does not have the arrays"),
    "pickled objects": (
        lambda path: digits(path, x_train=np.array([Runs()] * 7, object)),
        "Object arrays cannot be loaded",
    ),
    "other arrays": (lambda path: np.savez(path, x=X, y=Y), "It has no 'x_train', but"),
    "one array": (lambda path: save(path, X), "It holds one array"),
    "lengths": (lambda path: digits(path, y_test=LABELS), r"\(3, 28, 28\) and \(7,\)"),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_files_that_are_wrong(make: Any, message: str, folder: Path) -> None:
    make(folder / "mnist.npz")
    with pytest.raises(ValueError, match=message):
        mnist.load_data()


def test_a_file_that_is_cut_off(folder: Path) -> None:
    digits(folder / "mnist.npz")
    whole = (folder / "mnist.npz").read_bytes()
    (folder / "mnist.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"does not have the arrays .*Get https://.*, of sha256"):
        mnist.load_data()


@pytest.mark.parametrize("kept", [0, 5, 30])
def test_images_that_are_wrong(kept: int, folder: Path) -> None:
    fashion(folder)
    file = folder / "fashion-mnist" / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="not an IDX file with 3 axes"):
        fashion_mnist.load_data()
    idx(file, LABELS)
    with pytest.raises(ValueError, match=r"not an IDX file with 3 axes.* Its first number is 2049"):
        fashion_mnist.load_data()
    idx(file, IMAGES)
    with pytest.raises(ValueError, match="the same number of examples and labels"):
        fashion_mnist.load_data()


@pytest.mark.parametrize("split", [1, -0.1, float("nan"), "0.2"])
def test_parts_out_of_range(split: Any, folder: Path) -> None:
    for load in (boston_housing.load_data, california_housing.load_data):
        with pytest.raises(ValueError, match="Invalid `test_split` argument"):
            load(test_split=split)
    with pytest.raises(ValueError, match="Argument `version` must be one of 'small', 'large'"):
        california_housing.load_data(version="tiny")
    with pytest.raises(TypeError, match="needs a path"):
        mnist.load_data(3)


PIXELS = RNG.integers(0, 256, (12, 3072), np.uint8)
KINDS = {b"labels": range(12), b"fine_labels": range(80, 92), b"coarse_labels": range(7, 19)}
BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def colours(folder: Path, names: list[str], **change: Any) -> None:
    """Write batches of two images, as Python 2 wrote them; each name has a part of the rows."""
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        rows = slice(2 * i, 2 * i + 2)
        batch = {key: list(labels[rows]) for key, labels in KINDS.items()}
        batch |= {b"data": PIXELS[rows], b"filenames": [b"a.png"], b"batch_label": b"one of six"}
        batch |= {key.encode(): value for key, value in change.items()}
        content = pickle.dumps(batch, protocol=3)
        # As it was called before NumPy 2.
        write(folder / name, content.replace(b"cnumpy._core.multi", b"cnumpy.core.multi"))


@pytest.mark.parametrize("packed", [False, True])
def test_colour_images(packed: bool, folder: Path, tmp_path: Path) -> None:
    for inner, names in (("cifar-10-batches-py", BATCHES), ("cifar-100-python", ["train", "test"])):
        target = folder / f"{inner}-target"
        source = tmp_path / inner if packed else target / inner
        colours(source, names)
        if packed:
            with tarfile.open(f"{target}_archive", "w:gz") as archive:
                archive.add(source, inner)
    images = PIXELS.reshape(-1, 3, 32, 32)
    (x, y), (x_test, y_test) = cifar10.load_data()
    assert {array.dtype for array in (x, y, x_test, y_test)} == {np.dtype(np.uint8)}
    np.testing.assert_array_equal(x, images[:10].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(x_test, images[10:].transpose(0, 2, 3, 1))
    assert y.tolist() == [[label] for label in range(10)]
    assert y_test.tolist() == [[10], [11]]
    mr.keras.backend.set_image_data_format("channels_first")
    for mode, first in (("fine", 80), ("coarse", 7)):
        (x, y), (x_test, y_test) = cifar100.load_data(mode)
        np.testing.assert_array_equal(np.concatenate([x, x_test]), images[:4])
        assert (x.dtype, y.dtype, y_test.dtype) == (np.uint8, np.int64, np.int64)
        assert [*y[:, 0], *y_test[:, 0]] == [*range(first, first + 4)]


def test_colour_images_that_are_not_there(folder: Path) -> None:
    text = "not downloaded. Received: .*data_batch_1. Get https.*, of sha256 6d95.*store it as "
    with pytest.raises(FileNotFoundError, match=f"{text}.*cifar-10-batches-py-target_archive"):
        cifar10.load_data()
    colours(folder / "cifar-100-python-target" / "cifar-100-python", ["train"])
    with pytest.raises(FileNotFoundError, match="cifar-100-python/test"):
        cifar100.load_data()
    with pytest.raises(ValueError, match="`label_mode` must be one of"):
        cifar100.load_data("both")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"data": Runs()}, "It needs .*, and may have arrays and plain values alone"),
        ({"data": np.array([Runs()], object)}, "It needs .*, and may have arrays and plain values"),
        ({"data": PIXELS[:3]}, r"uint8 of shape \(3, 3072\) and labels of shape \(2,\)"),
        ({"data": PIXELS[:2, :99]}, "cannot reshape array"),
        ({"data": PIXELS[:2] / 2}, "A file has float64 of shape"),
        ({"fine_labels": [b"a", b"b"]}, "A file has uint8 of shape"),
    ],
)
def test_colour_images_that_are_wrong(change: Any, match: str, folder: Path) -> None:
    inner = folder / "cifar-100-python-target" / "cifar-100-python"
    colours(inner, ["train", "test"], **change)
    with pytest.raises(ValueError, match=f"do not have images and labels.*{match}.* Get https"):
        cifar100.load_data()
    for content in (b"", b"text", pickle.dumps({})):
        write(inner / "train", content)
        with pytest.raises(ValueError, match="do not have images and labels"):
            cifar100.load_data()
    for content in (b"", b"text", gzip.compress(bytes(4000))[:-9]):
        write(folder / "cifar-100-python-target_archive", content)
        with pytest.raises(ValueError, match=r"do not have images and labels.*target_archive"):
            cifar100.load_data()


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


# Of Python 3.11.4 and later.
filters_tar_files = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"), reason="this Python does not extract tar files safely"
)


@filters_tar_files
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
    with pytest.raises(ValueError, match="not an archive that can be extracted"):
        fetched(origin=origin, extract=True)


@filters_tar_files
def test_an_archive_stays_in_its_folder(origin: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.add(origin, "../../outside.csv")
    with pytest.raises(tarfile.OutsideDestinationError):
        fetched("bad", tmp_path / "bad.tar", extract=True)
    assert not list(tmp_path.rglob("outside.csv"))


def test_a_python_that_does_not_filter(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(tmp_path / "rows.tar", "w") as archive:
        archive.add(origin, "rows.csv")
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    with pytest.raises(RuntimeError, match=r"from 3\.11\.4 on.*rows\.tar"):
        fetched("rows.tar", tmp_path / "rows.tar", extract=True)
    assert not list(tmp_path.rglob("rows_extracted"))


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no origin": ({}, ValueError, '"origin" argument'),
    "folders": ({"fname": "a/b", "origin": "rows.csv"}, ValueError, "without folders"),
    "no name": ({"origin": "https://localhost/"}, ValueError, "name of a file"),
    "no file": ({"origin": "file:///no/such/file"}, OSError, "URL fetch failure on file:"),
    "unknown": ({"origin": "gs://bucket/x"}, OSError, "URL fetch failure on gs://bucket/x"),
    "no path": ({"origin": 3}, TypeError, "needs a path"),
    "algorithm": (
        {"origin": __file__, "file_hash": MD5, "hash_algorithm": "crc"},
        ValueError,
        "`hash_algorithm` must be one of",
    ),
}


@pytest.mark.parametrize(("options", "kind", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("origin")
def test_what_is_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        fetched(**options)
