"""Fused kernels: their index arithmetic, their texts, and what they compute."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.fusion import fused_source, index_terms
from mirrored.backends.stream_backend import FusedOp, Fusion
from mirrored.ops.op import OPS

F32 = np.dtype(np.float32)


@st.composite
def broadcasts(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a shape, and one that broadcasts to it."""
    result = draw(st.lists(st.integers(1, 4), max_size=5))
    own = [size if draw(st.booleans()) else 1 for size in result]
    return tuple(own[draw(st.integers(0, len(own))) :]), tuple(result)


@settings(max_examples=30)
@given(broadcasts())
def test_the_terms_of_an_index_are_numpys_broadcast(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    own, result = shapes
    own = own if len(own) == 0 or np.broadcast_shapes(own, result) == result else ()
    places = np.arange(math.prod(own)).reshape(own)
    expected = np.broadcast_to(places, result).reshape(-1)
    i = np.arange(math.prod(result))
    found = sum(
        (i // term.divisor % term.modulus * term.stride for term in index_terms(own, result)),
        start=np.zeros_like(i),
    )
    np.testing.assert_array_equal(found, expected)


def test_adjacent_axes_are_one_term() -> None:
    assert len(index_terms((2, 3, 4), (2, 3, 4))) == 1
    assert len(index_terms((2, 3, 1), (2, 3, 4))) == 1
    assert len(index_terms((2, 1, 4), (2, 3, 4))) == 2
    assert index_terms((1, 1), (2, 3)) == ()


def fusion_of(*shapes: tuple[int, ...], op: str = "AddV2") -> Fusion:
    result = np.broadcast_shapes(*shapes)
    inputs = tuple((shape, F32) for shape in shapes)
    return Fusion(inputs, (FusedOp(op, tuple(range(len(shapes))), result, F32),), (0,))


def test_one_text_serves_every_batch_size() -> None:
    texts = {fused_source(fusion_of((rows, 10), (10,))).code for rows in (3, 256, 257)}
    assert len(texts) == 1


def test_sizes_past_31_bits_have_indices_of_64() -> None:
    small, large = ((1 << 16, 1 << 14), (1 << 16, 1 << 16))
    assert "typedef u32 index" in fused_source(fusion_of(small, small)).code
    assert "typedef i64 index" in fused_source(fusion_of(large, large)).code


def test_what_is_used_again_is_loaded_once() -> None:
    steps = (FusedOp("Mul", (0, 0), (8,), F32), FusedOp("AddV2", (1, 0), (8,), F32))
    text = fused_source(Fusion((((8,), F32),), steps, (1,))).code
    assert text.count("load(x0[") == 1
    assert "y1" not in text  # What nobody needs is not stored.


def test_every_elementwise_op_has_an_expression() -> None:
    assert {name for name, op in OPS.items() if op.elementwise} <= set(EXPRESSIONS)


# ------------------------------------------------------------------------------ on a card

Array = np.ndarray[Any, Any]
SHAPES = ((2, 3, 4), (6, 4), (24,), (1, 24))  # Of as many elements.
SMALLER = ((4,), (3, 1), (1,), ())
# From arrays of the dtype that is computed with. They are exact, or rounded as C rounds them.
FUSED_OPS: dict[str, tuple[int, Callable[..., Array]]] = {
    "AddV2": (2, np.add),
    "Sub": (2, np.subtract),
    "Mul": (2, np.multiply),
    "Maximum": (2, np.maximum),
    "AddN": (3, lambda x, y, z: x + y + z),
    "Square": (1, np.square),
    "Neg": (1, np.negative),
    "Abs": (1, np.abs),
    "Less": (2, np.less),
    "Cast": (1, lambda x: x),
    "BroadcastTo": (1, lambda x: x),
}


def run_fused(
    card: Any, fusion: Fusion, inputs: Any, outputs: Any, flag: int | None = None
) -> None:
    backend = card.backend
    go = None if flag is None else card.array(np.array([flag], np.int32))
    backend.run(backend.fused_kernel(fusion), backend.xp, tuple(outputs), tuple(inputs), go)


@st.composite
def fusions(draw: Any, dtypes: tuple[Any, ...]) -> Fusion:
    """Return fused ops whose inputs broadcast or do not, and which read each other."""
    kinds = st.sampled_from(dtypes)
    inputs = [((), dtype) for dtype in dtypes]
    more = st.tuples(st.sampled_from(SHAPES + SMALLER), kinds)
    inputs += draw(st.lists(more, min_size=2, max_size=5))
    steps: list[FusedOp] = []
    for _ in range(draw(st.integers(1, 7))):
        shape = draw(st.sampled_from(SHAPES))
        readable = [i for i, (own, _) in enumerate(inputs) if broadcasts_to(own, shape)]
        readable += [len(inputs) + i for i in range(len(steps))]
        first = draw(st.sampled_from(readable))
        dtype = dtype_of(first, inputs, steps)
        names = ["Cast", "BroadcastTo"] if dtype.kind == "b" else list(FUSED_OPS)
        name = draw(st.sampled_from(names))
        alike = st.sampled_from([i for i in readable if dtype_of(i, inputs, steps) == dtype])
        others = [draw(alike) for _ in range(FUSED_OPS[name][0] - 1)]
        made = {"Less": np.dtype(np.bool_)}.get(name, dtype)
        steps.append(
            FusedOp(name, (first, *others), shape, draw(kinds) if name == "Cast" else made)
        )
    kept = draw(st.sets(st.integers(0, len(steps) - 1)))
    return Fusion(tuple(inputs), tuple(steps), tuple(sorted(kept | {len(steps) - 1})))


def broadcasts_to(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False


def dtype_of(number: int, inputs: Any, steps: Any) -> np.dtype[Any]:
    return (*(dtype for _, dtype in inputs), *(step.dtype for step in steps))[number]


def step_by_step(fusion: Fusion, arrays: list[Array]) -> list[Array]:
    """Return the results of all steps; bfloat16 is computed in float32 and rounded once a step."""
    values = list(arrays)
    for step in fusion.ops:
        operands = []
        for number in step.inputs:
            value = values[number]
            if number >= len(arrays):
                value = value.reshape(step.shape)
            wide = np.float32 if value.dtype.name == "bfloat16" else value.dtype
            operands.append(value.astype(wide))
        with np.errstate(all="ignore"):
            result = FUSED_OPS[step.name][1](*operands)
            values.append(np.broadcast_to(result, step.shape).astype(step.dtype))
    return values[len(arrays) :]


def over_inputs(fusion: Fusion) -> dict[int, int]:
    """Return, for some of the results, an input of as many elements that they may overwrite."""
    over: dict[int, int] = {}
    for number in fusion.outputs:
        step = fusion.ops[number]
        for i, (shape, dtype) in enumerate(fusion.inputs):
            if i not in over.values() and (math.prod(shape), dtype) == (24, step.dtype):
                over[number] = i
                break
    return over


@settings(
    max_examples=5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_fusions(data: Any, card: Any, bits: Any) -> None:
    """Several results, some over inputs, and a flag that says whether they are written."""
    pytest.importorskip("ml_dtypes")
    # Several before any is looked at: their kernels are compiled together.
    asked = [launched_fusion(data, card) for _ in range(10)]
    for outputs, expected in filter(None, asked):
        found = [card.backend.to_host(each) for each in outputs]
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            assert bits([one.astype(np.float64)]) == bits([other.astype(np.float64)])


def launched_fusion(data: Any, card: Any) -> tuple[list[Any], list[Array]] | None:
    """Launch a random fusion; return its results and what they have to be.

    None: what integers have no room for is not defined as one.
    """
    dtypes = (np.dtype(np.float32), np.dtype(np.int32), mr.bfloat16, np.dtype(np.float64))
    fusion = data.draw(fusions(dtypes))
    flag = data.draw(st.sampled_from([None, 0, 1]))
    over = over_inputs(fusion) if data.draw(st.booleans()) else {}
    rng = np.random.default_rng(len(fusion.ops))
    arrays = [np.asarray(rng.normal(scale=2, size=shape)).astype(d) for shape, d in fusion.inputs]
    made = step_by_step(fusion, arrays)
    if not all(abs(each.astype(np.float64)).max() < 2.0**31 for each in made):
        return None
    inputs = [card.array(each) for each in arrays]
    outputs, before = [], []
    for number in fusion.outputs:
        step = fusion.ops[number]
        if number in over:
            outputs.append(inputs[over[number]].reshape(step.shape))
            before.append(arrays[over[number]].reshape(step.shape))
        else:
            before.append(np.full(step.shape, 7).astype(step.dtype))
            outputs.append(card.array(before[-1]))
    run_fused(card, fusion, inputs, outputs, flag)
    return outputs, before if flag == 0 else [made[number] for number in fusion.outputs]


def test_bfloat16_is_rounded_at_each_step(card: Any, bits: Any) -> None:
    """Eagerly each result goes through memory, where there is no room for more."""
    pytest.importorskip("ml_dtypes")
    rng, dtype = np.random.default_rng(5), mr.bfloat16
    names = (("Mul", (0, 1)), ("AddV2", (2, 0)), ("Square", (3,)), ("Sub", (4, 1)))
    steps = tuple(FusedOp(name, inputs, (500,), dtype) for name, inputs in names)
    fusion = Fusion((((500,), dtype),) * 2, steps, (3,))
    arrays = [rng.normal(size=500).astype(dtype) for _ in range(2)]
    output = card.array(np.zeros(500, dtype))
    run_fused(card, fusion, [card.array(each) for each in arrays], [output])
    expected = step_by_step(fusion, arrays)[-1]
    found = card.backend.to_host(output)
    assert bits([found.astype(np.float32)]) == bits([expected.astype(np.float32)])


@pytest.mark.parametrize("size", [(1 << 19) - 3, (1 << 19) + 5], ids=["one", "several"])
def test_elements_a_thread(size: int, card: Any) -> None:
    """Of many elements a thread computes several, the last thread fewer."""
    rng = np.random.default_rng(1)
    x, row = rng.normal(size=size).astype(np.float32), np.array(2.5, np.float32)
    steps = (FusedOp("Mul", (0, 1), (size,), F32), FusedOp("AddV2", (2, 0), (size,), F32))
    fusion = Fusion(((x.shape, F32), ((), F32)), steps, (0, 1))
    array = card.array(x)
    outputs = [card.array(np.zeros_like(x)), array]
    run_fused(card, fusion, [array, card.array(row)], outputs)
    np.testing.assert_array_equal(card.backend.to_host(outputs[0]), x * row)
    np.testing.assert_array_equal(card.backend.to_host(array), x * row + x)


def test_a_fusion_of_nothing_launches_nothing(card: Any) -> None:
    fusion = fusion_of((0, 3), (3,))
    arrays = [card.array(np.zeros(shape, np.float32)) for shape in ((0, 3), (3,))]
    card.backend.xp.launch = None  # Nothing may call it.
    run_fused(card, fusion, arrays, [arrays[0]])
