"""What the tests know of one op: a row of the table of every op, and how its inputs are drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from mirrored import ops

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
FLOATS = ("float32", "float64")
SIGNED = (*FLOATS, "int32", "int64")
NUMBERS = (*SIGNED, "uint8")
BOOLS = ("bool",)
ALL = (*NUMBERS, *BOOLS)


class Case(NamedTuple):
    """Shapes of the inputs, and the op's attributes."""

    shapes: tuple[Shape, ...]
    attrs: Mapping[str, Any]

    def __repr__(self) -> str:
        return "-".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes)


def cases(*shapes: tuple[Shape, ...], **attrs: Any) -> tuple[Case, ...]:
    """Return a case for each tuple of input shapes, all with these attributes."""
    return tuple(Case(each, attrs) for each in shapes)


@dataclass(frozen=True)
class Row:
    """All that the tests know of one op.

    Attributes:
        reference: the same function of NumPy arrays, written another way than the kernel.
        small: cases to compute and differentiate; the first is the one for other uses.
        large: cases of about a million elements, of awkward shapes.
        empty: cases without elements.
        kinds: how each input is drawn; the last stands for all that follow.
        dtypes: those of the inputs.
        differentiable: whether the op must have a gradient.
        along: from any direction of an input, and its number, to one that the gradient is that of.
        signed: from a case and a result to the same with settled signs, where others are as right.
    """

    reference: Callable[..., Any]
    small: tuple[Case, ...]
    large: tuple[Case, ...]
    empty: tuple[Case, ...]
    kinds: tuple[str, ...] = ("any",)
    dtypes: tuple[str, ...] = FLOATS
    differentiable: bool = True
    along: Callable[[Array, int], Array] = lambda direction, _: direction
    signed: Callable[["Case", Array], Array] | None = None

    def dtypes_for(self, case: Case) -> tuple[str, ...]:
        """Return the dtypes to try a case with: bytes differ from integers in kernels only."""
        rest = tuple(dtype for dtype in self.dtypes if dtype != "uint8")
        return self.dtypes if case == self.small[0] else rest

    def inputs(self, case: Case, dtype: str, rng: np.random.Generator) -> list[Array]:
        """Draw the inputs of a case."""
        return [
            np.asarray(draw(kind, shape, dtype, rng))
            for kind, shape in zip(self._kinds_of(case), case.shapes, strict=True)
        ]

    def specs(self, case: Case, dtype: str) -> list[tuple[Shape, np.dtype[Any]]]:
        """Return the shapes and dtypes of a case's inputs, which are not drawn."""
        rng = np.random.default_rng(0)
        return [
            (shape, draw(kind, (1,), dtype, rng).dtype)
            for kind, shape in zip(self._kinds_of(case), case.shapes, strict=True)
        ]

    def _kinds_of(self, case: Case) -> list[str]:
        return [self.kinds[min(i, len(self.kinds) - 1)] for i in range(len(case.shapes))]


def draw(kind: str, shape: Shape, dtype: str, rng: np.random.Generator) -> Any:
    """Draw an array: in order, away from 0, positive, in (0, 1), rows that sum to 1, or labels."""
    if kind == "ordered":
        return np.sort(draw("any", shape, dtype, rng), axis=-1)
    if kind == "state" or (kind == "words" and dtype == "int64"):
        return rng.integers(-(2**63), 2**63, shape)
    if kind == "condition":
        return rng.random(shape) < 0.5
    if kind == "places":
        return rng.integers(0, 3, shape).astype(dtype)
    if kind == "labels":
        return rng.integers(0, 3, shape).astype("int64" if dtype == "float64" else "int32")
    if dtype == "bool":
        return rng.random(shape) < (1.0 if kind == "positive" else 0.5)
    if dtype == "uint8":  # All of them, so that results wrap around.
        return rng.integers(kind == "positive", 256, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.integers(1 if kind == "positive" else -4, 5, shape).astype(dtype)
    values = np.asarray(rng.uniform(0.25, 2.0, shape))
    if kind == "any":
        values *= rng.choice([-1.0, 1.0], shape)
    if kind == "unit":
        values *= 0.4
    if kind == "above one":
        values += 1.0
    if kind == "distribution":
        values /= values.sum(axis=-1, keepdims=True)
    if kind == "dominant" and len(shape) > 1:  # By its diagonal, a matrix is far from singular.
        values += 2 * shape[-1] * np.eye(shape[-1])
    return values.astype(dtype)


NORMAL = NormalDist()
M = 1_000_000
ONE_SMALL = (((2, 3),), ((),), ((4, 1, 2),))
ONE_LARGE = (((1000, 1000),), ((M,),), ((M, 1),), ((1, M),))
ONE_EMPTY = (((0,),), ((2, 0, 3),))
TWO_SMALL = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (4, 1, 3)), ((), (2, 2)), ((5,), ()))
TWO_LARGE = (
    ((1000, 1000), (1000, 1000)),
    ((1000, 1000), (1000,)),
    ((1000, 1000), (1000, 1)),
    ((M, 1), (1,)),
    ((1, M), (1, 1)),
    ((10, 1, 1000), (100, 1)),
    ((), (M,)),
)
TWO_EMPTY = (((0,), (0,)), ((2, 0), (1,)), ((0, 3), (3,)), ((), (0,)))


