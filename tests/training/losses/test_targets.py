"""Targets that do not fit the model are refused before training, with the reason."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.training import losses

MSE = losses.MeanSquaredError()
BINARY = losses.BinaryCrossentropy()
CATEGORICAL = losses.CategoricalCrossentropy()
SPARSE = losses.SparseCategoricalCrossentropy()
OWN = losses.as_loss(lambda y_true, y_pred: y_pred)


@cases("loss", [MSE, BINARY, OWN], ids=["mse", "binary", "own"])
@cases(
    ("shape", "output_shape", "expected"),
    [
        ((5,), (None, 1), (5, 1)),
        ((5, 1), (None, 1), (5, 1)),
        ((5, 1), (None,), (5, 1)),  # Whose rows are examples, where a vector is one.
        ((5, 3), (None, 3), (5, 3)),
        ((5, 3, 1), (None, 3), (5, 3)),
        ((5, 3), (None, 3, 1), (5, 3, 1)),
        ((5, 7, 3), (None, None, 3), (5, 7, 3)),
        ((5, 3), (32, 3), (5, 3)),  # The batch size of the output is no number of examples.
    ],
)
def test_targets_take_the_shape_of_the_output(
    loss: losses.Loss, shape: Any, output_shape: Any, expected: Any
) -> None:
    y = np.linspace(0, 1, int(np.prod(shape))).reshape(shape)
    checked = loss.check_targets(y, output_shape)
    assert checked.shape == expected
    np.testing.assert_array_equal(checked.ravel(), y.ravel())
    assert np.shares_memory(checked, y)


@cases(
    ("y", "output_shape", "expected", "dtype"),
    [
        (np.array([0, 3, 1]), (None, 4), [0, 3, 1], "int64"),
        (np.array([0, 3, 1], np.int32), (None, 4), [0, 3, 1], "int32"),
        (np.array([0, 3, 1], np.uint8), (None, 4), [0, 3, 1], "uint8"),
        (np.array([[0.0], [3.0]]), (None, 4), [0, 3], "int64"),
        (np.array([True, False]), (None, 2), [1, 0], "int64"),
        (np.array([[0, 1], [1, 0]]), (None, 2, 2), [[0, 1], [1, 0]], "int64"),
        (np.array([[[0], [1]]]), (None, None, 2), [[0, 1]], "int64"),
        (np.array([7]), (None, None), [7], "int64"),
    ],
)
def test_labels(y: np.ndarray, output_shape: Any, expected: Any, dtype: str) -> None:
    checked = SPARSE.check_targets(y, output_shape)
    assert checked.tolist() == expected
    assert checked.dtype == dtype


LABELS = np.array([0, 1, 2, 9])
REFUSED: dict[str, tuple[losses.Loss, np.ndarray, Any, str]] = {
    "too large": (
        SPARSE,
        LABELS,
        (None, 4),
        r"^Received a label value of 9 which is outside the valid range of \[0, 4\)\. Labels are "
        r"indices of the model's 4 outputs: renumber the labels from 0, or use at least "
        r"10 units in the last layer\.$",
    ),
    "float, too large": (SPARSE, LABELS + 0.0, (None, 4), r"value of 9\.0 .* \[0, 4\).*10 units"),
    "negative": (
        SPARSE,
        np.array([-1, 9]),
        (None, 4),
        r"value of -1 which .*\[0, 4\)\. Labels .* 4 outputs: renumber the labels from 0\.$",
    ),
    "infinite": (SPARSE, np.array([np.inf]), (None, 4), r"value of inf which .* from 0\.$"),
    "huge": (SPARSE, np.array([2**63], np.uint64), (None, 4), r"value of 9223372036854775808 "),
    "fraction": (SPARSE, np.array([0.0, 0.5]), (None, 4), r"integer labels\. .*value of 0\.5"),
    "nan": (SPARSE, np.array([np.nan]), (None, 4), r"integer labels\. Received: .*value of nan"),
    "one-hot": (
        SPARSE,
        np.eye(4),
        (None, 4),
        r"one integer label .*shape \(None,\) for the output shape \(None, 4\)\. Received: y with "
        r"shape \(4, 4\)\. For one-hot targets use 'categorical_crossentropy'",
    ),
    "labels of sequences": (SPARSE, LABELS, (None, 3, 4), r"Received: y with shape \(4,\)"),
    "minus one and one": (
        BINARY,
        np.array([[-1.0], [1.0]]),
        (None, 1),
        r"value of -1\.0 .*valid range of \[0, 1\]\. .* map the two classes to 0 and 1",
    ),
    "percent": (BINARY, np.array([[0, 100]]), (None, 2), r"value of 100 .*\[0, 1\]"),
    "nan probability": (BINARY, np.array([[0, np.nan]]), (None, 2), r"value of nan .*\[0, 1\]"),
    "classes for binary": (
        BINARY,
        LABELS,
        (None, 4),
        r"y with shape \(4,\)\. .*several classes use 'sparse_categorical_crossentropy'",
    ),
    "labels for categorical": (
        CATEGORICAL,
        LABELS,
        (None, 4),
        r"'categorical_crossentropy' compares .* output shape \(None, 4\)\. Received: y with shape "
        r"\(4,\)\. For integer labels use 'sparse_categorical_crossentropy'",
    ),
    "too few": (MSE, np.zeros((4, 2)), (None, 3), r"shape \(4, 2\)\. Reshape them, or change"),
    "too flat": (MSE, np.zeros(4), (None, 2), r"output shape \(None, 2\)\. Received: .* \(4,\)"),
    "too deep": (MSE, np.zeros((4, 2, 3)), (None, 2), r"y with shape \(4, 2, 3\)"),
}


@pytest.mark.behaviour("label-values")
@cases(("loss", "y", "output_shape", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(loss: losses.Loss, y: np.ndarray, output_shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loss.check_targets(y, output_shape)


def test_categorical_targets_may_be_any_numbers() -> None:
    y = np.array([[2.0, -1.0]])  # Rewards times one-hot rows, as in policy gradients.
    assert CATEGORICAL.check_targets(y, (None, 2)) is y


def test_own_losses_take_any_targets() -> None:
    y = np.zeros((4, 7, 2))
    assert OWN.check_targets(y, (None, 3)) is y
