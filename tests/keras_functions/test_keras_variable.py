"""`keras.Variable`, `keras.name_scope`, and Keras' settings."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import keras


def test_a_variable_of_an_array_or_an_initializer() -> None:
    v = keras.Variable(np.ones(2, "float64"), name="v", aggregation="mean")
    assert (v.path, v.dtype.name, v.aggregation) == ("v", "float64", mr.VariableAggregation.MEAN)
    made = keras.Variable(lambda shape, dtype: mr.ones(shape, dtype), shape=(3,), trainable=False)
    assert (made.numpy().tolist(), made.trainable, made.dtype.name) == ([1.0] * 3, False, "float32")
    assert not keras.Variable("zeros", shape=(), autocast=False).autocast
    assert isinstance(mr.Variable(1.0), keras.Variable)
    assert not isinstance(mr.constant(1.0), keras.Variable)


@cases(
    ("arguments", "text"),
    [
        ({"initializer": "zeros"}, "the `shape` argument should be specified"),
        ({"initializer": 1.0, "name": "a/b"}, "cannot contain character `/`"),
        ({"initializer": 1.0, "aggregation": "bad"}, "for argument `aggregation`.*='bad'"),
        ({"initializer": 1.0, "synchronization": "bad"}, "for argument `synchronization`"),
        ({"initializer": 1.0, "layout": 3}, "layout=3"),
    ],
)
def test_a_variable_that_there_is_not(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        keras.Variable(**arguments)


def test_paths_have_the_scopes_and_layers_around() -> None:
    layer = mr.layers.Dense(2, name="d")
    with keras.name_scope("a"), keras.name_scope("b"):
        layer.build((None, 3))
        assert keras.Variable(1.0, name="v").path == "a/b/v"
    assert [each.path for each in layer.weights] == ["a/b/d/kernel", "a/b/d/bias"]
    model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1, name="d")], name="s")
    assert [each.path for each in model.weights] == ["s/d/kernel", "s/d/bias"]
    assert model.layers[0].path == "s/d"

    class Net(mr.Model):
        def __init__(self) -> None:
            super().__init__(name="net")
            self.inner = mr.layers.Dense(2, name="inner")

        def call(self, x: Any) -> Any:
            return self.inner(x)

    net = Net()
    net(np.ones((1, 2)))
    assert (net.path, net.inner.kernel.path) == ("net", "net/inner/kernel")
    for name in (3, "a/b"):
        with pytest.raises(ValueError, match="cannot contain character `/`"):
            keras.name_scope(name)


@cases(
    ("dtypes", "name"),
    [
        (("int32", "float32"), "float32"),
        (("float16", "bfloat16"), "float32"),
        ((int, "int8"), "int8"),
        ((int, float), "float32"),
        (("uint8", "int8"), "int16"),
        ((), "float32"),
        (("uint32", "int64"), "int64"),
        (("bool", None), "float32"),
    ],
)
def test_result_type(dtypes: tuple[Any, ...], name: str) -> None:
    assert keras.backend.result_type(*dtypes) == name


@pytest.mark.parametrize("dtype", ["string", 3.0])
def test_no_result_type(dtype: Any) -> None:
    with pytest.raises(ValueError, match="not a valid dtype for Keras type promotion"):
        keras.backend.result_type(dtype)


def test_settings() -> None:
    assert keras.config.backend() == keras.backend.backend() == "tensorflow"
    assert (keras.config.floatx(), keras.config.epsilon()) == ("float32", 1e-7)
    assert keras.__version__ == keras.version()
    assert int(keras.__version__.partition(".")[0]) == 3
    assert keras.ops.nn.relu is keras.ops.relu
    assert keras.ops.numpy.sum is keras.ops.sum
    with keras.device("CPU:0"):
        assert keras.ops.ones(2).device.endswith("CPU:0")
