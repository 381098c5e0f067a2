"""Convolutions of any sizes beside einsum; `test_every_op` has what holds for every op."""

from typing import Any

import numpy as np
import pytest
from case_table import cases
from drawn_windows import BLOCK_BYTES, arrays, blocks_of, geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from op_windows import Geometry, convolved, gradient_of_filters, gradient_of_images

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError
from mirrored.ops.convolutions import CONV_2D, CONV_3D
from mirrored.ops.op import Op

# With 8 channels and more patches are gathered another way.
CHANNELS, OUTPUTS = st.sampled_from([1, 2, 9]), st.sampled_from([1, 2, 5])
OF_RANK = {2: CONV_2D, 3: CONV_3D}


@settings(max_examples=30)
@given(st.integers(2, 3).flatmap(lambda r: geometries(r, CHANNELS, OUTPUTS)), BLOCK_BYTES)
def test_any_windows_in_blocks_of_any_size(drawn: Geometry, block: int) -> None:
    attrs = drawn.attrs
    x, w, g = arrays(drawn.x, drawn.w, drawn.windows(drawn.w[:-2], drawn.w[-1]))
    convolution = OF_RANK[len(drawn.strides)]

    def all_three(x: Any, w: Any, g: Any) -> list[Any]:
        with GradientTape() as tape:
            tape.watch([x, w])
            y = convolution.forward(x, w, **attrs)
        return [y, *tape.gradient(y, [x, w], g)]

    with blocks_of(block):
        given = [ops.constant(each) for each in (x, w, g)]
        found, recorded = all_three(*given), mr.function(all_three)(*given)
    expected = [
        convolved(x, w, **attrs),
        gradient_of_images(w, g, drawn.x[1:], **attrs),
        gradient_of_filters(x, g, drawn.w, **attrs),
    ]
    for one, again, other in zip(found, recorded, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(again.numpy(), one.numpy())


ATTRS = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilations": (1, 1)}
ATTRS_3D = {name: 3 * value[:1] for name, value in ATTRS.items()}
IMAGES, FILTERS = (1, 4, 4, 4), (2, 2, 2, 2)


@cases(
    "op, shapes, more, text",
    [
        (CONV_2D.forward, ((4, 4), FILTERS), {}, "convolution input must be 4-dimensional: [4,4]"),
        (CONV_2D.forward, (IMAGES, (4,)), {}, "convolution filter must be 4-dimensional: [4]"),
        (
            CONV_2D.forward,
            (IMAGES, (2, 2, 3, 4)),
            {},
            "input depth must be evenly divisible by filter depth: 4 vs 3",
        ),
        (
            CONV_3D.forward,
            ((1, 4, 4, 4, 0), (2, 2, 2, 3, 4)),
            ATTRS_3D,
            "input depth must be evenly divisible by filter depth: 0 vs 3",
        ),
        (
            CONV_2D.forward,
            (IMAGES, (2, 2, 2, 3)),
            {},
            "output depth must be evenly divisible by number of groups: 3 vs 2",
        ),
        (
            CONV_2D.forward,
            (IMAGES, (0, 2, 2, 2)),
            {},
            "filter must not have zero elements (i.e. all dimensions must be non-zero)",
        ),
        (
            CONV_2D.forward,
            (IMAGES, (3, 6, 4, 1)),
            {},
            "Computed output size would be negative: -1 [input_size: 4, effective_filter_size: 6, "
            "stride: 1]",
        ),
        (
            CONV_2D.to_images,
            (FILTERS, (1, 4, 3, 2)),
            {"sizes": (4, 4, 2)},
            "Size of out_backprop doesn't match computed: actual = [1,4,3,2], computed = [1,3,3,2]",
        ),
        (
            CONV_2D.to_filters,
            (IMAGES, (1, 3, 3, 3)),
            {"sizes": FILTERS},
            "Size of out_backprop doesn't match computed: actual = [1,3,3,3], computed = [1,3,3,2]",
        ),
    ],
)
def test_what_does_not_fit(op: Op, shapes: Any, more: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        op(*map(ops.zeros, shapes), **{**ATTRS, **more})
    assert text in str(caught.value)
    assert str(caught.value).endswith(f"[Op:{op.name}]")


def test_flops() -> None:
    """Products and sums count, as for a matrix product."""
    x, w, y = (ops.TensorSpec(shape, np.dtype("f4")) for shape in (IMAGES, FILTERS, (1, 3, 3, 2)))
    for op, specs in (
        (CONV_2D.forward, (y, x, w)),
        (CONV_2D.to_images, (x, w, y)),
        (CONV_2D.to_filters, (w, x, y)),
    ):
        assert op.flops is not None
        assert op.flops(*specs, **ATTRS) == 2 * (3 * 3 * 2) * (2 * 2 * 2)
