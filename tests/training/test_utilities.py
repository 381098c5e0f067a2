"""Seeds and labels, as scripts set and prepare them in their first lines."""

import random
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mirrored as mr
from mirrored.training.utilities import set_random_seed, to_categorical


def drawn() -> tuple[float, float, float]:
    """Draw a number of each kind."""
    return random.random(), float(np.random.rand()), float(mr.random.uniform(()))


def test_one_seed_sets_all_three() -> None:
    set_random_seed(3)
    first = drawn()
    assert all(a != b for a, b in zip(first, drawn(), strict=True))
    set_random_seed(np.int64(3))
    assert drawn() == first
    set_random_seed(4)
    assert all(a != b for a, b in zip(first, drawn(), strict=True))


@cases(
    ("seed", "message"),
    [
        ("a", r"Expected `seed` argument to be an integer. Received: seed=a \(of type <class 'str"),
        (1.5, "Expected `seed` argument to be an integer. Received: seed=1.5"),
        (None, "Expected `seed` argument to be an integer"),
        (-1, r"`seed` must be from 0 to 2\*\*32 - 1.*Received: seed=-1"),
        (2**32, "For a larger seed call `random.set_seed`"),
    ],
)
def test_seeds_that_are_none_change_nothing(seed: Any, message: str) -> None:
    set_random_seed(3)
    first = drawn()
    set_random_seed(3)
    with pytest.raises(ValueError, match=message):
        set_random_seed(seed)
    assert drawn() == first


@settings(max_examples=30)
@given(
    hnp.arrays(
        np.int64,
        hnp.array_shapes(max_dims=3, max_side=4),
        elements=st.integers(min_value=0, max_value=6),
    )
)
def test_rows_have_their_one_where_the_label_says(labels: np.ndarray) -> None:
    rows = to_categorical(labels, num_classes=7)
    flat = labels[..., 0] if labels.ndim > 1 and labels.shape[-1] == 1 else labels
    assert rows.dtype == np.float64
    assert rows.shape == (*flat.shape, 7)
    np.testing.assert_array_equal(rows.argmax(axis=-1), flat)
    np.testing.assert_array_equal(rows.sum(axis=-1), np.ones(flat.shape))


@cases(
    ("x", "num_classes", "expected"),
    [
        ([0, 2], None, [[1, 0, 0], [0, 0, 1]]),
        ([[1], [0]], None, [[0, 1], [1, 0]]),
        (2, None, [0, 0, 1]),
        ([1.0, 0.0], 2, [[0, 1], [1, 0]]),
        ([True, False], 2, [[0, 1], [1, 0]]),
        ([], 3, np.zeros((0, 3))),
    ],
)
def test_shapes_and_kinds_of_labels(x: Any, num_classes: int | None, expected: Any) -> None:
    np.testing.assert_array_equal(to_categorical(x, num_classes), np.array(expected, float))


def test_tensors_are_labels_too() -> None:
    assert to_categorical(mr.constant([1, 0])).tolist() == [[0, 1], [1, 0]]


@cases(
    ("x", "num_classes", "message"),
    [
        ([0, 3], 3, r"label value of 3 which is outside the valid range of \[0, 3\)"),
        ([-1, 0], None, r"label value of -1 which is outside"),
        ([0.5], None, r"Labels must be whole numbers. Received: x=\[0.5\]"),
        ([float("nan")], 2, "Labels must be whole numbers"),
        ([float("inf")], 2, "Labels must be whole numbers"),
        (["a"], 2, "Labels must be whole numbers"),
        ([], None, r"Without labels the number of classes is not known. Received: x=\[\]"),
        ([0], 0, "`num_classes` must be a positive integer or None. Received: num_classes=0"),
        ([0], 2.5, "`num_classes` must be a positive integer or None"),
    ],
)
def test_labels_that_are_none(x: Any, num_classes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_categorical(x, num_classes)


def test_rows_train_as_labels_do() -> None:
    x, y = np.eye(3, dtype=np.float32), np.array([2, 0, 1])
    weights = []
    for loss, targets in (
        ("sparse_categorical_crossentropy", y),
        ("categorical_crossentropy", to_categorical(y)),
    ):
        set_random_seed(0)
        model = mr.Sequential([mr.layers.Dense(3, "softmax", input_shape=(3,))])
        model.compile("sgd", loss)
        model.fit(x, targets, epochs=2, shuffle=False, verbose=0)
        weights.append(model.get_weights()[0])
    np.testing.assert_allclose(*weights, rtol=1e-6)


@cases(
    ("parts", "packed", "unpacked"),
    [
        (("x",), "x", ("x", None, None)),
        ((("a", "b"),), (("a", "b"),), (("a", "b"), None, None)),
        ((["a"],), (["a"],), (["a"], None, None)),
        (("x", None, "w"), "x", ("x", None, None)),
        (({"a": 1}, "y"), ({"a": 1}, "y"), ({"a": 1}, "y", None)),
        (("x", "y", "w"), ("x", "y", "w"), ("x", "y", "w")),
    ],
)
def test_data_are_packed_and_unpacked(parts: Any, packed: Any, unpacked: Any) -> None:
    assert mr.keras.utils.pack_x_y_sample_weight(*parts) == packed
    assert mr.keras.utils.unpack_x_y_sample_weight(packed) == unpacked
    given = list(packed) if isinstance(packed, tuple) else packed
    assert mr.keras.utils.unpack_x_y_sample_weight(given) == unpacked


@cases("data", [(), [], (1, 2, 3, 4)])
def test_what_is_no_packed_data(data: Any) -> None:
    with pytest.raises(ValueError, match="Data is expected to be in format `x`, "):
        mr.keras.utils.unpack_x_y_sample_weight(data)
