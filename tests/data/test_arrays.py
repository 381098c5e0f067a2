"""What users may pass as data, what becomes of it, and every way in which it is refused."""

import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import _nest
from mirrored.data.arrays import (
    adapt,
    adapt_batch,
    is_stream,
    with_class_weights,
)
from mirrored.data.stored import split_validation


class HasNumpy:
    """Stands for a tensor: anything with a `numpy` method."""

    ndim = 2

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def numpy(self) -> np.ndarray:
        return self._array


X = np.arange(6.0, dtype=np.float32).reshape(3, 2)
Y = np.array([0, 1, 2])


def test_arrays_are_not_copied() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    arrays = adapt(X, Y, weights)
    assert arrays.x is X
    assert arrays.y is Y
    assert arrays.sample_weight is not None
    assert np.shares_memory(arrays.sample_weight, weights)
    assert arrays.size == 3


@cases(
    "given",
    [
        X.tolist(),
        tuple(map(tuple, X.tolist())),
        [[np.float32(value) for value in row] for row in X],
        HasNumpy(X),
        np.ma.masked_array(X, X > 9),
    ],
    ids=["lists", "tuples", "numpy scalars", "tensor", "a mask of nothing"],
)
def test_accepted_forms(given: Any) -> None:
    np.testing.assert_array_equal(adapt(given, Y).x, X)


@cases(
    "dtype", ["bool", "uint8", "int8", "int32", "int64", "uint64", "float16", "float32", "float64"]
)
def test_numeric_dtypes_are_kept(dtype: str) -> None:
    assert adapt(np.zeros((2, 1), dtype), [0, 1]).x.dtype == dtype


@cases(
    ("given", "expected"),
    [
        ([[0.5], [1.0], [0.0]], [0.5, 1.0, 0.0]),
        ([-1, 0, 1], [-1, 0, 1]),  # The user's choice.
        (np.ones((3, 1, 1)), np.ones((3, 1, 1)).tolist()),  # Only the loss can tell.
    ],
    ids=["a column becomes a vector", "negative", "more axes"],
)
def test_weights(given: Any, expected: Any) -> None:
    arrays = adapt(X, Y, given)
    assert arrays.sample_weight is not None
    assert arrays.sample_weight.tolist() == expected


@pytest.mark.behaviour("class-weight")
@cases(
    ("targets", "expected"),
    [
        ([0, 1, 2], [1.0, 5.0, 0.5]),
        ([[0], [1], [2]], [1.0, 5.0, 0.5]),
        ([1.0, 1.0, 2.0], [5.0, 5.0, 0.5]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1.0, 5.0, 0.5]),
        ([0.5, 1.4, 1.5], [1.0, 5.0, 0.5]),  # As Keras rounds them.
    ],
    ids=["labels", "column", "float labels", "one-hot", "labels to be rounded"],
)
def test_class_weight(targets: Any, expected: list[float]) -> None:
    arrays = with_class_weights(adapt(X, targets), {1: 5.0, np.float64(2): 0.5, 7: 3.0})
    assert arrays.sample_weight is not None
    assert arrays.sample_weight.tolist() == expected


def test_predict_needs_no_targets() -> None:
    assert adapt(X, for_what="predict").y is None


NESTED: dict[str, Any] = {
    "a list of one": [X],
    "a tuple": (X, HasNumpy(X)),
    "a dict": {"b": X, "a": X.tolist()},
    "nested": {"a": [X, X.tolist()], "b": (X,)},
    "lists of arrays": [[X, HasNumpy(X)], [X]],
    "with None": [None, X, {"a": None}],
}


