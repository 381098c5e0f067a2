"""Penalties against NumPy."""

import re
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.layers import regularizers
from mirrored.layers.regularizers import L1, L1L2, L2, OrthogonalRegularizer, Regularizer
from mirrored.variables import Variable

W = np.array([[1.0, -2.0], [0.5, 3.0]])
CASES = {
    "L1": (L1(), 0.01 * np.abs(W).sum(), 0.01 * np.sign(W)),
    "L1 factor": (L1(0.2), 0.2 * np.abs(W).sum(), 0.2 * np.sign(W)),
    "L2": (L2(), 0.01 * (W**2).sum(), 0.02 * W),
    "L2 factor": (L2(l2=3), 3 * (W**2).sum(), 6 * W),
    "L1L2": (
        L1L2(0.2, 0.3),
        0.2 * np.abs(W).sum() + 0.3 * (W**2).sum(),
        0.2 * np.sign(W) + 0.6 * W,
    ),
}
each_case = pytest.mark.parametrize(("penalty", "value", "slope"), CASES.values(), ids=CASES)


def test_every_public_regularizer_is_in_the_table() -> None:
    public = {
        value
        for value in vars(regularizers).values()
        if isinstance(value, type) and value.__module__ == regularizers.__name__
    }
    tabled = {type(penalty) for penalty, _, _ in CASES.values()}
    assert public - {Regularizer} == {*tabled, OrthogonalRegularizer}


@each_case
def test_values_and_gradients_are_numpys(penalty: L1L2, value: float, slope: Any) -> None:
    weight = Variable(ops.constant(W))
    with GradientTape() as tape:
        result = penalty(weight)
    assert (result.shape, result.dtype) == ((), ops.float64)
    assert float(result.numpy()) == pytest.approx(value, rel=1e-14)
    gradient = tape.gradient(result, weight)
    assert gradient is not None
    np.testing.assert_allclose(gradient.numpy(), slope, rtol=1e-14)


def test_no_factors_are_no_penalty() -> None:
    result = L1L2()(Variable(ops.constant(W)))
    assert (float(result.numpy()), result.dtype) == (0.0, ops.float64)


@cases(
    ("identifier", "expected"),
    [
        ("l1", "L1(l1=0.01)"),
        ("L1", "L1(l1=0.01)"),
        ("l2", "L2(l2=0.01)"),
        ("L2", "L2(l2=0.01)"),
        ("L1L2", "L1L2(l1=0.0, l2=0.0)"),
        ("l1l2", "L1L2(l1=0.0, l2=0.0)"),
        ("orthogonal_regularizer", "OrthogonalRegularizer(factor=0.01, mode='rows')"),
        (L2, "L2(l2=0.01)"),
        (L2(0.5), "L2(l2=0.5)"),
        (None, "None"),
    ],
)
def test_names_classes_and_instances_are_accepted(identifier: Any, expected: str) -> None:
    assert repr(regularizers.get(identifier)) == expected


def test_functions_are_accepted_and_lower_case_names_are_classes() -> None:
    assert regularizers.get(ops.reduce_sum) is ops.reduce_sum
    assert (regularizers.l1, regularizers.l2, regularizers.l1_l2) == (L1, L2, L1L2)


@cases(
    ("made", "config"),
    [
        (L1(0.5), {"l1": 0.5}),
        (L2(), {"l2": 0.01}),
        (L1L2(0.5, None), {"l1": 0.5, "l2": 0.0}),
        (L1L2(None, 0.5), {"l1": 0.0, "l2": 0.5}),
        (OrthogonalRegularizer(0.5, "columns"), {"factor": 0.5, "mode": "columns"}),
    ],
    ids=str,
)
def test_configurations(made: Any, config: dict[str, Any]) -> None:
    assert made.get_config() == config
    given = {"class_name": type(made).__name__, "config": config}
    for other in (type(made).from_config(config), regularizers.get(given)):
        assert (type(other), vars(other)) == (type(made), vars(made))
    with pytest.raises(NotImplementedError, match="does not implement get_config"):
        regularizers.Regularizer().get_config()


REFUSED = [(kind, name, None) for kind, name in ((L1, "l1"), (L2, "l2"))] + [
    (kind, name, factor)
    for kind, name in ((L1, "l1"), (L2, "l2"), (L1L2, "l1"), (L1L2, "l2"))
    for factor in (-1, float("nan"), float("inf"), "a", True)
]


@cases(("kind", "name", "factor"), REFUSED)
def test_other_factors_are_refused(kind: Any, name: str, factor: object) -> None:
    text = (
        f"Invalid value for argument {name}: expected a non-negative float. "
        f"Received: {name}={factor!r}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        kind(**{name: factor})


M = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [2.0, 1.0, 1.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_orthogonal_is_the_mean_cosine_of_pairs(mode: str) -> None:
    rows = M if mode == "rows" else M.T
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-7)
    cosines = np.abs(rows / lengths @ (rows / lengths).T)[np.triu_indices(len(rows), 1)]
    weight = Variable(ops.constant(M))
    with GradientTape() as tape:
        result = OrthogonalRegularizer(0.5, mode)(weight)
    assert float(result) == pytest.approx(0.5 * cosines.mean(), rel=1e-14)
    gradient = tape.gradient(result, weight)
    assert gradient is not None
    # Along a row, or a column, it does not change.
    along = (gradient.numpy() * M).sum(axis=1 if mode == "rows" else 0)
    np.testing.assert_allclose(along, 0.0, atol=1e-15)
    assert np.isnan(float(OrthogonalRegularizer(0.5)(M[:1])))


def test_what_orthogonal_refuses() -> None:
    with pytest.raises(ValueError, match=r"must have rank 2\. Received: inputs\.shape="):
        OrthogonalRegularizer()(np.ones(3))
    with pytest.raises(ValueError, match="Invalid value for argument `mode`"):
        OrthogonalRegularizer(mode="row")
    with pytest.raises(ValueError, match="Invalid value for argument factor"):
        OrthogonalRegularizer(-1.0)


def test_a_regularizer_of_ones_own() -> None:
    class Largest(Regularizer):
        def __call__(self, x: Any) -> Any:
            return 0.5 * ops.reduce_max(x)

    assert isinstance(regularizers.get("l1"), Regularizer)
    assert float(regularizers.get(Largest)(Variable(ops.constant(W)))) == 1.5  # type: ignore[misc]
    assert Regularizer()(W) == 0.0
