"""TensorFlow's examples: features by name, as records of TFRecord files hold them.

Messages are those of the package protobuf; numbers are parsed, and strings are not.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explain_functions, explained
from mirrored.devices import get_device
from mirrored.errors import InvalidArgumentError
from mirrored.ops import as_dtype, float32, int64, transfer
from mirrored.ops.spec import as_shape
from mirrored.ops.strings import StringTensor

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as _error:
    raise ImportError(
        "TFRecord files of examples are read by the package protobuf, which is not installed: "
        "install mirrored's extra `tfrecords`, or run pip install protobuf."
    ) from _error

# ---------------------------------------------------------------------------- messages


def _messages() -> dict[str, Any]:
    """Return the classes of TensorFlow's messages: of its `example.proto` and `feature.proto`."""
    file = descriptor_pb2.FileDescriptorProto(
        name="mirrored/example.proto", package="mirrored.tfrecords", syntax="proto3"
    )
    field = descriptor_pb2.FieldDescriptorProto
    scope = ".mirrored.tfrecords."

    def message(name: str, *fields: tuple[str, int, int, int, str | None]) -> Any:
        entry = file.message_type.add(name=name)
        for title, number, label, kind, of in fields:
            entry.field.add(name=title, number=number, label=label, type=kind, type_name=of)
        return entry

    single, many, part = field.LABEL_OPTIONAL, field.LABEL_REPEATED, field.TYPE_MESSAGE
    message("BytesList", ("value", 1, many, field.TYPE_BYTES, None))
    message("FloatList", ("value", 1, many, field.TYPE_FLOAT, None))
    message("Int64List", ("value", 1, many, field.TYPE_INT64, None))
    feature = message(
        "Feature",
        ("bytes_list", 1, single, part, f"{scope}BytesList"),
        ("float_list", 2, single, part, f"{scope}FloatList"),
        ("int64_list", 3, single, part, f"{scope}Int64List"),
    )
    feature.oneof_decl.add(name="kind")
    for kind in feature.field:
        kind.oneof_index = 0
    features = message("Features", ("feature", 1, many, part, f"{scope}Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=single, type=field.TYPE_STRING)
    entry.field.add(name="value", number=2, label=single, type=part, type_name=f"{scope}Feature")
    message("Example", ("features", 1, single, part, f"{scope}Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"mirrored.tfrecords.{message.name}")
        )
        for message in file.message_type
    }


_MESSAGES = _messages()
BytesList: Any = _MESSAGES["BytesList"]
FloatList: Any = _MESSAGES["FloatList"]
Int64List: Any = _MESSAGES["Int64List"]
Feature: Any = _MESSAGES["Feature"]
Features: Any = _MESSAGES["Features"]
Example: Any = _MESSAGES["Example"]

# ---------------------------------------------------------------------------- features


@explained
class FixedLenFeature(NamedTuple):
    """A feature that has one shape in all examples.

    Attributes:
        shape: Its shape.
        dtype: Its dtype: float32 or int64.
        default_value: What it is where an example has none; None: each has one.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


_LISTS = {float32: "float_list", int64: "int64_list"}
_KINDS = {"bytes_list": "string", "float_list": "float", "int64_list": "int64"}


class _Parser:
    """Reads one feature of examples."""

    def __init__(self, name: str, feature: Any) -> None:
        if not isinstance(feature, FixedLenFeature):
            raise ValueError(
                f"Unsupported FixedLenFeature for key {name!r}. Only features of a fixed length "
                f"are parsed, not {type(feature).__name__}. Write lists of one length, or parse "
                "`train.Example.FromString(record.numpy())` in a `numpy_function`."
            )
        dtype = as_dtype(feature.dtype)
        if dtype not in _LISTS:
            raise ValueError(
                f"A feature must be of float32 or int64. Received: dtype={dtype.name} for key "
                f"{name!r}. Parse it as one of these, and use `cast`."
            )
        self.name, self.dtype, self.list = name, dtype, _LISTS[dtype]
        self.shape = as_shape(feature.shape)
        self.default: NDArray[Any] | None = None
        if feature.default_value is not None:
            default = np.asarray(feature.default_value, dtype)
            if default.size != math.prod(self.shape):
                raise InvalidArgumentError(
                    f"`default_value` of the feature {name!r} has {default.size} values, and its "
                    f"shape is {list(self.shape)}. Pass one value per element."
                )
            self.default = default.reshape(self.shape)

    def read(self, features: Any, index: int) -> NDArray[Any]:
        """Return the feature of the example with this number."""
        feature = features.get(self.name)
        kind = None if feature is None else feature.WhichOneof("kind")
        if kind is None:
            if self.default is None:
                raise InvalidArgumentError(
                    f"Name: <unknown>, Feature: {self.name} (data type: {_KINDS[self.list]}) is "
                    f"required but could not be found, in example {index}."
                )
            return self.default
        if kind != self.list:
            raise InvalidArgumentError(
                f"Name: <unknown>, Key: {self.name}, Index: {index}.  Data types don't match. "
                f"Data type: {_KINDS[kind]} but expected type: {_KINDS[self.list]}"
            )
        values = np.array(getattr(feature, kind).value, self.dtype)
        if values.size != math.prod(self.shape):
            raise InvalidArgumentError(
                f"Key: {self.name}, Index: {index}.  Number of {_KINDS[kind]} values != expected.  "
                f"Values size: {values.size} but output shape: {list(self.shape)}"
            )
        return values.reshape(self.shape)


def _parsed(serialized: Any, features: Any) -> tuple[dict[str, Any], bool]:
    """Return the features of examples, stacked, and whether it was one example."""
    if not isinstance(features, Mapping) or not features:
        raise ValueError(f"Missing: `features` was {features!r:.200}. Pass a dict of features.")
    parsers = [_Parser(name, feature) for name, feature in features.items()]
    alone = isinstance(serialized, bytes) or getattr(serialized, "shape", None) == ()
    strings = serialized.numpy() if isinstance(serialized, StringTensor) else serialized
    records = [strings] if alone else list(np.ravel(np.asarray(strings, object)))
    rows: list[list[NDArray[Any]]] = []
    for index, record in enumerate(records):
        try:
            example = Example.FromString(record)
        except Exception as error:
            raise InvalidArgumentError(
                f"Could not parse example input, value: {record!r:.100}, in example {index}. Pass "
                "the result of `Example.SerializeToString()`."
            ) from error
        rows.append([parser.read(example.features.feature, index) for parser in parsers])
    cpu = get_device("CPU:0")
    columns = list(zip(*rows, strict=True)) or [()] * len(parsers)
    parsed = {}
    for parser, column in zip(parsers, columns, strict=True):
        values = np.array(column, parser.dtype).reshape(len(rows), *parser.shape)
        parsed[parser.name] = transfer(values[0] if alone else values, cpu)
    return parsed, alone


def parse_single_example(
    serialized: Any, features: Any, example_names: None = None, name: str | None = None
) -> dict[str, Any]:
    """Return the features of one example as tensors, by name.

    Args:
        serialized: A record: a string of a `TFRecordDataset`'s element, or bytes.
        features: A `FixedLenFeature` for each name.
        example_names: Accepted.
        name: Accepted for compatibility.

    Raises:
        ValueError: A feature is none of a fixed length, or of no numbers.
        InvalidArgumentError: The record is no example, or lacks a feature, or has another one.

    Example:
        >>> import mirrored as mr
        >>> values = mr.train.Feature(float_list=mr.train.FloatList(value=[1.0, 2.0]))
        >>> example = mr.train.Example(features=mr.train.Features(feature={"x": values}))
        >>> features = {"x": mr.io.FixedLenFeature([2], mr.float32)}
        >>> mr.io.parse_single_example(example.SerializeToString(), features)["x"].numpy()
        array([1., 2.], dtype=float32)
    """
    parsed, alone = _parsed(serialized, features)
    if not alone:
        raise ValueError(
            "Input serialized must be a scalar. Use `parse_example` for a batch of records."
        )
    return parsed


def parse_example(
    serialized: Any, features: Any, example_names: None = None, name: str | None = None
) -> dict[str, Any]:
    """Return the features of a batch of examples as tensors, by name.

    Args:
        serialized: Records: strings of a dataset's batch, or a list of bytes.
        features: A `FixedLenFeature` for each name.
        example_names: Accepted.
        name: Accepted for compatibility.

    Raises:
        ValueError: A feature is none of a fixed length, or of no numbers.
        InvalidArgumentError: A record is no example, or lacks a feature, or has another one.

    Example:
        >>> import mirrored as mr
        >>> value = mr.train.Feature(int64_list=mr.train.Int64List(value=[3]))
        >>> example = mr.train.Example(features=mr.train.Features(feature={"y": value}))
        >>> features = {"y": mr.io.FixedLenFeature([], mr.int64)}
        >>> mr.io.parse_example([example.SerializeToString()] * 2, features)["y"].numpy()
        array([3, 3])
    """
    return _parsed(serialized, features)[0]


explain_functions(__name__)
