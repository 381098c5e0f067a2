"""HDF5 files as Keras lays them out: numbers in groups, one group per layer or optimizer.

The maker of a file may have made up its contents: only whole arrays of numbers that are stored in
the file itself are read, and their sizes are compared before memory is taken.
"""

import contextlib
import errno
import math
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _extras
from mirrored.errors import WeightsFileError
from mirrored.ops.spec import as_dtype, holds_numbers
from mirrored.training.files.tensor_tree import Spec, checksum, damaged
from mirrored.variables import Variable

_VARS = "vars"
_OLD = "_layer_checkpoint_dependencies"
_WHAT_HDF5_RAISES = (OSError, ValueError, LookupError, TypeError, RuntimeError, ArithmeticError)
_CHECKSUM = "crc32"  # An attribute of each array, which Keras leaves alone.
_LARGE = 1 << 20  # Bytes of a buffer that is not filled with zeros.
_NARROW = "bfloat16"  # HDF5 has no such type: two bytes each, and an attribute that says so.


class WatchedFile:
    """A file that keeps the error of a read or write until `check` raises it.

    After that nothing is written, and what is read are zeros, or for a large buffer an OSError.

    Args:
        file: The file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file: Any = file
        self._failed = False
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise the error, once, if there was one."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def read(self, size: int = -1) -> bytes:
        """Return bytes: HDF5's package knows files by this method, and calls the next."""
        data: bytes = self._file.read(size)
        return data

    def readinto(self, buffer: Any) -> int:
        """Read bytes."""
        count = self._done(lambda: self._file.readinto(buffer), -1)
        if self._failed:
            view = memoryview(buffer).cast("B")
            if len(view) > _LARGE:  # A size that a file made up: HDF5 is not to parse it.
                raise OSError("HDF5's file cannot be read any more.")
            view[:] = bytes(len(view))
            return len(view)
        return count

    def write(self, data: Any) -> int:
        """Write bytes."""
        return self._done(lambda: self._file.write(data), len(data))

    def truncate(self, size: int) -> int:
        """Truncate the file to a number of bytes."""
        return self._done(lambda: self._file.truncate(size), size)

    def flush(self) -> None:
        """Write buffered bytes to the disk."""
        self._done(lambda: self._file.flush() or 0, 0)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._done(lambda: self._file.seek(offset, whence), offset)

    def tell(self) -> int:
        """Return the place."""
        return self._done(self._file.tell, 0)

    def _done(self, do: Callable[[], int], instead: int) -> int:
        if not self._failed:
            try:
                return do()
            except BaseException as error:
                self._failed, self._error = True, error.with_traceback(None)
        return instead


# ---------------------------------------------------------------------------- writing


