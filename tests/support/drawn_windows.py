"""Windows of any sizes for property tests, and blocks so small that images are cut into many."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from op_windows import Geometry

from mirrored.ops import convolutions, windows

Array = np.ndarray[Any, Any]
BLOCK_BYTES = st.sampled_from([64, 500, 3000, 1 << 20])


@st.composite
def geometries(draw: Any, rank: int, channels: Any, filters: Any = None) -> Geometry:
    """Draw images and windows.

    Args:
        draw: What hypothesis draws with.
        rank: The number of spatial axes.
        channels: What the channels of a group are drawn from.
        filters: What the outputs of a group are drawn from; None: there are no filters.
    """

    def along(numbers: Any) -> Any:
        return tuple(draw(st.tuples(*[numbers] * rank)))

    sizes, taps = along(st.integers(1, 7)), along(st.integers(1, 4))
    strides = along(st.integers(1, 3))
    dilations = draw(st.sampled_from([(1,) * rank, along(st.integers(1, 3))]))
    explicit = along(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    padding = windows.padding_of(
        draw(st.sampled_from(["SAME", "VALID", explicit])), sizes, taps, strides, dilations
    )
    for size, pair, count, dilation in zip(sizes, padding, taps, dilations, strict=True):
        assume(size + sum(pair) > (count - 1) * dilation)
    depth, groups = draw(channels), 1 if filters is None else draw(st.sampled_from([1, 1, 2, 3]))
    ends = () if filters is None else (depth, groups * draw(filters))
    x = (draw(st.integers(1, 4)), *sizes, groups * depth)
    return Geometry(x, (*taps, *ends), strides, padding, dilations)


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Within this context a block takes so many bytes."""
    caches = (windows.blocks, convolutions._gathering)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "BLOCK_BYTES", size)
        for cache in caches:
            cache.cache_clear()
        try:
            yield
        finally:
            for cache in caches:
                cache.cache_clear()


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    """Return arrays of random numbers, the same for the same shapes."""
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape) for shape in shapes]
