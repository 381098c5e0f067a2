"""Cross-entropies from logits."""

import math
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

LOGITS = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.0]])
LABELS = np.array([2, 0])


def expected() -> Any:
    shifted = np.exp(LOGITS)
    return -np.log(shifted[[0, 1], LABELS] / shifted.sum(axis=1))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sparse_and_dense_agree(dtype: str) -> None:
    sparse = ops.sparse_softmax_cross_entropy_with_logits(LABELS.astype(dtype), LOGITS)
    dense = ops.softmax_cross_entropy_with_logits(np.eye(3)[LABELS], LOGITS)
    np.testing.assert_allclose(sparse.numpy(), expected(), rtol=1e-14)
    np.testing.assert_allclose(dense.numpy(), expected(), rtol=1e-14)


def test_numbers_adopt_the_dtype_of_the_tensor() -> None:
    logits = ops.constant(LOGITS)
    for labels, values in (
        (np.eye(3)[LABELS].tolist(), logits),
        (ops.constant(np.eye(3)[LABELS]), LOGITS.tolist()),
    ):
        assert ops.sigmoid_cross_entropy_with_logits(labels, values).dtype == ops.float64


def test_distributions_are_cast_to_the_dtype_of_the_logits() -> None:
    """As TensorFlow 2.21 does."""
    rows = np.eye(3)[LABELS]
    exact = ops.softmax_cross_entropy_with_logits(rows, LOGITS).numpy()
    for labels in (rows.astype(np.uint8), rows.astype(np.float32), rows.astype(bool)):
        for given in (labels, ops.constant(labels)):
            found = ops.softmax_cross_entropy_with_logits(given, ops.constant(LOGITS))
            assert found.dtype == ops.float64
            np.testing.assert_array_equal(found.numpy(), exact)
    narrow = ops.softmax_cross_entropy_with_logits(ops.constant(rows), LOGITS.tolist())
    assert narrow.dtype == ops.float32


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_logits_are_finite(dtype: str) -> None:
    logits = np.array([[1e4, -1e4]], dtype)
    found = ops.sparse_softmax_cross_entropy_with_logits([1], logits)
    np.testing.assert_array_equal(found.numpy(), [2e4])
    dense = ops.softmax_cross_entropy_with_logits(np.array([[0, 1]], dtype), logits)
    np.testing.assert_array_equal(dense.numpy(), [2e4])
    binary = ops.sigmoid_cross_entropy_with_logits(np.array([[0, 1]], dtype), logits)
    np.testing.assert_array_equal(binary.numpy(), [[1e4, 1e4]])
    sure = ops.sigmoid_cross_entropy_with_logits(
        np.array([1, 0], dtype), np.array([20, -20], dtype)
    )
    np.testing.assert_allclose(sure.numpy(), np.log1p(np.exp(-20.0)), rtol=1e-6)


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_out_of_range(label: int) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ops.sparse_softmax_cross_entropy_with_logits([0, label], LOGITS)
    assert (
        f"Received a label value of {label} which is outside the valid range of [0, 3)."
    ) in str(caught.value)


@cases(
    ("function", "labels", "logits", "text"),
    [
        ("sparse_softmax", np.zeros(3, int), LOGITS, "must have the same first dimension"),
        ("sparse_softmax", np.zeros((2, 1), int), LOGITS, "labels shape [2,1]"),
        ("sparse_softmax", np.zeros(2), LOGITS, "Value for attr 'T' of double is not in the list"),
        ("sparse_softmax", np.zeros(2, int), LABELS, "Value for attr 'T' of int64 is not in the"),
        ("sparse_softmax", np.zeros(2, int), LOGITS[0, :2], "logits and labels must be broad"),
        ("softmax", np.zeros((2, 2)), LOGITS, "logits_size=[2,3] labels_size=[2,2]"),
        ("softmax", np.float64(1.0), np.float64(1.0), "logits and labels must be broadcastable"),
        ("sigmoid", np.zeros((2, 2)), LOGITS, "must have the same shape, received ([2,3] vs [2,2]"),
    ],
)
def test_bad_inputs(function: str, labels: Any, logits: Any, text: str) -> None:
    call = getattr(ops, f"{function}_cross_entropy_with_logits")
    with pytest.raises(InvalidArgumentError) as caught:
        call(labels, logits)
    assert text in str(caught.value)