class WrittenGroup(MutableMapping[str, Any]):
    """The numbers of one layer or optimizer, as a dict that is written to the file at once.

    Args:
        group: Where they go.
        where: Its path in the file, as messages call it.
    """

    def __init__(self, group: Any, where: str, file: WatchedFile) -> None:
        self._group = group
        self._where = where
        self._file = file

    def __setitem__(self, key: str, value: Any) -> None:
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value, order="C")
        if not holds_numbers(array.dtype):
            raise ValueError(
                f"Files of weights hold numbers. Received: {self._where!r} with {key!r} of dtype "
                f"{array.dtype}. Convert it first."
            )
        dataset = self._group.create_dataset(key, data=array)
        if array.dtype.name == _NARROW:
            dataset.attrs["dtype"] = _NARROW
        dataset.attrs[_CHECKSUM] = _checksum(self._where, key, array)
        self._file.check()

    def __getitem__(self, key: str) -> NDArray[Any]:
        return np.array(self._group[key])

    def __delitem__(self, key: str) -> None:
        del self._group[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __len__(self) -> int:
        return len(self._group)


# Returns where the numbers of one object go. It is given the object's place, as in "layers/dense_1"
# ("" for the model itself), and its own name, which is kept with them, or None.
Groups = Callable[[str, str | None], MutableMapping[str, Any]]


@contextlib.contextmanager
def writing(file: IO[bytes]) -> Iterator[Groups]:
    """Write HDF5 into an open file, which can be read and written at any place.

    Raises:
        OSError: The file cannot be written.
    """
    watched = WatchedFile(file)
    with _extras.h5py().File(watched, "w") as opened:

        def group_of(path: str, name: str | None) -> WrittenGroup:
            group = opened.require_group(f"{path}/{_VARS}" if path else _VARS)
            if name is not None:
                group.attrs["name"] = name
            return WrittenGroup(group, path, watched)

        yield group_of
    watched.check()


# ---------------------------------------------------------------------------- reading


class ReadGroup(Mapping[str, NDArray[Any]]):
    """The numbers of one layer or optimizer in a file: a mapping whose values are arrays.

    Args:
        group: Where they are; None where the file has none.
        where: Its path in the file, as messages call it.
        reader: The file.
    """

    def __init__(self, group: Any, where: str, reader: "Hdf5Reader") -> None:
        self._group = group
        self._where = where
        self._checked: dict[str, Any] = {}
        self.reader = reader

    def __iter__(self) -> Iterator[str]:
        with self.reader.understood():
            return iter([] if self._group is None else list(self._group))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return key in list(self)

    def __getitem__(self, key: str) -> NDArray[Any]:
        dataset = self._dataset(key)
        with self.reader.understood():
            shape, dtype = dataset.shape, dataset.dtype
            array = np.empty(shape, dtype.newbyteorder("="))
            if array.size:
                dataset.read_direct(array)
            array = array.view(as_dtype(_NARROW)) if dtype.kind == "V" else array
            is_right = _CHECKSUM not in dataset.attrs or _fits(dataset, self._where, key, array)
        if not is_right:
            raise damaged(
                self.reader.noun,
                f"corrupt: the checksum of '{self._where}/{_VARS}/{key}' does not fit its data",
                "; or, if a program has changed the data on purpose, let it delete the attribute "
                f"{_CHECKSUM!r}",
            )
        return array

    def spec(self, key: str) -> Spec:
        """Return shape and dtype of an array, of which nothing is read."""
        dataset = self._dataset(key)
        narrow = dataset.dtype.kind == "V"
        return tuple(dataset.shape), _NARROW if narrow else dataset.dtype.newbyteorder("=").name

    def _dataset(self, key: str) -> Any:
        """Return an array in the file, once it was found to be one that can be read.

        Raises:
            KeyError: There is none.
            WeightsFileError: It is something else, or it is elsewhere, or the file is corrupt.
        """
        if key in self._checked:
            return self._checked[key]
        *folders, last = str(key).split("/")
        group, where = self._group, f"{self._where}/{_VARS}/{key}"
        for part in folders:
            group = self.reader.child(group, part, where)
        dataset = None if group is None else self.reader.child(group, last, where)
        if dataset is None:
            if key in self:
                raise damaged(self.reader.noun, f"corrupt: it lists {where!r}, which is not there")
            raise KeyError(key)
        with self.reader.understood():
            problem = _problem_of(dataset)
        if problem is not None:
            raise WeightsFileError(f"{self.reader.noun} has {where!r} as {problem}")
        self._checked[key] = dataset
        return dataset


class Hdf5Reader:
    """An HDF5 file that is being read.

    No error that somebody keeps may lead to the frames of HDF5's package: at the end of the program
    these would let go of our file when it is too late, and the program would crash.

    Args:
        file: The file, which can be read at any place.
        noun: What messages call it, with its name.

    Raises:
        WeightsFileError: It is no such file.
    """

    def __init__(self, file: IO[bytes], noun: str) -> None:
        self._watched = WatchedFile(file)
        self.noun = noun
        try:
            self.file: Any = _extras.h5py().File(self._watched, "r")
        except _WHAT_HDF5_RAISES as raised:
            error = raised.with_traceback(None)
        else:
            return
        self._check()
        raise self._not_understood(error)

    def group(self, path: str) -> ReadGroup:
        """Return the numbers of one object, none where the file has nothing of it.

        Args:
            path: Its place, as in "layers/dense_1"; "" for the model itself.
        """
        group = self._at(path)
        if group is None and "layers" in path:  # As Keras 2.13 called them.
            group = self._at(path.replace("layers", _OLD))
        if group is not None and not isinstance(group, _extras.h5py().Group):
            raise WeightsFileError(f"{self.noun} has {path!r}, which is not a group.")
        return ReadGroup(group, path, self)

    def _at(self, path: str) -> Any:
        group: Any = self.file
        for part in (*path.split("/"), _VARS) if path else (_VARS,):
            group = None if group is None else self.child(group, part, path)
        return group

    def child(self, group: Any, name: str, where: str) -> Any:
        """Return the member of a group; None where there is none, or it is no group.

        Raises:
            WeightsFileError: It is a link to another place or file.
        """
        h5py = _extras.h5py()
        with self.understood():
            link = group.get(name, getlink=True) if name and isinstance(group, h5py.Group) else None
            if link is None:
                return None
            member = group[name] if type(link) is h5py.HardLink else None
        if member is None:
            raise WeightsFileError(
                f"{self.noun} has a link at {where!r}, {type(link).__name__}, and links are not "
                "followed. Write the file again, with the values in it."
            )
        return member

    @contextlib.contextmanager
    def understood(self) -> Iterator[None]:
        """Within this context, errors of HDF5's package become WeightsFileError."""
        try:
            yield
        except WeightsFileError:
            self._check()
            raise
        except _WHAT_HDF5_RAISES as error:
            self._check()
            raise self._not_understood(error) from error
        self._check()

    def _check(self) -> None:
        """Raise what went wrong in the file; where it leads to places that no file has, damage."""
        try:
            self._watched.check()
        except (ValueError, ArithmeticError) as error:
            raise self._not_understood(error) from None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise self._not_understood(error) from None

    def _not_understood(self, error: Exception) -> WeightsFileError:
        reason = f"({error!s:.200})"
        return damaged(self.noun, f"truncated, corrupt, or not in the HDF5 format {reason}")


@contextlib.contextmanager
def reading(file: IO[bytes], noun: str) -> Iterator[Hdf5Reader]:
    """Read HDF5 from an open file; `Hdf5Reader` says what the arguments are."""
    reader = Hdf5Reader(file, noun)
    with reader.file:
        yield reader


def _problem_of(dataset: Any) -> str | None:
    """Return why something in a file is not read; None where it is a whole array of numbers."""
    if not isinstance(dataset, _extras.h5py().Dataset):
        return "a group instead of an array."
    dtype = dataset.dtype
    if not (dtype.kind in "biuf" and dtype.subdtype is None) and not _is_narrow(dataset):
        return f"an array of dtype {dtype!s:.100}, which is not a numeric type."
    if dataset.external or dataset.is_virtual:
        return "an array whose values are in another file. Other files are not read."
    if dataset.shape is None:
        return "an array without a shape."
    if dataset.chunks is not None:
        return (
            "an array in chunks, or compressed. How much memory it needs is not known in "
            "advance. Write the file again as Keras does, or with `h5repack -f NONE -l CONTI`."
        )
    size, place = math.prod(dataset.shape) * dtype.itemsize, dataset.id.get_offset()
    ends = 0 if place is None else place + size  # None: beside what describes it.
    if dataset.id.get_storage_size() != size or ends > dataset.file.id.get_filesize():
        return "an array whose values are not all in the file."
    return None


def _checksum(where: str, key: str, array: NDArray[Any]) -> np.uint32:
    """Return a checksum of an array, and of its place, shape and dtype, which a bit changes too."""
    return np.uint32(checksum(array, f"{where}/{key} {array.dtype.name} {array.shape}"))


def _fits(dataset: Any, where: str, key: str, array: NDArray[Any]) -> bool:
    """Return whether an array is the one that its checksum was computed of."""
    kept = dataset.attrs.get_id(_CHECKSUM)
    if kept.shape != () or kept.dtype != np.uint32:  # Of another type it might take much memory.
        return False
    return bool(dataset.attrs[_CHECKSUM] == _checksum(where, key, array))


def _is_narrow(dataset: Any) -> bool:
    """Whether it is what Keras writes of bfloat16: two bytes each, whose attribute says so."""
    dtype = dataset.dtype
    is_pair = dtype.kind == "V" and dtype.itemsize == 2 and dtype.names is None
    if not is_pair or dtype.subdtype is not None or "dtype" not in dataset.attrs:
        return False
    kept = dataset.attrs.get_id("dtype")
    return kept.shape == () and dataset.attrs["dtype"] in (_NARROW, _NARROW.encode())


def to_array(value: NDArray[Any], variable: Variable) -> NDArray[Any]:
    """Return a file's value in a variable's dtype, as Keras' `assign` converts it.

    Raises:
        ValueError: It is no whole number, or too large a one, for a variable of integers.
    """
    if value.dtype == variable.dtype:
        return value
    with np.errstate(all="ignore"):
        cast = value.astype(variable.dtype)
    if variable.dtype.kind in "biu" and not np.array_equal(cast, value):
        raise ValueError(
            f"The variable {variable.name!r} of {variable.dtype.name} cannot take the value in "
            f"the file, which is {value.dtype.name}."
        )
    return cast
