"""Sums, means, maxima and places of maxima on the emulated card, against NumPy's."""

import math
from collections.abc import Callable
from typing import Any

import kernel_sources
import numpy as np
import pytest
from case_table import cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.reduction_kernels import KERNELS

Shape = tuple[int, ...]
F32 = np.dtype(np.float32)
INTEGERS = ("int32", "int64", "uint8")
TOLERANCES = {"float32": 1e-6, "float64": 1e-14, "bfloat16": 4e-3}
REDUCTIONS = [
    ((5,), (0,)),
    ((7, 10), (1,)),
    ((3, 300), (1,)),
    ((2, 700), (1,)),
    ((3, 5000), (1,)),
    ((9001,), (0,)),
    ((300, 10), (0,)),
    ((40, 70), (0,)),
    ((3, 20, 5), (1,)),
    ((9001, 3), (0,)),
    ((2, 3, 4, 5), (0, 2)),
    ((2, 3, 4, 5), (1, 3)),
    ((30, 2, 50), (0, 2)),
    ((5000, 2, 2), (0, 2)),
    ((2, 1, 3), (1,)),
    ((4, 3), ()),
    ((), ()),
]
EMPTY = [((0,), (0,)), ((3, 0), (1,)), ((0, 3), (0,)), ((2, 0, 3), (0, 1)), ((0, 3), (1,))]


def attrs_of(axis: Shape, keepdims: bool = False) -> dict[str, Any]:
    return {"axis": axis, "keepdims": keepdims}


def reduced(shape: Shape, axis: Shape) -> Shape:
    return tuple(size for i, size in enumerate(shape) if i not in axis)


def numbers(shape: Shape, dtype: Any) -> Any:
    rng = np.random.default_rng(math.prod(shape) + 1)
    if np.dtype(dtype).kind == "u":
        return rng.integers(0, 256, shape, dtype)
    if np.dtype(dtype).kind == "i":
        return np.asarray(rng.integers(-1000, 1000, shape), dtype)
    return np.asarray(rng.normal(size=shape) + 0.5).astype(dtype)


def near(got: Any, expected: Any, scale: Any) -> None:
    """Hold a result to one of double precision, within so many units of `scale`."""
    error = np.abs(got.astype(np.float64) - expected)
    assert np.all(error <= TOLERANCES[got.dtype.name] * scale), error.max()


@pytest.fixture(
    params=[
        # Its text differs from that of float32 in the type alone; and float16's from bfloat16's.
        pytest.param(dtype.name, marks=pytest.mark.slow if dtype.name == "float64" else ())
        for dtype in kernel_sources.FLOATS
        if dtype.name in TOLERANCES
    ]
)
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    """Return each dtype of floats."""
    return np.dtype(request.param)


@cases(("shape", "axis"), REDUCTIONS, clean=False)
def test_floats(card: Any, shape: Shape, axis: Shape, dtype: np.dtype[Any]) -> None:
    x = numbers(shape, dtype)
    exact = x.astype(np.float64)
    spec, attrs = (reduced(shape, axis), dtype), attrs_of(axis)
    sizes, count = np.abs(exact).sum(axis), math.prod(shape[i] for i in axis)
    near(card.run(KERNELS["Sum"], spec, x, **attrs), exact.sum(axis), sizes)
    near(card.run(KERNELS["Mean"], spec, x, **attrs), exact.mean(axis), sizes / count)
    largest = card.run(KERNELS["Max"], spec, x, **attrs)
    np.testing.assert_array_equal(largest.astype(np.float64), exact.max(axis))


@pytest.mark.parametrize("dtype", [pytest.param("int32", marks=pytest.mark.slow), "int64", "uint8"])
@pytest.mark.parametrize(("shape", "axis"), REDUCTIONS)
def test_integers(card: Any, shape: Shape, axis: Shape, dtype: str) -> None:
    x = numbers(shape, dtype)
    for name in ("Sum", "Mean", "Max"):
        got, expected = card.both(name, x, **attrs_of(axis))
        np.testing.assert_array_equal(got, expected)


@cases(("shape", "axis"), EMPTY, clean=False)
@cases(
    ("name", "dtype", "value"),
    [
        ("Sum", "float32", 0),
        ("Sum", "int64", 0),
        ("Mean", "float64", np.nan),
        ("Max", "float32", -np.inf),
        ("Max", "int32", -(2**31)),
        ("Max", "int64", -(2**63)),
        ("Max", "uint8", 0),
    ],
    clean=False,
)
def test_of_nothing(
    card: Any, name: str, shape: Shape, axis: Shape, dtype: str, value: float
) -> None:
    spec = (reduced(shape, axis), np.dtype(dtype))
    got = card.run(KERNELS[name], spec, np.zeros(shape, dtype), **attrs_of(axis))
    np.testing.assert_array_equal(got, np.full(*spec[:1], value, dtype))


@given(shape=st.lists(st.integers(0, 4), max_size=6).map(tuple), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_any_axes_of_any_shape(card: Any, shape: Shape, data: st.DataObject) -> None:
    rank = len(shape)
    chosen = data.draw(st.sets(st.integers(0, rank - 1)) if rank else st.just(set()))
    attrs = attrs_of(tuple(sorted(chosen)), data.draw(st.booleans()))
    got, expected = card.both("Sum", numbers(shape, "int64"), **attrs)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(20000,), (20000, 3)])
def test_the_sums_of_many_are_as_exact_as_those_of_pairs(card: Any, shape: Shape) -> None:
    x = np.full(shape, 0.1, np.float32)
    got = card.run(KERNELS["Sum"], (shape[1:], F32), x, **attrs_of((0,)))
    near(got, np.float64(np.float32(0.1)) * 20000, 0.5 * got)