@pytest.mark.behaviour("data-structures")
@cases("given", NESTED.values(), ids=NESTED)
def test_structures_stay_as_they_are_given(given: Any) -> None:
    def checked(leaf: Any) -> bool | None:
        return None if leaf is None else leaf.dtype.kind == "f" and leaf.tolist() == X.tolist()

    arrays = adapt(given, given)
    assert arrays.x is not given
    assert _nest.map_structure(checked, arrays.x) == marked(given)
    assert _nest.map_structure(checked, arrays.y) == marked(given)
    part = arrays.rows(slice(1, 2))
    assert part.layout == arrays.layout == adapt(given, given).layout
    assert (part.size, {column.tolist()[0][0] for column in part.columns}) == (1, {2.0})


def marked(given: Any) -> Any:
    """Return a structure of the same form, with True for each array, however it was given."""
    if isinstance(given, dict):
        return {key: marked(item) for key, item in given.items()}
    if given is None or isinstance(given, np.ndarray | HasNumpy) or given == X.tolist():
        return None if given is None else True
    return type(given)([marked(item) for item in given])


def test_weights_of_several_targets() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    shared = adapt(X, {"a": Y, "b": [Y, None]}, weights[:, None])
    assert len(shared.columns) == 4
    assert shared.sample_weight["a"] is shared.sample_weight["b"][0]
    assert shared.sample_weight["b"][1] is None
    assert shared.sample_weight["a"].tolist() == [1.0, 2.0, 3.0]
    apart = adapt(X, [Y, Y], [weights, None])
    assert apart.sample_weight[0].tolist() == [1.0, 2.0, 3.0]
    assert apart.sample_weight[1] is None
    assert shared.layout != apart.layout


# What fits no method is in tests/bad_input; these are other kinds of the same, and the advice.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "objects": (
        {"x": np.array([None, {}, 1], dtype=object)},
        r"`x` must hold numbers .* x with dtype object.*Make each example an array of numbers",
    ),
    "numbers as objects": (
        {"x": np.array([None, 2.0, 1], dtype=object)},
        r"`x` must hold numbers .* x with dtype object.*Convert it with `numpy.asarray\(.*float32",
    ),
    "strings as objects": ({"x": np.array([[1, "a"]] * 3, dtype=object)}, "Map the strings to num"),
    "no array": ({"x": object()}, r"`x` must hold numbers .* dtype object"),
    "strings": ({"x": ["a", "b", "c"]}, r"x with dtype <U1. Map the strings to numbers"),
    "text": ({"x": "abc"}, r"x with dtype <U3"),
    "bytes": ({"y": np.array([b"a", b"b", b"c"])}, r"y with dtype \|S1. Map the strings"),
    "complex": ({"x": np.ones((3, 1), complex)}, r"dtype complex128. Pass the real and"),
    "structured": ({"x": np.zeros(3, "i4,f4")}, r"`x` must hold numbers"),
    "ragged": (
        {"x": [[1.0], [1.0, 2.0], [3.0]]},
        r"`x` is not an array. Can't convert non-rectangular Python",
    ),
    "scalar": ({"y": np.int64(3)}, r"`y` must have at least one dimension.*the scalar y=3"),
    "a placeholder": ({"x": mr.layers.Input(shape=(2,))}, "`x` is not an array. A symbolic tensor"),
    "masked values": (
        {"x": {"a": np.ma.masked_array(X, X > 3)}},
        r"`x\['a'\]` must have no missing values. Received: a MaskedArray with 2 masked values",
    ),
    "strings in a dict": ({"x": {"a": X, "b": ["c"]}}, r"`x\['b'\]` must hold numbers"),
    "a scalar in a list": ({"x": [X, 3]}, r"`x\[1\]` must have at least one dimension"),
    "ragged in a dict": ({"y": {"a": [[1], [1, 2]]}}, r"`y\['a'\]` is not an array"),
    "a generator in a tuple": ({"x": (X, iter(X))}, r"`x\[1\]` must be an array. .*an iterator"),
    "an empty dict": ({"x": {}}, r"`fit` needs input data. Received: x={}, which holds no array"),
    "nothing but None": (
        {"y": [None, None]},
        r"needs targets. Received: y=\[None, None\], which holds no",
    ),
    "lengths in a list": ({"x": [X, X[:2]]}, r"Received: 'x' sizes: 3, 2, 'y' sizes: 3."),
    "weights of another form": (
        {"y": [Y, Y], "sample_weight": {"a": Y, "b": Y}},
        r"one `sample_weight` array per output in `y`. .* did not match. The structures differ at",
    ),
    "weights of elements for several targets": (
        {"y": [Y, Y], "sample_weight": np.ones((3, 2))},
        r"one scalar score per sample .* Received: sample_weight with shape \(3, 2\)",
    ),
    "infinite weight in a dict": (
        {"y": {"a": Y, "b": Y}, "sample_weight": {"a": None, "b": [1.0, np.nan, 1.0]}},
        r"must be finite. Received: nan",
    ),
    "an iterator": ({"x": iter([1.0]), "y": None}, "`x` must be an array"),
    "generator": ({"x": (row for row in X)}, r"Received: a generator. Collect its items"),
    "weights' length": ({"sample_weight": [1.0]}, r"'y' sizes: 3, 'sample_weight' sizes: 1"),
    "empty rows": ({"x": np.zeros((0, 4)), "y": []}, r"empty data, x with shape \(0, 4\)"),
    "empty against full": ({"x": []}, r"cardinality is ambiguous"),
    "infinite weight": ({"sample_weight": [1.0, 1.0, -np.inf]}, r"must be finite. Received: -inf"),
}


