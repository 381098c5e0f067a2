"""The table of every op: what it computes, on which shapes it is tried, and what it may be given.

The tests of the ops hold the host to it, and those that need a GPU hold the GPU to the host.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import tensorflow_random

from mirrored import ops
from mirrored.ops.philox_samples import Part

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
        along: from any direction to one that the gradient is that of.
    """

    reference: Callable[..., Any]
    small: tuple[Case, ...]
    large: tuple[Case, ...]
    empty: tuple[Case, ...]
    kinds: tuple[str, ...] = ("any",)
    dtypes: tuple[str, ...] = FLOATS
    differentiable: bool = True
    along: Callable[[Array], Array] = np.asarray

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


def scanned(
    reduce: Callable[..., Any], neutral: float, *, exclusive: bool = True, **options: Any
) -> Row:
    """Return the row of a scan, whose reference reduces all elements up to each one by itself."""

    def reference(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
        lines = np.moveaxis(x, axis, -1)
        upto = np.tril(np.ones((x.shape[axis],) * 2, bool), -int(exclusive))
        rows = np.where(upto.T if reverse else upto, lines[..., None, :], x.dtype.type(neutral))
        return np.moveaxis(reduce(rows, axis=-1, dtype=x.dtype), -1, axis)

    plain, other = (
        {"exclusive": False, "reverse": False},
        {"exclusive": exclusive, "reverse": True},
    )
    return Row(
        reference,
        (
            *cases(((2, 3),), axis=1, **plain),
            *cases(((4,),), ((3, 1, 2),), axis=0, **other),
            *cases(((2, 3, 2),), axis=1, exclusive=False, reverse=True),
            *cases(((2, 3),), axis=1, exclusive=exclusive, reverse=False),
        ),
        (
            *cases(((1000, 1000),), ((M, 1),), axis=1, **plain),
            *cases(((1000, 1000),), ((1, M),), axis=0, **other),
        ),
        (*cases(((0, 3),), ((2, 0),), axis=1, **plain), *cases(((0, 3),), axis=0, **other)),
        **options,
    )


def in_order(x: Array, k: int, ascending: bool, output_type: Any) -> Array:
    """Return the places of the first elements of each row, from comparisons of all with all."""
    mine, other = x[..., None], x[..., None, :]
    before = other < mine if ascending else other > mine
    earlier = np.tri(x.shape[-1], k=-1, dtype=bool)
    ranks = np.sum(before | ((other == mine) & earlier), axis=-1)
    places = np.sum(np.arange(x.shape[-1])[:, None] * (ranks[..., None] == np.arange(k)), axis=-2)
    return np.asarray(places, output_type)


def bound(before: Callable[..., Any]) -> Row:
    """Return the row of an op that counts the elements of a row before each value."""
    return Row(
        lambda rows, values, output_type: np.sum(
            before(rows[:, None], values[..., None]), axis=-1, dtype=output_type
        ),
        (
            *cases(((2, 5), (2, 3)), ((1, 1), (1, 4)), output_type=ops.int32),
            *cases(((3, 8), (3, 8)), ((1, 0), (1, 2)), output_type=ops.int64),
        ),
        cases(((1000, 1000), (1000, 1)), ((1, M), (1, M)), output_type=ops.int32),
        cases(((0, 3), (0, 2)), ((2, 3), (2, 0)), output_type=ops.int32),
        ("ordered", "any"),
        dtypes=NUMBERS,
        differentiable=False,
    )


def mean_of(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the mean; that of integers is rounded to zero."""
    count = math.prod(x.shape[i] for i in axis)
    with np.errstate(all="ignore"):
        mean = np.add.reduce(x, axis=axis, keepdims=keepdims) / count
    return np.asarray(mean if x.dtype.kind == "f" else np.trunc(mean))


def max_of(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the maximum; that of nothing is the least value."""
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.asarray(np.max(x, axis=axis, keepdims=keepdims, initial=least))


def min_of(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the minimum, by way of the maximum; that of nothing is the largest value."""
    turned = np.negative if x.dtype.kind == "f" else np.invert
    return np.asarray(turned(max_of(turned(x), axis, keepdims)))


def sigmoid(x: Array) -> Array:
    """Return the logistic function by way of the hyperbolic tangent."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def log_softmax(x: Array, axis: int) -> Array:
    """Return the logarithm of softmax by logaddexp."""
    return np.asarray(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))


def one_hot(labels: Array, like: Array) -> Array:
    """Return a row with a single 1 for each label."""
    return np.asarray(np.arange(like.shape[1]) == labels[:, None], like.dtype)


def entropy(logits: Array, labels: Array) -> Array:
    """Return the cross-entropy of each row."""
    return np.asarray(-(labels * log_softmax(logits, 1)).sum(axis=1))


def entropy_grad(logits: Array, labels: Array, g: Array) -> Array:
    """Return the gradient of `entropy` by the logits."""
    return np.asarray((np.exp(log_softmax(logits, 1)) - labels) * g[:, None])


def product(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array:
    """Return the matrix product by einsum."""
    subscripts = f"...{'ki' if transpose_a else 'ik'},...{'jk' if transpose_b else 'kj'}->...ij"
    return np.asarray(np.einsum(subscripts, a, b))


def products(small: tuple[tuple[Shape, Shape], ...], large: tuple[Shape, Shape]) -> Row:
    """Return the row of a matrix product, with every combination of transposes."""

    def transposed(shapes: tuple[Shape, ...], *flags: bool) -> Case:
        turned = tuple(
            (*shape[:-2], *shape[-2:][:: -1 if flag else 1])
            for shape, flag in zip(shapes, flags, strict=True)
        )
        return Case(turned, {"transpose_a": flags[0], "transpose_b": flags[1]})

    flags = [(a, b) for a in (False, True) for b in (False, True)]
    batch = large[0][:-2]
    awkward = [large, ((*batch, 1, 500_000), (500_000, 2)), ((*batch, 200_000, 2), (2, 3))]
    empty = [((*batch, 0, 3), (3, 2)), ((*batch, 2, 0), (0, 3)), ((*batch, 2, 3), (3, 0))]
    return Row(
        product,
        tuple(transposed(each, *flag) for each in small for flag in flags),
        tuple(transposed(each, *flag) for each in awkward for flag in flags),
        tuple(transposed(each, *flag) for each in empty for flag in flags),
        dtypes=SIGNED,
    )


def rows_of(shapes: Callable[[Shape], tuple[Shape, ...]], reference: Any, *kinds: str) -> Row:
    """Return the row of a cross-entropy, of inputs whose shapes follow from the logits'."""
    return Row(
        reference,
        cases(shapes((4, 3)), shapes((1, 5))),
        cases(*[shapes(each) for each in ((1000, 1000), (200_000, 5), (3, 300_000), (M, 3))]),
        cases(shapes((0, 3))),
        kinds,
    )


def sliced(x: Array, index: tuple[Any, ...]) -> Array:
    """Return what NumPy's own indexing gives."""
    return np.asarray(x[index])


def unsliced(g: Array, index: tuple[Any, ...], shape: Shape) -> Array:
    """Return zeros of a shape with `g` at an index."""
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


def gathered(x: Array, indices: Array, axis: int, outside: bool) -> Array:
    """Return slices one by one; zeros for those that are outside."""
    nothing = np.zeros_like(x).take(0, axis) if outside else None
    rows = [
        nothing if index >= x.shape[axis] else x[(*[slice(None)] * axis, index)]
        for index in indices.reshape(-1).tolist()
    ]
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return np.stack(rows, axis).reshape(shape) if rows else np.zeros(shape, x.dtype)


def flat_indices(
    indices: Array, sizes: Shape, batch: Shape, outer: int, ignore: bool, op: str
) -> Array:
    """Return NumPy's own places of indices, for each of a batch of matrices."""
    parts = indices.reshape(math.prod(batch), 1, -1, len(sizes))
    matrices = np.arange(len(parts) * outer).reshape(-1, outer, 1)
    own = np.ravel_multi_index(tuple(np.moveaxis(parts, -1, 0)), sizes, mode="wrap")
    inside = (parts < sizes).all(axis=-1)
    return np.where(inside, own + matrices * math.prod(sizes), -1)


def segments(reduced: Callable[[Array], Array], **initial: Any) -> Row:
    """Return the row of an op that brings rows together by their numbers."""

    def reference(data: Array, ids: Array, num_segments: int, **_: Any) -> Array:
        return np.stack([reduced(data[ids == number]) for number in range(num_segments)])

    return Row(
        reference,
        cases(((5, 3), (5,)), ((2, 4), (2, 4)), num_segments=4, **initial),
        cases(
            ((1000, 1000), (1000,)),
            ((M,), (M,)),
            ((10_000, 100), (10_000,)),
            num_segments=3,
            **initial,
        ),
        cases(((0, 3), (0,)), ((2, 0), (2,)), num_segments=3, **initial),
        ("any", "labels"),
        dtypes=NUMBERS,
    )


def scattered(
    combine: Callable[[Any, Any], Any], most: int = 5, dtypes: tuple[str, ...] = NUMBERS
) -> Row:
    """Return the row of an op that brings a few rows to those of a matrix."""

    def reference(tensor: Array, places: Array, rows: Array) -> Array:
        made = list(tensor)
        for place, row in zip(places.tolist(), rows, strict=True):
            made[place] = combine(made[place], row)
        return np.stack(made)

    return Row(
        reference,
        cases(((4, 3), (most,), (most, 3)), ((3, 1), (1,), (1, 1))),
        cases(((1000, 1000), (1000,), (1000, 1000)), ((10, 3), (M // 3,), (M // 3, 3))),
        cases(((3, 2), (0,), (0, 2)), ((3, 0), (2,), (2, 0))),
        ("any", "labels", "any"),
        dtypes=dtypes,
    )


def replaced(x: Array, part: Array, index: tuple[Any, ...]) -> Array:
    """Return an array with another part at an index."""
    out = x.copy()
    out[index] = part
    return out


def drawn(kind: str, shape: Shape, key: tuple[int, int], draw: int, dtype: Any) -> Array:
    """Return the numbers of a draw from its beginning, all in one call of NumPy's generator."""
    bits = np.random.Philox(
        key=np.array(key, np.uint64), counter=np.array([0, 0, draw, 0], np.uint64)
    )
    generator, size = np.random.Generator(bits), math.prod(shape)
    if kind == "uniform":
        return generator.random(size, dtype=dtype.type).reshape(shape)
    u, v = generator.random(2 * (size // 2 + 1)).reshape(-1, 2).T
    pairs = np.sqrt(-2.0 * np.log(1.0 - u)) * np.exp(2j * np.pi * v)
    return np.stack([pairs.real, pairs.imag], axis=1).reshape(-1)[:size].reshape(shape)


def random(reference: Callable[..., Any], dtype: Any = ops.float32, **attrs: Any) -> Row:
    """Return the row of an op that draws numbers."""
    keys = {"dtype": dtype, "key": (7, 2**64 - 1), "draw": 3, "first": 0, **attrs}
    small, large, empty = (
        tuple(Case((), {"shape": shape, **keys}) for shape in shapes)
        for shapes in (((3, 5), ()), ((1000, 1000), (M + 1,)), ((0,), (2, 0)))
    )
    return Row(reference, small, large, empty, dtypes=(dtype.name,), differentiable=False)


def stateless(reference: Callable[..., Any], dtype: Any = ops.float32, **attrs: Any) -> Row:
    """Return the row of an op that draws TensorFlow's numbers from a state."""
    keys = {"dtype": dtype, "first": 0, **attrs}
    small, large, empty = (
        tuple(Case(((3,),), {"shape": shape, **keys}) for shape in shapes)
        for shapes in (((3, 5), ()), ((40, 500), (20_001,)), ((0,), (2, 0)))
    )
    small += (Case(((3,),), {"shape": (7,), **keys, "first": 5}),)
    return Row(reference, small, large, empty, ("words",), ("int64",), differentiable=False)


PART = Part(samples=100, sample=2, parameter=3)


def rates(reference: Callable[..., Any], dtypes: tuple[str, ...], **attrs: Any) -> Row:
    """Return the row of an op that draws a number for each parameter, often."""
    small, large, empty = (
        tuple(Case(((3,), each), {"shape": shape, "part": PART, **attrs}) for each, shape in pairs)
        for pairs in (
            (((2,), (3, 2)), ((), (4,)), ((2, 1), (2, 1))),
            (((), (3000,)), ((1000,), (3, 1000))),
            (((), (0,)), ((0,), (2, 0)), ((2,), (0, 2))),
        )
    )
    kinds = ("state", "positive")
    return Row(reference, small, large, empty, kinds, dtypes, differentiable=False)


AXIS_1 = {"axis": 1}
INDEX = (slice(None, None, -1), Ellipsis, 1, None)
PERM = {"perm": (2, 0, 1)}
PACKED = (((2, 3),) * 3, ((),) * 2, ((2,),))

TABLE: dict[str, Row] = {
    "Abs": one(lambda x: np.where(x < 0, -x, x), dtypes=SIGNED),
    "Acos": one(lambda x: np.angle(x + 1j * np.sqrt(1.0 - x * x)), "unit"),
    "Acosh": one(lambda x: np.log(x + np.sqrt(x * x - 1.0)), "above one"),
    "AddN": Row(
        lambda *xs: np.sum(np.stack(xs), axis=0, dtype=xs[0].dtype),
        cases(*PACKED),
        cases(((1000, 1000),) * 3, ((M,),)),
        cases(((0, 2),) * 2),
        dtypes=NUMBERS,
    ),
    "AddV2": two(lambda x, y: x - (-y)),
    "All": reduction(
        lambda x, axis, keepdims: ~np.logical_or.reduce(~x, axis=axis, keepdims=keepdims),
        dtypes=BOOLS,
        differentiable=False,
    ),
    "Any": reduction(
        lambda x, axis, keepdims: np.add.reduce(x, axis=axis, keepdims=keepdims) > 0,
        dtypes=BOOLS,
        differentiable=False,
    ),
    "ArgMax": place(np.argmax),
    "ArgMin": place(np.argmin),
    "Asin": one(lambda x: np.angle(np.sqrt(1.0 - x * x) + 1j * x), "unit"),
    "Asinh": one(lambda x: np.log(x + np.sqrt(x * x + 1.0))),
    "AssignAddVariableOp": compare(lambda x, y: x + y),
    "AssignSubVariableOp": compare(lambda x, y: x - y),
    "Atan": one(lambda x: np.angle(1.0 + 1j * x)),
    "Atan2": two(lambda y, x: np.angle(x + 1j * y), dtypes=FLOATS),
    "Atanh": one(lambda x: 0.5 * np.log((1.0 + x) / (1.0 - x)), "unit"),
    "BatchMatMulV2": products(
        (((2, 2, 3), (2, 3, 4)), ((2, 3), (2, 1, 3, 1)), ((2, 1, 2, 2), (3, 2, 2))),
        ((4, 250, 500), (4, 500, 250)),
    ),
    "BiasAdd": Row(
        lambda x, bias: x + np.broadcast_to(bias, x.shape),
        cases(((2, 3), (3,)), ((2, 3, 4), (4,))),
        cases(((1000, 1000), (1000,)), ((M, 1), (1,)), ((1, M), (M,))),
        cases(((0, 3), (3,)), ((2, 0), (0,))),
        dtypes=NUMBERS,
    ),
    "BiasAddGrad": Row(
        lambda g: g.reshape(-1, g.shape[-1]).sum(axis=0),
        cases(((2, 3),), ((2, 3, 4),)),
        cases(*ONE_LARGE[:1], *ONE_LARGE[2:], ((100, 100, 100),)),
        cases(((0, 3),)),
    ),
    "BroadcastTo": Row(
        lambda x, shape: x + np.zeros(shape, x.dtype),
        cases(((3,),), ((2, 1),), ((),), shape=(2, 3)),
        cases(((1000,),), ((1000, 1),), ((),), shape=(1000, 1000)),
        cases(((1,),), ((0,),), shape=(0,)),
        dtypes=ALL,
    ),
    "Cast": Row(
        lambda x, dtype: np.trunc(x).astype(dtype) if dtype.kind == "i" else x.astype(dtype),
        tuple(Case(((2, 3),), {"dtype": ops.as_dtype(each)}) for each in ("float64", *ALL)),
        tuple(
            Case((shape,), {"dtype": ops.as_dtype(each)})
            for each in ALL
            for shape in ((1000, 1000), (M, 1))
        ),
        cases(((2, 0),), dtype=ops.int32),
        dtypes=ALL,
    ),
    "Ceil": one(lambda x: np.trunc(x) + (np.trunc(x) < x), differentiable=False),
    "ConcatV2": Row(
        lambda *xs, axis: np.concatenate(xs, axis),
        (
            *cases(((2, 3), (2, 1), (2, 2)), axis=1),
            *cases(((1, 3), (2, 3)), ((2,), (0,)), ((4,),), axis=0),
        ),
        (*cases(((500, 1000), (500, 1000)), axis=0), *cases(((1000, 500),) * 2, axis=1)),
        cases(((0, 3), (0, 2)), axis=1),
        dtypes=ALL,
    ),
    "Cos": one(lambda x: np.exp(1j * x).real),
    "Cosh": one(lambda x: (np.exp(x) + np.exp(-x)) / 2.0),
    "Cumprod": scanned(np.multiply.reduce, 1.0, dtypes=NUMBERS),
    "Cumsum": scanned(np.add.reduce, 0.0, dtypes=NUMBERS),
    "CumulativeLogsumexp": scanned(np.logaddexp.reduce, -np.inf, exclusive=False),
    "DivNoNan": two(
        lambda x, y: np.where(y == 0, 0, x * y**-1.0), "any", "positive", dtypes=FLOATS
    ),
    "Elu": one(lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1.0)),
    "Equal": compare(lambda x, y: ~(x != y), dtypes=ALL),
    "Erf": one(np.vectorize(math.erf, otypes=["float64"])),
    "Erfc": one(np.vectorize(math.erfc, otypes=["float64"])),
    "Erfinv": one(
        np.vectorize(lambda p: NORMAL.inv_cdf((p + 1) / 2) / math.sqrt(2), otypes=["float64"]),
        "unit",
    ),
    "Exp": one(lambda x: np.e**x),
    "ExpandDims": view(((2, 3), (2, 1, 3)), ((), (1,))),
    "Expm1": one(lambda x: np.e**x - 1.0),
    "Fill": Row(
        lambda shape, value, dtype: np.full(shape, value, dtype),
        tuple(
            Case((), {"shape": shape, "value": 1, "dtype": ops.as_dtype(each)})
            for each in ALL
            for shape in ((2, 3), ())
        ),
        cases((), shape=(1000, 1000), value=2.5, dtype=ops.float64),
        cases((), shape=(2, 0), value=2.5, dtype=ops.float64),
        differentiable=False,
    ),
    "FlatIndices": Row(
        flat_indices,
        (
            *cases(((4, 2),), ((2,),), sizes=(3, 4), batch=(), outer=1, ignore=False, op="Op"),
            *cases(((2, 5, 2),), sizes=(2, 3), batch=(2,), outer=2, ignore=True, op="Op"),
        ),
        cases(((M // 4, 2),), sizes=(3, 3), batch=(), outer=1, ignore=False, op="Op"),
        cases(((2, 0, 2),), sizes=(2, 3), batch=(2,), outer=2, ignore=True, op="Op"),
        ("places",),
        dtypes=("int64",),
        differentiable=False,
    ),
    "Floor": one(lambda x: np.trunc(x) - (np.trunc(x) > x), differentiable=False),
    "FloorDiv": two(lambda x, y: np.floor(x / y), "any", "positive", differentiable=False),
    "FloorMod": two(lambda x, y: x - y * np.floor(x / y), "any", "positive"),
    "GatherV2": Row(
        gathered,
        (
            *cases(((4, 3), (2,)), ((3,), ()), axis=0, outside=False),
            *cases(((2, 3, 2), (2, 2)), axis=1, outside=False),
            *cases(((3, 2), (5,)), axis=1, outside=True),
        ),
        (
            *cases(((1000, 1000), (1000,)), ((3, 1), (M,)), axis=0, outside=False),
            *cases(((1000, 1000), (1000,)), axis=1, outside=True),
        ),
        cases(((3, 0), (2,)), ((3, 2), (0,)), axis=0, outside=False),
        ("any", "labels"),
        dtypes=ALL,
    ),
    "Greater": compare(lambda x, y: ~(x <= y)),
    "GreaterEqual": compare(lambda x, y: ~(x < y)),
    "Identity": Row(
        lambda x: x, cases(*ONE_SMALL), cases(*ONE_LARGE), cases(*ONE_EMPTY), dtypes=ALL
    ),
    "IsFinite": one(lambda x: np.abs(x) < np.inf, differentiable=False),
    "IsInf": one(lambda x: np.abs(x) == np.inf, differentiable=False),
    "IsNan": one(lambda x: x != x, differentiable=False),
    "Less": compare(lambda x, y: ~(x >= y)),
    "LessEqual": compare(lambda x, y: ~(x > y)),
    "Log": one(lambda x: np.log2(x) * np.log(2.0), "positive"),
    "Log1p": one(lambda x: np.log2(1.0 + x) * np.log(2.0), "positive"),
    "LogSoftmax": along_an_axis(log_softmax),
    "LogicalAnd": compare(lambda x, y: x * y, dtypes=BOOLS),
    "LogicalNot": one(lambda x: x ^ True, dtypes=BOOLS, differentiable=False),
    "LogicalOr": compare(lambda x, y: ~(~x & ~y), dtypes=BOOLS),
    "LowerBound": bound(np.less),
    "MatMul": products((((2, 3), (3, 4)), ((1, 3), (3, 1))), ((700, 1000), (1000, 300))),
    "Max": reduction(max_of),
    "Maximum": two(lambda x, y: np.where(x > y, x, y)),
    "Mean": reduction(mean_of, of_nothing=False),
    "Min": reduction(min_of),
    "Minimum": two(lambda x, y: np.where(x > y, y, x)),
    "Mul": two(lambda x, y: x * y),
    "MulNoNan": two(lambda x, y: np.where(y == 0, 0, x * y), dtypes=FLOATS),
    "Ndtri": one(np.vectorize(NORMAL.inv_cdf, otypes=["float64"]), "unit"),
    "Neg": one(lambda x: 0 - x, dtypes=SIGNED),
    "NotEqual": compare(lambda x, y: ~(x == y), dtypes=ALL),
    "OnesLike": one(lambda x: x**0, dtypes=ALL, differentiable=False),
    "Pack": Row(
        lambda *xs: np.stack(xs),
        cases(*PACKED),
        cases(((500, 1000),) * 2),
        cases(((0, 2),) * 2),
        dtypes=ALL,
    ),
    "Pow": two(lambda x, y: x**y, "positive", dtypes=SIGNED),
    "Prod": reduction(
        lambda x, axis, keepdims: np.multiply.reduce(
            x, axis=axis, keepdims=keepdims, dtype=x.dtype
        ),
    ),
    "RandomStandardNormal": random(lambda first, **keys: drawn("normal", **keys)),
    "RandomUniform": random(lambda first, **keys: drawn("uniform", **keys)),
    "RandomUniformInt": random(
        lambda first, dtype, minval, maxval, **keys: (
            np.floor(drawn("uniform", dtype=np.dtype("float64"), **keys) * (maxval - minval))
            + minval
        ),
        ops.int64,
        minval=-3,
        maxval=9,
    ),
    "RealDiv": two(lambda x, y: x * y**-1.0, "any", "positive", dtypes=FLOATS),
    "Reciprocal": one(lambda x: x**-1.0),
    "Relu": one(lambda x: x * (x > 0), dtypes=NUMBERS),
    "ReluGrad": alike(lambda g, y: np.where(y > 0, g, 0), 2),
    "Reshape": view(((2, 3), (3, 2)), ((4,), (2, 1, 2)), ((1,), ())),
    "Rint": one(lambda x: np.floor(x + 0.5), differentiable=False),
    "RngReadAndSkip": Row(
        lambda state, delta: tensorflow_random.after(state, delta),
        cases(((3,),), delta=2**60 + 7),
        cases(((3,),), delta=1),
        (),
        ("words",),
        ("int64",),
        differentiable=False,
    ),
    "Round": one(lambda x: np.floor(x + 0.5), differentiable=False),
    "Rsqrt": one(lambda x: x**-0.5, "positive"),
    "SelectV2": Row(
        lambda condition, x, y: np.choose(condition, [y, x]),
        cases(((2, 3),) * 3, ((3,), (2, 3), ()), ((2, 1), (3,), (4, 1, 1))),
        cases(((1000, 1000),) * 3, ((1000, 1), (1000,), ()), ((M, 1), (1,), (M, 1))),
        cases(((0,),) * 3, ((2, 0), (1,), ())),
        ("condition", "any"),
        dtypes=ALL,
    ),
    "Sigmoid": one(sigmoid),
    "SigmoidCrossEntropyWithLogits": alike(
        lambda x, y: -(y * np.log(sigmoid(x)) + (1 - y) * np.log(sigmoid(-x))), 2, "any", "unit"
    ),
    "SigmoidGrad": alike(lambda g, y: g * (y - y * y), 2, "any", "unit"),
    "Sign": one(lambda x: (x > 0) * 1.0 - (x < 0) * 1.0, dtypes=SIGNED),
    "Sin": one(lambda x: np.exp(1j * x).imag),
    "Sinh": one(lambda x: (np.exp(x) - np.exp(-x)) / 2.0),
    "Softmax": along_an_axis(lambda x, axis: np.exp(log_softmax(x, axis))),
    "SoftmaxCrossEntropyGrad": rows_of(
        lambda s: (s, s, s[:1]), entropy_grad, "any", "positive", "any"
    ),
    "SoftmaxCrossEntropyWithLogits": rows_of(lambda s: (s, s), entropy, "any", "distribution"),
    "Softplus": one(lambda x: np.log(1.0 + np.exp(x))),
    "Softsign": one(lambda x: x / (1.0 + np.abs(x))),
    "SparseSoftmaxCrossEntropyGrad": rows_of(
        lambda s: (s, s[:1], s[:1]),
        lambda logits, labels, g: entropy_grad(logits, one_hot(labels, logits), g),
        "any",
        "labels",
        "any",
    ),
    "SparseSoftmaxCrossEntropyWithLogits": rows_of(
        lambda s: (s, s[:1]),
        lambda logits, labels: entropy(logits, one_hot(labels, logits)),
        "any",
        "labels",
    ),
    "Sqrt": one(lambda x: x**0.5, "positive"),
    "SqrtGrad": alike(lambda g, y: np.where(g == 0, 0, g / (2.0 * y)), 2, "any", "positive"),
    "Square": one(lambda x: x * x, dtypes=NUMBERS),
    "SquaredDifference": two(lambda x, y: x * x - 2 * x * y + y * y, dtypes=SIGNED),
    "Squeeze": view(((2, 1, 3), (2, 3)), ((1,), ())),
    "StopGradient": one(lambda x: x, dtypes=ALL, differentiable=False),
    "StatelessMultinomial": Row(
        tensorflow_random.categorical,
        cases(((3,), (2, 3)), ((3,), (1, 1)), num_samples=5, dtype=ops.int32, first=3),
        cases(((3,), (4, 9)), num_samples=5000, dtype=ops.int64, first=0),
        cases(((3,), (0, 3)), num_samples=5, dtype=ops.int64, first=0),
        ("state", "any"),
        FLOATS,
        differentiable=False,
    ),
    "StatelessRandomGammaV3": rates(tensorflow_random.gamma, FLOATS),
    "StatelessRandomGetKeyCounter": Row(
        tensorflow_random.state_of,
        cases(((2,),)),
        cases(((2,),)),
        (),
        ("words",),
        ("int64",),
        differentiable=False,
    ),
    "StatelessRandomNormalV2": stateless(tensorflow_random.normal),
    "StatelessRandomPoisson": rates(tensorflow_random.poisson, SIGNED, dtype=ops.int32),
    "StatelessRandomUniformFullIntV2": stateless(tensorflow_random.full_int, ops.int64),
    "StatelessRandomUniformIntV2": stateless(
        tensorflow_random.uniform_int, ops.int32, minval=-3, maxval=10**6
    ),
    "StatelessRandomUniformV2": stateless(tensorflow_random.uniform),
    "StatelessShuffle": Row(
        tensorflow_random.shuffle,
        cases(((3,), (7,)), ((3,), (4, 2, 1)), ((3,), (1,))),
        cases(((3,), (1000, 100)), ((3,), (10_000,))),
        cases(((3,), (0, 2)), ((3,), (2, 0))),
        ("state", "any"),
        ALL,
        differentiable=False,
    ),
    "StatelessTruncatedNormalV2": stateless(tensorflow_random.truncated_normal),
    "StridedSlice": Row(
        sliced,
        (
            *cases(((2, 3),), ((4, 1, 2),), index=INDEX),
            *cases(((4, 3),), index=(slice(1, 3), slice(0, 3, 2))),
            *cases(((4, 3),), index=(-1, 2)),
        ),
        cases(((1000, 1000),), ((1000, 2, 500),), index=INDEX[:3]),
        cases(((0, 3),), ((2, 2),), index=(slice(5, 7),)),
        dtypes=ALL,
    ),
    "StridedSliceGrad": Row(
        unsliced,
        (
            *cases(((2, 1),), index=INDEX, shape=(2, 3)),
            *cases(((2,),), index=(slice(0, 4, 2), 1), shape=(4, 3)),
        ),
        cases(((500, 1000),), index=(slice(None, None, 2),), shape=(1000, 1000)),
        cases(((0, 3),), index=(slice(5, 7),), shape=(2, 3)),
        dtypes=ALL,
    ),
    "Sub": two(lambda x, y: x + (-y)),
    "Sum": reduction(
        lambda x, axis, keepdims: np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    ),
    "Tan": one(lambda x: np.exp(1j * x).imag / np.exp(1j * x).real),
    "Tanh": one(lambda x: 2.0 * sigmoid(2.0 * x) - 1.0),
    "TanhGrad": alike(lambda g, y: g - g * y * y, 2, "any", "unit"),
    "TopKV2": Row(
        in_order,
        (
            *cases(((2, 3),), k=2, ascending=False, output_type=ops.int32),
            *cases(((3, 1, 7),), ((4,),), k=4, ascending=True, output_type=ops.int64),
        ),
        cases(((1000, 1000),), ((1, M),), k=1000, ascending=True, output_type=ops.int32),
        cases(((0, 3),), ((2, 1),), k=0, ascending=False, output_type=ops.int32),
        dtypes=NUMBERS,
        differentiable=False,
    ),
    "TensorScatterAdd": scattered(lambda old, new: old + new),
    "TensorScatterMax": scattered(np.maximum),
    "TensorScatterMin": scattered(np.minimum),
    "TensorScatterUpdate": scattered(lambda old, new: new, 1, ALL),
    "TensorStridedSliceUpdate": Row(
        replaced,
        (
            *cases(((2, 3), (2, 1)), index=INDEX),
            *cases(((4, 3), (2,)), index=(slice(0, 4, 2), 1)),
        ),
        cases(((1000, 1000), (500, 1000)), index=(slice(None, None, 2),)),
        cases(((2, 3), (0, 3)), ((2, 0), (0, 0)), index=(slice(5, 7),)),
        dtypes=ALL,
        differentiable=False,
    ),
    "Transpose": Row(
        lambda x, perm: np.einsum(x, [0, 1, 2], list(perm)),
        cases(((2, 3, 4),), ((1, 3, 2),), **PERM),
        cases(((100, 100, 100),), ((1, 1000, 1000),), ((M, 1, 1),), **PERM),
        cases(((2, 0, 3),), **PERM),
        dtypes=ALL,
    ),
    "UnsortedSegmentMax": segments(lambda rows: np.max(rows, axis=0, initial=3), initial=3),
    "UnsortedSegmentMin": segments(lambda rows: np.min(rows, axis=0, initial=3), initial=3),
    "UnsortedSegmentProd": segments(
        lambda rows: np.multiply.reduce(rows, axis=0, dtype=rows.dtype)
    ),
    "UnsortedSegmentSum": segments(lambda rows: np.add.reduce(rows, axis=0, dtype=rows.dtype)),
    "UpperBound": bound(np.less_equal),
    "Xdivy": two(lambda x, y: np.where(x == 0, 0, x * y**-1.0), "any", "positive", dtypes=FLOATS),
    "Xlog1py": two(lambda x, y: x * np.log(1.0 + y), "any", "positive", dtypes=FLOATS),
    "Xlogy": two(lambda x, y: x * np.log(y), "any", "positive", dtypes=FLOATS),
    "ZerosLike": one(
        lambda x: x ^ x if x.dtype == bool else x * 0, dtypes=ALL, differentiable=False
    ),
}

# One function of NumPy's and one expression each, made as others are that every run of the tests
# tries on everything: of these it tries values and gradients, and the slow tests the rest.
TABLE |= {
    "Assert": Row(
        lambda held, *_, text, shown: np.True_,
        cases(((2, 3),), ((), (2,)), text=str, shown=1),
        cases(((1000, 1000),), text=str, shown=0),
        cases(((0,),), text=str, shown=0),
        kinds=("positive",),
        dtypes=ALL,
        differentiable=False,
    ),
    "CheckNumerics": Row(
        lambda x, message: x,
        cases(*ONE_SMALL, message="x"),
        cases(((1000, 1000),), message="x"),
        cases(*ONE_EMPTY, message="x"),
        kinds=("positive",),
    ),
    "PrintV2": Row(
        lambda *_, write: np.True_,
        cases(((2, 3),), ((), (2,)), write=lambda *_: None),
        cases(((1000, 1000),), write=lambda *_: None),
        cases(((0,),), write=lambda *_: None),
        dtypes=ALL,
        differentiable=False,
    ),
}
TABLE["WriteSummary"] = TABLE["PrintV2"]

MATRICES = (((3, 3),), ((2, 2, 2),))
MANY = (((20_000, 3, 3),),)
NONE = (((0, 2, 2),), ((2, 0, 0),))
SYSTEMS, MANY_SYSTEMS, NO_SYSTEMS = (
    tuple((*each, (*each[0][:-1], 2)) for each in shapes) for shapes in (MATRICES, MANY, NONE)
)


def turned(x: Array, adjoint: bool = True) -> Array:
    """Return matrices with rows and columns exchanged."""
    return x.swapaxes(-1, -2) if adjoint else x


def symmetric(x: Array) -> Array:
    """Return the matrices whose lower triangles these are."""
    return np.tril(x) + turned(np.tril(x, -1))


def of_triangle(matrix: Array, rhs: Array, lower: bool, adjoint: bool) -> Array:
    """Return the solutions of triangular systems by way of inverses."""
    part = np.tril(matrix) if lower else np.triu(matrix)
    return np.asarray(np.linalg.inv(turned(part, adjoint)) @ rhs)


def factor(x: Array) -> Array:
    """Return Cholesky's factors by way of square roots of matrices."""
    values, vectors = np.linalg.eigh(symmetric(x))
    r = np.linalg.qr(turned(vectors * np.sqrt(values)[..., None, :]))[1]
    return turned(r * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None])


def eigen(x: Array, compute_v: bool) -> Array:
    """Return eigenvalues, and vectors beside them."""
    if not compute_v:
        return np.sort(np.linalg.eigvals(symmetric(x)).real)
    values, vectors = np.linalg.eigh(symmetric(x))
    return np.concatenate([values[..., None], vectors], axis=-1)


def singular(x: Array, full_matrices: bool, compute_uv: bool) -> Array:
    """Return singular values, or with vectors one after the other."""
    if not compute_uv:
        gram = x @ turned(x) if x.shape[-2] < x.shape[-1] else turned(x) @ x
        return np.sqrt(np.linalg.eigvalsh(gram))[..., ::-1]
    u, s, v = np.linalg.svd(x, full_matrices)
    return beside(x, u, s, turned(v))


def beside(x: Array, *parts: Array) -> Array:
    """Return what each matrix gave in one row."""
    rows = [part.reshape(*x.shape[:-2], math.prod(part.shape[x.ndim - 2 :])) for part in parts]
    return np.concatenate(rows, axis=-1)


def on_matrices(
    reference: Callable[..., Any], *attrs: Mapping[str, Any], systems: bool = False, **options: Any
) -> Row:
    """Return the row of a decomposition, or of what solves systems; a case for each attributes."""
    small, large, empty = (
        tuple(Case(each, one) for one in attrs or ({},) for each in shapes)
        for shapes in ((SYSTEMS, MANY_SYSTEMS, NO_SYSTEMS) if systems else (MATRICES, MANY, NONE))
    )
    # Batches with the first attributes alone: with others they are made alike.
    few = tuple(case for case in small if case.attrs is small[0].attrs or case.shapes[0] == (3, 3))
    return Row(reference, few, large[:1], empty, **{"kinds": ("dominant", "any"), **options})


def either(name: str, **attrs: Any) -> tuple[Mapping[str, Any], ...]:
    """Return attributes of which one is false and true."""
    return tuple({**attrs, name: each} for each in (False, True))


TABLE |= {
    # The gradient is that of a symmetric matrix, of which both triangles change.
    "Cholesky": on_matrices(factor, along=symmetric),
    "LogMatrixDeterminant": on_matrices(
        lambda x: np.stack(
            [np.sign(np.linalg.det(x)), np.log(np.abs(np.linalg.eigvals(x))).sum(-1)], -1
        )
    ),
    "MatrixDeterminant": on_matrices(lambda x: np.prod(np.linalg.eigvals(x), axis=-1).real),
    "MatrixInverse": on_matrices(
        lambda x, adjoint: np.linalg.solve(turned(x, adjoint), np.eye(x.shape[-1]) + 0 * x),
        *either("adjoint"),
    ),
    "MatrixSolve": on_matrices(
        lambda matrix, rhs, adjoint: np.linalg.inv(turned(matrix, adjoint)) @ rhs,
        *either("adjoint"),
        systems=True,
    ),
    "MatrixTriangularSolve": on_matrices(
        of_triangle,
        *either("adjoint", lower=True),
        *either("adjoint", lower=False),
        systems=True,
    ),
    "Qr": on_matrices(
        lambda x, full_matrices: beside(x, *np.linalg.qr(x)),
        *either("full_matrices"),
        kinds=("any",),
    ),
    "SelfAdjointEigV2": on_matrices(eigen, *either("compute_v")),
    "Svd": on_matrices(
        singular,
        *either("full_matrices", compute_uv=True),
        {"compute_uv": False, "full_matrices": False},
        kinds=("any",),
    ),
}

# What training steps are made of, and one op of each other kind: every run of the tests tries them
# on everything. Of the others it tries values and gradients; the rest is slow.
OFTEN = {"AddN", "AddV2", "ArgMax", "AssignAddVariableOp", "BatchMatMulV2", "BiasAdd"}
OFTEN |= {"BiasAddGrad", "BroadcastTo", "Cast", "ConcatV2", "Cumsum", "Equal", "Exp", "ExpandDims"}
OFTEN |= {"Fill", "FloorDiv", "GatherV2", "Identity", "Less", "Log", "LogSoftmax", "LogicalAnd"}
OFTEN |= {"MatMul", "Max", "Maximum", "Mean", "Mul", "Neg", "Pack", "Pow", "RandomStandardNormal"}
OFTEN |= {"RandomUniform", "RealDiv", "Relu", "ReluGrad", "Reshape", "SelectV2", "Sigmoid"}
OFTEN |= {"SigmoidCrossEntropyWithLogits", "SigmoidGrad", "Softmax", "SoftmaxCrossEntropyGrad"}
OFTEN |= {"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyGrad"}
OFTEN |= {"SparseSoftmaxCrossEntropyWithLogits", "Square", "Squeeze", "StopGradient"}
OFTEN |= {"StridedSlice", "StridedSliceGrad", "Sum", "Tanh", "TanhGrad", "TopKV2", "Transpose"}
OFTEN |= {"UnsortedSegmentSum", "ZerosLike"}
