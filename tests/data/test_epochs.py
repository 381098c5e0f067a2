"""What counts as a stream of batches, and what a batch of one may be."""

import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.data.arrays import Arrays, adapt, adapt_batch, is_stream
from mirrored.data.epochs import Epochs

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


# ------------------------------------------------------------------------------ epochs


def rows() -> mr.data.Dataset:
    return mr.data.Dataset.from_tensor_slices((np.arange(7.0), np.arange(7)))


PIPELINES: dict[str, Any] = {
    "in order": lambda: rows().batch(3),
    "shuffled": lambda: rows().shuffle(7, seed=1).batch(3),
    "through a small buffer": lambda: rows().shuffle(4, seed=1).batch(3),
    "always the same order": lambda: rows().shuffle(7, 1, False).batch(3).repeat(2),
    "whole batches alone": lambda: rows().shuffle(7, seed=1).batch(3, drop_remainder=True),
    "passes of batches": lambda: rows().shuffle(7, seed=1).batch(3).repeat(3),
    "passes of rows": lambda: rows().shuffle(7, seed=1).repeat(3).batch(3),
    "shuffled passes": lambda: rows().repeat(2).shuffle(7, seed=1).batch(3),
    "without end": lambda: rows().shuffle(7, seed=1).repeat().batch(3),
    "some rows": lambda: rows().skip(1).take(5).batch(2).repeat(2),
    "batches of batches": lambda: rows().batch(3, drop_remainder=True).batch(2),
}


def taken(data: mr.data.Dataset, steps: int | None, goes_on: bool, most: int | None) -> list[Any]:
    """Return the batches of three epochs, and what is known of the epochs after each."""
    epochs = Epochs.of_stream(data, "fit", steps, "steps", goes_on=goes_on)
    seen: list[Any] = []
    for _ in range(3):
        seen.append([epochs.begin()])
        for span in epochs.spans(most):
            assert span.count <= (most or 100)
            seen[-1] += [(batch.x.tolist(), batch.y.tolist()) for batch in span]
        seen[-1].append((epochs.steps, epochs.ran_out))
    epochs.close()
    return seen


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize(
    ("steps", "goes_on", "most"), [(None, True, None), (2, True, None), (4, True, 3), (2, False, 1)]
)
def test_rows_are_read_as_elements_are(
    make: Any, steps: int | None, goes_on: bool, most: int | None
) -> None:
    """Datasets that only order and batch rows are read as row numbers; `prefetch` hides that."""
    steps = 4 if steps is None and make().cardinality() < 0 else steps
    expected = taken(make().prefetch(1), steps, goes_on, most)
    assert taken(make(), steps, goes_on, most) == expected


def test_what_is_wrong_with_rows_is_said_of_their_batch() -> None:
    def check(arrays: Arrays) -> Arrays:
        if arrays.y.max() > 4:
            raise ValueError("Too much.")
        return arrays

    epochs = Epochs.of_stream(rows().batch(2), "fit", None, "steps", goes_on=True)
    epochs.check_with(check)
    assert epochs.begin()
    spans = epochs.spans(1)
    assert [next(spans).count for _ in range(2)] == [1, 1]
    with pytest.raises(ValueError, match=r"^Batch 2 of the data \(counted from 0\): Too much.$"):
        next(spans)
    whole = Epochs.of_arrays(adapt(np.arange(7.0), np.arange(7)), 2, 4, goes_on=True)
    with pytest.raises(ValueError, match=r"^Too much.$"):
        whole.check_with(check)


def test_each_pass_over_arrays_is_in_another_order_by_the_global_seed() -> None:
    def orders() -> list[list[float]]:
        epochs = Epochs.of_arrays(
            adapt(np.arange(7.0), np.arange(7)), 2, 3, goes_on=True, shuffled=True
        )
        seen = []
        for _ in range(4):
            assert epochs.begin()
            seen += [each for span in epochs.spans(None) for batch in span for each in batch.x]
        return [seen[:7], seen[7:14], seen[14:21]]

    mr.random.set_seed(3)
    seeds = ops.SeedGenerator()
    expected = [seeds.permutation(7).tolist() for _ in range(3)]
    mr.random.set_seed(3)
    assert orders() == expected