def one(reference: Callable[..., Any], *kinds: str, **options: Any) -> Row:
    """Return the row of an elementwise op of one input."""
    return Row(
        reference,
        cases(*ONE_SMALL),
        cases(*ONE_LARGE),
        cases(*ONE_EMPTY),
        kinds or ("any",),
        **options,
    )


def two(reference: Callable[..., Any], *kinds: str, **options: Any) -> Row:
    """Return the row of an elementwise op of two inputs that broadcast."""
    return Row(
        reference,
        cases(*TWO_SMALL),
        cases(*TWO_LARGE),
        cases(*TWO_EMPTY),
        kinds or ("any",),
        **{"dtypes": NUMBERS, **options},
    )


def alike(reference: Callable[..., Any], count: int, *kinds: str, **options: Any) -> Row:
    """Return the row of an elementwise op of inputs of one shape."""
    return Row(
        reference,
        cases(*[shapes * count for shapes in ONE_SMALL]),
        cases(*[shapes * count for shapes in ONE_LARGE]),
        cases(*[shapes * count for shapes in ONE_EMPTY]),
        kinds or ("any",),
        **options,
    )


def compare(reference: Callable[..., Any], **options: Any) -> Row:
    """Return the row of a comparison."""
    return two(reference, differentiable=False, **options)


def view(*attrs: tuple[Shape, Shape]) -> Row:
    """Return the row of an op that gives its input another shape."""
    to_small, to_large, to_empty = (
        tuple(Case((before,), {"shape": after}) for before, after in pairs)
        for pairs in (attrs, [((1000, 1, 1000), (1000, 1000))], [((0, 1, 3), (0, 3))])
    )
    return Row(lambda x, shape: x.reshape(shape), to_small, to_large, to_empty, dtypes=ALL)


def reduction(reference: Callable[..., Any], *, of_nothing: bool = True, **options: Any) -> Row:
    """Return the row of a reduction over axes."""
    small = (
        *cases(((2, 3),), ((4, 3),), axis=(1,), keepdims=False),
        *cases(((2, 3, 2),), axis=(0, 2), keepdims=True),
        *cases(((2, 3, 2),), axis=(0, 1, 2), keepdims=False),
        *cases(((3,),), ((2, 2),), axis=(), keepdims=False),
        *cases(((),), axis=(), keepdims=True),
    )
    large = (
        *cases(((1000, 1000),), ((1, M),), ((M, 1),), axis=(0,), keepdims=False),
        *cases(((1000, 1000),), ((1, M),), ((M, 1),), axis=(1,), keepdims=True),
        *cases(((100, 100, 100),), axis=(0, 2), keepdims=False),
        *cases(((100, 100, 100),), axis=(1,), keepdims=False),
        *cases(((100, 100, 100),), axis=(0, 1, 2), keepdims=False),
    )
    empty = cases(((2, 0, 3),), axis=(0,), keepdims=False)
    if of_nothing:
        empty += cases(((2, 0, 3),), axis=(1,), keepdims=False)
    return Row(reference, small, large, empty, **{"dtypes": NUMBERS, **options})


def place(reference: Callable[..., Any]) -> Row:
    """Return the row of an op that finds the index of an extreme."""
    return Row(
        lambda x, axis, output_type: reference(x, axis=axis).astype(output_type),
        tuple(
            Case((shape,), {"axis": axis, "output_type": ops.as_dtype(dtype)})
            for shape, axis in (((3,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 4, 3), 1))
            for dtype in ("int32", "int64")
        ),
        tuple(
            Case((shape,), {"axis": axis, "output_type": ops.int32})
            for shape in ((1000, 1000), (M, 1), (1, M))
            for axis in (0, 1)
        ),
        cases(((0, 3),), axis=1, output_type=ops.int64),
        dtypes=NUMBERS,
        differentiable=False,
    )


def along_an_axis(reference: Callable[..., Any]) -> Row:
    """Return the row of an op of rows along an axis, of the input's shape."""
    return Row(
        reference,
        (*cases(((2, 3),), ((2, 3, 4),), axis=1), *cases(((3, 2),), ((4,),), axis=0)),
        (
            *cases(((1000, 1000),), ((M, 1),), ((1, M),), ((100, 100, 100),), axis=1),
            *cases(((1000, 1000),), ((1, M),), ((M, 1),), axis=0),
        ),
        cases(((0, 3),), axis=1),
    )
