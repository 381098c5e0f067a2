"""The parts of model files behind their checksums, and files of such parts, whose checksums fit.

`unpack` and `pack` of a layout are each other's inverse for a file that was not damaged; `values`
returns the arrays of a file by name, without this library's readers.
"""

import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mirrored as mr
from mirrored.training.files.tensor_file import _DTYPES, _header_checksum

Parts = dict[str, bytes]
Values = dict[str, NDArray[Any]]
WEIGHTS = "model.weights.h5"
_MOST = 1 << 20  # Bytes of a file that is packed again.
_NO_FILE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


class Layout(NamedTuple):
    """A kind of file; `pack` and `unpack` raise ValueError for other files."""

    unpack: Callable[[bytes], Parts]
    pack: Callable[[Parts], bytes]
    values: Callable[[bytes, Iterable[str]], Values]


# ---------------------------------------------------------------------------- safetensors


def _tensor_parts(data: bytes) -> Parts:
    stop = 8 + int.from_bytes(data[:8], "little")
    return {"header": data[8:stop], "data": data[stop:]}


def _entries(header: dict[str, Any]) -> Iterator[tuple[str, str, tuple[int, ...], int, int]]:
    for name, entry in header.items():
        if name != "__metadata__":
            start, stop = entry["data_offsets"]
            yield name, _DTYPES[entry["dtype"]], tuple(entry["shape"]), start, stop


def _pack_tensors(parts: Parts) -> bytes:
    """Return a file, with the data of the tensors in their order."""
    text, data = parts["header"], parts["data"]
    with suppress(*_NO_FILE):
        header = json.loads(text)
        sizes = {n: math.prod(s) * np.dtype(d).itemsize for n, d, s, *_ in _entries(header)}
        if sum(sizes.values()) > _MOST or min(sizes.values()) < 0:
            raise ValueError("too large")
        pieces, place = [], 0
        for name, _, _, start, stop in _entries(header):
            pieces.append(data[start:stop][: sizes[name]].ljust(sizes[name], b"\1"))
            header[name]["data_offsets"] = [place, place := place + sizes[name]]
        data = b"".join(pieces)
        texts = header["__metadata__"]
        with suppress(*_NO_FILE):
            sums = json.loads(texts["crc32"])
            for name, _, _, start, stop in _entries(header):
                if name in sums:
                    sums[name] = f"{zlib.crc32(data[start:stop]):08x}"
            texts["crc32"] = json.dumps(sums)
        specs = {name: (shape, dtype) for name, dtype, shape, *_ in _entries(header)}
        texts["header_crc32"] = _header_checksum(texts, specs)
        text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def texts_of(data: bytes) -> dict[str, Any]:
    """Return the metadata of a safetensors file."""
    texts: dict[str, Any] | None = json.loads(_tensor_parts(data)["header"]).get("__metadata__")
    return texts or {}


def _tensor_values(data: bytes, _: Iterable[str]) -> Values:
    parts = _tensor_parts(data)
    return {
        name: np.frombuffer(parts["data"][start:stop], dtype).reshape(shape)
        for name, dtype, shape, start, stop in _entries(json.loads(parts["header"]))
    }


# ---------------------------------------------------------------------------- HDF5


def _hdf5_parts(data: bytes) -> Parts:
    """Return the file under which checksums have another name: nobody compares them then."""
    return {WEIGHTS: data.replace(b"crc32\0", b"other\0")}


def _hdf5_values(data: bytes, names: Iterable[str]) -> Values:
    import h5py

    values: Values = {}
    with h5py.File(io.BytesIO(data), "r") as file:
        for name in names:
            with suppress(*_NO_FILE, OSError, RuntimeError):
                values[name] = np.array(file[name])
    return values


# ---------------------------------------------------------------------------- archives


def _members(data: bytes) -> Parts:
    parts: Parts = {}
    broken = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
    with suppress(*broken, *_NO_FILE), zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            place = member.header_offset
            lengths = data[place + 26 : place + 28], data[place + 28 : place + 30]
            place += 30 + sum(int.from_bytes(length, "little") for length in lengths)
            if member.compress_type == zipfile.ZIP_STORED:  # The names there may be others.
                parts[member.filename] = data[place : place + member.file_size]
                continue
            with suppress(*broken, *_NO_FILE), archive.open(member) as file:
                file._expected_crc = None  # type: ignore[attr-defined]
                parts[member.filename] = file.read(_MOST)
    return {k: _hdf5_parts(v)[WEIGHTS] if k == WEIGHTS else v for k, v in parts.items()}


