"""Keras' data sets of texts, as Keras 3.15 reads the same files, and files that are wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.keras import datasets
from tests.data.test_keras_files import Runs

TEXTS = [[1, 9, 3], [4], [7, 2], [5, 6, 8, 2]]


def lists(rows: list[Any]) -> np.ndarray:
    array = np.empty(len(rows), object)
    array[:] = rows
    return array


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return Keras' folder of data sets, with two files."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    made = tmp_path / "datasets"
    made.mkdir()
    train, test = lists(TEXTS), lists(TEXTS[::-1][:3])
    np.savez(
        made / "imdb.npz", x_train=train, y_train=np.arange(4), x_test=test, y_test=np.arange(4, 7)
    )
    np.savez(made / "reuters.npz", x=train, y=np.arange(4))
    return made


KERAS: list[tuple[str, dict[str, Any], list[Any]]] = [
    (
        "imdb",
        {},
        [
            ([[1, 8, 9, 11, 5], [1, 10, 5], [1, 4, 2, 6], [1, 7]], [3, 2, 0, 1]),
            ([[1, 10, 5], [1, 8, 9, 11, 5], [1, 7]], [5, 4, 6]),
        ],
    ),
    (
        "imdb",
        {"num_words": 10, "skip_top": 5},
        [
            ([[2, 8, 9, 2, 5], [2, 2, 5], [2, 2, 2, 6], [2, 7]], [3, 2, 0, 1]),
            ([[2, 2, 5], [2, 8, 9, 2, 5], [2, 7]], [5, 4, 6]),
        ],
    ),
    (
        "imdb",
        {"maxlen": 4, "start_char": None, "oov_char": None, "num_words": 11},
        [([[10, 5], [4, 6], [7]], [2, 0, 1]), ([[10, 5], [7]], [5, 6])],
    ),
    (
        "imdb",
        {"index_from": 0, "seed": 1, "num_words": 99},
        [
            ([[1, 5, 6, 8, 2], [1, 7, 2], [1, 1, 9, 3], [1, 4]], [3, 2, 0, 1]),
            ([[1, 5, 6, 8, 2], [1, 4], [1, 7, 2]], [4, 6, 5]),
        ],
    ),
    (
        "reuters",
        {},
        [([[1, 8, 9, 11, 5], [1, 10, 5], [1, 4, 2, 6]], [3, 2, 0]), ([[1, 7]], [1])],
    ),
    (
        "reuters",
        {"test_split": 0.5, "maxlen": 4, "seed": 3},
        [([[1, 7]], [1]), ([[1, 2, 5]], [2])],
    ),
]


@cases(("name", "options", "expected"), KERAS)
def test_texts(name: str, options: dict[str, Any], expected: Any) -> None:
    loaded = getattr(datasets, name).load_data(**options)
    assert [(x.tolist(), y.tolist()) for x, y in loaded] == expected
    assert {x.dtype for x, _ in loaded} == {np.dtype(object)}


def test_words_and_topics(folder: Path) -> None:
    names = datasets.reuters.get_label_names()
    assert (len(names), names[0], names[-1]) == (46, "cocoa", "lead")
    for module, name in ((datasets.imdb, "imdb"), (datasets.reuters, "reuters")):
        with pytest.raises(FileNotFoundError, match=r"_word_index.json, of md5"):
            module.get_word_index()
        (folder / f"{name}_word_index.json").write_text(json.dumps({"the": 1}))
        assert module.get_word_index() == {"the": 1}


def test_texts_that_are_wrong(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no sequence was kept. Increase maxlen"):
        datasets.imdb.load_data(maxlen=2)
    np.savez(folder / "reuters.npz", x=lists([Runs()]), y=np.arange(1))
    with pytest.raises(
        ValueError, match=r"It needs .*, and may have arrays and plain values alone"
    ):
        datasets.reuters.load_data()
    np.savez(folder / "reuters.npz", x=lists(TEXTS), y=np.arange(3))
    with pytest.raises(ValueError, match=r"the same number of examples and labels"):
        datasets.reuters.load_data()
    (folder / "reuters.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"Get https://.*reuters.npz, of sha256 d658"):
        datasets.reuters.load_data()
