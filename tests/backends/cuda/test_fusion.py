"""Kernels of chains: their index arithmetic, their texts, and what they compute."""

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.fusion import chain_source, index_terms
from mirrored.backends.streams import Chain, Step
from mirrored.ops.registry import OPS

F32 = np.dtype(np.float32)


@st.composite
def broadcasts(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a shape, and one that broadcasts to it."""
    result = draw(st.lists(st.integers(1, 4), max_size=5))
    own = [size if draw(st.booleans()) else 1 for size in result]
    return tuple(own[draw(st.integers(0, len(own))) :]), tuple(result)


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


def chain_of(*shapes: tuple[int, ...], op: str = "AddV2") -> Chain:
    result = np.broadcast_shapes(*shapes)
    inputs = tuple((shape, F32) for shape in shapes)
    return Chain(inputs, (Step(op, tuple(range(len(shapes))), result, F32),), (0,))


def test_one_text_serves_every_batch_size() -> None:
    texts = {chain_source(chain_of((rows, 10), (10,))).code for rows in (3, 256, 257)}
    assert len(texts) == 1


def test_sizes_past_31_bits_have_indices_of_64() -> None:
    small, large = ((1 << 16, 1 << 14), (1 << 16, 1 << 16))
    assert "typedef u32 index" in chain_source(chain_of(small, small)).code
    assert "typedef i64 index" in chain_source(chain_of(large, large)).code


def test_what_is_used_again_is_loaded_once() -> None:
    steps = (Step("Mul", (0, 0), (8,), F32), Step("AddV2", (1, 0), (8,), F32))
    text = chain_source(Chain((((8,), F32),), steps, (1,))).code
    assert text.count("load(x0[") == 1
    assert "y1" not in text  # What nobody needs is not stored.


def test_every_elementwise_op_has_an_expression() -> None:
    assert {name for name, op in OPS.items() if op.elementwise} <= set(EXPRESSIONS)
