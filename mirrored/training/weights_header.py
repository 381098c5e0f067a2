"""What the header of a safetensors file of ours says: what the file is for, and its checksums.

Whoever made a file may have made up what it says, so all of it is checked when it is read.
"""

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mirrored.errors import WeightsFileError

_FORMAT_KEY, _FORMAT = "format", "mirrored"
_KIND_KEY = "kind"
_CHECKSUMS_KEY = "crc32"
_HEADER_KEY = "header_crc32"
_OWN_KEYS = (_FORMAT_KEY, _KIND_KEY, _CHECKSUMS_KEY, _HEADER_KEY)
_METADATA = "__metadata__"  # Where the format has them, among the names of tensors.
_DTYPES = {
    "F32": "float32",
    "F64": "float64",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "BOOL": "bool",
}
_CODES = {name: code for code, name in _DTYPES.items()}

# In the place of a tensor's checksum until that is known; as long as any.
NO_CHECKSUM = "0" * 8

Spec = tuple[tuple[int, ...], str]
Specs = dict[str, Spec]


class Kind(NamedTuple):
    """What a file is for, so that none is taken for one of another kind.

    Attributes:
        mark: What the file itself says.
        noun: What messages call such a file.
        writer: What writes it.
        owner: Whose tensors it holds, as messages say.
    """

    mark: str
    noun: str
    writer: str
    owner: str


WEIGHTS = Kind("weights", "weights file", "`save_weights`", "model")
CHECKPOINT = Kind("checkpoint", "checkpoint", "`mr.train.Checkpoint.save`", "program")


# ---------------------------------------------------------------------------- writing


def checked_spec(name: str, tensor: Any) -> Spec:
    """Return shape and dtype of a tensor, after checking that files hold it.

    Args:
        name: Its name.
        tensor: What has the two.

    Raises:
        ValueError: No file holds that dtype.
    """
    if tensor.dtype.name not in _CODES:
        raise ValueError(
            f"Weights files hold {', '.join(_CODES)}. "
            f"Received: {name!r} with dtype {tensor.dtype}. Convert it first."
        )
    return tuple(tensor.shape), tensor.dtype.name


def checked_texts(metadata: Mapping[str, str], kind: Kind) -> dict[str, str]:
    """Return all metadata of a file but its checksums.

    Args:
        metadata: What is to be stored.
        kind: What the file is for.

    Raises:
        ValueError: A key is taken, or a value is no text.
    """
    for key, text in metadata.items():
        if key in _OWN_KEYS or not isinstance(text, str):
            raise ValueError(
                f"Metadata must be texts under keys other than {', '.join(map(repr, _OWN_KEYS))}. "
                f"Received: {key!r}: {text!r}."
            )
    return {**metadata, _FORMAT_KEY: _FORMAT, _KIND_KEY: kind.mark}


def in_file_order(specs: Specs) -> list[str]:
    """Return the tensors' names, those of wide elements first: so each tensor is aligned.

    Args:
        specs: Shapes and dtypes by name.
    """
    return sorted(specs, key=lambda name: (-np.dtype(specs[name][1]).itemsize, name))


def header_bytes(specs: Specs, texts: Mapping[str, str], checksums: Mapping[str, str]) -> bytes:
    """Return what a file begins with; whatever the checksums are, it is as long.

    Args:
        specs: Shapes and dtypes by name.
        texts: What `checked_texts` returned.
        checksums: Those of the tensors, by name.
    """
    texts = {**texts, _CHECKSUMS_KEY: json.dumps(checksums)}
    texts[_HEADER_KEY] = _header_checksum(texts, specs)
    header: dict[str, Any] = {_METADATA: texts}
    start = 0
    for name in in_file_order(specs):
        shape, dtype = specs[name]
        stop = start + math.prod(shape) * np.dtype(dtype).itemsize
        header[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": (start, stop)}
        start = stop
    data = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    data += b" " * (-len(data) % 8)
    return len(data).to_bytes(8, "little") + data


def _header_checksum(metadata: Mapping[str, str], specs: Specs) -> str:
    """Return the checksum of all that the header says but this checksum."""
    texts = {key: text for key, text in metadata.items() if key != _HEADER_KEY}
    return f"{zlib.crc32(json.dumps([texts, specs], sort_keys=True).encode()):08x}"


# ---------------------------------------------------------------------------- reading


class Header(NamedTuple):
    """What a header says, once it was found to be as it was written.

    Attributes:
        specs: Shapes and dtypes by name.
        checksums: Those of the tensors, by name; None in a file of another program.
        texts: All other metadata.
    """

    specs: Specs
    checksums: Mapping[str, Any] | None
    texts: dict[str, str]


def read_header(name: str, file: Any, kind: Kind) -> Header:
    """Return what the header of a file says.

    Args:
        name: What messages call the file.
        file: The file, as safetensors opened it.
        kind: What it ought to be for.

    Raises:
        WeightsFileError: The header is corrupt, or the file is for something else.
    """
    slices = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 - no mapping.
    specs: Specs = {
        key: (tuple(each.get_shape()), _DTYPES.get(each.get_dtype(), each.get_dtype()))
        for key, each in slices.items()
    }
    metadata: dict[str, str] = file.metadata() or {}
    if _is_foreign(metadata):
        if kind is WEIGHTS:
            return Header(specs, None, {})
        raise WeightsFileError(
            f"The file {name!r} is no {kind.noun}: it does not say so. Pass the path that "
            f"{kind.writer} returned."
        )
    if metadata.get(_HEADER_KEY) != _header_checksum(metadata, specs):
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is corrupt: the checksum of its header does not fit. "
            "Restore the file from another copy."
        )
    if metadata.get(_KIND_KEY) != kind.mark:
        raise WeightsFileError(
            f"The file {name!r} is no {kind.noun}. Received: a file of the kind "
            f"{metadata.get(_KIND_KEY)!r}. Weights are read by `load_weights`, checkpoints by "
            "`mr.train.Checkpoint.restore`."
        )
    texts = {key: text for key, text in metadata.items() if key not in _OWN_KEYS}
    checksums = read_table(name, metadata.get(_CHECKSUMS_KEY, ""), kind, "checksums of its data")
    return Header(specs, checksums, texts)


def _is_foreign(metadata: Mapping[str, str]) -> bool:
    """Whether another program wrote the file; no flipped bit takes away all marks of ours."""
    sums = (_CHECKSUMS_KEY, _HEADER_KEY)
    return metadata.get(_FORMAT_KEY) != _FORMAT and not any(key in metadata for key in sums)


def read_table(name: str, text: str, kind: Kind, what: str) -> dict[str, Any]:
    """Return what a text of the header holds by name.

    Args:
        name: What messages call the file.
        text: The text.
        kind: What the file is for.
        what: What messages call the table.

    Raises:
        WeightsFileError: It is no such text.
    """
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is corrupt: it has no {what}. Restore the file from "
            "another copy."
        )
    return table
