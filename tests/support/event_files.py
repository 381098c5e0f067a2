"""Files of events, read as the messages of TensorBoard's format."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.unknown_fields import UnknownFieldSet
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.types_pb2 import DataType
from tensorboardX.record_writer import masked_crc32c


def events(folder: Path) -> list[Any]:
    """Return the events of a folder's only file, whose checksums are right."""
    (path,) = folder.iterdir()
    found, rest = events_of(path)
    assert not rest
    return found


def events_of(path: Path) -> tuple[list[Any], bytes]:
    """Return the events of a file, and what a process that was killed left of the last one."""
    data, found = path.read_bytes(), []
    while len(data) >= 8:
        (size,) = struct.unpack("<Q", data[:8])
        if len(data) < 16 + size:
            break
        assert struct.pack("<I", masked_crc32c(data[:8])) == data[8:12]
        assert struct.pack("<I", masked_crc32c(data[12 : 12 + size])) == data[12 + size : 16 + size]
        found.append(Event.FromString(data[12 : 12 + size]))
        data = data[16 + size :]
    return found, data


def scalars(path: Path) -> set[tuple[str, int, float]]:
    """Return the name, step and value of each scalar of a file."""
    values = [(event.step, value) for event in events_of(path)[0] for value in event.summary.value]
    return {
        (value.tag, step, struct.unpack("<f", value.tensor.tensor_content)[0])
        for step, value in values
    }


def written(folder: Path) -> list[tuple[str, int, str, Any]]:
    """Return the name, step, plugin and value of each summary."""
    first, *rest = events(folder)
    assert first.file_version == "brain.Event:2"
    found = []
    for event in rest:
        (value,) = event.summary.value
        tensor = value.tensor
        if DataType.Name(tensor.dtype) == "DT_STRING":
            shown: Any = [each.decode() for each in tensor.string_val]
        else:
            dtype = {"DT_FLOAT": np.float32, "DT_DOUBLE": np.float64}[DataType.Name(tensor.dtype)]
            sizes = [each.size for each in tensor.tensor_shape.dim]
            shown = np.frombuffer(tensor.tensor_content, dtype).reshape(sizes).tolist()
        plugin = value.metadata.plugin_data.plugin_name
        (data_class,) = UnknownFieldSet(value.metadata)  # A scalar, or a tensor of any shape.
        assert (data_class.field_number, data_class.data) == (4, 1 if plugin == "scalars" else 2)
        found.append((value.tag, event.step, plugin, shown))
    return found
