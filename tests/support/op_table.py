"""The table of every op: what it computes, on which shapes it is tried, and what it may be given.

The tests of the ops hold the host to it, and those that need a GPU hold the GPU to the host.
"""

import math

import numpy as np
import tensorflow_random
from op_matrices import MATRIX_ROWS
from op_references import (
    bound,
    drawn,
    entropy,
    entropy_grad,
    flat_indices,
    gamma_slope,
    gathered,
    in_order,
    log_softmax,
    max_of,
    mean_of,
    min_of,
    one_hot,
    products,
    random,
    rates,
    replaced,
    rows_of,
    scanned,
    scattered,
    segments,
    sigmoid,
    sliced,
    stateless,
    unsliced,
)
from op_row import (
    ALL,
    BOOLS,
    FLOATS,
    NORMAL,
    NUMBERS,
    ONE_EMPTY,
    ONE_LARGE,
    ONE_SMALL,
    SIGNED,
    Case,
    M,
    Row,
    alike,
    along_an_axis,
    cases,
    compare,
    one,
    place,
    reduction,
    two,
    view,
)
from op_windows import WINDOW_ROWS

from mirrored import ops

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
    "Digamma": one(lambda x: gamma_slope(x), "positive"),
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
    "Lgamma": one(np.vectorize(math.lgamma, otypes="d"), "positive"),
    "NextAfter": two(lambda x, y: x + 0.0 * y, dtypes=FLOATS),
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
TABLE |= MATRIX_ROWS | WINDOW_ROWS
TABLE["WriteSummary"] = TABLE["PrintV2"]
# What training steps are made of, and one op of each other kind: every run of the tests tries them
# on everything. Of the others it tries values and gradients; the rest is slow.
OFTEN = {"AddN", "AddV2", "ArgMax", "AssignAddVariableOp", "BatchMatMulV2", "BiasAdd"}
OFTEN |= {"BiasAddGrad", "BroadcastTo", "Cast", "ConcatV2", "Cumsum", "Equal", "Exp", "ExpandDims"}
OFTEN |= {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "MaxPool", "MaxPoolGrad"}
OFTEN |= {"Fill", "FloorDiv", "GatherV2", "Identity", "Less", "Log", "LogSoftmax", "LogicalAnd"}
OFTEN |= {"MatMul", "Max", "Maximum", "Mean", "Mul", "Neg", "Pack", "Pow", "RandomStandardNormal"}
OFTEN |= {"RandomUniform", "RealDiv", "Relu", "ReluGrad", "Reshape", "SelectV2", "Sigmoid"}
OFTEN |= {"SigmoidCrossEntropyWithLogits", "SigmoidGrad", "Softmax", "SoftmaxCrossEntropyGrad"}
OFTEN |= {"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyGrad"}
OFTEN |= {"SparseSoftmaxCrossEntropyWithLogits", "Square", "Squeeze", "StopGradient"}
OFTEN |= {"StridedSlice", "StridedSliceGrad", "Sum", "Tanh", "TanhGrad", "TopKV2", "Transpose"}
OFTEN |= {"UnsortedSegmentSum", "ZerosLike"}
