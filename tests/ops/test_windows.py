"""Where windows lie: padding by name, taps in range, blocks, and the phases of a stride."""

import itertools
from typing import Any

import numpy as np
import pytest
from case_table import cases
from drawn_windows import blocks_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrored import ops
from mirrored.errors import InvalidArgumentError
from mirrored.ops.windows import (
    Axis,
    Block,
    axes_of,
    blocks,
    check_rank,
    is_covered,
    padding_of,
    phases_of,
    taps_in,
)


@st.composite
def axes(draw: Any) -> Axis:
    size, taps, stride, dilation, before, after = (
        draw(st.integers(least, most))
        for least, most in ((1, 9), (1, 4), (1, 4), (1, 4), (0, 3), (0, 3))
    )
    room = size + before + after - (taps - 1) * dilation - 1
    return Axis(size, taps, stride, dilation, before, max(0, room // stride + 1))


def reads(axis: Axis) -> list[tuple[int, int, int]]:
    """Return a tap, a window and what it reads, for all that read an element."""
    numbers = itertools.product(range(axis.taps), range(axis.windows))
    places = [(t, w, w * axis.stride + t * axis.dilation - axis.before) for t, w in numbers]
    return [each for each in places if 0 <= each[2] < axis.size]


@cases(
    "padding, size, taps, stride, dilation, expected",
    [
        ("VALID", 5, 3, 1, 1, (0, 0)),
        ("SAME", 5, 3, 1, 1, (1, 1)),
        ("SAME", 5, 2, 1, 1, (0, 1)),
        ("SAME", 6, 3, 2, 1, (0, 1)),
        ("SAME", 5, 3, 1, 2, (2, 2)),
        ("SAME", 5, 1, 3, 1, (0, 0)),
        ([[2, 0]], 5, 3, 1, 1, (2, 0)),
    ],
)
def test_padding(
    padding: Any, size: int, taps: int, stride: int, dilation: int, expected: tuple[int, int]
) -> None:
    """There is one element more behind than before."""
    found = padding_of(padding, (size,), (taps,), (stride,), (dilation,))
    assert found == (expected,)


@cases(
    "size, taps, stride, dilation, expected",
    [(5, 3, 1, 1, 3), (5, 3, 2, 1, 2), (5, 3, 2, 2, 1), (2, 3, 2, 1, 0), (1, 3, 2, 1, 0)],
)
def test_number_of_windows(size: int, taps: int, stride: int, dilation: int, expected: int) -> None:
    (axis,) = axes_of(
        "Op", (size,), (taps,), strides=(stride,), padding=((0, 0),), dilations=(dilation,)
    )
    assert axis.windows == expected


def test_windows_that_are_too_large() -> None:
    text = (
        r"Computed output size would be negative: -1 \[input_size: 3, effective_filter_size: 5, "
        r"stride: 1\] \[Op:Conv2D\]"
    )
    with pytest.raises(InvalidArgumentError, match=text):
        axes_of("Conv2D", (2,), (3,), strides=(1,), padding=((1, 0),), dilations=(2,))


def test_rank() -> None:
    spec = ops.TensorSpec((2, 3), ops.float32)
    check_rank("Op", "input", spec, 2)
    with pytest.raises(InvalidArgumentError, match=r"input must be 4-dimensional: \[2,3\] \[Op:Op"):
        check_rank("Op", "input", spec, 4)


@settings(max_examples=100)
@given(axes(), st.integers(0, 9), st.integers(0, 9))
def test_what_a_tap_reads(axis: Axis, first: int, last: int) -> None:
    expected = [each for each in reads(axis) if first <= each[1] < last]
    found = []
    for tap in range(axis.taps):
        windows, elements = axis.windows_of(tap, first, min(last, axis.windows))
        pairs = zip(
            range(windows.start, windows.stop),
            range(axis.size)[elements],
            strict=True,
        )
        found += [(tap, *pair) for pair in pairs]
    assert found == expected
    if axis.windows:
        inside = len(reads(axis)) == axis.taps * axis.windows
        assert axis.is_inside == inside


@settings(max_examples=100)
@given(axes())
def test_phases_have_all_that_contributes_to_each_element(axis: Axis) -> None:
    found = []
    for phase in phases_of(axis):
        elements, taps = range(axis.size)[phase.elements], range(axis.taps)[phase.taps]
        assert (phase.axis.windows, phase.axis.taps) == (len(elements), len(taps))
        found += [(taps[t], w, elements[e]) for t, e, w in reads(phase.axis)]
    assert sorted(found) == reads(axis)


@settings(max_examples=40)
@given(st.integers(0, 9), st.tuples(axes(), axes()), st.sampled_from([8, 64, 300, 2000]))
def test_blocks_have_each_window_once(images: int, both: tuple[Axis, Axis], size: int) -> None:
    with blocks_of(size):
        parts = blocks(images, both, 8)
    rows, columns = (axis.windows for axis in both)
    seen = np.zeros((images, rows), int)
    for block in parts:
        seen[block] += 1
        count = (block.images.stop - block.images.start) * (block.rows.stop - block.rows.start)
        # One row is the least, and all but the last block are of one size.
        assert count <= 1 or count * columns * 8 <= size
        first = parts[0].images.stop * parts[0].rows.stop
        assert count <= first
    assert (seen == 1).all()


@settings(max_examples=40)
@given(st.tuples(axes(), axes()), st.integers(0, 4))
def test_taps_of_a_block(both: tuple[Axis, Axis], first: int) -> None:
    """Only taps that read an element come."""
    rows, columns = both
    block = Block(slice(1, 3), slice(min(first, rows.windows), rows.windows))
    found = []
    for (i, j), windows, elements in taps_in(both, block):
        assert windows[0] == elements[0] == block.images
        pairs = [
            [
                (tap, *pair)
                for pair in zip(range(to.start, to.stop), range(axis.size)[source], strict=True)
            ]
            for tap, axis, to, source in zip((i, j), both, windows[1:], elements[1:], strict=True)
        ]
        found += itertools.product(*pairs)
        of_block = (block.rows.stop - block.rows.start) * columns.windows
        assert is_covered(both, block, windows) == (len(pairs[0]) * len(pairs[1]) == of_block)
    of_rows = [each for each in reads(rows) if each[1] >= first]
    assert sorted(found) == sorted(itertools.product(of_rows, reads(columns)))
