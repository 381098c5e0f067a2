"""The dense layer's own arguments, weights and errors."""

import re

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.layers import Dense, Input, initializers, regularizers


def test_weights_have_keras_names_and_shapes() -> None:
    layer = Dense(10, name="head")
    layer.build((None, 64))
    assert [(each.name, each.shape) for each in layer.weights] == [
        ("head/kernel:0", (64, 10)),
        ("head/bias:0", (10,)),
    ]
    assert layer.weights[0] is layer.kernel
    assert layer.weights[1] is layer.bias
    assert layer.count_params() == 650


def test_the_default_weights_are_glorots_and_zeros() -> None:
    layer = Dense(100)
    layer.build((None, 200))
    kernel, bias = layer.get_weights()
    assert np.abs(kernel).max() <= np.sqrt(6 / 300)
    assert np.abs(kernel).max() > 0.99 * np.sqrt(6 / 300)
    np.testing.assert_array_equal(bias, np.zeros(100))


def test_initializers_and_regularizers_are_used() -> None:
    layer = Dense(
        2,
        kernel_initializer=initializers.Constant(2.0),
        bias_initializer="ones",
        kernel_regularizer=regularizers.L2(0.5),
        bias_regularizer="l1",
    )
    layer.build((None, 3))
    kernel, bias = layer.get_weights()
    np.testing.assert_array_equal(kernel, np.full((3, 2), 2.0))
    np.testing.assert_array_equal(bias, [1.0, 1.0])
    assert [float(each.numpy()) for each in layer.losses] == pytest.approx([12.0, 0.02])


def test_without_a_bias_there_is_none() -> None:
    layer = Dense(2, use_bias=False)
    layer.build((None, 3))
    assert layer.bias is None
    assert len(layer.weights) == 1


def test_activation_may_be_positional_or_a_function() -> None:
    x = np.array([[-1.0, 2.0]])
    assert Dense(1, "relu", kernel_initializer="ones")(-x).numpy().tolist() == [[0.0]]
    negate = Dense(1, ops.negative, kernel_initializer="ones")
    assert negate(x).numpy().tolist() == [[-1.0]]


def test_softmax_outputs_remember_their_logits() -> None:
    outputs = Dense(3, activation="softmax")(np.ones((2, 2)))
    logits = ops.logits_of(outputs, "softmax")
    assert logits is not None
    assert logits.shape == (2, 3)


@cases("units", [0, -1, 2.5, True, "3", None])
def test_units_must_be_a_positive_integer(units: object) -> None:
    text = (
        "Received an invalid value for `units`, expected a positive integer. "
        f"Received: units={units!r}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Dense(units)  # type: ignore[arg-type]


@cases("built_by", ["build", "array", "placeholder"])
def test_another_width_is_refused_with_both_shapes(built_by: str) -> None:
    layer = Dense(3, name="head")
    if built_by == "build":
        layer.build((None, 64))
    else:
        layer(np.ones((5, 64)) if built_by == "array" else Input((64,)))
    text = (
        'Input 0 of layer "head" is incompatible with the layer: expected axis -1 of input shape '
        "to have value 64, but received input with shape {}"
    )
    with pytest.raises(ValueError, match=re.escape(text.format("(2, 32)"))):
        layer(np.ones((2, 32)))
    with pytest.raises(ValueError, match=re.escape(text.format("(None, 32)"))):
        layer(Input((32,)))
    assert layer(np.ones((2, 64))).shape == (2, 3)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_an_input_without_features_is_refused(shape: tuple[int, ...]) -> None:
    layer = Dense(3, name="head")
    text = (
        'Input 0 of layer "head" is incompatible with the layer: expected min_ndim=2, found '
        f"ndim={len(shape)}. Full shape received: {shape}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        layer(np.ones(shape))
    assert not layer.built
    assert layer(np.ones((2, 3))).shape == (2, 3)


def test_an_unknown_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape=\(None, 3\) for variable path='d/kernel'"):
        Dense(3, name="d")(Input((None,)))


def test_unknown_inner_axes_stay_unknown() -> None:
    assert Dense(3)(Input((None, 4))).shape == (None, None, 3)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="foo"):
        Dense(3, foo=1)  # type: ignore[call-arg]
