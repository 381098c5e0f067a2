"""What counts as a stream of batches, and what a batch of one may be."""

import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.data.epochs import adapt_batch, is_stream

X, Y = np.zeros((4, 3), np.float32), np.arange(4)


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


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_streams(make: Any) -> None:
    assert is_stream(make())


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_what_is_examples_itself(make: Any) -> None:
    assert not is_stream(make())


BATCHES: dict[str, Any] = {
    "a tuple": (X, Y),
    "a list of arrays": [X, Y],
    "tensors": (mr.constant, X, Y),
    "lists": (X.tolist(), Y.tolist()),
    "no weights": (X, Y, None),
}


@pytest.mark.parametrize("element", BATCHES.values(), ids=BATCHES)
def test_batches(element: Any) -> None:
    if callable(element[0]):
        element = tuple(element[0](each) for each in element[1:])
    batch = adapt_batch(element, "fit")
    np.testing.assert_array_equal(batch.x, X)
    np.testing.assert_array_equal(batch.y, Y)
    assert batch.sample_weight is None


def test_weights_of_a_batch() -> None:
    assert adapt_batch((X, Y, np.ones((4, 1))), "fit").sample_weight.tolist() == [1.0] * 4
    assert adapt_batch((X, Y), "fit", {3: 2.0}).sample_weight.tolist() == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("element", [X, X.tolist(), (X,), (X, Y), [X, Y], (X, None)])
def test_batches_to_predict(element: Any) -> None:
    batch = adapt_batch(element, "predict")
    np.testing.assert_array_equal(batch.x, X)
    assert batch.y is None


UNBATCHED = r"`fit` needs batches, whose arrays all begin with an axis of the examples"
REFUSED: dict[str, tuple[Any, str]] = {
    "inputs alone": (X, r"`fit` needs batches of \(x, y\) or .* Received: a ndarray"),
    "a tuple of one": ((X,), "Received: a tuple of 1"),
    "a tuple of four": ((X, Y, Y, Y), "Received: a tuple of 4"),
    "a dict": ({"x": X}, "Received: a dict"),
    "a scalar target": ((X[0], Y[0]), rf"{UNBATCHED}. Received: arrays with the shapes \[\(3,\)"),
    "other numbers of examples": ((X, Y[:3]), UNBATCHED),
    "a scalar weight": ((X, Y, 1.0), UNBATCHED),
    "no examples": ((X[:0], Y[:0]), "`fit` needs at least one example"),
    "strings": ((X, np.array(["a"] * 4)), "`y` must hold numbers"),
    "several inputs": (((X, X), Y), "`x` must be one array"),
    "a dict of inputs": (({"a": X}, Y), "`x` must be one array"),
    "no targets": ((X, None), "`fit` needs targets"),
}


@pytest.mark.parametrize(("element", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(element: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adapt_batch(element, "fit")
