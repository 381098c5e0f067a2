"""Windows over a time series: what Keras 3.15 on TensorFlow 2.21 gives for the same arguments."""

import random
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

X, Y = np.arange(10.0), np.arange(10) * 10


def made(**options: Any) -> Any:
    given = {"data": X, "targets": None, "sequence_length": 3, **options}
    return mr.keras.utils.timeseries_dataset_from_array(**given)


def values(dataset: Any) -> list[Any]:
    return [
        mr.nest.map_structure(lambda each: np.asarray(each).tolist(), element)
        for element in dataset.as_numpy_iterator()
    ]


CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "batches": (
        {"sequence_length": 8, "batch_size": 2},
        [[[*range(8)], [*range(1, 9)]], [[*range(2, 10)]]],
    ),
    "targets": (
        {"targets": Y[7:], "sequence_length": 7},
        [([[*range(7)], [*range(1, 8)], [*range(2, 9)]], [70, 80, 90])],
    ),
    "strides": (
        {"targets": Y, "sequence_stride": 2, "sampling_rate": 3, "batch_size": None},
        [([0, 3, 6], 0), ([2, 5, 8], 20)],
    ),
    "a part": (
        {"targets": Y, "start_index": 2, "end_index": 6, "batch_size": 2},
        [([[2, 3, 4], [3, 4, 5]], [20, 30])],
    ),
    "rows": ({"data": X[:, None], "sequence_length": 10}, [[X[:, None].tolist()]]),
    "none": ({"sequence_length": 11}, []),
    "lists": ({"data": X[:4].tolist(), "batch_size": None}, [[0, 1, 2], [1, 2, 3]]),
}


@cases(("options", "expected"), CASES.values(), ids=CASES)
def test_windows(options: dict[str, Any], expected: list[Any]) -> None:
    dataset = made(**options)
    assert values(dataset) == expected
    assert len(dataset) == len(expected)


def test_order() -> None:
    dataset = made(shuffle=True, seed=3, batch_size=4)
    first, second = values(dataset), values(dataset)
    assert first != second
    rows = [row for batch in first for row in batch]
    assert rows != sorted(rows) == [[n, n + 1, n + 2] for n in range(8)]
    np.random.seed(5)
    again = values(made(shuffle=True, batch_size=4))
    np.random.seed(5)
    assert values(made(shuffle=True, batch_size=4)) == again


def test_specs_and_training() -> None:
    dataset = made(data=X[:, None], targets=Y, batch_size=4)
    assert dataset.element_spec == (
        mr.TensorSpec((None, 3, 1), mr.float64),
        mr.TensorSpec((None,), mr.int64),
    )
    model = mr.Sequential([mr.layers.Flatten(), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "start": ({"start_index": 10}, "`start_index` must be 0 or greater, and lower"),
    "negative": ({"start_index": -1}, "Received: start_index=-1"),
    "end": ({"end_index": 10}, "`end_index` must be lower than the length"),
    "no end": ({"end_index": -1}, "`end_index` must be higher than 0"),
    "before": ({"start_index": 3, "end_index": 2}, "must be higher than `start_index`"),
    "rate": ({"sampling_rate": 0}, "`sampling_rate` must be higher than 0"),
    "stride": ({"sequence_stride": 10}, "`sequence_stride` must be lower than the length"),
    "length": ({"sequence_length": 0}, "sequence_length=0"),
    "targets": ({"targets": Y[3:], "start_index": 4}, "fewer `targets` than windows"),
    "format": ({"format": "grain"}, "Grain is not supported here"),
}


@cases(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**options)


PAIRS = np.arange(20).reshape(10, 2)


def elements(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


@cases(
    ("sizes", "lengths"),
    [
        ({"left_size": 0.8}, (8, 2)),
        ({"right_size": 3}, (7, 3)),
        ({"left_size": 0.5, "right_size": 3}, (5, 3)),
        ({"left_size": 0.3, "right_size": 0.3}, (3, 3)),
        ({"left_size": 2, "right_size": 2}, (2, 2)),
    ],
)
def test_sizes(sizes: dict[str, Any], lengths: tuple[int, int]) -> None:
    left, right = mr.keras.utils.split_dataset(PAIRS, **sizes)
    assert (len(left), len(right)) == lengths
    np.testing.assert_array_equal(elements(left), PAIRS[: lengths[0]])
    np.testing.assert_array_equal(elements(right), PAIRS[-lengths[1] :])


@cases(
    ("sizes", "error", "text"),
    [
        ({}, ValueError, "At least one of the `left_size` or `right_size`"),
        ({"left_size": 1.5}, ValueError, "smaller than 10, or a float.* left_size=1.5"),
        ({"left_size": 0}, ValueError, "left_size=0"),
        ({"right_size": 10}, ValueError, "right_size=10"),
        ({"left_size": -1}, ValueError, "left_size=-1"),
        ({"left_size": 5, "right_size": 6}, ValueError, "at most 10"),
        ({"left_size": 0.5, "right_size": 0.6}, ValueError, "greater than 1"),
        ({"left_size": "a"}, TypeError, "Invalid `left_size` Type"),
        ({"right_size": True}, TypeError, "Invalid `right_size` Type"),
        ({"left_size": 0.01}, ValueError, "one part would be empty"),
        ({"left_size": 2, "preferred_backend": "torch"}, ValueError, "torch"),
    ],
)
def test_sizes_that_there_are_not(sizes: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        mr.keras.utils.split_dataset(PAIRS, **sizes)


@cases(
    ("data", "error", "text"),
    [
        ("abc", TypeError, "Unsupported dataset type"),
        ({"a": PAIRS}, TypeError, "Unsupported dataset type"),
        ((PAIRS, PAIRS[:4]), ValueError, "different lengths. Mismatch found at index 1"),
        ((PAIRS, [1, 2]), ValueError, "Received: <class 'list'> at index 1"),
        ([], ValueError, "empty"),
        (np.zeros(0), ValueError, "empty"),
        (mr.data.Dataset.range(0), ValueError, "empty"),
    ],
)
def test_data_that_is_none(data: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        mr.keras.utils.split_dataset(data, left_size=2)


def test_several_arrays_shuffled_as_keras_does() -> None:
    order = list(range(10))
    random.Random(1).shuffle(order)
    state = random.getstate()
    left, _ = mr.keras.utils.split_dataset([PAIRS, PAIRS[:, 0]], left_size=4, shuffle=True, seed=1)
    assert random.getstate() == state
    rows, firsts = zip(*elements(left), strict=True)
    np.testing.assert_array_equal(rows, PAIRS[order[:4]])
    np.testing.assert_array_equal(firsts, PAIRS[order[:4], 0])


def test_a_batched_dataset_is_split_by_examples_and_batched() -> None:
    dataset = mr.data.Dataset.from_tensor_slices({"a": PAIRS}).batch(4)
    left, right = mr.keras.utils.split_dataset(dataset, left_size=5)
    assert [len(each["a"]) for each in elements(left)] == [4, 1]
    np.testing.assert_array_equal(elements(right)[0]["a"], PAIRS[5:9])
