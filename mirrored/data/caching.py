"""Elements that are created once and then kept: `cache`, in memory or in a file.

The file holds the structure and the dtypes of elements, then each element with a checksum, then
their number. It is there as a whole or not at all.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._files import as_path, check_replaceable, replacing
from mirrored._numbers import counted
from mirrored._types import PathLike
from mirrored.data.elements import Element, Elements, Failure, Form, check_arrays, specs_of
from mirrored.data.rng import Iteration
from mirrored.data.transform import Derived, Transform
from mirrored.ops import as_dtype

_WHAT = "cache of a dataset"
_MAGIC = b"mirrored elements 1\n"
_FRAME = struct.Struct("<QI")  # The length and the CRC-32 of what follows; no length: the end.


class Cached(Derived):
    """Elements that are created once and then kept in memory."""

    def __init__(self, source: Transform) -> None:
        super().__init__(source)
        self._elements: list[Element] | None = None
        self._iteration: Iteration | None = None

    def begin(self) -> Iteration:
        """Return the same iteration for all: the first that reaches the end keeps the elements."""
        self._iteration = self._iteration or super().begin()
        return self._iteration

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator; the first one that reaches the end keeps its elements."""
        # One that a checkpoint has brought may be another one, or be the first.
        self._iteration = self._iteration or replace(iteration, passes=())
        is_kept = iteration.sources == self._iteration.sources
        if self._elements is not None and is_kept:
            yield from self._elements
            return
        met = []
        with closing(self._source.open(iteration.sources[0])) as elements:  # In any pass the same.
            for element in elements:
                if type(element) is not Failure:
                    met.append(element)
                yield element
        if is_kept:
            self._elements = met


class CachedInFile(Derived):
    """Elements that the first whole iteration writes to a file, from which others read them.

    Args:
        source: What makes the elements.
        path: The file.
    """

    def __init__(self, source: Transform, path: PathLike) -> None:
        super().__init__(source)
        self._path = as_path(path, _WHAT)
        if not os.path.isfile(self._path):  # One that is there may be read-only.
            check_replaceable(path, _WHAT)
        if source.known:
            check_arrays(source.specs())

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator, which reads the file or writes it."""
        return self._read() if os.path.exists(self._path) else super().open(iteration)

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return the same elements, which are written to the file."""
        form: Form | None = None
        count = 0
        with replacing(self._path, _WHAT) as file:
            file.write(_MAGIC)
            for element in elements:
                if type(element) is not Failure:
                    if form is None:
                        form = Form(element)
                        _write(file, json.dumps(_outline(element)).encode())
                    _write(file, b"".join(map(_packed, form.leaves(element, f"Element {count}"))))
                    count += 1
                yield element
            file.write(_FRAME.pack(0, count))

    def _read(self) -> Elements:
        with open(self._path, "rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise self._unsound("it is not a cache of a dataset")
            outline: Any = None
            count = 0
            while payload := self._payload(file, count):
                if outline is None:
                    outline = json.loads(payload)
                    structure = _structure(outline)
                    dtypes = [as_dtype(name) for name in _nest.flatten(structure)]
                    if self._source.known:
                        specs = self._source.specs()
                        if _dtypes_of(specs) != structure:
                            raise self._unsound(
                                f"its elements have the dtypes {structure}, and the dataset has "
                                f"{_dtypes_of(specs)}"
                            )
                        structure = specs
                    continue
                yield _nest.pack_like(structure, _unpacked(payload, dtypes))
                count += 1

    def _payload(self, file: IO[bytes], count: int) -> bytes:
        """Return the next part of the file; nothing at its end."""
        frame = file.read(_FRAME.size)
        if len(frame) < _FRAME.size:
            raise self._unsound(f"it ends after {counted(count, 'element')}")
        length, checksum = _FRAME.unpack(frame)
        if length == 0:
            if checksum != count:
                raise self._unsound(f"it has {counted(count, 'element')} of {checksum}")
            return b""
        payload = file.read(length) if length <= os.path.getsize(self._path) else b""
        if len(payload) != length or zlib.crc32(payload) != checksum:
            raise self._unsound(f"it is damaged after {counted(count, 'element')}")
        return payload

    def _unsound(self, why: str) -> ValueError:
        return ValueError(
            f"The elements of a dataset cannot be read from {self._path!r}: {why}. Delete the "
            "file. The elements are then computed and stored again."
        )


def _write(file: IO[bytes], payload: bytes) -> None:
    file.write(_FRAME.pack(len(payload), zlib.crc32(payload)) + payload)


def _outline(element: Element) -> Any:
    """Return an element's structure in JSON's types, with the names of dtypes."""
    if isinstance(element, dict):
        return {"dict": [[key, _outline(element[key])] for key in element]}
    if isinstance(element, tuple):
        return {"tuple": [_outline(part) for part in element]}
    check_arrays(specs_of(element))
    if element.dtype.kind == "O":
        raise TypeError(
            "Strings cannot be cached in a file. Received: `cache` with a filename, for elements "
            "with strings. Parse them before, or cache them in memory with `cache()`."
        )
    return element.dtype.name


def _structure(outline: Any) -> Any:
    """Return the structure of elements again, with the names of dtypes."""
    if isinstance(outline, str):
        return outline
    if "dict" in outline:
        return {key: _structure(part) for key, part in outline["dict"]}
    return tuple(_structure(part) for part in outline["tuple"])


def _dtypes_of(specs: Any) -> Any:
    """Return specs as `_structure` returns them, with the names of dtypes."""
    return _nest.map_structure(lambda spec: spec.dtype.name, specs)


def _packed(array: NDArray[Any]) -> bytes:
    return struct.pack(f"<B{array.ndim}q", array.ndim, *array.shape) + array.tobytes()


def _unpacked(payload: bytes, dtypes: list[np.dtype[Any]]) -> list[NDArray[Any]]:
    arrays, place = [], 0
    for dtype in dtypes:
        rank = payload[place]
        shape = struct.unpack_from(f"<{rank}q", payload, place + 1)
        place += 1 + 8 * rank
        arrays.append(np.frombuffer(payload, dtype, math.prod(shape), place).reshape(shape))
        place += arrays[-1].nbytes
    return arrays
