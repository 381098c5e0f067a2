"""Convolutions and pooling in a file: their transposes, and sizes that are not known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.export.onnx_file import export_function
from mirrored.export.recordings import GraphInput

onnx = pytest.importorskip("onnx")

FILTERS = np.random.default_rng(3).normal(size=(2, 2, 2, 2)).astype("float32")
Function = Callable[[Any], Any]


def exported(function: Function, path: Path, *shape: int | str, dtype: str = "float32") -> Any:
    """Return the file of a function of images."""
    images = GraphInput("x", shape, np.dtype(dtype))
    export_function(lambda given: [function(given[0])], [images], lambda: ["y"], path, "function")
    return onnx.load(path)


def test_transposes_that_cancel_are_left_out(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        y = mr.nn.conv2d(mr.nn.avg_pool2d(x, 2, 1, "SAME"), FILTERS, 1, "SAME")
        return mr.nn.max_pool2d(mr.transpose(y, [0, 3, 1, 2]), 2, 2, "VALID", "NCHW")

    model = exported(function, tmp_path / "f.onnx", "batch", 4, 4, 2)
    names = [node.op_type for node in model.graph.node]
    # Of the images and of the filters; the result has channels first, as it is asked for.
    assert sorted(names) == [
        *("AveragePool", "Conv", "Identity", "MaxPool", "Transpose", "Transpose")
    ]


@cases(
    "function",
    [
        lambda x: mr.nn.conv2d(x, FILTERS, 1, "SAME", dilations=2),
        lambda x: mr.nn.conv2d(x, FILTERS, [2, 1], "VALID"),
        lambda x: mr.nn.max_pool2d(x, 3, 2, "VALID"),
        lambda x: mr.nn.avg_pool2d(x, 3, 1, "SAME"),
        mr.layers.Conv2DTranspose(2, 3, strides=2, padding="same"),
        mr.layers.Conv2DTranspose(1, 2, strides=3, padding="valid"),
        mr.layers.Conv2DTranspose(1, 3, strides=2, padding="same", output_padding=1),
    ],
)
def test_images_of_any_size(function: Function, tmp_path: Path) -> None:
    model = exported(function, tmp_path / "f.onnx", "batch", "height", "width", 2)
    session = pytest.importorskip("onnx.reference").ReferenceEvaluator(model)
    for shape in ((1, 7, 4, 2), (3, 4, 9, 2)):
        x = np.random.default_rng(3).normal(size=shape).astype("float32")
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, function(mr.constant(x)).numpy(), rtol=1e-5, atol=1e-6)


@cases(
    "function, dtype, text",
    [
        (
            lambda x: mr.nn.pool(x, [2, 2], "AVG", dilations=[2, 2]),
            "float32",
            "'AvgPool'.* dilations, which ONNX's AveragePool does not have",
        ),
        (lambda x: mr.nn.max_pool2d(x, 2, 1, "VALID"), "int32", "takes int32, which ONNX's MaxP"),
        (lambda x: mr.nn.max_pool2d(x, 2, 2, "SAME"), "float32", "another setting of 'MaxPool'"),
        (
            lambda x: mr.nn.conv2d(
                x, mr.transpose(mr.reduce_max(x, [0, 2]))[None, None], 1, "VALID"
            ),
            "float32",
            "filters or channels whose",
        ),
    ],
)
def test_what_is_refused(function: Function, dtype: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=text):
        exported(function, tmp_path / "f.onnx", 4, "height", "width", 2, dtype=dtype)
    assert not list(tmp_path.iterdir())