def _archive(parts: Parts) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


TENSORS = Layout(_tensor_parts, _pack_tensors, _tensor_values)
HDF5 = Layout(_hdf5_parts, lambda parts: parts[WEIGHTS], _hdf5_values)
ARCHIVE = Layout(
    _members, _archive, lambda data, names: _hdf5_values(_members(data)[WEIGHTS], names)
)


# ---------------------------------------------------------------------------- changes

_ODD: tuple[Any, ...] = (
    *(None, True, 0, 1, 2, 3, 7, -1, 1 << 28, 1 << 40, 1 << 63, 1 << 64, 0.0, 1.5, 1e308),
    *(float("nan"), "", "x", "0", "-1", "a/b", "9" * 5000, "[" * 5000, "global_random_state"),
    *("F64", "I64", "BF16", "int64", "float64", "bfloat16", "string", "weights", "checkpoint"),
    *([], {}, [[]], [0], [1, 1], [3, 2], [1 << 20] * 3, [0, 1 << 62], [None], {"": None}),
    *(name for name in dir(mr.keras.layers) if name[0].isupper()),
    *(name for name in dir(mr.keras.optimizers) if name[0].isupper()),
    *(f"keras.{name}" for name in ("layers", "optimizers", "initializers", "losses", "metrics")),
)


def changed_json(text: bytes | str, rng: np.random.Generator) -> str:
    """Return a JSON text with a random change of one value, also of one in a text within it."""
    tree = [json.loads(text)]
    spots = [*_spots(tree)]
    inside = [(holder, key) for holder, key in spots if str(holder[key])[:1] in ("{", "[")]
    inside = [(holder, key) for holder, key in inside if isinstance(holder[key], str)]
    if inside and rng.random() < 0.4:
        holder, key = inside[rng.integers(len(inside))]
        with suppress(ValueError, RecursionError):
            holder[key] = changed_json(holder[key], rng)
            return json.dumps(tree[0])
    holder, key = spots[rng.integers(len(spots))]
    other_holder, other = spots[rng.integers(len(spots))]
    kind = rng.integers(0, 8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[str(_ODD[rng.integers(len(_ODD))])] = holder.pop(key)
    elif kind == 2:
        holder[key] = json.loads(json.dumps(other_holder[other]))
    elif kind == 3 and isinstance(holder[key], int | float):
        holder[key] += int(rng.choice([-2, -1, 1, 2]))
    elif kind == 4 and isinstance(holder, dict) and isinstance(other, str):
        holder[other] = json.loads(json.dumps(other_holder[other]))
    else:
        holder[key] = _ODD[rng.integers(len(_ODD))]
    return json.dumps(tree[0] if tree else None)


def _spots(holder: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _spots(holder[key])


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with a few random changes: of bits, bytes, numbers, lengths and the end."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, max(1, len(changed))))
        size = int(rng.integers(1, 17))
        kind = int(rng.integers(0, 7))
        if kind == 0 and changed:
            changed[place % len(changed)] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            changed[place : place + size] = rng.bytes(size)
        elif kind == 2:
            del changed[place : place + size]
        elif kind == 3:
            source = int(rng.integers(0, max(1, len(changed))))
            changed[place:place] = changed[source : source + size]
        elif kind == 4:
            changed[place : place + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"9" * 8]).ljust(8)
        elif kind == 5:
            word = int(rng.choice([0, 1, 2, 8, len(changed), place, 1 << 31, 1 << 40, 1 << 62]))
            width = int(rng.choice([1, 2, 4, 8]))
            place -= place % width
            changed[place : place + width] = (word % (1 << 8 * width)).to_bytes(width, "little")
        else:
            del changed[place:]
    return bytes(changed)


def damaged_behind(parts: Parts, rng: np.random.Generator) -> Parts:
    """Return the parts of a file with a few random changes in one of them."""
    name = [*parts][rng.integers(len(parts))]
    part = parts[name]
    with suppress(ValueError, RecursionError):
        for _ in range(int(rng.integers(1, 4))):
            part = changed_json(part, rng).encode()
        return {**parts, name: part}
    return {**parts, name: damaged(part, rng)}
