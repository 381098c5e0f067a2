"""Files in Keras' folder: the data sets of Keras, and `get_file`.

The data sets are read where a program that uses Keras, or the user, has put them. They are never
downloaded, and pickles in them may have arrays and plain values alone. `get_file` copies or
downloads a file once, and compares it with a hash.
"""

import gzip
import hashlib
import io
import os
import pickle
import platform
import struct
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from mirrored._arguments import explain_functions
from mirrored._files import as_path, replacing
from mirrored._logging import logger
from mirrored._numbers import as_integer
from mirrored._types import PathLike
from mirrored.ops.spec import image_data_format

Array = NDArray[Any]
Sets = tuple[tuple[Array, Array], tuple[Array, Array]]
_ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/"
# The SHA-256 and MD5 sums of the files, which Keras compares.
_SUMS = {
    "imdb.npz": "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
    "imdb_word_index.json": "bfafd718b763782e994055a2d397834f",
    "reuters.npz": "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916",
    "reuters_word_index.json": "4d44cc38712099c9e383dc6e5f11a921",
    "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    "cifar-100-python.tar.gz": "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    "mnist.npz": "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    "boston_housing.npz": "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5",
    "california_housing.npz": "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f",
}


def load_mnist(path: PathLike = "mnist.npz") -> Sets:
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
    x_train, y_train, x_test, y_test = arrays_of(
        path, "mnist.npz", "x_train", "y_train", "x_test", "y_test"
    )
    return (x_train, y_train), (x_test, y_test)


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
    folder = os.path.join(datasets_folder(), "fashion-mnist")
    sets = []
    for name in ("train", "t10k"):
        images = _idx(folder, f"{name}-images-idx3-ubyte.gz", 3)
        labels = _idx(folder, f"{name}-labels-idx1-ubyte.gz", 1)
        _check_alike(images, labels, folder)
        sets.append((images, labels))
    return sets[0], sets[1]


def load_cifar10() -> Sets:
    """Return CIFAR-10: 50,000 and 10,000 colour images of things of ten kinds.

    Keras' folder of data sets has its archive, as `cifar-10-batches-py-target_archive`, or what is
    in that, in the folder `cifar-10-batches-py-target`.

    Returns:
        (x_train, y_train), (x_test, y_test): images of shape (examples, 32, 32, 3), or (examples,
        3, 32, 32) where `image_data_format` is "channels_first", and labels from 0 to 9 of shape
        (examples, 1), all uint8.

    Raises:
        FileNotFoundError: A file is not there; the text says where it can be had.
        ValueError: One is another file.
    """
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    archive = "cifar-10-python.tar.gz"
    *parts, test = _batches("cifar-10-batches-py", names, "labels", archive)
    images, labels = zip(*parts, strict=True)
    x_test, y_test = test
    return (
        (np.concatenate(images), np.concatenate(labels).astype(np.uint8)),
        (x_test, y_test.astype(np.uint8)),
    )


def load_cifar100(label_mode: str = "fine") -> Sets:
    """Return CIFAR-100: 50,000 and 10,000 colour images of things of a hundred kinds.

    Keras' folder of data sets has its archive, as `cifar-100-python-target_archive`, or what is in
    that, in the folder `cifar-100-python-target`.

    Args:
        label_mode: "fine" for a hundred kinds, "coarse" for the twenty groups of them.

    Returns:
        (x_train, y_train), (x_test, y_test): images of shape (examples, 32, 32, 3), or (examples,
        3, 32, 32) where `image_data_format` is "channels_first", of uint8, and int64 labels from 0
        of shape (examples, 1).

    Raises:
        FileNotFoundError: A file is not there; the text says where it can be had.
        ValueError: One is another file, or there is no such mode.
    """
    if label_mode not in ("fine", "coarse"):
        raise ValueError(
            f'`label_mode` must be one of `"fine"`, `"coarse"`. Received: label_mode={label_mode}.'
        )
    archive = "cifar-100-python.tar.gz"
    train, test = _batches("cifar-100-python", ["train", "test"], f"{label_mode}_labels", archive)
    return train, test


