"""ReLU's gradient with the sums of its columns, which have the bits of kernels one by one."""

from collections.abc import Callable
from typing import Any

import kernel_sources
import numpy as np
import pytest

from mirrored.backends.cuda.fusion import KERNELS as ELEMENTWISE
from mirrored.backends.cuda.kernels import COMBINATIONS, reduction_kernels
from mirrored.backends.stream_backend import OpSpec

F32 = np.dtype(np.float32)
DTYPES = [
    pytest.param(dtype, marks=pytest.mark.slow if dtype.name in ("float64", "float16") else ())
    for dtype in kernel_sources.FLOATS
]
# With one part a column and with several; fewer columns than a warp has threads, and more.
SHAPES = [(7, 40), (300, 10), (3000, 3), (2, 5, 33), (4200, 65)]


def arrays(shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Return what comes from above, and results of ReLU of which some are 0, and one is NaN."""
    rng = np.random.default_rng(2)
    y = np.maximum(rng.normal(size=shape), 0)
    y[0, 1] = np.nan
    return rng.normal(size=shape).astype(dtype), y.astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits(card: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    g, y = arrays(shape, dtype)
    gradient = card.run(ELEMENTWISE["ReluGrad"], (shape, dtype), g, y)
    sums = card.run(reduction_kernels.KERNELS["BiasAddGrad"], (shape[-1:], dtype), gradient)
    attrs = [{}, workspace(card, shape, dtype)]
    specs = [(shape, dtype), (shape[-1:], dtype)]
    found = card.together(("ReluGrad", "BiasAddGrad"), specs, inputs(card, g, y), attrs)
    assert [each.tobytes() for each in found] == [gradient.tobytes(), sums.tobytes()]
    specs[0] = None  # Nobody else wants it.
    found = card.together(("ReluGrad", "BiasAddGrad"), specs, inputs(card, g, y), attrs)
    assert found[0] is None
    assert found[1].tobytes() == sums.tobytes()


def inputs(card: Any, g: Any, y: Any) -> list[Any]:
    return [(card.array(g), card.array(y)), (None,), (None,)]


def workspace(card: Any, shape: tuple[int, ...], dtype: Any) -> dict[str, Any]:
    specs = reduction_kernels.KERNELS["BiasAddGrad"].workspace((shape, dtype))
    return {"workspace": tuple(card.array(np.full(s, 5).astype(t)) for s, t in specs)}


@pytest.mark.parametrize("shape", [(300, 10), (4200, 65)])
def test_sums_that_are_wanted_in_float32_are_not_rounded(card: Any, shape: tuple[int, ...]) -> None:
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    g, y = arrays(shape, dtype)
    gradient = card.run(ELEMENTWISE["ReluGrad"], (shape, dtype), g, y)
    exact = gradient.astype(np.float64).sum(0)
    attrs = [{}, workspace(card, shape, dtype), {"dtype": F32}]
    specs = [(shape, dtype), None, (shape[-1:], F32)]
    names = ("ReluGrad", "BiasAddGrad", "Cast")
    stored, _, sums = card.together(names, specs, inputs(card, g, y), attrs)
    assert stored.tobytes() == gradient.tobytes()
    np.testing.assert_allclose(sums, exact, rtol=1e-5, atol=1e-4)
    alone = [(card.array(gradient),), (None,)]
    found = card.together(names[1:], specs[1:], alone, attrs[1:])[1]
    assert found.tobytes() == sums.tobytes()


@pytest.mark.parametrize("shape", [(1, 10), (1, 1), (5, 1), (1, 1, 3)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_of_few_elements_in_float32(card: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Those of one too, which is no copy: it has other bytes."""
    narrow = np.dtype(getattr(pytest.importorskip("ml_dtypes"), dtype, dtype))
    g = np.random.default_rng(2).normal(size=(1, *shape)).astype(narrow)
    specs = [None, (shape[-1:], F32)]
    given = [(card.array(g[0]),), (None,)]
    attrs = [workspace(card, shape, narrow), {"dtype": F32}]
    found = card.together(("BiasAddGrad", "Cast"), specs, given, attrs)[1]
    exact = g[0].astype(np.float64).reshape(-1, shape[-1]).sum(0)
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize(
    ("g", "y", "fits"),
    [
        ((4, 3), (4, 3), True),
        ((4, 3), (3,), False),
        ((1, 3), (1, 3), False),  # The sum of one is a copy.
        ((4, 1), (4, 1), False),
    ],
)
def test_what_it_takes(g: Any, y: Any, fits: bool) -> None:
    relu = OpSpec(((g, F32), (y, F32)), (g, F32), {})
    sums = OpSpec(((g, F32),), (g[-1:], F32), {})
    combination = COMBINATIONS["ReluGrad", "BiasAddGrad"]
    assert combination.fits([relu, sums]) is fits


def test_one_kernel_is_launched(noted: Callable[..., Any]) -> None:
    """And no pass over what it has computed."""
    spec = ((512, 1024), F32)
    assert noted("BiasAddGrad", spec).calls == ["reduce"]
