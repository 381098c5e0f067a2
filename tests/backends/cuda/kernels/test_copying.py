"""Copies of any strides on the emulated card, element by element as NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case_table import cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mirrored import ops

WIDTHS = ("bool", "int16", "float32", "int64")  # Int16 is as wide as bfloat16.
S = slice
INDICES = [
    ((5, 6), (S(None, None, -1), ..., 1, None)),
    ((5, 6), (2,)),
    ((5, 6), (-1, 3)),
    ((5, 6), (S(1, 4), S(2, 4))),
    ((8, 16), (S(None), S(4, 12))),
    ((8, 17), (S(None), S(1, 13))),
    ((5, 6), (S(4, 1),)),
    ((4, 5, 6), (None, -1, ..., None, S(-1, -7, -3))),
    ((), (...,)),
    ((6,), (S(None),)),
    ((3, 0), (S(0, 2),)),
    ((70, 40), (S(None, None, -2), S(3, None))),
]
PERMS = [
    ((2, 3), (1, 0)),
    ((70, 45), (1, 0)),
    ((3, 40, 33), (0, 2, 1)),
    ((40, 3, 50), (2, 1, 0)),
    ((16, 15), (1, 0)),
    ((17, 2, 33, 2), (2, 1, 0, 3)),
    ((20, 2, 3, 17), (3, 1, 2, 0)),
    ((), ()),
    ((0, 3), (1, 0)),
    # More axes than the kernel's struct has.
    ((2,) * 10, tuple(range(9, -1, -1))),
]


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return as many different numbers as the dtype has."""
    return (np.arange(np.prod(shape, dtype=int)) * 7 % 251).astype(dtype).reshape(shape)


@cases("dtype", WIDTHS, clean=False)
@cases(("shape", "perm"), PERMS, clean=False)
def test_transposes(card: Any, shape: tuple[int, ...], perm: tuple[int, ...], dtype: str) -> None:
    got, expected = card.both("Transpose", numbers(shape, dtype), perm=perm)
    np.testing.assert_array_equal(got, expected)


@cases("dtype", WIDTHS, clean=False)
@cases(("shape", "index"), INDICES, clean=False)
def test_slices_and_their_gradients(
    card: Any, shape: tuple[int, ...], index: tuple[Any, ...], dtype: str
) -> None:
    got, expected = card.both("StridedSlice", numbers(shape, dtype), index=index)
    np.testing.assert_array_equal(got, expected)
    got, expected = card.both("StridedSliceGrad", expected, index=index, shape=shape)
    np.testing.assert_array_equal(got, expected)


@cases("dtype", WIDTHS, clean=False)
@cases(
    ("shapes", "axis"),
    [
        (((2, 3), (2, 1), (2, 2)), 1),
        (((2, 4, 4), (2, 8, 4)), 1),
        (((1, 3), (2, 3), (0, 3)), 0),
        (((0, 3), (0, 2)), 1),
        (((3, 16), (3, 32)), 1),
    ],
    clean=False,
)
def test_joins(card: Any, shapes: tuple[tuple[int, ...], ...], axis: int, dtype: str) -> None:
    arrays = [numbers(shape, dtype) for shape in shapes]
    got, expected = card.both("ConcatV2", *arrays, axis=axis)
    np.testing.assert_array_equal(got, expected)


@cases("shape", [(2, 3), (), (2,), (0, 2)], clean=False)
def test_packs(card: Any, shape: tuple[int, ...]) -> None:
    arrays = [np.asarray(numbers(shape, "float64") + 300 * i) for i in range(3)]
    got, expected = card.both("Pack", *arrays)
    np.testing.assert_array_equal(got, expected)


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), dtype=st.sampled_from(WIDTHS))
def test_any_slice_of_any_shape_transposed(card: Any, data: st.DataObject, dtype: str) -> None:
    shape = data.draw(hnp.array_shapes(max_dims=5, max_side=20))
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    index = index if isinstance(index, tuple) else (index,)
    got, expected = card.both("StridedSlice", numbers(shape, dtype), index=index)
    np.testing.assert_array_equal(got, expected)
    perm = tuple(data.draw(st.permutations(range(expected.ndim))))
    got, expected = card.both("Transpose", expected, perm=perm)
    np.testing.assert_array_equal(got, expected)


F32, BOOL = ops.float32, ops.bool_


@cases(
    ("name", "specs", "attrs", "calls"),
    [
        ("Transpose", [((32, 64), F32)], {"perm": (1, 0)}, ["tiled_copy 4"]),
        ("Transpose", [((32, 4), F32)], {"perm": (1, 0)}, ["strided_copy 4"]),
        ("Transpose", [((2, 3, 8, 64), F32)], {"perm": (0, 2, 1, 3)}, ["strided_copy 16"]),
        ("Transpose", [((1, 64), F32)], {"perm": (1, 0)}, ["copy"]),
        ("StridedSlice", [((4, 5), F32)], {"index": (S(1, 3),)}, ["copy"]),
        ("StridedSlice", [((4, 6), F32)], {"index": (S(None), S(2, 6))}, ["strided_copy 8"]),
        ("StridedSlice", [((4, 6), F32)], {"index": (S(None), S(1, 5))}, ["strided_copy 4"]),
        ("StridedSlice", [((4, 6), BOOL)], {"index": (S(None), S(2, 4))}, ["strided_copy 2"]),
        ("StridedSliceGrad", [((4,), F32)], {"index": (S(4),), "shape": (4,)}, ["copy"]),
        ("StridedSliceGrad", [((3,), F32)], {"index": (S(3),), "shape": (4,)}, ["clear", "copy"]),
        ("StridedSliceGrad", [((0,), F32)], {"index": (S(0),), "shape": (4,)}, ["clear"]),
        ("ConcatV2", [((2, 3), F32), ((1, 3), F32)], {"axis": 0}, ["copy", "copy"]),
        ("ConcatV2", [((2, 0), F32), ((2, 0), F32)], {"axis": 1}, []),
    ],
)
def test_takes_the_quickest_way_that_there_is(
    noted: Callable[..., Any],
    name: str,
    specs: list[Any],
    attrs: dict[str, Any],
    calls: list[str],
) -> None:
    launcher = noted(name, *specs, **attrs)
    widths = iter([source.name.split()[-2] for source, _ in launcher.launches])
    got = [f"{each} {next(widths)}" if "_" in each else each for each in launcher.calls]
    assert got == calls
