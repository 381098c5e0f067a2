"""Pooling and its gradients on the emulated card, as on the host."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases

from mirrored.backends.cuda.kernels import KERNELS, teams, window_layout

Shape = tuple[int, ...]
INF, NAN = np.inf, np.nan
TOLERANCES = {"float32": 2e-6, "float64": 1e-13, "float16": 4e-3, "bfloat16": 3e-2}
FLOATS = ("float64", "float16", "bfloat16")


class Case(NamedTuple):
    """The shape of images, the windows, their strides, the padding and the dilations."""

    x: Shape
    window: Shape
    strides: Shape
    padding: Any
    dilations: Shape

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the ops."""
        return {name: value for name, value in self._asdict().items() if name != "x"}

    @property
    def suffix(self) -> str:
        """What the names of the ops end with."""
        return "3D" if len(self.window) == 3 else ""


APART = Case((2, 6, 4, 3), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))
OVERLAPPING = Case((2, 7, 6, 3), (3, 3), (2, 1), ((1, 1), (1, 1)), (1, 1))
CASES = [
    APART,
    OVERLAPPING,
    Case((2, 7, 6, 1), (2, 3), (1, 1), ((0, 0), (1, 2)), (2, 1)),
    Case((2, 7, 6, 2), (1, 2), (3, 4), ((0, 0), (0, 0)), (1, 1)),
    Case((2, 7, 5, 2), (2, 3), (3, 2), ((1, 1), (0, 3)), (1, 1)),
    Case((2, 2, 2, 1), (3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    Case((2, 2, 2, 1), (1, 1), (1, 1), ((2, 1), (0, 2)), (1, 1)),
    Case((0, 5, 6, 2), (3, 2), (2, 2), ((1, 1), (0, 0)), (1, 1)),
    Case((2, 5, 4, 3, 2), (2, 3, 2), (1, 2, 2), ((0, 1), (1, 1), (0, 0)), (1, 1, 1)),
]


def drawn(shape: Shape, dtype: str = "float32") -> Any:
    """Draw few numbers, so that many of them are equal."""
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(dtype)


def both(card: Any, name: str, *arrays: Any, **attrs: Any) -> tuple[Any, Any]:
    """Return what the card computes and what the host does, which computes narrow floats wide."""
    dtype = arrays[0].dtype
    if dtype.name not in teams.NARROW:
        return card.both(name, *arrays, **attrs)  # type: ignore[no-any-return]
    _, wide = card.both(name, *(each.astype("float32") for each in arrays), **attrs)
    return card.run(KERNELS[name], (wide.shape, dtype), *arrays, **attrs), wide.astype(dtype)


def check(card: Any, case: Case, x: Any) -> None:
    """Hold the ops and their gradients to the host's."""
    attrs, suffix = case.attrs, case.suffix
    largest, expected = both(card, f"MaxPool{suffix}", x, **attrs)
    np.testing.assert_array_equal(largest, expected)
    if not (g := drawn(largest.shape, largest.dtype)).size:
        return
    for name, arrays, sizes in (
        (f"MaxPool{suffix}Grad", (x, largest, g), {}),
        (f"MaxPool{suffix}GradGrad", (x, largest, drawn(x.shape, x.dtype)), {}),
        (f"AvgPool{suffix}", (drawn(x.shape, x.dtype),), {}),
        (f"AvgPool{suffix}Grad", (g,), {"sizes": x.shape[1:-1]}),
    ):
        found, expected = both(card, name, *arrays, **sizes, **attrs)
        tolerance = TOLERANCES[x.dtype.name]
        found, expected = found.astype("float64"), expected.astype("float64")
        np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=name)


@cases("case", CASES, clean=False)
def test_pooling(card: Any, case: Case) -> None:
    check(card, case, drawn(case.x))


@cases("case", [APART, OVERLAPPING, CASES[-1]], clean=False)
@cases("dtype", FLOATS, clean=False)
def test_dtypes(card: Any, case: Case, dtype: str) -> None:
    check(card, case, drawn(case.x, dtype))


@cases("dtype", teams.INTEGERS, clean=False)
def test_largest_integers(card: Any, dtype: str) -> None:
    x = drawn(OVERLAPPING.x, "int64").astype(dtype)  # Those without a sign wrap.
    x[0, ..., 0], x[0, ..., 1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    found, expected = card.both("MaxPool", x, **OVERLAPPING.attrs)
    np.testing.assert_array_equal(found, expected)


@cases("dtype", ["float32", *FLOATS], clean=False)
def test_windows_without_a_larger_number(card: Any, dtype: str) -> None:
    """A NaN is passed over; what is less than the lowest finite number of float32 is that one."""
    x = np.full(OVERLAPPING.x, NAN).astype(dtype)
    x[0, ..., 0], x[1, 3] = -INF, 1.0
    x[1, :3, :3, 1], x[0, 2, 2, 2] = INF, -0.0
    with np.errstate(over="ignore"):
        check(card, OVERLAPPING, x)


def test_a_gradient_of_infinity_is_at_its_place_alone(card: Any) -> None:
    x = np.array([[2, 1, 1], [1, 1, 2]], np.float32).reshape(1, 2, 3, 1)
    attrs = {"strides": (1, 1), "padding": ((0, 0),) * 2, "dilations": (1, 1)}
    g = np.array([INF, 3], np.float32).reshape(1, 1, 2, 1)
    y = np.full(g.shape, 2, np.float32)
    found, expected = card.both("MaxPoolGrad", x, y, g, window=(2, 2), **attrs)
    np.testing.assert_array_equal(found, expected)
    assert found.reshape(-1).tolist() == [INF, 0, 0, 0, 0, 3]


def test_arrays_too_large_for_32_bits(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_layout, "_LARGEST", 1)
    check(card, OVERLAPPING, drawn(OVERLAPPING.x))
