"""Frames as data: their numbers in order, and what is none of them refused by its column's name."""

import re
import sys
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.data.arrays import adapt, adapt_batch

INTS, FLOATS, BOOLS = [3, 1, 2], [0.5, 1.5, -1.0], [True, False, True]
Y = np.arange(3)


@pytest.fixture(params=[pytest.param("pandas", marks=pytest.mark.slow), "polars"], scope="module")
def library(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip("narwhals")
    return pytest.importorskip(request.param)


def test_columns_stand_side_by_side(library: Any) -> None:
    given = {"a": INTS, "b": FLOATS, "c": BOOLS}
    x = adapt(library.DataFrame(given), Y).x
    assert x.dtype == np.float64
    assert x.tolist() == [[3, 0.5, 1], [1, 1.5, 0], [2, -1.0, 1]]
    assert x.flags.c_contiguous
    whole = library.DataFrame({"a": INTS, "b": INTS})
    assert adapt(whole, Y).x.dtype == np.int64
    long = library.DataFrame({"a": np.arange(9000), "b": np.arange(9000) * 2})
    assert (adapt(long, for_what="predict").x == np.arange(9000)[:, None] * [1, 2]).all()


def test_columns_alone(library: Any) -> None:
    """A column of pandas' has a second axis, as in Keras."""
    frame = library.DataFrame({"a": INTS, "b": FLOATS})
    arrays = adapt({"a": frame["a"], "rest": [frame]}, frame["a"], frame["b"])
    shape = (3, 1) if library.__name__ == "pandas" else (3,)
    assert arrays.x["a"].shape == arrays.y.shape == shape
    assert arrays.x["rest"][0].shape == (3, 2)
    assert arrays.sample_weight.tolist() == FLOATS
    batch = adapt_batch((frame, frame["a"]), "fit", {3: 2.0})
    assert batch.sample_weight.tolist() == [2.0, 1.0, 1.0]


@pytest.mark.slow
def test_an_index_is_not_looked_at() -> None:
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame({"a": INTS, "b": FLOATS}, index=[2, 0, 1])
    assert adapt(x, pandas.Series(INTS, index=[0, 2, 1])).x[:, 0].tolist() == INTS
    assert adapt(x, pandas.Series(INTS, index=[0, 2, 1])).y[:, 0].tolist() == INTS
    nullable = pandas.DataFrame(
        {"a": pandas.array(INTS, "Int64"), "b": pandas.array(BOOLS, "boolean")}
    )
    assert adapt(nullable, Y).x.tolist() == [[3, 1], [1, 0], [2, 1]]


LABELS: dict[str, list[Any]] = {
    "integers": [0, 1],
    "tuples": [("a", "b"), ("a", "c")],
    "equal": ["a", "a"],
    "numbers": [2.5, 1.5],
}


@pytest.mark.slow
@cases("labels", LABELS.values(), ids=LABELS)
def test_labels_of_columns_may_be_anything(labels: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    numbers = np.stack([INTS, FLOATS], 1)
    frame = pandas.DataFrame(numbers)
    frame.columns = labels
    target, weight = pandas.Series(INTS, name=3).to_frame(), pandas.Series(FLOATS, name=(0, 1))
    arrays = adapt(frame, target, weight)
    assert (arrays.x == numbers).all()
    assert arrays.y.tolist() == [[each] for each in INTS]
    assert arrays.sample_weight.tolist() == FLOATS
    assert [*frame.columns] == labels
    with pytest.raises(ValueError, match=re.escape(f"Object in column {labels[0]!r}.")):
        adapt(frame.astype(object), Y)


@pytest.mark.slow
def test_one_hot_columns_of_integers_train() -> None:
    """`get_dummies` labels its columns with the integers."""
    pandas = pytest.importorskip("pandas")
    model = mr.Sequential([mr.layers.Input(shape=(2,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = pandas.get_dummies(pandas.Series([1, 2, 1]))
    assert np.isfinite(model.train_on_batch(x, pandas.DataFrame(FLOATS)))
    assert np.isfinite(model.fit(x, pandas.DataFrame(FLOATS), verbose=0).history["loss"]).all()
    assert model.evaluate(x, x[2], verbose=0) == model.evaluate(
        x.to_numpy(), x[[2]].to_numpy(), verbose=0
    )


REFUSED: dict[str, tuple[dict[str, list[Any]], str]] = {
    "strings": (
        {"a": INTS, "city": ["x", "y", "z"]},
        r"`x` must hold numbers .* a frame with String in column 'city'. Map its values to inte",
    ),
    "missing integers": (
        {"a": [1, None, None]},
        r"2 of them in column 'a', the first in row 1 .*Fill them",
    ),
    "missing floats": ({"a": FLOATS, "b": [0.5, 1.5, None]}, r"1 of them in column 'b', .* row 2 "),
    "lists": ({"a": [[1, 2], [3], [4]]}, r"in column 'a'"),
}


@pytest.mark.behaviour("frames")
@cases(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(library: Any, given: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt(library.DataFrame(given), Y)


def test_strings_in_a_column_alone(library: Any) -> None:
    with pytest.raises(ValueError, match=r"`y\['b'\]` must hold .* in the column 'city'"):
        adapt(Y, {"b": library.DataFrame({"city": ["x", "y", "z"]})["city"]})


def test_a_frame_that_is_not_computed() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"Received: a LazyFrame of polars. .*`.collect\(\)`"):
        adapt(polars.DataFrame({"a": INTS}).lazy(), Y)


class DataFrame:
    """Stands for a frame where no library of frames is installed."""

    __module__ = "pandas"
    shape = (3, 2)


def test_without_narwhals(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "narwhals"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"mirrored's extra `frames`, .*DataFrame as `x\['a'\]`"):
        adapt({"a": DataFrame()}, Y)


def test_training_on_a_frame_is_training_on_its_numbers(library: Any) -> None:
    def trained(x: Any, y: Any) -> Any:
        mr.keras.utils.set_random_seed(2)
        model = mr.Sequential([mr.layers.Input(shape=(2,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
        history = model.fit(x, y, 2, 2, validation_split=0.34, verbose=0)
        return history.history, model.predict(x, verbose=0).tolist()

    frame = library.DataFrame({"a": INTS, "b": FLOATS})
    assert trained(frame, frame["b"]) == trained(np.stack([INTS, FLOATS], 1), np.array(FLOATS))
