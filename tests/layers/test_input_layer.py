"""Where functional models begin."""

import re
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.layers import Input, InputLayer


def test_the_batch_axis_is_added() -> None:
    assert Input(shape=(64,)).shape == (None, 64)
    assert Input((28, None)).shape == (None, 28, None)
    assert Input(()).shape == (None,)
    assert Input((3,), batch_size=4).shape == (4, 3)


def test_the_batch_axis_may_be_in_the_shape() -> None:
    x = Input(batch_shape=(4, None), dtype="int32")
    assert (x.shape, x.dtype) == ((4, None), ops.int32)
    assert Input(tensor=x, name="again") is x


def test_the_dtype_is_the_default_float_or_the_one_given() -> None:
    assert Input((3,)).dtype == ops.float32
    assert Input((3,), dtype="int32").dtype == ops.int32
    ops.set_floatx("float64")
    assert Input((3,)).dtype == ops.float64


def test_its_layer_stands_for_it_in_a_summary() -> None:
    x = Input((3,), name="pixels")
    layer: Any = x.node.callee
    assert isinstance(layer, InputLayer)
    assert x.node.is_input
    assert (layer.name, layer.built, layer.count_params()) == ("pixels", True, 0)
    assert layer.batch_shape == layer.input_shape == layer.output.shape == (None, 3)
    unnamed = [Input((3,)).node.callee.name for _ in range(2)]
    assert unnamed == ["input_layer", "input_layer_1"]


def test_the_layer_passes_what_has_the_announced_shape() -> None:
    layer = InputLayer((3,), name="pixels")
    np.testing.assert_array_equal(layer(np.eye(3)).numpy(), np.eye(3))
    text = 'layer "pixels" is incompatible with the layer: expected shape=(None, 3), found shape='
    with pytest.raises(ValueError, match=re.escape(f"{text}(3, 4)")):
        layer(np.ones((3, 4)))


@cases(
    ("kwargs", "text"),
    [
        ({}, "You must pass a `shape` argument."),
        ({"shape": (3,), "batch_shape": (2, 3)}, "both `shape` and `batch_shape` at the same"),
        ({"batch_size": 2, "batch_shape": (2, 3)}, "both `batch_size` and `batch_shape` at the"),
        ({"tensor": 3}, "Argument `input_tensor` must be a symbolic tensor."),
        ({"tensor": Input((3,)), "shape": (4,)}, "an incompatible `shape` argument"),
        ({"tensor": Input((3,)), "batch_size": 4}, "an incompatible `batch_size` argument"),
        ({"tensor": Input((3,)), "dtype": "int32"}, "an incompatible `dtype` argument"),
        ({"tensor": Input((3,)), "batch_shape": (2, 3)}, "an incompatible `batch_shape`"),
        ({"shape": (3,), "sparse": True}, "Received: sparse=True"),
        ({"shape": (3,), "optional": True}, "Received: optional=True"),
        ({"shape": 64}, "Cannot convert '64' to a shape."),
        ({"shape": (-1,)}, "Negative dimensions are not allowed."),
        ({"shape": (2.5,)}, "Found invalid dimension '2.5'"),
        ({"shape": (3,), "batch_size": -4}, "Cannot convert '(-4, 3)' to a shape."),
        ({"shape": (3,), "name": "a/b"}, "cannot contain character `/`"),
    ],
)
def test_bad_arguments_are_refused(kwargs: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        Input(**kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_input_of_narrow_floats(dtype: str) -> None:
    inputs = Input((2,), dtype=dtype)
    assert inputs.dtype.name == dtype
    model = mr.Model(inputs, inputs * 2)
    assert model(np.ones((1, 2))).dtype.name == dtype
    assert mr.keras.models.clone_model(model).inputs[0].dtype.name == dtype


def test_older_names_of_shapes() -> None:
    with pytest.warns(UserWarning, match="Argument `input_shape` is deprecated. Use `shape`"):
        assert InputLayer(input_shape=(3,), batch_size=4).batch_shape == (4, 3)
    with pytest.warns(UserWarning, match="`batch_input_shape` is deprecated. Use `batch_shape`"):
        assert InputLayer(batch_input_shape=(None, 3)).batch_shape == (None, 3)


def test_an_input_of_a_policy() -> None:
    policy = mr.keras.DTypePolicy("float64")
    for dtype in (policy, {"class_name": "DTypePolicy", "config": {"name": "float64"}}):
        assert InputLayer((2,), dtype=dtype).dtype.name == "float64"
    assert InputLayer((2,), dtype="mixed_bfloat16").dtype.name == "float32"