def load_boston_housing(
    path: PathLike = "boston_housing.npz", test_split: float = 0.2, seed: int = 113
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
    x, y = arrays_of(path, "boston_housing.npz", "x", "y")
    return _divided(x, y, test_split, seed)


def load_california_housing(
    version: str = "large",
    path: PathLike = "california_housing.npz",
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
            f"Argument `version` must be one of 'small', 'large'. Received: version={version!r}. "
            "The small version has the first 600 districts."
        )
    x, y = arrays_of(path, "california_housing.npz", "x", "y")
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


def datasets_folder() -> str:
    """Return Keras' folder of data sets."""
    return os.path.join(home(), "datasets")


def arrays_of(path: PathLike, name: str, *keys: str, of_lists: bool = False) -> list[Array]:
    """Return arrays of an npz file, each of examples and then of labels.

    Args:
        path: The file, from the folder of data sets on.
        name: What it is called where it can be had.
        *keys: The names of the arrays.
        of_lists: Whether arrays may have lists of numbers; otherwise nothing is unpickled.

    Raises:
        FileNotFoundError: The file is missing.
        ValueError: It is another file.
    """
    place = os.path.join(datasets_folder(), as_path(path, "data set"))
    check_there(place, name)
    try:
        with open(place, "rb") as raw, _archive(raw) as file:
            missing = [key for key in keys if key not in file]
            if missing:
                raise ValueError(f"It has no {missing[0]!r}, but {sorted(file)}")
            arrays = [_lists(file, key) if of_lists else file[key] for key in keys]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"The file does not have the arrays {list(keys)}. Received: {place}: {error}. Get "
            f"{_ORIGIN}{name}, of sha256 {_SUMS[name]}, instead."
        ) from error
    for x, y in zip(arrays[::2], arrays[1::2], strict=True):
        _check_alike(x, y, place)
    return arrays


def _archive(raw: IO[bytes]) -> NpzFile:
    file = np.load(raw, allow_pickle=False)
    if not isinstance(file, NpzFile):
        raise ValueError("It holds one array")
    return file


def _lists(archive: NpzFile, key: str) -> Array:
    """Return an array of an npz file, which may have lists of numbers."""
    file: Any = archive.zip
    content = io.BytesIO(file.read(f"{key}.npy"))
    is_first = np.lib.format.read_magic(content) == (1, 0)
    headers = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    if not headers[0 if is_first else 1](content)[2].hasobject:
        return archive[key]
    return np.asarray(_unpickled(content), object)


def _idx(folder: str, name: str, rank: int) -> NDArray[np.uint8]:
    """Return the array of a compressed IDX file of bytes."""
    place = os.path.join(folder, name)
    check_there(place, name)
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
            f"The file is not an IDX file with {rank} axes. Received: {place}: {error}. Get "
            f"{_ORIGIN}{name} instead."
        ) from error


