"""CSV files of numbers: what TensorFlow 2.21 makes of the same files."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr

CsvDataset = mr.data.experimental.CsvDataset
FIRST = 'x,y,z\n1,2.5,3\n4,,6\n"7",8.25,-9\n'
SECOND = "x,y,z\n10,1e3,5000000000\n"
PLAIN = "1,2\n3,x\n5,6\n7\n\n8,9\n"
E = "error"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("a.csv", FIRST),
        ("b.csv", SECOND),
        ("plain", PLAIN),
        ("t", "1\t2\n3\tNA\n"),
        ("underscore", "a\n1_0\n"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "latin").write_bytes("x,y\n1,café\n2,é\n".encode("latin1"))
    (tmp_path / "latin names").write_bytes("x,é\n1,2\n".encode("latin1"))
    (tmp_path / "utf-16").write_bytes("x,é\n1,2\n".encode("utf-16"))
    (tmp_path / "long").write_text(f"1,{'x' * 140000}\n")
    (tmp_path / "gzip").write_bytes(gzip.compress(b"1,2\n"))
    (tmp_path / "zlib").write_bytes(zlib.compress(b"1,2\n"))
    return tmp_path


def taken(dataset: Any, most: int = 9) -> list[Any]:
    found: list[Any] = []
    iterator = iter(dataset)
    while len(found) < most:
        try:
            element = next(iterator)
        except StopIteration:
            break
        except mr.errors.InvalidArgumentError:
            found.append(E)
        else:
            found.append(mr.nest.map_structure(lambda each: np.asarray(each).tolist(), element))
    return found


Make = Callable[[Path], Any]
ROWS: dict[str, tuple[Make, list[Any]]] = {
    "plain": (
        lambda p: CsvDataset(p / "plain", [mr.int32, mr.float32]),
        [(1, 2.0), E, (5, 6.0), E, E, (8, 9.0)],
    ),
    "a default": (
        lambda p: CsvDataset(p / "a.csv", [mr.int32, mr.constant([0.5]), mr.int64], header=True),
        [(1, 2.5, 3), (4, 0.5, 6), (7, 8.25, -9)],
    ),
    "required": (
        lambda p: CsvDataset(p / "a.csv", [mr.int32, mr.float32, mr.int64], header=True),
        [(1, 2.5, 3), E, (7, 8.25, -9)],
    ),
    "selected": (
        lambda p: CsvDataset(
            [p / "a.csv", p / "b.csv"], [mr.int32, mr.float64], header=True, select_cols=[0, 2]
        ),
        [(1, 3), (4, 6), (7, -9), (10, 5000000000)],
    ),
    "excluded": (
        lambda p: CsvDataset(p / "a.csv", [mr.int32, [0]], header=True, exclude_cols=[1]),
        [(1, 3), (4, 6), (7, -9)],
    ),
    "out of range": (
        lambda p: CsvDataset(p / "b.csv", [0, 0.0, 0], header=True),
        [E],
    ),
    "what counts as empty": (
        lambda p: CsvDataset(p / "t", [mr.int32, [5]], field_delim="\t", na_value="NA"),
        [(1, 2), (3, 5)],
    ),
    "other encodings": (
        lambda p: CsvDataset(p / "latin", [0], header=True, select_cols=[0]),
        [(1,), (2,)],
    ),
    "a long field": (lambda p: CsvDataset(p / "long", [0], select_cols=[0]), [E]),
    "gzip": (lambda p: CsvDataset(p / "gzip", [0, 0], "GZIP"), [(1, 2)]),
    "zlib": (lambda p: CsvDataset(p / "zlib", [0, np.float64(0)], "ZLIB"), [(1, 2)]),
    "names in a dataset": (
        lambda p: CsvDataset(
            mr.data.Dataset.list_files(str(p / "?.csv"), shuffle=False),
            [mr.int32, 0.0, mr.int64],
            header=True,
        ),
        [(1, 2.5, 3), (4, 0, 6), (7, 8.25, -9), (10, 1000, 5000000000)],
    ),
}


@pytest.mark.parametrize(("make", "expected"), ROWS.values(), ids=ROWS)
def test_rows(make: Make, expected: list[Any], folder: Path) -> None:
    assert taken(make(folder)) == expected


def test_specs(folder: Path) -> None:
    defaults = [mr.int32, 1.5, mr.int64, [2.5], [7], [2**40], np.array([1.0])]
    dtypes = (mr.int32, mr.float32, mr.int64, mr.float32, mr.int32, mr.int64, mr.float64)
    dataset = CsvDataset(folder / "a.csv", defaults, header=True)
    assert dataset.element_spec == tuple(mr.TensorSpec((), dtype) for dtype in dtypes)
    (folder / "odd").write_text("inf\n1_0\n")
    assert taken(CsvDataset(folder / "odd", [mr.float32])) == [(np.inf,), E]


def make(path: Any, size: int, **options: Any) -> Any:
    options = {"num_epochs": 1, "shuffle": False, **options}
    return mr.data.experimental.make_csv_dataset(path, size, **options)


A, B = {"x": [1, 4], "y": [2.5, 0.0], "z": [3, 6]}, {"x": [7], "y": [8.25], "z": [-9]}
BATCHES: dict[str, tuple[Make, list[Any]]] = {
    "all columns": (lambda p: make(str(p / "a.csv"), 2), [A, B]),
    "a label": (
        lambda p: make(str(p / "a.csv"), 3, label_name="z", select_columns=["z", "x"]),
        [({"x": [1, 4, 7]}, [3, 6, -9])],
    ),
    "a wider column": (
        lambda p: make(str(p / "?.csv"), 4, select_columns=[2]),
        [{"z": [3, 6, -9, 5000000000]}],
    ),
    "alternately": (
        lambda p: make([str(p / "a.csv"), str(p / "b.csv")], 2, num_parallel_reads=2),
        [
            {"x": [1, 10], "y": [2.5, 1000.0], "z": [3, 5000000000]},
            {"x": [4, 7], "y": [0.0, 8.25], "z": [6, -9]},
        ],
    ),
    "names alone in an encoding": (
        lambda p: make(str(p / "latin"), 2, select_columns=["x"], column_defaults=[0]),
        [{"x": [1, 2]}],
    ),
    "an encoding": (
        lambda p: make(str(p / "latin names"), 2, encoding="latin1"),
        [{"x": [1], "é": [2]}],
    ),
    "an encoding of rows": (
        lambda p: make(str(p / "utf-16"), 2, encoding="utf-16"),
        [{"x": [1], "é": [2]}],
    ),
    "without end": (
        lambda p: make(str(p / "a.csv"), 2, num_epochs=None, select_columns=["x"]).take(3),
        [{"x": [1, 4]}, {"x": [7, 1]}, {"x": [4, 7]}],
    ),
    "names and defaults": (
        lambda p: make(
            str(p / "plain"),
            2,
            column_names=["p", "q"],
            header=False,
            column_defaults=[mr.int32, mr.int32],
            ignore_errors=True,
        ),
        [{"p": [1, 5], "q": [2, 6]}, {"p": [8], "q": [9]}],
    ),
    "the first rows alone": (
        lambda p: make(str(p / "a.csv"), 3, select_columns=["y"], num_rows_for_inference=1),
        [{"y": [2.5, 0.0, 8.25]}],
    ),
}


@pytest.mark.parametrize(("make", "expected"), BATCHES.values(), ids=BATCHES)
def test_batches(make: Make, expected: list[Any], folder: Path) -> None:
    assert taken(make(folder)) == expected


def test_order(folder: Path) -> None:
    dataset = make(str(folder / "a.csv"), 3, shuffle=True, shuffle_seed=1, num_epochs=9)
    rows = [tuple(each["x"]) for each in taken(dataset)]
    assert {tuple(sorted(each)) for each in rows} == {(1, 4, 7)}
    assert len({*rows}) > 1


REFUSED: dict[str, tuple[Make, type[Exception], str]] = {
    "strings": (lambda p: CsvDataset(p / "a.csv", [0, "x"]), TypeError, "must be numbers"),
    "a dtype": (lambda p: CsvDataset(p / "a.csv", [mr.int8]), TypeError, "Received: int8"),
    "both": (
        lambda p: CsvDataset(p / "a.csv", [0], select_cols=[0], exclude_cols=[1]),
        ValueError,
        "not both",
    ),
    "an order": (
        lambda p: CsvDataset(p / "a.csv", [0, 0], select_cols=[2, 0]),
        ValueError,
        "strictly increasing",
    ),
    "inferred strings": (
        lambda p: make(str(p / "plain"), 1, column_names=["a", "b"], header=False),
        TypeError,
        "Received: 'x' in the column 'b'",
    ),
    "an inferred number of Python": (
        lambda p: make(str(p / "underscore"), 1),
        TypeError,
        "Received: '1_0' in the column 'a'",
    ),
    "label": (
        lambda p: make(str(p / "a.csv"), 1, label_name="q"),
        ValueError,
        "one of the columns",
    ),
    "column": (
        lambda p: make(str(p / "a.csv"), 1, select_columns=["q"]),
        ValueError,
        "'q' in `select_columns`",
    ),
    "no names": (lambda p: make(str(p / "plain"), 1, header=False), ValueError, "`column_names`"),
    "an encoding": (
        lambda p: make(str(p / "latin names"), 1),
        ValueError,
        "no text in utf-8.*`encoding`",
    ),
    "no match": (lambda p: make(str(p / "none*"), 1), ValueError, "No files matched"),
    "equal names": (
        lambda p: make(str(p / "plain"), 1, column_names=["a", "a"]),
        ValueError,
        "duplicate column names",
    ),
    "other names": (
        lambda p: make([str(p / "a.csv"), str(p / "plain")], 1),
        ValueError,
        "must have the same column names",
    ),
    "defaults": (
        lambda p: make(str(p / "a.csv"), 1, column_defaults=[0]),
        ValueError,
        "Received: 1 for 3 columns",
    ),
}


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call: Make, kind: Any, message: str, folder: Path) -> None:
    with pytest.raises(kind, match=message):
        call(folder)
