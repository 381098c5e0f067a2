"""Every op and every gradient on the emulated card, held to the host's by the table of ops.

Recorded, an op has the bits of the eager call. Beside the table's cases there are awkward shapes:
of rank 0 and 6, of one element, and of a few more elements than a block has threads.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from op_references import PART
from op_row import Case, Row
from op_table import OFTEN, TABLE
from op_windows import (
    CONV_2D,
    CONV_3D,
    DEPTHWISE,
    POOL_2D,
    POOL_3D,
    Geometry,
    of_depthwise,
    of_filters,
    of_windows,
)

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape

Array = np.ndarray[Any, Any]
Function = Callable[..., list[ops.Tensor]]
TOLERANCES = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 2e-2}
RUNS = 3  # Kernel by kernel, captured, and launched again.

ON_CARDS = [name for name in TABLE if "GPU" in ops.OPS[name].devices]
LONG = 1031  # A prime, a little longer than the longest block.
SIX = (2, 3, 1, 2, 3, 2)

ONE = (((1,),), ((LONG,),), ((3, LONG),), (SIX,))
TWO = (
    ((1,), (1,)),
    ((LONG,), ()),
    ((3, LONG), (3, 1)),
    ((LONG, 2), (2,)),
    ((2, 1, 3, 1, 2, 1), (1, 2, 1, 3, 1, 2)),
    ((3, 1, 2), (2, 1, 3, 1, 2)),
)


def _of(*shapes: tuple[tuple[int, ...], ...], **attrs: Any) -> list[Case]:
    return [Case(each, attrs) for each in shapes]


def _reductions() -> list[Case]:
    return [
        *_of(((3, LONG),), ((1, 1),), ((LONG, 1),), axis=(1,), keepdims=False),
        *_of(((LONG, 3),), ((LONG, 40),), axis=(0,), keepdims=True),
        *_of((SIX,), axis=(0, 2, 4), keepdims=False),
        *_of((SIX,), axis=(1, 3, 5), keepdims=True),
        *_of(((7, LONG, 3),), axis=(1,), keepdims=False),
        *_of(((LONG,),), axis=(0,), keepdims=True),
    ]


def _along_an_axis() -> list[Case]:
    return [
        *_of(((3, LONG),), ((1, 1),), axis=1),
        *_of(((LONG, 3),), ((LONG,),), axis=0),
        *_of((SIX,), axis=4),
    ]


def _places() -> list[Case]:
    return [
        *_of(((3, LONG),), axis=1, output_type=ops.int64),
        *_of(((LONG, 3),), axis=0, output_type=ops.int32),
        *_of((SIX,), axis=4, output_type=ops.int32),
    ]


def _scans(exclusive: bool) -> list[Case]:
    return [
        *_of(((3, LONG),), axis=1, exclusive=False, reverse=False),
        *_of((SIX,), axis=4, exclusive=exclusive, reverse=False),
        *_of(((LONG, 3),), axis=0, exclusive=exclusive, reverse=True),
    ]


def _products(*shapes: tuple[tuple[int, ...], ...]) -> list[Case]:
    return [
        Case(
            tuple(
                (*each[:-2], each[-1], each[-2]) if turned else each
                for each, turned in zip(pair, (a, b), strict=True)
            ),
            {"transpose_a": a, "transpose_b": b},
        )
        for pair in shapes
        for a in (False, True)
        for b in (False, True)
    ]


def _rows(*more: Callable[[tuple[int, int]], tuple[int, ...]]) -> list[Case]:
    logits = ((3, LONG), (1, 1), (257, 2))
    return _of(*((each, *(shape(each) for shape in more)) for each in logits))


def _same(shape: tuple[int, int]) -> tuple[int, ...]:
    return shape


def _labels(shape: tuple[int, int]) -> tuple[int, ...]:
    return shape[:1]


def _drawn(dtype: Any, **attrs: Any) -> list[Case]:
    return _of(((3,),), shape=(LONG,), dtype=dtype, first=2**33 + 7, **attrs)


def _matrices(*shapes: tuple[int, ...], **attrs: Any) -> list[Case]:
    """Return cases of matrices; of many together, and of one that is not."""
    return _of(*((each,) for each in ((7, 2, 2), (2, 1, 1), *shapes)), **attrs)


def _systems(**attrs: Any) -> list[Case]:
    return _of(((2, 5, 2, 2), (2, 5, 2, 3)), ((1, 3, 3), (1, 3, 1)), **attrs)


def _windows(
    names: str, of_each: Callable[[Geometry], tuple[Case, ...]], *geometries: Geometry
) -> dict[str, list[Case]]:
    """Return the cases of a kind of windows and of its gradients."""
    return dict(
        zip(names.split(), map(list, zip(*map(of_each, geometries), strict=True)), strict=True)
    )


LINE = Geometry((1, LONG, 1, 1), (3, 1, 1, 1), padding=((2, 0), (0, 0)))
WIDE = Geometry((2, 9, 7, 64), (3, 3, 32, 6), (2, 1), ((1, 0), (1, 1)), (1, 2))
PERM = (4, 2, 5, 0, 3, 1)
EDGES: Mapping[str, list[Case]] = {
    "AddN": _of(((LONG,),) * 3, (SIX,) * 2, ((3,),) * 40),
    "BatchMatMulV2": _products(((2, 1, 37, 41), (3, 41, 5)), ((1, 2, 1, 3, 2, 5), (2, 1, 5, 1))),
    "BiasAdd": _of(((3, LONG), (LONG,)), ((LONG, 3), (3,)), (SIX, (2,)), ((1, 1), (1,))),
    "BiasAddGrad": _of(((3, LONG),), ((LONG, 3),), (SIX,), ((1, 1),)),
    "BroadcastTo": [
        *_of(((),), ((1, 1),), ((2, 1, 2),), shape=(3, 2, 1, 2, 5, 2)),
        *_of(((1,),), ((3, 1),), shape=(3, LONG)),
    ],
    "Cast": [
        Case((shape,), {"dtype": ops.as_dtype(dtype)})
        for shape in ((LONG,), SIX, ())
        for dtype in ("float32", "float64", "int32", "int64", "uint8", "bool")
    ],
    "Cholesky": _matrices((1, 5, 5)),
    "ConcatV2": [
        *_of(((3, LONG), (3, 1), (3, 2)), axis=1),
        *_of((SIX, (2, 3, 1, 5, 3, 2)), axis=3),
        *_of(((LONG, 2), (1, 2)), axis=0),
    ],
    "ExpandDims": _of(((2, 3, 2, 3, 2),), shape=SIX),
    "Fill": _of((), shape=(LONG,), value=-3, dtype=ops.int32),
    "FlatIndices": [
        *_of(((LONG, 2),), sizes=(3, 5), batch=(), outer=3, ignore=False, op="Op"),
        *_of(((2, 7, 3),), sizes=(2, 3, 2), batch=(2,), outer=2, ignore=True, op="Op"),
    ],
    "GatherV2": [
        *_of((SIX, (2, 2)), axis=4, outside=False),
        *_of(((2, 3, 4), (LONG,)), ((3, 3), (3, 3)), axis=1, outside=True),
        *_of(((3, LONG), (5,)), axis=0, outside=False),
    ],
    "LogMatrixDeterminant": _matrices((1, 5, 5)),
    "MatMul": _products(((37, 41), (41, 43)), ((1, LONG), (LONG, 1)), ((LONG, 1), (1, 2))),
    "MatrixDeterminant": _matrices((1, 5, 5)),
    "MatrixInverse": [*_matrices((5, 5), adjoint=False), *_matrices((5, 5), adjoint=True)],
    "MatrixSolve": [*_systems(adjoint=False), *_systems(adjoint=True)],
    "MatrixTriangularSolve": [
        *_systems(lower=True, adjoint=True),
        *_systems(lower=False, adjoint=False),
    ],
    "Pack": _of(((LONG,),) * 3, (SIX[1:],) * 2),
    "Qr": [
        *_matrices((3, 5), (5, 4), full_matrices=True),
        *_matrices((5, 3), (3, 5), full_matrices=False),
    ],
    "RandomStandardNormal": _of(
        (), shape=(LONG,), dtype=ops.float64, key=(1, 2), draw=2**40, first=7
    ),
    "RandomUniform": _of((), shape=SIX, dtype=ops.float64, key=(2**63, 5), draw=1, first=2**33),
    "RandomUniformInt": _of(
        (), shape=(LONG,), dtype=ops.int32, key=(1, 0), draw=0, first=3, minval=-5, maxval=2**31 - 1
    ),
    "Reshape": _of((SIX,), shape=(72,)),
    "RngReadAndSkip": _of(((3,),), delta=2**70 + 5),
    "SelfAdjointEigV2": _matrices((5, 5), compute_v=True),
    "SoftmaxCrossEntropyGrad": _rows(_same, _labels),
    "SoftmaxCrossEntropyWithLogits": _rows(_same),
    "SparseSoftmaxCrossEntropyGrad": _rows(_labels, _labels),
    "SparseSoftmaxCrossEntropyWithLogits": _rows(_labels),
    "SelectV2": _of(
        ((LONG,), (LONG,), ()), ((3, LONG), (3, 1), (LONG,)), ((), (1,), (1,)), (SIX, SIX, SIX)
    ),
    "StatelessMultinomial": _of(((3,), (3, LONG)), num_samples=7, dtype=ops.int64, first=2**33),
    "StatelessRandomGammaV3": _of(((3,), (2, 3)), shape=(LONG, 2, 3), part=PART),
    "StatelessRandomGetKeyCounter": _of(((2,),)),
    "StatelessRandomNormalV2": _drawn(ops.float64),
    "StatelessRandomPoisson": _of(((3,), (3,)), shape=(LONG, 3), dtype=ops.float64, part=PART),
    "StatelessRandomUniformFullIntV2": _drawn(ops.int32),
    "StatelessRandomUniformIntV2": _drawn(ops.int64, minval=-(2**63), maxval=2**63 - 1),
    "StatelessRandomUniformV2": _drawn(ops.float64),
    "StatelessShuffle": _of(((3,), (3, LONG)), ((3,), (LONG,))),
    "StatelessTruncatedNormalV2": _drawn(ops.float64),
    "Svd": [
        *_matrices((5, 3), (3, 5), full_matrices=False, compute_uv=True),
        *_matrices((4, 5), (5, 4), full_matrices=True, compute_uv=True),
    ],
    "Squeeze": _of((SIX,), shape=(2, 3, 2, 3, 2)),
    "StridedSlice": [
        *_of(((LONG, 3),), index=(slice(None, None, -2), 1)),
        *_of((SIX,), index=(1, slice(2, 0, -1), None, Ellipsis, slice(0, 2, 2))),
    ],
    "StridedSliceGrad": _of(((344, 3),), index=(slice(1, None, 3),), shape=(LONG, 3)),
    "TopKV2": [
        *_of(((3, LONG),), k=5, ascending=False, output_type=ops.int32),
        *_of((SIX,), k=2, ascending=True, output_type=ops.int64),
    ],
    "TensorStridedSliceUpdate": _of(((LONG, 3), (344, 3)), index=(slice(1, None, 3),)),
    "Transpose": [
        *_of((SIX,), ((1, 5, 4, 3, 2, 7),), perm=PERM),
        *_of(((LONG, 3),), ((33, 65),), perm=(1, 0)),
    ],
    **{
        f"UnsortedSegment{kind}": _of(
            *(((LONG, 3), (LONG,)), (SIX, SIX[:2]), ((5, LONG), (5,))),
            **{"num_segments": 5, **({"initial": 1} if kind.startswith("M") else {})},
        )
        for kind in ("Max", "Min", "Prod", "Sum")
    },
    **{
        f"TensorScatter{kind}": _of(((3, LONG), (5,), (5, LONG)), ((LONG, 2), (LONG,), (LONG, 2)))
        for kind in ("Add", "Max", "Min", "Update")
    },
    **{name: _along_an_axis() for name in ("LogSoftmax", "Softmax")},
    **{
        name: _of(((3, LONG), (3, 40)), ((1, LONG), (1, LONG)), output_type=ops.int32)
        for name in ("LowerBound", "UpperBound")
    },
    **_windows(CONV_2D, of_filters, LINE, WIDE),
    **_windows(CONV_3D, of_filters, LINE.deeper(), WIDE.deeper()),
    **_windows(DEPTHWISE, of_depthwise, LINE, WIDE._replace(w=(3, 3, 64, 2))),
    **_windows(POOL_2D, of_windows, LINE._replace(w=(3, 1)), WIDE._replace(w=(3, 3))),
    **_windows(
        POOL_3D, of_windows, LINE._replace(w=(3, 1)).deeper(), WIDE._replace(w=(3, 3)).deeper()
    ),
    **{name: _scans(exclusive=True) for name in ("Cumprod", "Cumsum")},
    "CumulativeLogsumexp": _scans(exclusive=False),  # The first of those is infinite.
    **{name: _places() for name in ("ArgMax", "ArgMin")},
    **{name: _reductions() for name in ("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")},
}


# They share the text of an op that is tried on everything, but for an expression of it.
BRIEFLY = {"ArgMin", "Expm1", "Log1p", "LogSoftmax", "Min", "MulNoNan", "Prod", "Reciprocal"}
BRIEFLY |= {"Rsqrt", "Softplus", "SqrtGrad"}
BRIEFLY |= {
    "Acos",
    "Acosh",
    "Any",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Floor",
}
BRIEFLY |= {"Cumprod", "DivNoNan", "UpperBound", "Xdivy", "Xlog1py", "Xlogy"}
BRIEFLY |= {"IsFinite", "IsInf", "IsNan", "Rint", "Round", "Sin", "Sinh", "Tan"}
BRIEFLY |= {"TensorScatterMax", "TensorScatterMin", "UnsortedSegmentMin", "UnsortedSegmentProd"}


def small(name: str, row: Row) -> list[Case]:
    """Return the table's cases, or the first of them."""
    return list(row.small[:1] if name in BRIEFLY else row.small)


