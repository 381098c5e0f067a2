"""The C expression of every elementwise op gives what the op's NumPy kernel gives, on the host too.

All ops of a dtype are fused in one kernel, on all pairs of the values that are hard to get right.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from case_table import cases
from op_table import TABLE

import mirrored as mr
from mirrored.backends import host_compiling
from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.host_fusion import fuses, host_fusion
from mirrored.backends.stream_backend import FusedOp, Fusion
from mirrored.ops.narrow_floats import widened
from mirrored.ops.op import OPS, Op
from mirrored.ops.spec import TensorSpec
from mirrored.program.dataflow import COPY

Array = np.ndarray[Any, Any]

# Those that C's library and NumPy's own loops compute to the last bit but one or two.
ROUNDED = {"Exp", "Expm1", "Log", "Log1p", "Pow", "Sigmoid", "Tanh"}
ROUNDED |= {"SigmoidCrossEntropyWithLogits", "Softplus"}
ROUNDED |= {"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cos", "Cosh"}
ROUNDED |= {"Elu", "Erf", "Erfc", "Sin", "Sinh", "Tan", "Xlog1py", "Xlogy"}
# Of zeros of both signs NumPy's loops choose now the one and now the other.
ANY_ZERO = {"Maximum", "Minimum", "Relu"}
# Those whose inputs are of several dtypes have tests of their own.
BY_THEMSELVES = ("BiasAdd", "BroadcastTo", "Cast", "SelectV2")
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 88.0, -104.0, 1e-3, -1e-5, 1e30, -1e30]
FLOATS += [np.inf, -np.inf, np.nan, 1.00390625, 1.01171875]
INTEGERS = [0, 1, -1, 2, -2, 3, 7, -7, 31, 1 << 16]
NAMES = ["float32", "float64", "bfloat16", "int32", "int64", "uint8", "bool"]


def dtype_of(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
        return mr.bfloat16
    return np.dtype(name)


def hard_values(dtype: np.dtype[Any]) -> Array:
    """Return values among which are those that a dtype overflows, rounds or loses the sign of."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "u":
        return np.array([0, 1, 2, 3, 7, 100, 127, 128, 129, 200, 254, 255], dtype)
    if dtype.kind == "i":
        ends = np.iinfo(dtype)
        return np.array([*INTEGERS, ends.max, ends.min, ends.max - 1], dtype)
    ends = mr.bfloat16 if dtype.kind != "f" else dtype
    tiny = [2.0**-126, 2.0**-130] if ends.itemsize < 8 else [2.0**-1022, 2.0**-1070]
    large = [3.3e38, 1.5e38] if ends.itemsize < 8 else [1.7e308, 0.9e308]
    return np.array([*FLOATS, *tiny, *large]).astype(dtype)


