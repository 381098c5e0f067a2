"""Matrix products on the emulated card: of integers bit for bit, of floats as NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.backends.cuda.kernels import product_kernels

Shape = tuple[int, ...]
PAIRS = [
    ((2, 3), (3, 4)),
    ((40, 50), (50, 33)),
    ((1, 1), (1, 1)),
    ((2, 2, 3), (2, 3, 4)),
    ((2, 3), (2, 1, 3, 1)),
    ((2, 1, 2, 2), (3, 2, 2)),
    ((5, 2, 3), (1, 3, 2)),
    ((5, 2, 3), (3, 2)),
    ((3, 1, 4, 2, 3), (1, 2, 4, 3, 2)),
    ((3, 1, 4, 2, 3), (5, 1, 3, 2)),
    ((1, 1, 2, 2), (1, 2, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((2, 3), (3, 0)),
    ((0, 2, 3), (3, 4)),
    ((4, 2, 0), (0, 3)),
]
FLAGS = [(a, b) for a in (False, True) for b in (False, True)]


def turned(shape: Shape, transposed: bool) -> Shape:
    """Return a shape with the last two axes swapped if they are."""
    return (*shape[:-2], *shape[-2:][:: -1 if transposed else 1])


@pytest.mark.parametrize(
    "dtype",
    ["float32", "int64", *(pytest.param(d, marks=pytest.mark.slow) for d in ("float64", "int32"))],
)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_products(card: Any, a: Shape, b: Shape, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for flags in FLAGS:
        # Whole numbers, of which every order of summing gives the same.
        arrays = [
            rng.integers(-9, 9, turned(each, flag)).astype(dtype)
            for each, flag in zip((a, b), flags, strict=True)
        ]
        name = "MatMul" if len(a) == len(b) == 2 else "BatchMatMulV2"
        attrs = {"transpose_a": flags[0], "transpose_b": flags[1]}
        got, expected = card.both(name, *arrays, **attrs)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap(card: Any, dtype: str) -> None:
    limits, rng = np.iinfo(dtype), np.random.default_rng(1)
    a, b = rng.integers(limits.min, limits.max, (2, 20, 20), dtype)
    got, expected = card.both("MatMul", a, b, transpose_a=False, transpose_b=False)
    np.testing.assert_array_equal(got, expected)


def test_more_matrices_than_a_grid_has_blocks(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_kernels, "_MOST_BLOCKS", 2)
    a, b = np.random.default_rng(1).integers(-9, 9, (2, 5, 3, 3), np.int32)
    got, expected = card.both("BatchMatMulV2", a, b, transpose_a=False, transpose_b=False)
    np.testing.assert_array_equal(got, expected)


@cases(
    ("a", "b", "transpose_a", "calls"),
    [
        ((4, 2, 3), (3, 5), False, 1),
        ((4, 3, 2), (3, 5), True, 1),
        ((4, 7, 2, 3), (4, 7, 3, 5), False, 1),
        ((2, 3), (4, 7, 3, 5), False, 1),
        ((4, 7, 2, 3), (7, 3, 5), False, 4),
        ((4, 1, 2, 3), (7, 3, 5), False, 4),
        ((0, 2, 3), (3, 5), False, 0),
    ],
)
def test_as_few_products_as_can_be(
    noted: Callable[..., Any], a: Shape, b: Shape, transpose_a: bool, calls: int
) -> None:
    dtype = np.dtype(np.float32)
    launcher = noted(
        "BatchMatMulV2", (a, dtype), (b, dtype), transpose_a=transpose_a, transpose_b=False
    )
    assert launcher.calls == ["matmul"] * calls


def test_nothing_to_sum_gives_zeros_without_a_product(noted: Callable[..., Any]) -> None:
    specs = [((2, 0), np.dtype(np.float32)), ((0, 3), np.dtype(np.float32))]
    assert noted("MatMul", *specs, transpose_a=False, transpose_b=False).calls == ["clear"]
