"""What users may pass as data, what becomes of it, and every way in which it is refused."""

from typing import Any

import numpy as np
import pytest

from mirrored.data.arrays import (
    Arrays,
    adapt,
    check_batch_size,
    split_validation,
    with_class_weights,
)


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


@pytest.mark.parametrize(
    "given",
    [
        X.tolist(),
        tuple(map(tuple, X.tolist())),
        [[np.float32(value) for value in row] for row in X],
        HasNumpy(X),
        [X],
        (HasNumpy(X),),
    ],
    ids=["lists", "tuples", "numpy scalars", "tensor", "list of one array", "tuple of one tensor"],
)
def test_accepted_forms(given: Any) -> None:
    np.testing.assert_array_equal(adapt(given, Y).x, X)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int32", "int64", "uint64", "float16", "float32", "float64"]
)
def test_numeric_dtypes_are_kept(dtype: str) -> None:
    assert adapt(np.zeros((2, 1), dtype), [0, 1]).x.dtype == dtype


def test_column_of_weights_becomes_a_vector() -> None:
    arrays = adapt(X, Y, [[0.5], [1.0], [0.0]])
    assert arrays.sample_weight is not None
    assert arrays.sample_weight.tolist() == [0.5, 1.0, 0.0]


def test_more_axes_of_weights_are_kept() -> None:
    """Whether they broadcast to the losses only the loss can tell."""
    arrays = adapt(X, Y, np.ones((3, 1, 1)))
    assert arrays.sample_weight is not None
    assert arrays.sample_weight.shape == (3, 1, 1)


def test_negative_weights_are_the_users_choice() -> None:
    arrays = adapt(X, Y, [-1, 0, 1])
    assert arrays.sample_weight is not None
    assert arrays.sample_weight.tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([0, 1, 2], [1.0, 5.0, 0.5]),
        ([[0], [1], [2]], [1.0, 5.0, 0.5]),
        ([1.0, 1.0, 2.0], [5.0, 5.0, 0.5]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1.0, 5.0, 0.5]),
    ],
    ids=["labels", "column", "float labels", "one-hot"],
)
def test_class_weight(targets: Any, expected: list[float]) -> None:
    arrays = with_class_weights(adapt(X, targets), {1: 5.0, 2: 0.5, 7: 3.0})
    assert arrays.sample_weight is not None
    assert arrays.sample_weight.tolist() == expected


def test_predict_needs_no_targets() -> None:
    assert adapt(X, for_what="predict").y is None


OBJECTS = np.array([None, {}, 1], dtype=object)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no x": ({"x": None}, r"`fit` needs input data. Received: x=None"),
    "no y": ({"y": None}, r"`fit` needs targets to compute the loss. Received: y=None"),
    "no y in evaluate": (
        {"y": None, "for_what": "evaluate"},
        r"`evaluate` needs targets to compute the loss",
    ),
    "object x": ({"x": OBJECTS}, r"`x` must hold numbers .* x with dtype object.*float32"),
    "object y": ({"y": OBJECTS}, r"`y` must hold numbers .* y with dtype object"),
    "string x": ({"x": ["a", "b", "c"]}, r"x with dtype <U1. Map the strings to integers"),
    "bytes y": ({"y": np.array([b"a", b"b", b"c"])}, r"y with dtype \|S1. Map the strings"),
    "complex x": ({"x": np.ones((3, 1), complex)}, r"dtype complex128. Pass the real and"),
    "dates": ({"x": np.zeros(3, "datetime64[s]")}, r"x with dtype datetime64\[s\]"),
    "structured": ({"x": np.zeros(3, "i4,f4")}, r"`x` must hold numbers"),
    "string weights": ({"sample_weight": list("abc")}, r"`sample_weight` must hold numbers"),
    "ragged": (
        {"x": [[1.0], [1.0, 2.0], [3.0]]},
        r"`x` is not an array. Can't convert non-rectangular Python",
    ),
    "scalar x": ({"x": 3.0}, r"`x` must have at least one dimension.*the scalar x=3.0"),
    "scalar y": ({"y": np.int64(3)}, r"`y` must have at least one dimension.*the scalar y=3"),
    "text": ({"x": "abc"}, r"x with dtype <U3"),
    "dict": ({"x": {"a": X, "b": X}}, r"one input and one output.*a dict with keys \['a', 'b'\]"),
    "list of arrays": ({"x": [X, X]}, r"one input .*a list of 2 arrays.*`numpy.stack`"),
    "tuple of tensors": ({"x": (HasNumpy(X), HasNumpy(X))}, r"a tuple of 2 arrays"),
    "several targets": ({"y": [Y, Y]}, r"`y` must be one array"),
    "generator": ({"x": (row for row in X)}, r"Received: a generator. Collect its items"),
    "object without rows": ({"x": object()}, r"`x` must hold numbers .* dtype object"),
    "lengths": (
        {"y": [1, 2]},
        r"Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. "
        r"Received: 'x' sizes: 3, 'y' sizes: 2",
    ),
    "weights' length": ({"sample_weight": [1.0]}, r"'y' sizes: 3, 'sample_weight' sizes: 1"),
    "empty": ({"x": [], "y": []}, r"`fit` needs at least one example. .*shape \(0,\)"),
    "empty rows": ({"x": np.zeros((0, 4)), "y": []}, r"empty data, x with shape \(0, 4\)"),
    "empty against full": ({"x": []}, r"cardinality is ambiguous"),
    "nan weight": ({"sample_weight": [1.0, np.nan, 1.0]}, r"must be finite. Received: nan"),
    "infinite weight": ({"sample_weight": [1.0, 1.0, -np.inf]}, r"must be finite. Received: -inf"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt(**{"x": X, "y": Y, **change})


REFUSED_CLASS_WEIGHTS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "both weights": (
        {"sample_weight": [1.0, 1.0, 1.0]},
        {0: 1.0},
        r"`class_weight` and `sample_weight` cannot be given at the same time",
    ),
    "type": ({}, [1.0, 2.0], r"must be a dict .*class_weight=\[1.0"),
    "label": ({}, {"cat": 1.0}, r"with the item 'cat': 1.0"),
    "infinite": ({}, {0: np.inf}, r"finite weight. .*item 0: inf"),
    "text": ({}, {0: "much"}, r"finite weight. .*item 0: 'much'"),
    "rank": (
        {"y": np.zeros((3, 2, 2))},
        {0: 1.0},
        r"one label an example. Received: y with shape \(3, 2, 2\)",
    ),
    "no targets": ({"y": None, "for_what": "predict"}, {0: 1.0}, r"`class_weight` needs targets"),
}


