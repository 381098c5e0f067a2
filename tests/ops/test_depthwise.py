"""Depthwise convolutions of any sizes beside einsum."""

from typing import Any

import numpy as np
import pytest
from case_table import cases
from drawn_windows import BLOCK_BYTES, arrays, blocks_of, geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from op_windows import Geometry, depthwise, depthwise_of_filters, depthwise_of_images

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError
from mirrored.ops.depthwise import DEPTHWISE


@settings(max_examples=20)
@given(geometries(2, st.integers(1, 3)), st.integers(1, 3), BLOCK_BYTES)
def test_any_windows_in_blocks_of_any_size(drawn: Geometry, number: int, block: int) -> None:
    attrs, filters = drawn.attrs, (*drawn.w, drawn.x[-1], number)
    x, w, g = arrays(drawn.x, filters, drawn.windows(drawn.w, drawn.x[-1] * number))

    def all_three(x: Any, w: Any, g: Any) -> list[Any]:
        with GradientTape() as tape:
            tape.watch([x, w])
            y = DEPTHWISE.forward(x, w, **attrs)
        return [y, *tape.gradient(y, [x, w], g)]

    with blocks_of(block):
        given = [ops.constant(each) for each in (x, w, g)]
        found, recorded = all_three(*given), mr.function(all_three)(*given)
    expected = [
        depthwise(x, w, **attrs),
        depthwise_of_images(w, g, sizes=drawn.x[1:], **attrs),
        depthwise_of_filters(x, g, filters, **attrs),
    ]
    for one, again, other in zip(found, recorded, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(again.numpy(), one.numpy())


@cases(
    "x, w, text",
    [
        ((4, 4), (2, 2, 4, 1), "input must be 4-dimensional: [4,4]"),
        ((1, 4, 4, 4), (2, 4, 1), "filter must be 4-dimensional: [2,4,1]"),
        ((1, 4, 4, 4), (2, 2, 3, 1), "input and filter must have the same depth: 4 vs 3"),
        ((1, 4, 4, 4), (2, 0, 4, 1), "at least one row and one column"),
        ((1, 4, 4, 4), (6, 2, 4, 1), "Computed output size would be negative: -1 [input_size: 4"),
    ],
)
def test_what_does_not_fit(x: Any, w: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        DEPTHWISE.forward(
            ops.zeros(x),
            ops.zeros(w),
            strides=(1, 1),
            padding=((0, 0), (0, 0)),
            dilations=(1, 1),
        )
    assert text in str(caught.value)
    assert "[Op:DepthwiseConv2dNative]" in str(caught.value)
