"""Where functional models begin."""

import re

import numpy as np
import pytest

from mirrored import ops
from mirrored.layers import Input, InputLayer


def test_the_batch_axis_is_added() -> None:
    assert Input(shape=(64,)).shape == (None, 64)
    assert Input((28, None)).shape == (None, 28, None)
    assert Input(()).shape == (None,)
    assert Input((3,), batch_size=4).shape == (4, 3)


def test_the_dtype_is_the_default_float_or_the_one_given() -> None:
    assert Input((3,)).dtype == ops.float32
    assert Input((3,), dtype="int32").dtype == ops.int32
    ops.set_floatx("float64")
    assert Input((3,)).dtype == ops.float64


def test_its_layer_stands_for_it_in_a_summary() -> None:
    x = Input((3,), name="pixels")
    layer, source = x.producer
    assert isinstance(layer, InputLayer)
    assert source is None
    assert (layer.name, layer.built, layer.count_params()) == ("pixels", True, 0)
    assert layer.batch_shape == layer.input_shape == layer.output.shape == (None, 3)
    assert (Input((3,)).name, Input((3,)).name) == ("input_layer", "input_layer_1")


def test_the_layer_passes_what_has_the_announced_shape() -> None:
    layer = InputLayer((3,), name="pixels")
    np.testing.assert_array_equal(layer(np.eye(3)).numpy(), np.eye(3))
    text = 'layer "pixels" is incompatible with the layer: expected shape=(None, 3), found shape='
    with pytest.raises(ValueError, match=re.escape(f"{text}(3, 4)")):
        layer(np.ones((3, 4)))


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({}, "You must pass a `shape` argument."),
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