@pytest.mark.parametrize(
    ("change", "weights", "message"), REFUSED_CLASS_WEIGHTS.values(), ids=REFUSED_CLASS_WEIGHTS
)
def test_refused_class_weights(change: dict[str, Any], weights: Any, message: str) -> None:
    arrays = adapt(**{"x": X, "y": Y, **change})
    with pytest.raises(ValueError, match=message):
        with_class_weights(arrays, weights)


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (32, 32), (np.int64(7), 7)])
def test_batch_size(value: Any, expected: int) -> None:
    size = check_batch_size(value)
    assert size == expected
    assert type(size) is int


@pytest.mark.parametrize(
    "value", [0, -1, 2.5, 32.0, np.float32(4), True, np.True_, None, "32", [32], np.int64(0)]
)
def test_batch_size_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"a positive integer. Received: batch_size=") as e:
        check_batch_size(value)
    assert repr(value) in str(e.value)
    assert ("`//`" in str(e.value)) == isinstance(value, float | np.floating)


@pytest.mark.parametrize(
    ("size", "fraction", "train"), [(10, 0.2, 8), (10, 0.25, 7), (3, 0.5, 1), (2, 0.01, 1)]
)
def test_split_takes_the_last(size: int, fraction: float, train: int) -> None:
    x = np.arange(float(size))
    first, last = split_validation(adapt(x, x, x), fraction)
    assert (first.size, last.size) == (train, size - train)
    for part, rows in ((first, x[:train]), (last, x[train:])):
        for array in (part.x, part.y, part.sample_weight):
            assert array is not None
            np.testing.assert_array_equal(array, rows)
            assert np.shares_memory(array, x)


def test_split_without_targets() -> None:
    first, last = split_validation(adapt(X, for_what="predict"), 0.4)
    assert first.y is None
    assert last.sample_weight is None


@pytest.mark.parametrize("fraction", [0, 0.0, 1, 1.0, -0.1, 1.5, float("nan"), True])
def test_split_fraction_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1. Received: validation_split="):
        split_validation(adapt(X, Y), fraction)


def test_split_of_too_little() -> None:
    one = Arrays(X[:1], Y[:1], None, 1)
    with pytest.raises(ValueError, match=r"contains 1 samples, which is not sufficient .*=0\.5`"):
        split_validation(one, 0.5)


@pytest.mark.parametrize("x", [iter([1.0]), zip([1.0], [2.0], strict=True), {"a": [1.0]}])
def test_what_is_wrong_with_x_comes_before_an_absent_y(x: Any) -> None:
    with pytest.raises(ValueError, match="`x` must be"):
        adapt(x)