def edges(name: str, row: Row) -> list[Case]:
    """Return an op's awkward cases: its own, or those of its number of inputs."""
    return _edges(name, row)[: 1 if name in BRIEFLY else None]


def _edges(name: str, row: Row) -> list[Case]:
    if name in EDGES:
        return EDGES[name]
    shapes = row.small[1].shapes
    if len(shapes) == 1:
        return _of(*ONE)
    return _of(*TWO) if shapes[0] != shapes[1] else _of(*(each * 2 for each in ONE))


@pytest.fixture(autouse=True)
def card(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda(seed=4)
    mr.config.experimental.enable_tensor_float_32_execution(False)


def dtypes_of(name: str, row: Row) -> Iterator[str]:
    yield from row.dtypes
    if "float32" in row.dtypes and mr.bfloat16 in ops.OPS[name].dtypes:
        yield "bfloat16"


def inputs_of(row: Row, case: Case, dtype: str) -> list[Array]:
    """Draw inputs; labels are below the number of classes."""
    drawn = row.inputs(case, "float32" if dtype == "bfloat16" else dtype, np.random.default_rng(20))
    if "labels" in row.kinds:
        drawn[1] = drawn[1] % max(1, case.shapes[0][-1])
    return drawn


def tensors(arrays: Sequence[Array], dtype: str) -> list[ops.Tensor]:
    made = [ops.constant(each) for each in arrays]
    if dtype != "bfloat16":
        return made
    return [ops.cast(each, "bfloat16") if each.dtype == ops.float32 else each for each in made]


def placed(device: str, arrays: Sequence[Array], dtype: str) -> list[ops.Tensor]:
    with mr.device(device):
        return tensors(arrays, dtype)


def on(device: str, function: Function, given: Sequence[ops.Tensor]) -> list[ops.Tensor]:
    with mr.device(device):
        return function(*given)


def numbers(results: Sequence[ops.Tensor]) -> list[Array]:
    return [np.asarray(each.numpy()) for each in results]


class Try(NamedTuple):
    """A function to hold the card to the host by, of whose first result `signed` settles signs."""

    function: Function
    arrays: Sequence[Array]
    dtype: str
    what: str
    signed: Callable[[Array], Array] = np.asarray
    is_recorded: bool = True


def check(tries: Sequence[Try], bits: Any) -> None:
    """Hold the card to the host, and recorded functions' runs to the eager calls."""
    # All of them before any is looked at: their kernels are compiled together.
    given = [placed("GPU:0", each.arrays, each.dtype) for each in tries]
    on_card = [on("GPU:0", *each) for each in zip((t.function for t in tries), given, strict=True)]
    recorded = {
        number: mr.function(each.function)
        for number, each in enumerate(tries)
        if each.is_recorded and each.dtype in ("float32", "bool")  # Others differ in nothing.
    }
    first = {number: on("GPU:0", each, given[number]) for number, each in recorded.items()}
    for number, (each, eager) in enumerate(zip(tries, on_card, strict=True)):
        try:
            check_values(each, eager)
            for run in range(RUNS if number in recorded else 0):
                again = on("GPU:0", recorded[number], given[number]) if run else first[number]
                assert bits(numbers(again)) == bits(numbers(eager))
        except Exception as error:
            error.add_note(f"It was found at {each.what}.")
            raise


def check_values(tried: Try, eager: Sequence[ops.Tensor]) -> None:
    """Hold what the card computed to the host."""
    assert all("GPU:0" in each.device for each in eager)
    host = on("CPU:0", tried.function, placed("CPU:0", tried.arrays, tried.dtype))
    pairs = [[tried.signed(first), *rest] for first, *rest in map(numbers, (eager, host))]
    for found, expected in zip(*pairs, strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, expected)
            continue
        tolerance = TOLERANCES[found.dtype.name]
        wide, right = found.astype("float64"), expected.astype("float64")
        scale = max(1.0, float(np.abs(right).max(initial=0.0)))
        np.testing.assert_allclose(wide, right, rtol=tolerance, atol=tolerance * scale)


# Whether all is tried of an op but what is tried in every run of the tests.
REST = pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.slow)])