@pytest.mark.behaviour("cardinality")
@cases(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt(**{"x": X, "y": Y, **change})


REFUSED_CLASS_WEIGHTS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "type": ({}, [1.0, 2.0], r"must be a dict .*class_weight=\[1.0"),
    "label": ({}, {"cat": 1.0}, r"with the item 'cat': 1.0"),
    "half a label": ({}, {0: 1.0, 0.5: 2.0}, r"with the item 0.5: 2.0"),
    "infinite": ({}, {0: np.inf}, r"finite weight. .*item 0: inf"),
    "text": ({}, {0: "much"}, r"finite weight. .*item 0: 'much'"),
    "rank": (
        {"y": np.zeros((3, 2, 2))},
        {0: 1.0},
        r"one label per example. Received: y with shape \(3, 2, 2\)",
    ),
    "no targets": ({"y": None, "for_what": "predict"}, {0: 1.0}, r"`class_weight` needs targets"),
    "several targets": ({"y": {"a": Y}}, {0: 1.0}, r"single output. Received: a dict as y"),
}


@cases(("change", "weights", "message"), REFUSED_CLASS_WEIGHTS.values(), ids=REFUSED_CLASS_WEIGHTS)
def test_refused_class_weights(change: dict[str, Any], weights: Any, message: str) -> None:
    arrays = adapt(**{"x": X, "y": Y, **change})
    with pytest.raises(ValueError, match=message):
        with_class_weights(arrays, weights)


@cases(("size", "fraction", "train"), [(10, 0.2, 8), (10, 0.25, 7), (3, 0.5, 1), (2, 0.01, 1)])
def test_split_takes_the_last(size: int, fraction: float, train: int) -> None:
    x = np.arange(float(size))
    first, last = split_validation(adapt(x, x, x), fraction)
    assert (first.size, last.size) == (train, size - train)
    for part, rows in ((first, x[:train]), (last, x[train:])):
        for column in (part.x, part.y, part.sample_weight):
            assert column is not None
            np.testing.assert_array_equal(column, rows)
            assert np.shares_memory(column, x)


def test_split_without_targets() -> None:
    first, last = split_validation(adapt(X, for_what="predict"), 0.4)
    assert first.y is None
    assert last.sample_weight is None


@cases("fraction", [0, 1, float("nan"), True])
def test_split_fraction_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1. Received: validation_split="):
        split_validation(adapt(X, Y), fraction)


# ------------------------------------------------------------------------------ streams


class Anew:
    """Can be iterated over again."""

    def __iter__(self) -> Iterator[Any]:
        return iter([(X, Y)])


