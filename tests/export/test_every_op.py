"""What ONNX's own evaluator computes from a file is what each operation computes here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_table import TABLE

import mirrored as mr
from mirrored.export import elementwise_nodes
from mirrored.export.onnx_file import RULES, export_function
from mirrored.export.recordings import GraphInput
from mirrored.ops.op import OPS

pytestmark = pytest.mark.slow
reference = pytest.importorskip("onnx.reference")

Array = np.ndarray[Any, Any]
DTYPES = ("float32", "int64", "bool")  # The others are refused where ONNX does not take them.
HARD = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 1e-8, -1e-8, 1e-4, 88.0, -88.0, 100.0, -100.0]
HARD += [np.inf, -np.inf, np.nan]
OF_FLOATS = {"MaxPool", "MaxPool3D"}  # Which ONNX has for floats and bytes alone.
# Other cases than the first three: the evaluator has no groups, and no images, in ConvTranspose.
CASES = {
    "Conv2DBackpropInput": (0, 2, 3),
    "Conv3DBackpropInputV2": (0,),
    "DepthwiseConv2dNativeBackpropInput": (2,),
}
ABSOLUTE = {"Erfc": 1e-7}  # It is written as 1 - erf(x), which loses digits where it is small.


def checked(
    function: Callable[[list[mr.Tensor]], list[mr.Tensor]],
    arrays: list[Array],
    path: Path,
    absolute: float,
) -> None:
    """Compare what a function computes with what its file does."""
    expected = [each.numpy() for each in function([mr.constant(each) for each in arrays])]
    given = [GraphInput(f"x{i}", each.shape, each.dtype) for i, each in enumerate(arrays)]
    names = [f"y{i}" for i in range(len(expected))]
    export_function(function, given, lambda: names, path, "function")
    session = reference.ReferenceEvaluator(str(path))
    with np.errstate(all="ignore"):
        found = session.run(None, {f"x{i}": each for i, each in enumerate(arrays)})
    for one, other in zip(expected, found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(other, one, rtol=3e-6, atol=absolute)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_op(name: str, tmp_path: Path) -> None:
    """On the shapes and dtypes of the table of ops; elementwise ones on hard values, too."""
    row, op, rng = TABLE[name], OPS[name], np.random.default_rng(0)
    some = (*row.small[:3], *row.empty[:1])
    if name in CASES:
        some = tuple(row.small[i] for i in CASES[name])
    calls = [
        (row.inputs(case, dtype, rng), case.attrs)
        for dtype in DTYPES
        if dtype in row.dtypes and not (dtype == "int64" and name in OF_FLOATS)
        for case in some
    ]
    hard = (
        name in elementwise_nodes.RULES
        and "float32" in row.dtypes
        and name not in ("BiasAdd", "Cast")
    )
    if hard and len(row.small[0].shapes) < 3:
        columns = [np.array(HARD, np.float32)] * len(row.small[0].shapes)
        calls.append((np.meshgrid(*columns), row.small[0].attrs))

    def function(tensors: list[mr.Tensor]) -> list[mr.Tensor]:
        rest = iter(tensors)
        return [op(*(next(rest) for _ in arrays), **attrs) for arrays, attrs in calls]

    flat = [each for arrays, _ in calls for each in arrays]
    checked(function, flat, tmp_path / "f.onnx", ABSOLUTE.get(name, 1e-37 if hard else 1e-6))