class _ArraysAlone(pickle.Unpickler):
    """Reads a pickle of arrays, bytes, numbers and lists and dicts of these; nothing else runs."""

    __classes: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): np.ndarray(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.ndarray(0).__reduce__()[0],
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return what makes an array; raise UnpicklingError for anything else."""
        if (module, name) not in self.__classes:
            raise pickle.UnpicklingError(
                f"It needs {module}.{name}, and may have arrays and plain values alone"
            )
        return self.__classes[module, name]


def _unpickled(file: IO[bytes], encoding: str = "ASCII") -> Any:
    try:
        return _ArraysAlone(file, encoding=encoding).load()
    except Exception as error:  # Whatever the bytes of another file lead to.
        raise ValueError(str(error)) from error


def _batches(folder: str, names: list[str], key: str, archive: str) -> list[tuple[Array, Array]]:
    """Return the images and labels of pickles in an archive, or in the folder of its files.

    Args:
        folder: The archive's folder.
        names: The files in it.
        key: What the labels are called.
        archive: What the archive is called where it can be had.
    """
    place = os.path.join(datasets_folder(), f"{folder}-target")
    advice = f"Get {_CIFAR}{archive}, of sha256 {_SUMS[archive]}, and store it as {place}_archive."
    paths = [os.path.join(place, folder, name) for name in names]
    missing = [path for path in paths if not os.path.isfile(path)]
    is_packed = os.path.isfile(f"{place}_archive")
    if missing and not is_packed:
        raise FileNotFoundError(
            f"The data set is missing, and is not downloaded. Received: {missing[0]}. {advice} Or "
            "set KERAS_HOME to the folder whose subfolder `datasets` has it."
        )
    source = f"{place}_archive" if is_packed else place
    if is_packed:
        _compare(source, archive)
    try:
        if not is_packed:
            return [_batch(Path(path).read_bytes(), key) for path in paths]
        with tarfile.open(source) as file:
            members = [file.extractfile(f"{folder}/{name}") for name in names]
            return [_batch(b"" if member is None else member.read(), key) for member in members]
    except (ValueError, KeyError, OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise ValueError(
            f"The files do not have images and labels. Received: {source}: {error}. {advice}"
        ) from error


def _batch(content: bytes, key: str) -> tuple[Array, Array]:
    """Return the images and labels of one pickle."""
    batch = _unpickled(io.BytesIO(content), encoding="bytes")
    wanted = (b"data", key.encode())
    if not (isinstance(batch, dict) and batch.keys() >= set(wanted)):
        raise ValueError(f"A file has no dict with {wanted}")
    images, labels = np.asarray(batch[b"data"]), np.asarray(batch[wanted[1]])
    if images.dtype != np.uint8 or labels.dtype.kind != "i" or labels.shape != images.shape[:1]:
        raise ValueError(
            f"A file has {images.dtype} of shape {images.shape} and labels of shape {labels.shape}"
        )
    images = images.reshape(len(images), 3, 32, 32)
    if image_data_format() == "channels_last":
        images = images.transpose(0, 2, 3, 1)
    return images, labels.astype(np.int64)[:, np.newaxis]


def _compare(place: str, name: str) -> None:
    """Warn about a file that is not the one that Keras reads; it may be so on purpose."""
    if name in _SUMS and not _has_hash(place, _SUMS[name], "auto"):
        text = "The file %s is not the one that Keras reads, whose %s is %s."
        logger.warning(text, place, _kind(_SUMS[name]), _SUMS[name])


def _kind(file_hash: str) -> str:
    return "sha256" if len(file_hash) == 64 else "md5"


def check_there(place: str, name: str) -> None:
    """Raise FileNotFoundError, with advice, unless a file is there; warn about another file.

    Args:
        place: The file's path.
        name: What it is called where it can be had.
    """
    if os.path.isfile(place):
        _compare(place, name)
        return
    known = f", of {_kind(_SUMS[name])} {_SUMS[name]}" if name in _SUMS else ""
    raise FileNotFoundError(
        f"The data set is missing, and is not downloaded. Received: {place}. Get "
        f"{_ORIGIN}{name}{known}, and store it there. Or set KERAS_HOME to the folder whose "
        "subfolder `datasets` has it."
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
            "A data set needs the same number of examples and labels. Received: arrays with the "
            f"shapes {x.shape} and {y.shape}, of {place}. Download its files again."
        )


def _divided(x: Array, y: Array, test_split: float, seed: Any) -> Sets:
    """Return the examples in an order of the seed's, with the last ones set aside."""
    order = np.arange(len(x))
    number = None if seed is None else as_integer(seed)
    np.random.RandomState(seed if number is None else number).shuffle(order)  # As in Keras.
    end = int(len(x) * (1 - test_split))
    first, last = order[:end], order[end:]
    return (x[first], y[first]), (x[last], y[last])


_AT_ONCE = 1 << 20  # Bytes.
_PATIENCE = 60.0  # Seconds for which a server may send nothing.


def get_file(
    fname: PathLike | None = None,
    origin: PathLike | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str | list[str] | None = "auto",
    cache_dir: PathLike | None = None,
    force_download: bool = False,
) -> str:
    """Return the path of a file in Keras' folder, after fetching it if it is not there.

    Only a file with the given hash is kept.

    Args:
        fname: The name there; None: that of `origin`.
        origin: Where the file is from: a URL, which `urllib` reads, or a path.
        untar: Whether to extract a tar archive; `extract` does it too.
        md5_hash: The older form of `file_hash`.
        file_hash: The file's SHA-256 or MD5 hash.
        cache_subdir: The folder in `cache_dir`.
        hash_algorithm: "sha256", "md5", or "auto", which tells them apart by their length.
        extract: Whether to extract the archive; the folder is returned then.
        archive_format: "tar", "zip", "auto" for either, or a list of these.
        cache_dir: The folder; None: `KERAS_HOME`, or `~/.keras`.
        force_download: Whether to fetch the file though it is there.

    Raises:
        ValueError: There is no origin, a name has folders, the hash is another, or an archive that
            is to be extracted is none.
        RuntimeError: A tar archive is to be extracted before Python 3.11.4.
        OSError: The origin cannot be read, or the file not be written.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "rows.csv").write_text("1,2")
        >>> path = mr.keras.utils.get_file(
        ...     origin=folder / "rows.csv", cache_dir=folder, cache_subdir="kept"
        ... )
        >>> pathlib.Path(path).read_text()
        '1,2'
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    text = as_path(origin, "file")  # A URL, or a path.
    is_url = "://" in text or text.startswith("file:")
    url = text if is_url else Path(text).absolute().as_uri()
    if md5_hash is not None and file_hash is None:
        file_hash, hash_algorithm = md5_hash, "md5"
    folder = os.path.join(_writable(home() if cache_dir is None else cache_dir), cache_subdir)
    name = as_path(fname, "file") if fname else os.path.basename(urllib.parse.urlsplit(url).path)
    if not name or os.sep in name:
        raise ValueError(
            "`fname` must be the name of a file, without folders. Put folders into `cache_dir` "
            f"and `cache_subdir`. Received: fname={fname!r}, origin={origin!r}"
        )
    os.makedirs(folder, exist_ok=True)
    target = extracted = os.path.join(folder, name)
    if extract or untar:  # The names are Keras'.
        if fname and "." in name:
            extracted = os.path.join(folder, f"{name.partition('.')[0]}_extracted")
        else:
            target += "_archive"
    if force_download or not _is_there(target, file_hash, hash_algorithm):
        _fetch(url, target, file_hash, hash_algorithm)
    if not (extract or untar):
        return target
    _extract(target, extracted, "tar" if untar else archive_format)
    return extracted


def _writable(folder: PathLike) -> str:
    """Return a folder, or that in which Keras keeps files where it cannot be written to."""
    name = os.path.expanduser(as_path(folder, "folder"))
    if os.access(name, os.W_OK) or not os.path.exists(name):
        return name
    return os.path.join("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir(), ".keras")


def _hasher(file_hash: str, algorithm: str) -> Any:
    if algorithm not in ("auto", "sha256", "md5"):
        raise ValueError(
            '`hash_algorithm` must be one of "auto", "sha256", "md5". Received: '
            f"hash_algorithm={algorithm!r}"
        )
    kind = _kind(file_hash) if algorithm == "auto" else algorithm
    return hashlib.new(kind, usedforsecurity=False)


def _has_hash(path: str, file_hash: str, algorithm: str) -> bool:
    hasher = _hasher(file_hash, algorithm)
    with open(path, "rb") as file:
        return bool(hashlib.file_digest(file, lambda: hasher).hexdigest() == file_hash)


def _is_there(path: str, file_hash: str | None, algorithm: str) -> bool:
    """Return whether a file is there, with its hash if it has one."""
    if not os.path.exists(path) or file_hash is None:
        return os.path.exists(path)
    if _has_hash(path, file_hash, algorithm):
        return True
    logger.warning("The hash of the file %s is not %s: downloading it again.", path, file_hash)
    return False


def _fetch(url: str, path: str, file_hash: str | None, algorithm: str) -> None:
    logger.info("Downloading data from %s", url)
    hasher = None if file_hash is None else _hasher(file_hash, algorithm)
    try:
        source = urllib.request.urlopen(url, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"URL fetch failure on {url}: {error}") from error
    with source, replacing(path, "file") as file:
        while part := source.read(_AT_ONCE):
            file.write(part)
            if hasher is not None:
                hasher.update(part)
        if hasher is not None and hasher.hexdigest() != file_hash:
            raise ValueError(
                f"Incomplete or corrupted file detected. The {hasher.name} file hash does not "
                f"match the provided value of {file_hash}. Received: {hasher.hexdigest()}, from "
                f"{url}."
            )


def _extract(path: str, folder: str, formats: str | list[str] | None) -> None:
    """Extract an archive; members outside of the folder raise an error."""
    wanted = ["tar", "zip"] if formats == "auto" else formats or []
    if "tar" in wanted and tarfile.is_tarfile(path):
        if not hasattr(tarfile, "data_filter"):
            raise RuntimeError(
                "Python extracts tar files safely from 3.11.4 on. Use such a Python, or extract "
                f"the file yourself. Received: {path}, in Python {platform.python_version()}"
            )
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    elif "zip" in wanted and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    else:
        raise ValueError(
            f"The file is not an archive that can be extracted. Received: {path}, "
            f"archive_format={formats!r}. Leave out `extract` and read the file itself."
        )


explain_functions(__name__, all_but="home")