def pairs(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    values = hard_values(dtype)
    x, y = np.meshgrid(values, values)
    return np.ascontiguousarray(x.reshape(-1)), np.ascontiguousarray(y.reshape(-1))


def on_the_host(op: Op, *arrays: Array, **attrs: Any) -> Array:
    """Return what an op's own kernel computes, in bfloat16 through float32."""
    specs = [TensorSpec(each.shape, each.dtype) for each in arrays]
    if any(spec.dtype.name == "bfloat16" for spec in specs):
        op = widened(op)
    out = op.infer(*specs, **attrs)
    result = np.empty(out.shape, out.dtype)
    if op.workspace is not None:
        scratch = op.workspace(*specs, **attrs)
        attrs["workspace"] = tuple(np.empty(each.shape, each.dtype) for each in scratch)
    with np.errstate(all="ignore"):
        assert op.kernel is not None
        op.kernel(np, result, *arrays, **attrs)
    return result


def computed(card: Any, fusion: Fusion, *arrays: Array) -> list[Array]:
    """Return the results of fused ops on the card, or with None of a loop of the host."""
    if card is None:
        return computed_by_a_loop(fusion, arrays)
    inputs = tuple(card.array(each) for each in arrays)
    outputs = tuple(
        card.array(np.zeros(fusion.ops[number].shape, fusion.ops[number].dtype))
        for number in fusion.outputs
    )
    backend = card.backend
    backend.run(backend.fused_kernel(fusion), backend.xp, outputs, inputs, None)
    return [backend.to_host(each) for each in outputs]


def computed_by_a_loop(fusion: Fusion, arrays: Sequence[Array]) -> list[Array]:
    loop = host_fusion(fusion)
    assert loop is not None
    specs = [fusion.ops[number][2:] for number in fusion.outputs]
    outputs = [np.empty(shape, dtype) for shape, dtype in specs]
    kernel = host_compiling.kernel_of(loop.text)
    host_compiling.compile_in_background()
    host_compiling._state.threads[0].join(60.0)
    kernel.function(loop.arguments(arrays, outputs))
    return outputs


def assert_same(name: str, found: Array, expected: Array, bits: Any) -> None:
    """Hold a result to the bits of the host, or, where that is not defined, to its values."""
    assert found.dtype == expected.dtype, name
    if name in ROUNDED:
        wide = [each.astype(np.float64) for each in (found, expected)]
        step = {2: 2.0**-8, 4: 2.0**-21, 8: 2.0**-50}[expected.dtype.itemsize]
        np.testing.assert_allclose(*wide, rtol=step, atol=2.0**-126, err_msg=name)
    elif name in ANY_ZERO:
        np.testing.assert_array_equal(
            found.astype(np.float64), expected.astype(np.float64), err_msg=name
        )
    else:
        # NaN of bfloat16 has several forms too.
        wide = [
            x.astype(np.float32) if x.dtype.name == "bfloat16" else x for x in (found, expected)
        ]
        assert bits([wide[0]]) == bits([wide[1]]), name


def ops_of(dtype: np.dtype[Any]) -> Iterator[tuple[str, int]]:
    """Yield the ops that take a dtype, each with its number of inputs."""
    for name in EXPRESSIONS:
        op = COPY if name == COPY.name else OPS[name]
        if dtype in op.dtypes and name not in BY_THEMSELVES:
            yield name, 1 if op is COPY else len(TABLE[name].small[0].shapes)


def with_exponents(y: Array) -> Array:
    """Return exponents that integers may have."""
    return np.where(y < 0, 5, y) if y.dtype.kind == "i" else y


@cases("name", NAMES, clean=False)
def test_every_op_on_hard_values(name: str, card: Any, bits: Any) -> None:
    assert every_op(name, card, bits) >= {"bool": 5, "uint8": 15}.get(name, 18)


@cases("name", ["float32", "float64", "bool"], clean=False)
def test_every_op_of_the_host(name: str, compiled: Any, bits: Any) -> None:
    assert every_op(name, None, bits) >= {"bool": 5}.get(name, 31)


def every_op(name: str, card: Any, bits: Any) -> int:
    """Compare all ops of a dtype; return how many there are."""
    dtype = dtype_of(name)
    x, y = pairs(dtype)
    arrays = [x, y, np.roll(x, 3), with_exponents(y)]
    steps = []
    for op_name, count in ops_of(dtype):
        places = [0, 3] if op_name == "Pow" else [0, 1, 2][:count]
        op = COPY if op_name == COPY.name else OPS[op_name]
        spec = op.infer(*[TensorSpec(x.shape, dtype)] * count)
        if card is None and not fuses(op_name, (dtype, spec.dtype)):
            continue
        steps.append((op, places, FusedOp(op_name, tuple(places), *spec)))
    fusion = Fusion(
        tuple((each.shape, each.dtype) for each in arrays),
        tuple(step for _, _, step in steps),
        tuple(range(len(steps))),
    )
    for found, (op, places, step) in zip(computed(card, fusion, *arrays), steps, strict=True):
        expected = on_the_host(op, *[arrays[place] for place in places])
        if card is None:
            assert bits([found]) == bits([expected]), step.name
        assert_same(step.name, found, expected, bits)
    return len(steps)


def test_every_cast(card: Any, bits: Any) -> None:
    """Of what the other dtype has room for; what it has not is undefined in C and NumPy alike."""
    dtypes = [dtype_of(name) for name in NAMES]
    size = 64
    sources, steps, whole = [], [], []
    for source in dtypes:
        values = np.resize(hard_values(source), size)
        few = values.astype(np.float64)
        fits = np.isfinite(few) & (abs(few) < 2.0**31)
        whole.append(np.where(fits, values, values.dtype.type(1)).astype(source))
        sources.append(values)
    for (i, source), target in product(enumerate(dtypes), dtypes):
        cut = target.kind in "iu" and source.kind not in "iub"
        steps.append((i + len(dtypes) * cut, target))
    arrays = [*sources, *whole]
    fusion = Fusion(
        tuple((each.shape, each.dtype) for each in arrays),
        tuple(FusedOp("Cast", (i,), (size,), target) for i, target in steps),
        tuple(range(len(steps))),
    )
    for found, (i, target) in zip(computed(card, fusion, *arrays), steps, strict=True):
        expected = np.empty(size, target)
        with np.errstate(all="ignore"):
            np.copyto(expected, arrays[i], casting="unsafe")
        assert_same(f"{arrays[i].dtype} to {target}", found, expected, bits)


def test_every_nan_stays_one(card: Any) -> None:
    """Also one whose payload is in the bits that bfloat16 has not."""
    payloads = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFC00000], np.uint32)
    x, target = payloads.view(np.float32), dtype_of("bfloat16")
    fusion = Fusion(((x.shape, x.dtype),), (FusedOp("Cast", (0,), x.shape, target),), (0,))
    (found,) = computed(card, fusion, x)
    assert np.isnan(found.astype(np.float32)).all()


