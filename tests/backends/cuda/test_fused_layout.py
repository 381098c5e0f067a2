"""How the elements of a fused kernel are shared out: vectors, rows and columns."""

from typing import Any

import numpy as np
import pytest
from case_table import cases
from emulated_cuda import EmulatorError

import mirrored as mr
from mirrored.backends.cuda.fusion import Layout, fused_source, layout
from mirrored.backends.stream_backend import FusedOp, Fusion

F32, F64, U8, BF16 = np.dtype("f4"), np.dtype("f8"), np.dtype("u1"), mr.bfloat16
LARGE = 1 << 20
ROWS = ((1 << 10, 1 << 10), (1 << 10,))


def added(
    *shapes: tuple[int, ...], dtypes: tuple[Any, ...] = (F32, F32), kept: Any = F32
) -> Fusion:
    """Return a cast of each input and a sum of all, on the shape that they broadcast to."""
    shape = np.broadcast_shapes(*shapes)
    count = len(shapes)
    steps = [FusedOp("Cast", (i,), shape, F32) for i in range(count)]
    steps.append(FusedOp("AddN", tuple(range(count, 2 * count)), shape, F32))
    steps.append(FusedOp("Cast", (2 * count,), shape, kept))
    inputs = tuple(zip(shapes, dtypes, strict=False))
    return Fusion(inputs, tuple(steps), (len(steps) - 1,))


@cases(
    ("fusion", "alignment", "expected"),
    [
        (added((LARGE,)), 16, Layout(LARGE, 4, True, 0)),
        (added((LARGE,), dtypes=(F64,)), 16, Layout(LARGE, 2, True, 0)),
        (added((LARGE,), kept=BF16), 16, Layout(LARGE, 4, True, 0)),
        (added((LARGE,), dtypes=(U8,), kept=U8), 16, Layout(LARGE, 8, True, 0)),
        (added((LARGE,)), 2, Layout(LARGE, 2, True, 0)),
        (added((LARGE,)), 1, Layout(LARGE, 4, False, 0)),
        (added((LARGE, 1), (1, 1)), 16, Layout(LARGE, 4, True, 0)),
        (added((1 << 16,)), 16, Layout(1 << 16, 2, True, 0)),  # A block for each processor.
        (added((1 << 15,)), 16, Layout(1 << 15, 1, False, 0)),
        (added(*ROWS), 16, Layout(LARGE, 4, True, 1 << 10)),
        (added((LARGE // 6, 6), (LARGE // 6, 1)), 16, Layout(LARGE // 6 * 6, 2, True, 6)),
        (added((LARGE // 5, 5), (5,)), 16, Layout(LARGE // 5 * 5, 4, False, 5)),
        (added((3, 5), (5,), (3, 1), ()), 16, Layout(15, 1, False, 5)),
        (added((32, 5, 7), (5, 1)), 16, Layout(1120, 1, False, 0)),  # Neither a row nor a column.
    ],
)
def test_layouts(fusion: Fusion, alignment: int, expected: Layout) -> None:
    assert layout(fusion, alignment) == expected


@cases(
    ("columns", "many", "threads"),
    [(2, 1, 2), (10, 1, 16), (33, 1, 64), (130, 1, 32), (1024, 4, 256), (1000, 4, 256), (4, 4, 1)],
)
def test_blocks_cover_all_rows_and_columns(columns: int, many: int, threads: int) -> None:
    size = 777 * columns
    shared_out = Layout(size, many, many > 1, columns)
    along, beside, _ = shared_out.threads
    assert (along, along * beside) == (threads, 256)
    rows, across, _ = shared_out.blocks
    assert (rows - 1) * beside < 777 <= rows * beside
    assert (across - 1) * along * many < columns <= across * along * many


def test_rows_and_columns_are_not_divided() -> None:
    for fusion in (added((3, 5), (5,), (3, 1)), added(*ROWS)):
        kernel = fused_source(fusion).code.partition("__global__")[2]
        assert "%" not in kernel
        assert "/" not in kernel


@cases(
    ("shapes", "dtypes"),
    [
        ([(515, 260), (260,)], (F32, BF16)),
        ([(515, 260), (515, 1)], (BF16, F32)),
        ([(260, 515), (515,), (260, 1), ()], (F32, F64, U8, F32)),
        ([(133_903,), (1,)], (U8, F32)),
        ([(133_904, 1), ()], (BF16, F32)),
        ([(8, 5, 3400), (8, 1, 3400)], (F32, F32)),
    ],
    clean=False,
)
@cases("offset", [0, 1], clean=False)
def test_what_vectors_compute(card: Any, shapes: Any, dtypes: Any, offset: int) -> None:
    """Also where arrays begin in the midst of what a vector loads, and where sizes are no whole."""
    fusion = added(*shapes, dtypes=dtypes, kept=BF16)
    rng = np.random.default_rng(3)
    hosts = [np.asarray(rng.integers(0, 9, shape)).astype(t) for shape, t in fusion.inputs]
    inputs = [moved(card, host, offset) for host in hosts]
    expected = sum(host.astype(np.float64) for host in hosts)
    out = moved(card, np.zeros(expected.shape, BF16), offset)
    backend = card.backend
    backend.run(backend.fused_kernel(fusion), backend.xp, (out,), tuple(inputs), None)
    np.testing.assert_array_equal(backend.to_host(out).astype(np.float64), expected)


def moved(card: Any, host: Any, offset: int) -> Any:
    """Return a copy on the card that begins some elements behind where memory does."""
    whole = card.array(np.concatenate([np.zeros(offset, host.dtype), host.reshape(-1)]))
    return whole[offset:].reshape(host.shape)


def test_the_emulated_card_finds_vectors_that_are_not_aligned(card: Any) -> None:
    fusion = added((LARGE,))
    source, backend = fused_source(fusion), card.backend
    arrays = [moved(card, np.zeros(LARGE, np.float32), 1) for _ in range(2)]
    args = (None, np.uint32(LARGE), *arrays)
    backend.run(backend.xp.launch, source, "fused", (1, 1, 1), (256, 1, 1), args)
    with pytest.raises(EmulatorError, match="not a multiple of their size"):
        backend.synchronize()
    card.emulator.failures.clear()
