"""Softmax on the emulated card, along any axis, against one of double precision."""

from typing import Any

import kernel_sources
import numpy as np
import pytest
from case_table import cases

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.softmax_kernels import KERNELS

SOFTMAX = KERNELS["Softmax"]
F32 = np.dtype(np.float32)
CASES = [
    ((9, 10), 1),
    ((3, 40), 1),
    ((2, 300), 1),
    ((2, 5000), 1),
    ((10, 9), 0),
    ((300, 3), 0),
    ((2, 7, 40), 1),
    ((5,), 0),
    ((4, 1), 1),
    ((0, 4), 1),
    ((4, 0), 1),
    ((4, 0), 0),
]


def softmax(x: Any, axis: int) -> Any:
    exact = x.astype(np.float64)
    if not x.size:
        return exact
    e = np.exp(exact - exact.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    return (5 * np.random.default_rng(2).normal(size=shape)).astype(dtype)


TOLERANCES = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 4e-3}


@cases(
    ("dtype", "tolerance"),
    [
        (dtype.name, TOLERANCES[dtype.name])
        for dtype in kernel_sources.FLOATS
        if dtype.name in TOLERANCES
    ],
    clean=False,
)
@cases(("shape", "axis"), CASES, clean=False)
def test_values(card: Any, shape: tuple[int, ...], axis: int, dtype: str, tolerance: float) -> None:
    x = numbers(shape, dtype)
    got = card.run(SOFTMAX, (shape, x.dtype), x, axis=axis)
    np.testing.assert_allclose(got.astype(np.float64), softmax(x, axis), rtol=tolerance)


def test_large_logits_do_not_overflow(card: Any) -> None:
    x = np.array([[1e4, 1e4, -1e4], [-3e38, -3e38, -np.inf]], np.float32)
    got = card.run(SOFTMAX, (x.shape, F32), x, axis=1)
    assert got.tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0]]


def test_a_nan_spoils_its_row_alone(card: Any) -> None:
    x = numbers((40, 10), F32)
    x[3, 7] = np.nan
    got = card.run(SOFTMAX, (x.shape, F32), x, axis=1)
    assert np.isnan(got).all(axis=1).nonzero()[0].tolist() == [3]
    assert not np.isnan(np.delete(got, 3, 0)).any()


@pytest.mark.parametrize("axis", [0, 1])
def test_over_its_own_input(card: Any, axis: int) -> None:
    x = numbers((300, 290), F32)
    apart = card.run(SOFTMAX, (x.shape, F32), x, axis=axis)
    array = card.array(x)
    card.backend.run(SOFTMAX.run, card.backend.xp, array, array, axis=axis)
    assert card.backend.to_host(array).tobytes() == apart.tobytes()


def test_a_small_grid_goes_round(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers((100, 10), F32)
    expected = card.run(SOFTMAX, (x.shape, F32), x, axis=1)
    monkeypatch.setattr(teams, "_MOST_BLOCKS", 3)
    assert card.run(SOFTMAX, (x.shape, F32), x, axis=1).tobytes() == expected.tobytes()
