"""Strings in elements of datasets: names of files, and records that are yet to be parsed.

No operation computes with them. They are no tensors, and travel as NumPy arrays of bytes objects.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.ops.conversion import constant
from mirrored.ops.spec import Shape


@dataclass(frozen=True)
class StringSpec:
    """What is known of strings in elements of a dataset: a `TensorSpec` of TensorFlow's strings.

    Attributes:
        shape: The size of each axis, None where it is not known.
    """

    shape: tuple[int | None, ...] | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of NumPy's arrays of bytes objects."""
        return np.dtype(object)


class StringTensor:
    """An array of bytes, as elements of a dataset have it.

    Args:
        array: An array of bytes objects.

    Example:
        >>> import numpy as np
        >>> from mirrored.ops.strings import StringTensor
        >>> StringTensor(np.array(b"rows.csv", object)).numpy()
        b'rows.csv'
    """

    __hash__ = None  # type: ignore[assignment]
    dtype = np.dtype(object)

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def shape(self) -> Shape:
        """The size of each axis."""
        return self._array.shape

    def numpy(self) -> Any:
        """Return the bytes, or a copy of the array where there are several."""
        return self._array.copy()[()]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._array)

    def __getitem__(self, key: Any) -> "StringTensor":
        return StringTensor(np.asarray(self._array[key], object))

    def __iter__(self) -> "Iterator[StringTensor]":
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> Any:
        """Return whether the strings are those of another one, or of bytes or text, by element."""
        return constant(np.asarray(self._array == _bytes_of(other), bool))

    def __ne__(self, other: object) -> Any:
        return constant(np.asarray(self._array != _bytes_of(other), bool))

    def __repr__(self) -> str:
        return f"<mr.StringTensor: shape={self.shape}, dtype=string, numpy={self.numpy()!r}>"


def _bytes_of(value: Any) -> NDArray[Any]:
    """Return text and bytes as an array of bytes objects."""
    if isinstance(value, StringTensor):
        return value._array
    parts: NDArray[Any] = np.asarray(value, object)
    encoded = np.empty(parts.shape, object)
    for place in np.ndindex(parts.shape):
        part: Any = parts.item(place)
        encoded[place] = part.encode() if isinstance(part, str) else part
    return encoded


def strings_in(value: Any) -> NDArray[Any] | None:
    """Return text and bytes as a read-only array of bytes objects; None where it is no strings."""
    parts: NDArray[Any] = np.asarray(value, object)
    if not parts.size or not all(isinstance(part, str | bytes) for part in parts.flat):
        return None
    strings = _bytes_of(parts)
    strings.flags.writeable = False
    return strings


def as_strings(values: list[bytes]) -> NDArray[Any]:
    """Return bytes as a read-only array of objects."""
    array = np.empty(len(values), object)
    array[:] = values
    array.flags.writeable = False
    return array