@cases("shape", [(), (4,), (2, 3), (2, 1, 3)])
def test_any_number_of_leading_axes(shape: tuple[int, ...]) -> None:
    """Each row is by itself, in gradients too."""
    rng = np.random.default_rng(4)
    logits, labels = rng.normal(size=(*shape, 5)), rng.integers(0, 5, shape)
    rows, given = ops.constant(logits), np.eye(5)[labels]
    expected = np.log(np.exp(logits).sum(-1)) - (given * logits).sum(-1)
    with GradientTape(persistent=True) as tape:
        tape.watch(rows)
        dense = ops.softmax_cross_entropy_with_logits(given, rows)
        sparse = ops.sparse_softmax_cross_entropy_with_logits(labels, rows)
    for found in (dense, sparse):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
        slope = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True) - given
        np.testing.assert_allclose(np.asarray(tape.gradient(found, rows)), slope, atol=1e-12)
    first = np.moveaxis(given, -1, 0), np.moveaxis(logits, -1, 0)
    found = ops.softmax_cross_entropy_with_logits(*first, axis=0)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_labels_that_broadcast() -> None:
    same = ops.softmax_cross_entropy_with_logits([[0.0, 1.0, 0.0]] * 2, LOGITS).numpy()
    for labels in ([0.0, 1.0, 0.0], [[0.0, 1.0, 0.0]]):
        found = ops.softmax_cross_entropy_with_logits(labels, LOGITS).numpy()
        np.testing.assert_array_equal(found, same)


def test_rows_without_classes_cost_nothing() -> None:
    """Allocated before: fresh memory often is 0 by chance."""
    used = ops.fill((3,), 7.0)
    del used
    found = ops.softmax_cross_entropy_with_logits(ops.zeros((3, 0)), ops.zeros((3, 0)))
    np.testing.assert_array_equal(found.numpy(), np.zeros(3))


def test_gradient_stops_at_labels_that_are_indices() -> None:
    logits, labels = ops.constant(LOGITS), ops.constant(LABELS)
    with GradientTape() as tape:
        tape.watch(logits)
        loss = ops.sparse_softmax_cross_entropy_with_logits(labels, logits)
    gradient = tape.gradient(loss, logits)
    np.testing.assert_allclose(
        gradient.numpy(), ops.softmax(logits).numpy() - np.eye(3)[LABELS], rtol=1e-13
    )


def test_positive_labels_that_count_more() -> None:
    labels, logits = np.array([0.0, 1.0, 0.25, 1.0]), np.array([1.0, -2.0, 0.5, -1e4])
    weight = np.array([2.0, 3.0, 0.5, 2.0])
    log_p, log_q = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    np.testing.assert_allclose(
        ops.weighted_cross_entropy_with_logits(labels, logits, weight).numpy(),
        -(weight * labels * log_p + (1 - labels) * log_q),
        rtol=1e-14,
    )
    same = ops.sigmoid_cross_entropy_with_logits(labels, logits).numpy()
    found = ops.weighted_cross_entropy_with_logits(labels, logits, 1.0).numpy()
    np.testing.assert_allclose(found, same, rtol=1e-14)


def test_the_loss_of_counts() -> None:
    counts, rates = np.array([0.0, 1.0, 3.0, 20.0]), np.array([0.5, -1.0, 1.0, 3.0])
    short = np.exp(rates) - counts * rates
    np.testing.assert_allclose(ops.log_poisson_loss(counts, rates).numpy(), short, rtol=1e-15)
    full = ops.log_poisson_loss(counts, rates, compute_full_loss=True).numpy()
    factorials = [0.0, 0.0, math.lgamma(4.0), math.lgamma(21.0)]
    np.testing.assert_allclose(full, short + factorials, atol=0.03)  # By Stirling's formula.
    assert full[3] != short[3] + factorials[3]


@pytest.mark.parametrize(
    ("loss", "options"),
    [(ops.weighted_cross_entropy_with_logits, (2.0,)), (ops.log_poisson_loss, ())],
)
def test_shapes_that_differ(loss: Any, options: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"must have the same shape, received \(\[3\] vs \[2\]\)"):
        loss(np.ones(2), np.ones(3), *options)
