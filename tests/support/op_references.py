"""Ops as functions of NumPy arrays, written another way than their kernels, and rows of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from op_row import NUMBERS, SIGNED, Array, Case, M, Row, Shape, cases

from mirrored import ops
from mirrored.ops.philox import Part


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


def gamma_slope(x: Array) -> Array:
    """Return the derivative of the logarithm of gamma, by a thousand steps up to its series."""
    total = np.zeros(np.shape(x))
    for _ in range(1000):
        total -= 1.0 / x
        x = x + 1.0
    return total + np.log(x) - 0.5 / x - 1.0 / (12.0 * x * x)