class Foreign:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return X

    def __iter__(self) -> Iterator[Any]:
        return iter(X)


STREAMS = {
    "dataset": lambda: mr.data.Dataset.range(3),
    "generator": lambda: (each for each in ()),
    "iterator": lambda: iter([]),
    "iterable": Anew,
    "zip": lambda: zip([X], [Y], strict=True),
    "set": lambda: {1, 2},
}
WHOLE = {
    "array": lambda: X,
    "list": lambda: [1.0],
    "tuple": lambda: (1.0,),
    "range": lambda: range(3),
    "dict": lambda: {"a": X},
    "tensor": lambda: mr.constant([1.0]),
    "variable": lambda: mr.Variable([1.0]),
    "array of another library": Foreign,
    "array.array": lambda: array.array("d", [1.0]),
    "text": lambda: "abc",
    "number": lambda: 3.0,
    "None": lambda: None,
}


@cases("make", STREAMS.values(), ids=STREAMS)
def test_streams(make: Any) -> None:
    assert is_stream(make())


@cases("make", WHOLE.values(), ids=WHOLE)
def test_what_is_examples_itself(make: Any) -> None:
    assert not is_stream(make())


BATCHES: dict[str, Any] = {
    "a tuple": (X, Y),
    "a list of arrays": [X, Y],
    "tensors": (mr.constant, X, Y),
    "lists": (X.tolist(), Y.tolist()),
    "no weights": (X, Y, None),
}
NESTED_BATCHES: dict[str, Any] = {
    "a dict and a list": ({"a": X, "b": X.tolist()}, [Y, Y]),
    "tuples": ((X, X), (Y, Y)),
    "in a list": [[X, X], [Y, Y]],
}


@cases("element", NESTED_BATCHES.values(), ids=NESTED_BATCHES)
def test_batches_of_structures(element: Any) -> None:
    batch = adapt_batch(element, "fit")
    assert [type(batch.x), type(batch.y)] == [type(part) for part in element]
    assert [len(each) for each in batch.columns] == [3] * 4
    assert [type(each) for each in adapt_batch(element, "predict").columns] == [np.ndarray] * 2


@cases("element", BATCHES.values(), ids=BATCHES)
def test_batches(element: Any) -> None:
    if callable(element[0]):
        element = tuple(element[0](each) for each in element[1:])
    batch = adapt_batch(element, "fit")
    np.testing.assert_array_equal(batch.x, X)
    np.testing.assert_array_equal(batch.y, Y)
    assert batch.sample_weight is None


def test_weights_of_a_batch() -> None:
    assert adapt_batch((X, Y, np.ones((3, 1))), "fit").sample_weight.tolist() == [1.0] * 3
    assert adapt_batch((X, Y), "fit", {2: 2.0}).sample_weight.tolist() == [1.0, 1.0, 2.0]


@cases("element", [X, X.tolist(), (X,), (X, Y), [X, Y], (X, None)])
@cases("use", ["predict", "fit"])
def test_batches_of_inputs(element: Any, use: str) -> None:
    batch = adapt_batch(element if use == "predict" else (X,), use)
    np.testing.assert_array_equal(batch.x, X)
    assert batch.y is None


REFUSED_BATCHES: dict[str, tuple[Any, str]] = {
    "a tuple of four": ((X, Y, Y, Y), "Received: a tuple of 4"),
    "a scalar target": (
        (X[0], Y[0]),
        r"the axis of examples.* Received: arrays with the shapes \[\(2,\)",
    ),
    "a scalar weight": ((X, Y, 1.0), "the first axis of every array must be the axis of examples"),
    "a scalar in a dict": (
        ({"a": X, "b": 3.0}, Y),
        "the first axis of every array must be the axis of",
    ),
}


@cases(("element", "message"), REFUSED_BATCHES.values(), ids=REFUSED_BATCHES)
def test_refused_batches(element: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt_batch(element, "fit")
