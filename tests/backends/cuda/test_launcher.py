"""What kernels launch with: each is compiled once, and arguments go by value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.backends.cuda import compiling
from mirrored.backends.cuda.compiling import Source, source

SCALE = """
extern "C" __global__ void scale(u32 n, T *out, const T *x, float by) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { store(out[i], load(x[i]) * by); }
}
struct Two { i64 at[2]; };
extern "C" __global__ void take(Two two, i64 *out) { out[0] = two.at[0]; out[1] = two.at[1]; }
extern "C" __global__ void shared(i64 *out) {
    extern __shared__ i64 all[];
    all[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = all[31 - threadIdx.x];
}
"""
TEXT = source("tests of the launcher", SCALE, T=np.dtype(np.float32))
ONE = (1, 1, 1)


@pytest.fixture
def counted(
    emulated_cuda: Callable[..., Any], card: Any, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Return the texts that are compiled from now on."""
    made: list[str] = []
    compiler = card.backend.xp._cupy.cuda.compiler
    compile_text = compiler.compile_using_nvrtc

    def compiled(code: str, *options: Any, **more: Any) -> Any:
        made.append(code)
        return compile_text(code, *options, **more)

    monkeypatch.setattr(compiler, "compile_using_nvrtc", compiled)
    monkeypatch.setattr(compiling, "_compiled", {})
    return made


def scaled(card: Any, x: Any, by: float) -> Any:
    out = card.array(np.zeros_like(x))
    args = (np.uint32(x.size), out, card.array(x), np.float32(by))
    card.backend.run(card.backend.xp.launch, TEXT, "scale", ONE, (64, 1, 1), args)
    return card.backend.to_host(out)


def test_a_text_is_compiled_once(card: Any, counted: list[str]) -> None:
    x = np.arange(10, dtype=np.float32)
    for by in (2.0, 3.0):
        np.testing.assert_array_equal(scaled(card, x, by), x * by)
    assert counted == [TEXT.code]
    with card.backend.entered():
        assert card.backend.xp.kernel(TEXT, "take") is not card.backend.xp.kernel(TEXT, "scale")
    assert counted == [TEXT.code]


def test_what_a_call_will_need_is_made_before(card: Any, counted: list[str]) -> None:
    xp = card.backend.xp
    with card.backend.device, card.backend.stream:
        xp.prepare("launch", (TEXT, "scale", ONE, ONE, ()))
        assert counted == [TEXT.code]
        xp.prepare("copy", ())
        xp.prepare("clear", ())
        assert xp._blas is None
        xp.prepare("matmul", ())
        assert xp._blas is xp.blas


def test_structs_are_arguments(card: Any) -> None:
    out = card.array(np.zeros(2, np.int64))
    two = np.array([3, 1 << 40], np.int64)
    card.backend.run(card.backend.xp.launch, TEXT, "take", ONE, ONE, (two, out))
    two[:] = 0  # It was taken by value.
    assert card.backend.to_host(out).tolist() == [3, 1 << 40]


def test_shared_memory(card: Any) -> None:
    out = card.array(np.zeros(32, np.int64))
    launch = card.backend.xp.launch
    card.backend.run(launch, TEXT, "shared", ONE, (32, 1, 1), (out,), 32 * 8)
    assert card.backend.to_host(out).tolist() == list(range(31, -1, -1))


@cases("shape", [(3, 4), (), (0, 2)], clean=False)
def test_copies_and_clears(shape: tuple[int, ...], card: Any) -> None:
    xp, run = card.backend.xp, card.backend.run
    x = np.full(shape, 3, np.int32)
    source_array, target = card.array(x), card.array(np.full(shape, 9, np.int32))
    run(xp.copy, target, source_array)
    run(xp.clear, source_array)
    np.testing.assert_array_equal(card.backend.to_host(target), x)
    np.testing.assert_array_equal(card.backend.to_host(source_array), np.zeros_like(x))


def test_products_are_made_with_one_handle(card: Any) -> None:
    xp = card.backend.xp
    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for left, right, flags in ((a, a, (False, True)), (a, a, (True, False))):
        expected = (left.T if flags[0] else left) @ (right.T if flags[1] else right)
        out = card.array(np.zeros_like(expected))
        arrays = out, card.array(left), card.array(right)
        card.backend.run(xp.matmul, *arrays, transpose_a=flags[0], transpose_b=flags[1])
        np.testing.assert_array_equal(card.backend.to_host(out), expected)
    assert xp.blas is xp.blas


def test_a_text_that_does_not_compile(card: Any) -> None:
    wrong = Source("wrong", TEXT.code + "this is no C")
    from cupy.cuda.compiler import CompileException

    card.backend.run(card.backend.xp.launch, wrong, "scale", ONE, ONE, ())
    with pytest.raises(CompileException, match="unqualified-id"):
        card.backend.synchronize()