BROADCASTS = [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (4, 1, 3)), ((), (2, 2)), ((2, 3), ())]
BROADCASTS += [((1, 1), (2, 3)), ((4, 1, 3), (4, 5, 1)), ((7, 1), (1, 7))]


@cases(("first", "second"), BROADCASTS, clean=False)
def test_broadcasting_both_ways(
    first: tuple[int, ...], second: tuple[int, ...], card: Any, bits: Any
) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in (first, second)]
    shape, dtype = np.broadcast_shapes(first, second), arrays[0].dtype
    fusion = Fusion(
        tuple((each.shape, dtype) for each in arrays),
        (
            FusedOp("Sub", (0, 1), shape, dtype),
            FusedOp("BroadcastTo", (1,), shape, dtype),
            FusedOp("Maximum", (2, 0), shape, dtype),
        ),
        (0, 1, 2),
    )
    x, y = arrays
    expected = [x - y, np.broadcast_to(y, shape), np.maximum(x - y, x)]
    assert bits(computed(card, fusion, *arrays)) == bits(expected)


@cases("name", NAMES, clean=False)
def test_a_choice(name: str, card: Any, bits: Any) -> None:
    x, y = pairs(dtype_of(name))
    condition = np.random.default_rng(5).random(x.shape) < 0.5
    fusion = Fusion(
        tuple((each.shape, each.dtype) for each in (condition, x, y)),
        (FusedOp("SelectV2", (0, 1, 2), x.shape, x.dtype),),
        (0,),
    )
    (found,) = computed(card, fusion, condition, x, y)
    assert_same("SelectV2", found, np.where(condition, x, y), bits)


@cases("name", ["float32", "bfloat16", "int64"], clean=False)
def test_a_bias_of_each_channel(name: str, card: Any, bits: Any) -> None:
    dtype = dtype_of(name)
    rng = np.random.default_rng(4)
    x, bias = ((rng.normal(size=each) * 9).astype(dtype) for each in ((5, 2, 3), (3,)))
    fusion = Fusion(
        ((x.shape, dtype), (bias.shape, dtype)), (FusedOp("BiasAdd", (0, 1), x.shape, dtype),), (0,)
    )
    (found,) = computed(card, fusion, x, bias)
    assert_same("BiasAdd", found, on_the_host(OPS["BiasAdd"], x, bias), bits)


@pytest.mark.parametrize("name", ["int32", "int64"])
def test_integers_to_powers(name: str, card: Any) -> None:
    """With a negative exponent too: the card cannot refuse it, and gives the integer part."""
    base, exponent = (
        np.array(each, name)
        for each in zip(*product([1, -1, 0, 2, -3], [-3, -2, 0, 5]), strict=True)
    )
    fusion = Fusion(
        ((base.shape, base.dtype),) * 2, (FusedOp("Pow", (0, 1), base.shape, base.dtype),), (0,)
    )
    (found,) = computed(card, fusion, base, exponent)
    expected = [
        int(b**e) if e >= 0 or abs(b) == 1 else 0
        for b, e in zip(base.tolist(), exponent.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(found, expected)


def test_an_op_of_its_own_is_a_fusion_of_one(card: Any) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    kernel = card.backend.kernels["Square"]
    np.testing.assert_array_equal(card.run(kernel, (x.shape, x.dtype), x), x * x)
    empty = x[:0]
    assert card.run(kernel, (empty.shape, x.dtype), empty).shape == (0, 3)
