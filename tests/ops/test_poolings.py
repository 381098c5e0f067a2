"""Pooling with windows of any sizes, NaN and infinities; and what does not fit."""

from typing import Any

import numpy as np
import pytest
from case_table import cases
from drawn_windows import BLOCK_BYTES, arrays, blocks_of, geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from op_windows import (
    Geometry,
    first_largest,
    gradient_of_largest,
    gradient_of_mean,
    largest,
    mean,
)

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Op

MAX, MEAN, MEAN_3D = (ops.OPS[name] for name in ("MaxPool", "AvgPool", "AvgPool3D"))
OF_RANK = {2: (MAX, MEAN), 3: (ops.OPS["MaxPool3D"], MEAN_3D)}
NAN, INF, LEAST = np.nan, np.inf, -np.finfo("f4").max


@settings(max_examples=30)
@given(st.integers(2, 3).flatmap(lambda r: geometries(r, st.integers(1, 4))), BLOCK_BYTES)
def test_any_windows_in_blocks_of_any_size(drawn: Geometry, block: int) -> None:
    """Of whole numbers, so that many are equal."""
    attrs, (maximum, average) = {"window": drawn.w, **drawn.attrs}, OF_RANK[len(drawn.w)]
    x, u, g = arrays(drawn.x, drawn.x, drawn.windows(drawn.w, drawn.x[-1]))
    x = np.round(x)

    def of_all(x: Any, u: Any, g: Any) -> list[Any]:
        with GradientTape() as outer:
            outer.watch(g)
            with GradientTape(persistent=True) as tape:
                tape.watch(x)
                y, z = maximum(x, **attrs), average(x, **attrs)
            back = tape.gradient(y, x, g)
        return [y, back, outer.gradient(back, g, u), z, tape.gradient(z, x, g)]

    with blocks_of(block):
        given = [ops.constant(each) for each in (x, u, g)]
        found, recorded = of_all(*given), mr.function(of_all)(*given)
    # The largest of nothing but padding is the least number.
    y = np.maximum(largest(x, **attrs), np.finfo("d").min)
    expected = [
        y,
        gradient_of_largest(x, y, g, **attrs),
        first_largest(x, y, u, **attrs),
        mean(x, **attrs),
        gradient_of_mean(g, drawn.x[1:-1], **attrs),
    ]
    for one, again, other in zip(found, recorded, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(again.numpy(), one.numpy())


def pooled(op: Op, values: Any, window: Any, strides: Any = (1, 1)) -> Any:
    """Return what an op computes of one image of one channel, without padding."""
    attrs = {"window": window, "strides": strides, "padding": ((0, 0), (0, 0))}
    x = ops.constant(values, ops.float32)
    x = ops.reshape(x, (1, *x.shape, 1))
    return op(x, **attrs, dilations=(1, 1)).numpy()[0, ..., 0].tolist()


@cases(
    "window, expected",
    [
        ((1, 1), [[LEAST, 1.0, 2.0], [LEAST, LEAST, LEAST], [INF, LEAST, LEAST]]),
        ((2, 2), [[1.0, 2.0], [INF, LEAST]]),
        ((1, 3), [[2.0], [LEAST], [INF]]),
    ],
)
def test_the_largest_passes_over_nan(window: Any, expected: Any) -> None:
    """The numbers are TensorFlow's."""
    x = [[NAN, 1.0, 2.0], [NAN, NAN, -INF], [INF, NAN, -INF]]
    assert pooled(MAX, x, window) == expected


def test_the_mean_has_nan_where_one_of_its_elements_is() -> None:
    mean = pooled(MEAN, [[NAN, 1.0, 2.0], [INF, 3.0, -2.0]], (2, 2))
    np.testing.assert_array_equal(mean, [[NAN, 1.0]])


def test_the_first_of_equal_elements_gets_the_gradient() -> None:
    x = ops.constant(np.array([[INF, 1.0, INF], [2.0, 2.0, 2.0]]).reshape(1, 2, 3, 1))
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.OPS["MaxPool"](
            x, window=(1, 2), strides=(1, 1), padding=((0, 0), (0, 0)), dilations=(1, 1)
        )
    g = np.array([[1.0, NAN], [INF, 8.0]]).reshape(1, 2, 2, 1)
    found = tape.gradient(y, x, ops.constant(g)).numpy().reshape(2, 3)
    # What is infinite or NaN goes to one element and leaves the others 0.
    np.testing.assert_array_equal(found, [[1.0, 0.0, NAN], [INF, 8.0, 0.0]])


def test_integers() -> None:
    x = ops.constant(np.array([[-128, -128], [-3, 7]], np.int8).reshape(1, 2, 2, 1))
    attrs = {"padding": ((0, 0), (0, 0)), "strides": (1, 1), "dilations": (1, 1)}
    assert MAX(x, window=(1, 2), **attrs).numpy().ravel().tolist() == [-128, 7]


@cases(
    "op, shapes, more, text",
    [
        (MAX, ((4, 4, 1),), {}, "input must be 4-dimensional: [4,4,1]"),
        (MEAN_3D, ((1, 4, 4, 1),), {}, "input must be 5-dimensional: [1,4,4,1]"),
        (
            MEAN,
            ((1, 1, 4, 1),),
            {"window": (3, 3)},
            "Computed output size would be negative: -1 [input_size: 1, effective_filter_size: 3, "
            "stride: 1]",
        ),
        (
            ops.OPS["MaxPoolGrad"],
            ((1, 4, 4, 1), (1, 3, 3, 1), (1, 2, 3, 1)),
            {},
            "Expected grad shape to be [1,3,3,1], but got [1,2,3,1]",
        ),
        (
            ops.OPS["MaxPoolGradGrad"],
            ((1, 4, 4, 1), (1, 3, 3, 1), (1, 3, 3, 1)),
            {},
            "Expected grad shape to be [1,4,4,1], but got [1,3,3,1]",
        ),
        (
            ops.OPS["AvgPoolGrad"],
            ((1, 2, 3, 1),),
            {"sizes": (4, 4)},
            "Expected grad shape to be [1,3,3,1], but got [1,2,3,1]",
        ),
    ],
)
def test_what_does_not_fit(op: Op, shapes: Any, more: Any, text: str) -> None:
    attrs = {"window": (2, 2), "strides": (1, 1), "padding": ((0, 0),) * 2, "dilations": (1, 1)}
    with pytest.raises(InvalidArgumentError) as caught:
        op(*map(ops.zeros, shapes), **{**attrs, **more})
    assert text in str(caught.value)
    assert str(caught.value).endswith(f"[Op:{op.name}]")
