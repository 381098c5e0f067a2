"""`split_dataset` gives Keras' parts, and refuses what Keras refuses."""

import random
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

X = np.arange(20).reshape(10, 2)


def elements(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


@pytest.mark.parametrize(
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
    left, right = mr.keras.utils.split_dataset(X, **sizes)
    assert (len(left), len(right)) == lengths
    np.testing.assert_array_equal(elements(left), X[: lengths[0]])
    np.testing.assert_array_equal(elements(right), X[-lengths[1] :])


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
        ({"left_size": 0.01}, ValueError, "leaves a part empty"),
        ({"left_size": 2, "preferred_backend": "torch"}, ValueError, "torch"),
    ],
)
def test_sizes_that_there_are_not(sizes: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        mr.keras.utils.split_dataset(X, **sizes)


@cases(
    ("data", "error", "text"),
    [
        ("abc", TypeError, "Unsupported dataset type"),
        ({"a": X}, TypeError, "Unsupported dataset type"),
        ((X, X[:4]), ValueError, "different lengths. Mismatch found at index 1"),
        ((X, [1, 2]), ValueError, "Received: <class 'list'> at index 1"),
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
    left, _ = mr.keras.utils.split_dataset([X, X[:, 0]], left_size=4, shuffle=True, seed=1)
    assert random.getstate() == state
    rows, firsts = zip(*elements(left), strict=True)
    np.testing.assert_array_equal(rows, X[order[:4]])
    np.testing.assert_array_equal(firsts, X[order[:4], 0])


def test_a_batched_dataset_is_split_by_examples_and_batched() -> None:
    dataset = mr.data.Dataset.from_tensor_slices({"a": X}).batch(4)
    left, right = mr.keras.utils.split_dataset(dataset, left_size=5)
    assert [len(each["a"]) for each in elements(left)] == [4, 1]
    np.testing.assert_array_equal(elements(right)[0]["a"], X[5:9])
