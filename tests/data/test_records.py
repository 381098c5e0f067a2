"""TFRecord files of examples as TensorFlow 2.21 has them, and names of files as strings."""

import base64
import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.data.records import _crc32c, records_in

pytest.importorskip("google.protobuf")
Dataset, TFRecordDataset, train = mr.data.Dataset, mr.data.TFRecordDataset, mr.train
# What TensorFlow wrote: b"one" and b"".
WRITTEN = base64.b64decode("AwAAAAAAAACwmUkOb25lAUBVCAAAAAAAAAAAKQOYB9jqgqI=")
FEATURES = {
    "x": mr.io.FixedLenFeature([3], mr.float32),
    "y": mr.io.FixedLenFeature([], mr.int64),
    "z": mr.io.FixedLenFeature([2], mr.int64, default_value=[7, 8]),
}


def example(number: int) -> bytes:
    feature = train.Feature
    features = {
        "x": feature(float_list=train.FloatList(value=np.arange(3) + number)),
        "y": feature(int64_list=train.Int64List(value=[-number])),
        "s": feature(bytes_list=train.BytesList(value=[b"ab"])),
    }
    made: bytes = train.Example(features=train.Features(feature=features)).SerializeToString()
    return made


def write(path: Path, numbers: range, options: Any = None) -> str:
    with mr.io.TFRecordWriter(path, options) as writer:
        for number in numbers:
            writer.write(example(number))
        writer.flush()
    return str(path)


def values(dataset: Any) -> list[Any]:
    return [
        mr.nest.map_structure(lambda each: np.asarray(each).tolist(), element)
        for element in dataset.as_numpy_iterator()
    ]


def numbers(dataset: Any) -> list[int]:
    parsed = dataset.map(lambda each: mr.io.parse_single_example(each, FEATURES)["y"])
    return [-int(each) for each in parsed]


def test_checksums_and_bytes(tmp_path: Path) -> None:
    assert _crc32c(b"123456789") == 0xE3069283  # The one of RFC 3720's kind of tables.
    path = tmp_path / "two"
    with mr.io.TFRecordWriter(path) as writer:
        writer.write(b"one")
        writer.write("")
    assert path.read_bytes() == WRITTEN
    assert list(records_in(str(path), "")) == [b"one", b""]


@pytest.mark.parametrize("options", [None, "GZIP", mr.io.TFRecordOptions("ZLIB")])
def test_files_and_features(tmp_path: Path, options: Any) -> None:
    first = write(tmp_path / "a", range(4), options)
    second = write(tmp_path / "b", range(9, 11), options)
    kind = options.compression_type if isinstance(options, mr.io.TFRecordOptions) else options
    dataset = TFRecordDataset([first, second], kind)
    assert dataset.element_spec.shape == ()
    parsed = dataset.map(lambda each: mr.io.parse_single_example(each, FEATURES))
    assert values(parsed)[1] == {"x": [1, 2, 3], "y": -1, "z": [7, 8]}
    batches = dataset.batch(4).map(lambda each: mr.io.parse_example(each, FEATURES))
    assert values(batches)[1] == {
        "x": [[9, 10, 11], [10, 11, 12]],
        "y": [-9, -10],
        "z": [[7, 8]] * 2,
    }
    assert parsed.element_spec["x"] == mr.TensorSpec((3,), mr.float32)
    message = train.Example.FromString(next(iter(dataset)).numpy())
    assert list(message.features.feature["s"].bytes_list.value) == [b"ab"]


def test_orders_of_files(tmp_path: Path) -> None:
    paths = [write(tmp_path / ".a", range(3)), write(tmp_path / "b", range(10, 12))]
    assert numbers(TFRecordDataset(paths)) == [0, 1, 2, 10, 11]
    assert numbers(TFRecordDataset(paths, num_parallel_reads=2)) == [0, 10, 1, 11, 2]
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    assert values(files) == [each.encode() for each in paths]
    assert numbers(TFRecordDataset(files)) == [0, 1, 2, 10, 11]
    assert numbers(files.interleave(TFRecordDataset, cycle_length=2)) == [0, 10, 1, 11, 2]
    assert numbers(files.repeat(2).shuffle(9).flat_map(TFRecordDataset).cache())
    drawn = Dataset.list_files([tmp_path / ".a", tmp_path / "b", tmp_path / "?"], seed=1)
    assert len({str(values(drawn)) for _ in range(9)}) == len(drawn) == 2


