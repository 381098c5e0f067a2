"""Convolutions and their gradients on the emulated card, as on the host."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.backends.cuda.kernels import KERNELS, convolution_kernels, window_layout
from mirrored.ops import OPS, TensorSpec

Shape = tuple[int, ...]
NAMES = {
    "Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "Conv3D": ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    "DepthwiseConv2dNative": (
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    ),
}
TOLERANCES = {"float32": 1e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}


class Case(NamedTuple):
    """Shapes of images and filters, strides, padding ("S" for SAME, "V" for VALID), dilations."""

    x: Shape
    w: Shape
    strides: Shape
    padding: Any
    dilations: Shape


PLAIN = Case((3, 5, 6, 4), (3, 2, 4, 5), (1, 1), ((1, 1), (0, 1)), (1, 1))
CASES = [
    PLAIN,
    Case((2, 7, 6, 3), (3, 3, 3, 4), (2, 2), ((0, 1), (1, 1)), (1, 1)),
    Case((2, 7, 6, 1), (2, 3, 1, 1), (1, 1), ((0, 0), (0, 0)), (2, 2)),
    Case((2, 6, 7, 2), (2, 3, 2, 3), (3, 2), ((2, 0), (3, 1)), (2, 3)),
    Case((2, 5, 6, 2), (1, 1, 2, 3), (4, 3), ((0, 0), (0, 0)), (1, 1)),
    Case((2, 5, 4, 16), (1, 1, 16, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    Case((2, 5, 4, 3), (1, 1, 3, 3), (1, 1), ((1, 0), (0, 0)), (1, 1)),
    Case((2, 5, 4, 6), (1, 1, 3, 4), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    Case((2, 5, 6, 6), (3, 2, 2, 9), (2, 1), ((1, 1), (0, 1)), (1, 2)),
    Case((1, 2, 2, 3), (3, 3, 3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    Case((1, 2, 2, 3), (3, 3, 3, 2), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    Case((0, 5, 6, 2), (3, 2, 2, 2), (1, 1), ((1, 1), (0, 1)), (1, 1)),
    Case((2, 5, 6, 2), (3, 2, 2, 0), (1, 1), ((1, 1), (0, 1)), (1, 1)),
    Case((2, 9, 6, 2), (3, 2, 2, 2), (2, 2), ((-1, -2), (0, 1)), (1, 1)),
    Case((2, 3, 4, 5, 2), (2, 3, 2, 2, 3), (1, 2, 1), ((0, 1), (1, 1), (0, 1)), (1, 1, 1)),
    Case((2, 4, 4, 3, 4), (2, 1, 2, 2, 4), (2, 1, 1), ((1, 0), (0, 0), (0, 1)), (2, 1, 1)),
]
DEPTHWISE = [
    Case((3, 5, 6, 4), (3, 2, 4, 1), (1, 1), ((1, 1), (0, 1)), (1, 1)),
    Case((2, 7, 6, 3), (3, 3, 3, 2), (2, 2), ((0, 1), (1, 1)), (1, 1)),
    Case((2, 7, 6, 1), (2, 3, 1, 1), (1, 1), ((0, 0), (0, 0)), (2, 2)),
    Case((2, 7, 6, 1), (1, 1, 1, 1), (3, 3), ((0, 0), (0, 0)), (1, 1)),
    Case((2, 40, 41, 2), (3, 1, 2, 2), (1, 1), ((1, 1), (0, 0)), (1, 1)),
    Case((1, 2, 2, 3), (3, 3, 3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    Case((0, 5, 6, 2), (3, 2, 2, 2), (1, 1), ((1, 1), (0, 1)), (1, 1)),
    Case((2, 5, 6, 2), (3, 2, 2, 0), (1, 1), ((1, 1), (0, 1)), (1, 1)),
]


@pytest.fixture(autouse=True)
def exact(card: Any) -> None:
    """Let products of float32 be made in it."""
    mr.config.experimental.enable_tensor_float_32_execution(False)


def check(card: Any, name: str, case: Case, dtype: str = "float32") -> None:
    """Hold an op and its gradients to the host's."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in (case.x, case.w))
    attrs = {"strides": case.strides, "padding": case.padding, "dilations": case.dilations}
    spec = OPS[name].infer(*(TensorSpec(each.shape, each.dtype) for each in (x, w)), **attrs)
    g = rng.standard_normal(spec.shape).astype(dtype)
    to_images, to_filters = NAMES[name]
    for op, arrays, sizes in (
        (name, (x, w), {}),
        (to_images, (w, g), {"sizes": case.x[1:]}),
        (to_filters, (x, g), {"sizes": case.w}),
    ):
        found, expected = card.both(op, *arrays, **sizes, **attrs)
        scale = math.sqrt(max(each.size for each in (x, w, g)))
        tolerance = TOLERANCES[dtype]
        np.testing.assert_allclose(
            found.astype("float64"),
            expected.astype("float64"),
            rtol=tolerance,
            atol=tolerance * (scale if dtype.endswith("16") else 3),
            err_msg=op,
        )


def name_of(case: Case) -> str:
    return f"Conv{len(case.strides)}D"


@cases("case", CASES, clean=False)
def test_convolutions(card: Any, case: Case) -> None:
    check(card, name_of(case), case)


@cases("case", [each for each in CASES if len(each.x) == 4 or each.x[0]], clean=False)
@pytest.mark.parametrize("size", [1, 256])
def test_blocks(card: Any, monkeypatch: pytest.MonkeyPatch, case: Case, size: int) -> None:
    """A block is one patch, or a few, and of the last one less is left."""
    monkeypatch.setattr(convolution_kernels, "_BLOCK_BYTES", size)
    check(card, name_of(case), case)


@cases("case", DEPTHWISE, clean=False)
def test_depthwise_convolutions(card: Any, case: Case) -> None:
    check(card, "DepthwiseConv2dNative", case)


@cases("dtype", ["float64", "float16", "bfloat16"], clean=False)
@cases("case", [PLAIN, CASES[8]], clean=False)
def test_dtypes(card: Any, monkeypatch: pytest.MonkeyPatch, dtype: str, case: Case) -> None:
    check(card, "Conv2D", case, dtype)
    check(card, "DepthwiseConv2dNative", DEPTHWISE[1], dtype)
    monkeypatch.setattr(convolution_kernels, "_BLOCK_BYTES", 256)
    check(card, "Conv2D", case, dtype)


def test_arrays_too_large_for_32_bits(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_layout, "_LARGEST", 1)
    check(card, "Conv2D", CASES[3])
    check(card, "DepthwiseConv2dNative", DEPTHWISE[1])


@pytest.mark.parametrize("groups", [1, 2])
def test_scratch_memory_is_bounded(groups: int) -> None:
    """It has two blocks at most, and the filters a few times."""
    x, w, y = (10_000, 200, 200, 8), (3, 3, 8 // groups, 1000), (10_000, 200, 200, 1000)
    attrs = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilations": (1, 1)}
    for name, shapes, sizes in (
        ("Conv2D", (x, w), {}),
        ("Conv2DBackpropInput", (w, y), {"sizes": x[1:]}),
        ("Conv2DBackpropFilter", (x, y), {"sizes": w}),
    ):
        specs = [(shape, np.dtype("float32")) for shape in shapes]
        workspace = KERNELS[name].workspace
        assert workspace is not None
        scratch = workspace(*specs, **sizes, **attrs)
        nbytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in scratch)
        assert nbytes <= (128 << 20) + 6 * 4 * math.prod(w)