def test_bfloat16_is_rounded_once(card: Any) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    # In four parts, of which bfloat16 can hold neither 5000 nor 4999.
    x = np.repeat([1, -1, 0], [10000, 9999, 1]).astype(bfloat16)
    assert card.run(KERNELS["Sum"], ((), x.dtype), x, **attrs_of((0,))) == 1


@cases("dtype", INTEGERS, clean=False)
@cases("shape", [(3,), (9000,)], clean=False)
def test_sums_of_integers_wrap(card: Any, shape: Shape, dtype: str) -> None:
    x = np.full(shape, np.iinfo(dtype).max, dtype)
    got, expected = card.both("Sum", x, **attrs_of((0,)))
    assert got == expected
    assert got.item() < math.prod(shape) * np.iinfo(dtype).max


@cases("dtype", INTEGERS, clean=False)
@cases("shape", [(3,), (9000,)], clean=False)
def test_means_of_integers_are_of_sums_in_64_bits(card: Any, shape: Shape, dtype: str) -> None:
    largest = np.iinfo(dtype).max if dtype != "int64" else 2**48 - 1
    x = np.full(shape, largest, dtype)
    got, expected = card.both("Mean", x, **attrs_of((0,)))
    assert got == expected == largest


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_means_of_integers_round_to_zero(card: Any, dtype: str) -> None:
    x = np.array([[-3, -4], [3, 4], [1, -2]], dtype)
    got = card.run(KERNELS["Mean"], ((3,), np.dtype(dtype)), x, **attrs_of((1,)))
    assert got.tolist() == [-3, 3, 0]


@cases("place", [0, 31, 32, 4999], clean=False)
@cases("axis", [0, 1], clean=False)
def test_a_nan_is_the_largest(card: Any, axis: int, place: int) -> None:
    x = np.moveaxis(numbers((2, 5000), F32), 1, axis).copy()
    x[(place, 1) if axis == 0 else (1, place)] = np.nan
    largest = card.run(KERNELS["Max"], ((2,), F32), x, **attrs_of((axis,)))
    assert np.isnan(largest).tolist() == [False, True]
    index, expected = card.both("ArgMax", x, axis=axis, output_type=np.dtype(np.int64))
    assert index.tolist() == expected.tolist()
    assert index[1] == place


@cases("output_type", ["int32", "int64"], clean=False)
@cases(
    ("shape", "axis"),
    [((7,), 0), ((20, 10), 1), ((3, 40, 5), 1), ((600, 3), 0), ((2, 3000), 1)],
    clean=False,
)
def test_the_place_is_that_of_the_first_of_equals(
    card: Any, shape: Shape, axis: int, output_type: str, dtype: np.dtype[Any]
) -> None:
    x = np.random.default_rng(3).integers(-3, 3, shape)
    spec = (reduced(shape, (axis,)), np.dtype(output_type))
    attrs = {"axis": axis, "output_type": spec[1]}
    for kind in (dtype, np.dtype(output_type), np.dtype("uint8")):
        got = card.run(KERNELS["ArgMax"], spec, x.astype(kind), **attrs)
        np.testing.assert_array_equal(got, x.astype(kind).argmax(axis))


def test_the_least_value_there_is_has_a_place(card: Any) -> None:
    for x in (np.full((2, 40), -np.inf), np.full((2, 40), -(2**63))):
        got, _ = card.both("ArgMax", x, axis=1, output_type=np.dtype(np.int32))
        assert got.tolist() == [0, 0]


@cases("shape", [(4, 3), (2, 3, 5), (3000, 10), (0, 3), (3, 0)], clean=False)
def test_sums_of_columns(card: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
    g = numbers(shape, dtype)
    columns = g.astype(np.float64).reshape(-1, shape[-1] or 1)[:, : shape[-1]]
    got = card.run(KERNELS["BiasAddGrad"], (shape[-1:], dtype), g)
    near(got, columns.sum(0), np.abs(columns).sum(0))


def test_bits_do_not_depend_on_the_order_of_blocks_or_their_number(
    card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, spec = numbers((20000, 3), F32), ((3,), F32)
    runs = [card.run(KERNELS["Sum"], spec, x, **attrs_of((0,))).tobytes() for _ in range(3)]
    monkeypatch.setattr(teams, "_MOST_BLOCKS", 2)
    runs.append(card.run(KERNELS["Sum"], spec, x, **attrs_of((0,))).tobytes())
    assert len(set(runs)) == 1


@cases(
    ("shape", "axis", "calls"),
    [
        ((4, 5), (1,), ["reduce"]),
        ((1 << 20,), (0,), ["reduce", "reduce"]),
        ((4096, 8), (0,), ["reduce", "reduce"]),
        ((256, 128), (0,), ["reduce"]),  # Few elements a thread: as the columns of a small layer.
        ((1023, 64), (0,), ["reduce"]),
        ((1024, 64), (0,), ["reduce", "reduce"]),
        ((8192, 32 * 131), (0,), ["reduce", "reduce"]),
        ((8192, 32 * 132), (0,), ["reduce"]),  # Enough columns to keep a card busy.
        ((4096, 32 * 265), (0,), ["reduce"]),
        ((4, 1), (1,), ["copy"]),
        ((0, 3), (1,), []),
    ],
)
def test_what_is_launched(
    noted: Callable[..., Any], shape: Shape, axis: Shape, calls: list[str]
) -> None:
    assert noted("Sum", (shape, F32), **attrs_of(axis)).calls == calls