def in_groups(names: Sequence[str]) -> pytest.MarkDecorator:
    """Let a test have several ops at a time, whose kernels are compiled together."""
    groups = [names[i : i + 40] for i in range(0, len(names), 40)]
    return pytest.mark.parametrize("names", groups, ids=lambda group: f"{group[0]} to {group[-1]}")


def values_of(name: str, row: Row) -> Iterator[tuple[str, Case, bool]]:
    """Yield dtypes and cases, and whether every run tries them.

    Elementwise ops have one text but for an expression and the types, and others' kernels have
    tests of their own, for more dtypes than the first; every second case of them is for all runs.
    """
    op = ops.OPS[name]
    is_for_all = name in OFTEN
    for number, dtype in enumerate(dtypes_of(name, row)):
        cases = [*small(name, row), *row.empty, *edges(name, row)]
        few = [row.small[0], cases[-1]]
        if (op.elementwise and number) or dtype == "uint8":
            cases = few
        elif number and not op.elementwise:  # The first dtype has all of them.
            cases = [case for i, case in enumerate(cases) if i % 2 == number % 2 or case in few]
        for place, case in enumerate(cases):
            usual = number == 0 or dtype == "bfloat16"
            more = not (number or op.elementwise or place % 2)
            yield dtype, case, usual and (case in few or more) and is_for_all


