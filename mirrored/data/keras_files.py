"""The data sets that Keras has files of, as it keeps them: read, never downloaded or unpickled.

The files are in Keras' own folder, where a program that uses Keras has put them, or the user.
"""

import gzip
import os
import struct
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored._files import PathName, as_path
from mirrored._numbers import as_integer

Array = NDArray[Any]
Sets = tuple[tuple[Array, Array], tuple[Array, Array]]
_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
# The SHA-256 sums of the files, which Keras compares.
_SUMS = {
    "mnist.npz": "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    "boston_housing.npz": "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5",
    "california_housing.npz": "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f",
}


@explained
def load_mnist(path: PathName = "mnist.npz") -> Sets:
    """Return MNIST: 60,000 and 10,000 grey images of handwritten digits.

    Args:
        path: The file, from Keras' folder of data sets on.

    Returns:
        (x_train, y_train), (x_test, y_test): images of shape (examples, 28, 28) and labels from 0
        to 9 of shape (examples,), all uint8.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file.
    """
    x_train, y_train, x_test, y_test = _arrays(
        path, "mnist.npz", "x_train", "y_train", "x_test", "y_test"
    )
    return (x_train, y_train), (x_test, y_test)


@explained
def load_fashion_mnist() -> Sets:
    """Return Fashion-MNIST: 60,000 and 10,000 grey images of clothes of ten kinds.

    Its four files are in the folder `fashion-mnist` of Keras' folder of data sets.

    Returns:
        (x_train, y_train), (x_test, y_test): images of shape (examples, 28, 28) and labels from 0
        to 9 of shape (examples,), all uint8.

    Raises:
        FileNotFoundError: One is not there; the text says where it can be had.
        ValueError: One is another file.
    """
    folder = os.path.join(_folder(), "fashion-mnist")
    sets = []
    for name in ("train", "t10k"):
        images = _idx(folder, f"{name}-images-idx3-ubyte.gz", 3)
        labels = _idx(folder, f"{name}-labels-idx1-ubyte.gz", 1)
        _check_alike(images, labels, folder)
        sets.append((images, labels))
    return sets[0], sets[1]


@explained
def load_boston_housing(
    path: PathName = "boston_housing.npz", test_split: float = 0.2, seed: int = 113
) -> Sets:
    """Return prices of 506 houses in Boston in the seventies, with 13 features each.

    Args:
        path: The file, from Keras' folder of data sets on.
        test_split: The part of the examples that are set aside, from 0 up to 1.
        seed: The seed of their order; None is another one each time.

    Returns:
        (x_train, y_train), (x_test, y_test): features of shape (examples, 13) and prices of shape
        (examples,), in Keras' order.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file, or the part is out of range.
    """
    _check_split(test_split)
    x, y = _arrays(path, "boston_housing.npz", "x", "y")
    return _divided(x, y, test_split, seed)


@explained
def load_california_housing(
    version: str = "large",
    path: PathName = "california_housing.npz",
    test_split: float = 0.2,
    seed: int = 113,
) -> Sets:
    """Return the values of houses in 20,640 districts of California in 1990, with 8 features each.

    Args:
        version: "large", or "small" for the first 600 of them.
        path: The file, from Keras' folder of data sets on.
        test_split: The part of the examples that are set aside, from 0 up to 1.
        seed: The seed of their order; None is another one each time.

    Returns:
        (x_train, y_train), (x_test, y_test): features of shape (examples, 8) and values of shape
        (examples,), in Keras' order.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file, the part is out of range, or there is no such version.
    """
    _check_split(test_split)
    if version not in ("small", "large"):
        raise ValueError(
            "Argument `version` must be one of 'small', 'large'. "
            f"Received: version={version!r}. The small one has the first 600 districts."
        )
    x, y = _arrays(path, "california_housing.npz", "x", "y")
    count = 600 if version == "small" else len(x)
    return _divided(x[:count], y[:count], test_split, seed)


# ---------------------------------------------------------------------------- files


def home() -> str:
    """Return Keras' folder."""
    named = os.environ.get("KERAS_HOME")
    if named is not None:
        return named
    user = os.path.expanduser("~")
    return os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")


def _folder() -> str:
    """Return Keras' folder of data sets."""
    return os.path.join(home(), "datasets")


def _arrays(path: PathName, name: str, *keys: str) -> list[Array]:
    """Return arrays of an npz file, in which nothing is unpickled."""
    place = os.path.join(_folder(), as_path(path, "data set"))
    _check_there(place, name)
    try:
        with open(place, "rb") as raw, _archive(raw) as file:
            missing = [key for key in keys if key not in file]
            if missing:
                raise ValueError(f"It has no {missing[0]!r}, but {sorted(file)}")
            arrays = [file[key] for key in keys]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"The file is none of the arrays {list(keys)}. Received: {place}: {error}. Get "
            f"{_ORIGIN}{name}, of sha256 {_SUMS[name]}, in its place."
        ) from error
    for x, y in zip(arrays[::2], arrays[1::2], strict=True):
        _check_alike(x, y, place)
    return arrays


def _archive(raw: IO[bytes]) -> NpzFile:
    file = np.load(raw, allow_pickle=False)
    if not isinstance(file, NpzFile):
        raise ValueError("It holds one array")
    return file


def _idx(folder: str, name: str, rank: int) -> NDArray[np.uint8]:
    """Return the array of a compressed IDX file of bytes."""
    place = os.path.join(folder, name)
    _check_there(place, name)
    try:
        with gzip.open(place) as file:
            content = file.read()
        (magic,) = struct.unpack(">I", content[:4])
        if magic != 0x0800 + rank:
            raise ValueError(f"Its first number is {magic}")
        shape = struct.unpack(f">{rank}I", content[4 : 4 * (1 + rank)])
        return np.frombuffer(content, np.uint8, offset=4 * (1 + rank)).reshape(shape)
    except (ValueError, OSError, EOFError, zlib.error, struct.error) as error:
        raise ValueError(
            f"The file is no IDX file of {rank} axes. Received: {place}: {error}. Get "
            f"{_ORIGIN}{name} in its place."
        ) from error


def _check_there(place: str, name: str) -> None:
    if os.path.isfile(place):
        return
    known = f", of sha256 {_SUMS[name]}" if name in _SUMS else ""
    raise FileNotFoundError(
        f"The data set is not there, and is not downloaded. Received: {place}. Get "
        f"{_ORIGIN}{name}{known}, and put it there, or set KERAS_HOME to the folder in whose "
        "`datasets` it is."
    )


# ---------------------------------------------------------------------------- examples


def _check_split(test_split: float) -> None:
    is_number = isinstance(test_split, int | float | np.number)
    if not (is_number and 0 <= test_split < 1):
        raise ValueError(
            f"Invalid `test_split` argument: {test_split}. It must be between 0 and 1 (exclusive "
            "of 1)."
        )


def _check_alike(x: Array, y: Array, place: str) -> None:
    if not (x.ndim and y.ndim and len(x) == len(y)):
        raise ValueError(
            "A data set has as many examples as labels. Received: arrays with the shapes "
            f"{x.shape} and {y.shape}, of {place}. Get its files again."
        )


def _divided(x: Array, y: Array, test_split: float, seed: Any) -> Sets:
    """Return the examples in an order of the seed's, with the last ones set aside."""
    order = np.arange(len(x))
    number = None if seed is None else as_integer(seed)
    np.random.RandomState(seed if number is None else number).shuffle(order)  # As in Keras.
    end = int(len(x) * (1 - test_split))
    first, last = order[:end], order[end:]
    return (x[first], y[first]), (x[last], y[last])
