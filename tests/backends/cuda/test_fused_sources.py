"""Fused kernels compile for the cards that the library is meant for: every op, every dtype."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import kernel_sources
import numpy as np
import pytest
from op_table import TABLE

import mirrored as mr
from mirrored import ops
from mirrored.backends.cuda.compiling import Source
from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.fusion import fused_source
from mirrored.backends.stream_backend import FusedOp, Fusion
from mirrored.ops.op import OPS

ONE = (1, 1, 1)
BOOL = np.dtype(np.bool_)
DTYPES = (*kernel_sources.FLOATS, np.dtype(np.int32), np.dtype(np.int64), ops.uint8, BOOL)
TESTS = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"}
TESTS |= {"IsFinite", "IsInf", "IsNan"}


def takes(name: str, dtype: np.dtype) -> bool:
    """Whether an op takes a dtype: bfloat16 wherever it takes floats."""
    known = np.dtype(np.float32) if dtype.name == "bfloat16" else dtype
    return name not in OPS or known in OPS[name].dtypes


def operands_of(name: str) -> int:
    return len(TABLE[name].small[0].shapes) if name in TABLE else 1


def fusions(*sizes: int, dtypes: Sequence[np.dtype] = DTYPES) -> Iterator[Source]:
    """Yield a fusion of all ops for each dtype and number of rows, and all casts."""
    for dtype in dtypes:
        for rows in sizes:
            shapes = ((rows, 4), (4,), (rows, 1), ())
            steps = []
            for i, name in enumerate(sorted(EXPRESSIONS)):
                if takes(name, dtype):
                    operands = (0, 1 + i % 3, 1 + (i + 1) % 3)[: operands_of(name)]
                    result = BOOL if name in TESTS else dtype
                    steps.append(FusedOp(name, operands, (rows, 4), result))
            steps += [FusedOp("Cast", (0,), (rows, 4), other) for other in DTYPES]
            inputs = tuple((shape, dtype) for shape in shapes)
            yield fused_source(Fusion(inputs, tuple(steps), tuple(range(len(steps)))))


@pytest.mark.slow
def test_a_dtype_of_each_kind_compiles(complaints: Callable[..., str]) -> None:
    """Down to a card's own code."""
    some = [dtype for dtype in DTYPES if dtype.name in ("float64", "bfloat16", "int64")]
    assert complaints(fusions(3, dtypes=some), "sm_90") == ""


@pytest.mark.slow
def test_all_compile(complaints: Callable[..., str]) -> None:
    """With few elements and with many, which are counted otherwise."""
    assert complaints(fusions(1 << 20, 1 << 30), "lto_80") == ""


@pytest.mark.slow
def test_cards_without_instructions_for_bfloat16(complaints: Callable[..., str]) -> None:
    """Those before compute capability 8.0, such as a T4."""
    assert complaints([cast_to_bfloat16()], "sm_75") == ""


def test_rounding_to_bfloat16_is_that_of_later_cards(card: Any) -> None:
    text = cast_to_bfloat16()
    older = text._replace(code=f"#define __CUDA_ARCH__ 750\n{text.code}")
    near = np.uint32([0x7FFF, 0x8000, 0x8001, 0])
    bits = np.uint32([0, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 1, 0x8000])
    x = ((bits[:, None] << 16) + near).reshape(-1).view(np.float32)
    found = []
    for source in (text, older):
        out = card.array(np.zeros(x.size, mr.bfloat16))
        args = (None, np.uint32(x.size), card.array(x), out)
        card.backend.run(card.backend.xp.launch, source, "fused", ONE, (256, 1, 1), args)
        found.append(card.backend.to_host(out))
    assert found[0].tobytes() == found[1].tobytes()
    with np.errstate(invalid="ignore"):
        expected = x.astype(mr.bfloat16)
    np.testing.assert_array_equal(found[1].astype(np.float32), expected.astype(np.float32))


def cast_to_bfloat16() -> Source:
    steps = (FusedOp("Cast", (0,), (40,), mr.bfloat16),)
    return fused_source(Fusion((((40,), np.dtype(np.float32)),), steps, (0,)))


@pytest.mark.slow
def test_vectors_are_loaded_and_stored_at_once(assembly: Callable[..., str]) -> None:
    """By one instruction each, and a card rounds to bfloat16 by one of its own."""
    shape, dtype = (1 << 10, 1 << 10), mr.bfloat16
    steps = (FusedOp("BiasAdd", (0, 1), shape, dtype),)
    text = assembly(fused_source(Fusion(((shape, dtype), (shape[1:], dtype)), steps, (0,))))
    assert text.count("ld.global.v4.u32") == 2
    assert text.count("st.global.v4.u32") == 1
    assert "cvt.rn.bf16.f32" in text