@REST
@in_groups(ON_CARDS)
def test_values(names: list[str], rest: bool, bits: Any) -> None:
    tries = []
    for name in names:
        op, row = ops.OPS[name], TABLE[name]
        for dtype, case, always in values_of(name, row):
            if always == rest or (op.random and dtype == "bfloat16"):
                continue

            def function(*given: ops.Tensor, op: Any = op, case: Case = case) -> list[ops.Tensor]:
                return [op(*given, **case.attrs)]

            what = f"{name} {case!r} {dict(case.attrs)} {dtype}"
            if op.random:
                found, expected = (on(each, function, [])[0] for each in ("GPU:0", "CPU:0"))
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-6, atol=1e-7)
                continue
            inputs = inputs_of(row, case, dtype)
            # A replay launches what a call does: of what is tried seldom one case is recorded.
            is_recorded = always or case is row.small[0]
            tries.append(Try(function, inputs, dtype, what, signed_by(row, case), is_recorded))
    check(tries, bits)


def signed_by(row: Row, case: Case) -> Callable[[Array], Array]:
    """Return what settles the signs of a case's results."""
    return np.asarray if row.signed is None else partial(row.signed, case)


def gradients(name: str, case: Case) -> Function:
    """Return an op's result with the gradients, and gradients of their squares, by its inputs.

    The last input is the weights of the result's elements.
    """

    def function(*given: ops.Tensor) -> list[ops.Tensor]:
        *inputs, weights = given
        floats = [each for each in inputs if each.dtype.kind == "f"]
        with GradientTape() as outer:
            outer.watch(floats)
            with GradientTape() as inner:
                inner.watch(floats)
                result = ops.OPS[name](*inputs, **case.attrs)
                settled = result if TABLE[name].signed is None else ops.square(result)
                target = ops.reduce_sum(settled * weights)
            slopes = inner.gradient(target, floats, unconnected_gradients="zero")
            squares = ops.add_n([ops.reduce_sum(ops.square(each)) for each in slopes])
        return [result, *slopes, *outer.gradient(squares, floats, unconnected_gradients="zero")]

    return function


