"""Keras' data sets: read from where Keras keeps them, and nothing is run that is in a file."""

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.keras.datasets import (
    boston_housing,
    california_housing,
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
    "fashion": (fashion_mnist.load_data, "tf-keras-datasets/train-images-idx3-ubyte.gz, and put"),
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
    "no archive": (lambda path: write(path, b"text"), "none of the arrays"),
    "empty": (lambda path: write(path, b""), "none of the arrays"),
    "a pickle": (lambda path: write(path, pickle.dumps(Runs())), "none of the arrays"),
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
    with pytest.raises(ValueError, match=r"none of the arrays .*Get https://.*, of sha256"):
        mnist.load_data()


@pytest.mark.parametrize("kept", [0, 5, 30])
def test_images_that_are_wrong(kept: int, folder: Path) -> None:
    fashion(folder)
    file = folder / "fashion-mnist" / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="no IDX file of 3 axes"):
        fashion_mnist.load_data()
    idx(file, LABELS)
    with pytest.raises(ValueError, match=r"no IDX file of 3 axes.* Its first number is 2049"):
        fashion_mnist.load_data()
    idx(file, IMAGES)
    with pytest.raises(ValueError, match="as many examples as labels"):
        fashion_mnist.load_data()


@pytest.mark.parametrize("split", [1, -0.1, float("nan"), "0.2"])
def test_parts_out_of_range(split: Any, folder: Path) -> None:
    for load in (boston_housing.load_data, california_housing.load_data):
        with pytest.raises(ValueError, match="Invalid `test_split` argument"):
            load(test_split=split)
    with pytest.raises(ValueError, match="Argument `version` must be one of 'small', 'large'"):
        california_housing.load_data(version="tiny")
    with pytest.raises(TypeError, match="is at a path"):
        mnist.load_data(3)


def test_pickles_are_refused_with_advice() -> None:
    with pytest.raises(AttributeError, match="files are pickles: save the arrays"):
        _ = mr.keras.datasets.cifar10