def test_strings_of_users(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", range(2)), write(tmp_path / "b", range(10, 12))]
    slices = Dataset.from_tensor_slices
    assert numbers(slices(paths).interleave(TFRecordDataset)) == [0, 10, 1, 11]
    assert numbers(TFRecordDataset(slices(np.array(paths)))) == [0, 1, 10, 11]
    labelled = slices((np.array(["1", "é"], object), [3, 4])).map(
        lambda name, label: (mr.numpy_function(len, [name], mr.int64), label, "x")
    )
    assert values(labelled) == [(1, 3, b"x"), (2, 4, b"x")]
    assert values(Dataset.from_tensors([["a"], [b"b"]])) == [[[b"a"], [b"b"]]]


def test_strings_in_functions(tmp_path: Path) -> None:
    path = write(tmp_path / "a", range(1))
    files = Dataset.list_files(path)
    (name,) = files
    assert (name.shape, name.numpy(), len(files.batch(3))) == ((), path.encode(), 1)
    assert bool(name == path)
    assert not bool(name != path.encode())
    (names,) = files.repeat(2).batch(2)
    assert (len(names), [each.numpy() for each in names]) == (2, [path.encode()] * 2)
    assert (names == [path, "other"]).numpy().tolist() == [True, False]
    assert repr(name) == f"<mr.StringTensor: shape=(), dtype=string, numpy={path.encode()!r}>"
    with pytest.raises(TypeError):
        hash(name)
    seen: list[Any] = []

    def load(given: Any, count: Any) -> Any:
        seen.extend([given, count])
        return np.float32(len(given))

    sizes = files.map(lambda each: (each, mr.numpy_function(load, [each, 3], mr.float32)))
    assert values(sizes) == [(path.encode(), len(path))]
    assert seen == [path.encode(), 3]
    eager = files.map(
        lambda each: mr.py_function(lambda s: float(len(s.numpy())), [each], mr.float32)
    )
    assert values(eager) == [len(path)]
    assert values(files.padded_batch(2)) == [[path.encode()]]
    pairs = files.repeat(3).batch(2).padded_batch(2)
    assert values(pairs) == [[[path.encode()] * 2, [path.encode(), b""]]]
    strategy = mr.MirroredStrategy(["CPU:0"])
    with pytest.raises(TypeError, match="Strings cannot be copied to devices"):
        next(iter(strategy.experimental_distribute_dataset(files.batch(2))))
    with pytest.raises(TypeError, match="Strings cannot be cached in a file"):
        list(files.cache(tmp_path / "kept"))
    model = mr.Sequential([mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="must hold numbers"):
        model.fit(files.map(lambda each: (each, mr.ones([1]))).batch(1), verbose=0)


BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "missing": (
        example(1),
        {"q": mr.io.FixedLenFeature([], mr.float32)},
        mr.errors.InvalidArgumentError,
        r"Feature: q \(data type: float\) is required but could not be found",
    ),
    "another kind": (
        example(1),
        {"x": mr.io.FixedLenFeature([3], mr.int64)},
        mr.errors.InvalidArgumentError,
        "Data type: float but expected type: int64",
    ),
    "another size": (
        example(1),
        {"x": mr.io.FixedLenFeature([2], mr.float32)},
        mr.errors.InvalidArgumentError,
        r"Values size: 3 but output shape: \[2\]",
    ),
    "no example": (b"abc", FEATURES, mr.errors.InvalidArgumentError, "Could not parse example"),
    "a batch": ([example(1)], FEATURES, ValueError, "must be a scalar"),
    "no features": (example(1), {}, ValueError, "Missing: `features` was {}"),
    "float64": (
        example(1),
        {"x": mr.io.FixedLenFeature([3], mr.float64)},
        ValueError,
        "of float32 or int64. Received: dtype=float64",
    ),
    "an open size": (
        example(1),
        {"x": mr.io.FixedLenFeature([None], mr.float32)},
        TypeError,
        r"Received: \[None\]",
    ),
    "no FixedLenFeature": (
        example(1),
        {"x": mr.float32},
        ValueError,
        "Only features of a fixed length",
    ),
    "a default of another size": (
        example(1),
        {"q": mr.io.FixedLenFeature([2], mr.float32, 1.0)},
        mr.errors.InvalidArgumentError,
        "has 1 values",
    ),
}


@cases(("record", "features", "kind", "message"), BAD.values(), ids=BAD)
def test_what_is_not_parsed(record: Any, features: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        mr.io.parse_single_example(record, features)


def test_damage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    content = Path(write(path, range(1))).read_bytes()
    for place in range(0, len(content), 5):
        flipped = bytearray(content)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        with pytest.raises(mr.errors.DataLossError, match="record at 0 in"):
            list(TFRecordDataset(path))
        if place:
            path.write_bytes(content[:place])
            with pytest.raises(mr.errors.DataLossError, match=r"truncated record at 0|corrupted"):
                list(TFRecordDataset(path))
    path.write_bytes(content)
    with pytest.raises(mr.errors.DataLossError, match="pass `compression_type`"):
        list(TFRecordDataset(path, "GZIP"))
    with pytest.raises(mr.errors.DataLossError):
        list(TFRecordDataset(path, "ZLIB"))


REFUSED: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "names": (lambda _: TFRecordDataset(3), TypeError, "`filenames` must be"),
    "compression": (lambda _: TFRecordDataset("x", "LZ"), ValueError, "Unsupported compression"),
    "no file": (lambda _: list(TFRecordDataset("/no/file")), FileNotFoundError, "/no/file"),
    "no record": (
        lambda p: mr.io.TFRecordWriter(p / "x").write(3),
        TypeError,
        "A record must be bytes",
    ),
    "no match": (lambda p: Dataset.list_files(p / "z*"), ValueError, "No files matched pattern"),
    "no pattern": (lambda _: Dataset.list_files(3), TypeError, "`file_pattern` must be"),
}


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call: Any, kind: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message):
        call(tmp_path)


def test_without_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("google.protobuf"):
            raise ImportError(name)
        return imported(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "mirrored.data.examples")
    with pytest.raises(ImportError, match="extra `tfrecords`"):
        __import__("mirrored.data.examples")