def with_weights(name: str, case: Case, inputs: list[Array]) -> list[Array]:
    """Return inputs of an op, and weights of the elements of its result."""
    spec = ops.OPS[name].infer(
        *(ops.TensorSpec(each.shape, each.dtype) for each in inputs), **case.attrs
    )
    weights = np.random.default_rng(3).uniform(0.5, 1.5, spec.shape)
    return [*inputs, np.asarray(weights).astype(spec.dtype)]


@REST
@in_groups([name for name in ON_CARDS if TABLE[name].differentiable])
def test_gradients(names: list[str], rest: bool, bits: Any) -> None:
    tries = []
    for name in names:
        row = TABLE[name]
        # The table's first case in double precision, and a long or deep one as it is trained.
        long = [] if rest == (name in OFTEN) else [(edges(name, row)[-1], "float32")]
        for case, dtype in [(row.small[0], "float64"), *long] if rest else long:
            if np.dtype(case.attrs.get("dtype", dtype)).kind == "f":
                what = f"gradients of {name} {case!r} {dict(case.attrs)} {dtype}"
                inputs = with_weights(name, case, inputs_of(row, case, dtype))
                signed = signed_by(row, case)
                tries.append(Try(gradients(name, case), inputs, dtype, what, signed))
    check(tries, bits)
