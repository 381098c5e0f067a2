"""Every public layer against NumPy, from one table that fails when a layer is missing from it."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from mirrored import layers, ops
from mirrored.autodiff import GradientTape
from mirrored.layers import (
    Activation,
    ActivityRegularization,
    Dense,
    Dropout,
    Flatten,
    InputLayer,
    Layer,
)
from mirrored.layers.merging import Merge
from tests.layers import test_noise
from tests.support import image_values, layer_values

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]  # reference(x, *weights)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def dense(activation: Callable[[Array], Array]) -> Reference:
    return lambda x, kernel, bias: activation(np.einsum("...i,ij->...j", x, kernel) + bias)


def identity(x: Array) -> Array:
    return x


@dataclass
class Case:
    make: Callable[..., Layer]
    shape: tuple[int, ...]
    reference: Reference
    kwargs: dict[str, Any] = field(default_factory=dict)

    def layer(self, dtype: str = "float64") -> Layer:
        return self.make(**self.kwargs, dtype=dtype)


NORMAL = {"bias_initializer": layers.initializers.RandomNormal(stddev=1.0)}
CASES = {
    "Dense": Case(Dense, (5, 3), dense(identity), {"units": 4, **NORMAL}),
    "Dense relu": Case(
        Dense, (5, 3), dense(lambda x: np.maximum(x, 0)), {"units": 4, "activation": "relu"}
    ),
    "Dense tanh": Case(Dense, (5, 3), dense(np.tanh), {"units": 4, "activation": "tanh"}),
    "Dense sigmoid": Case(
        Dense, (5, 3), dense(lambda x: 1 / (1 + np.exp(-x))), {"units": 4, "activation": "sigmoid"}
    ),
    "Dense softmax": Case(Dense, (5, 3), dense(softmax), {"units": 4, "activation": "softmax"}),
    "Dense without bias": Case(Dense, (5, 3), np.matmul, {"units": 4, "use_bias": False}),
    "Dense rank 3": Case(Dense, (2, 5, 3), dense(identity), {"units": 4, **NORMAL}),
    "Dense rank 4": Case(
        Dense, (2, 1, 5, 3), dense(softmax), {"units": 2, "activation": "softmax"}
    ),
    "Dense one example": Case(Dense, (1, 1), dense(identity), {"units": 1}),
    "Activation": Case(Activation, (5, 3), np.tanh, {"activation": "tanh"}),
    "Activation rank 1": Case(Activation, (5,), np.tanh, {"activation": "tanh"}),
    "ActivityRegularization": Case(
        ActivityRegularization, (5, 3), identity, {"l1": 0.1, "l2": 0.2}
    ),
    "Flatten": Case(Flatten, (5, 2, 3), lambda x: x.reshape(5, 6)),
    "Flatten rank 1": Case(Flatten, (5,), lambda x: x[:, None]),
    "Flatten rank 2": Case(Flatten, (5, 3), identity),
    "Flatten rank 5": Case(Flatten, (2, 1, 2, 3, 2), lambda x: x.reshape(2, 12)),
    "Dropout": Case(Dropout, (5, 3), identity, {"rate": 0.5}),
    "InputLayer": Case(InputLayer, (5, 3), identity, {"shape": (3,)}),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def test_every_public_layer_is_in_the_table() -> None:
    public = {
        value
        for _, value in inspect.getmembers(layers)
        if isinstance(value, type) and issubclass(value, Layer) and value is not Layer
        if not issubclass(value, Merge)  # Those of several inputs have a table of their own.
    }
    against_keras = {getattr(layers, case.layer) for case in layer_values.CASES}
    against_keras -= {each for each in against_keras if issubclass(each, Merge)}
    noises = {**test_noise.LAYERS, **test_noise.SPATIAL}
    others = {*map(layers.__dict__.get, noises), layers.Lambda}  # In files of their own.
    others |= {getattr(layers, text[2:].partition("(")[0]) for text, _ in image_values.LAYER_CASES}
    others |= {
        layers.Pipeline,
        layers.SpectralNormalization,
        layers.TimeDistributed,
        layers.Wrapper,
    }
    assert public == {*(case.make for case in CASES.values()), *against_keras, *others}


def numeric_gradient(f: Callable[[Array], float], at: Array) -> Array:
    """Central differences, one element at a time."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[index] = 1e-6
        gradient[index] = (f(at + step) - f(at - step)) / 2e-6
    return gradient


@each_case
def test_outputs_are_numpys(case: Case) -> None:
    x = np.random.default_rng(1).normal(size=case.shape)
    layer = case.layer()
    output = layer(x)
    expected = case.reference(x, *layer.get_weights())
    assert output.dtype == ops.float64
    assert output.shape == expected.shape
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-12, atol=1e-12)


@each_case
def test_gradients_are_those_of_the_numpy_function(case: Case) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=case.shape)
    layer = case.layer()
    direction = rng.normal(size=layer(x).shape)
    tensor = ops.constant(x)
    with GradientTape() as tape:
        tape.watch(tensor)
        scalar = ops.reduce_sum(ops.multiply(layer(tensor), ops.constant(direction)))
    gradients = tape.gradient(scalar, [tensor, *layer.trainable_weights])

    arguments = [x, *layer.get_weights()]
    assert len(gradients) == len(arguments)
    for position, gradient in enumerate(gradients):

        def projected(value: Array, position: int = position) -> float:
            replaced = [*arguments[:position], value, *arguments[position + 1 :]]
            return float((case.reference(*replaced) * direction).sum())

        expected = numeric_gradient(projected, arguments[position])
        assert gradient is not None
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6, atol=1e-8)


@each_case
def test_the_announced_shape_is_the_one_that_comes_out(case: Case) -> None:
    expected = case.reference(np.zeros(case.shape), *_weights(case)).shape
    announced = case.layer().compute_output_shape((None, *case.shape[1:]))
    assert announced == (None, *expected[1:])
    assert math.prod(announced[1:]) == math.prod(expected[1:])  # type: ignore[arg-type]


@each_case
def test_an_empty_shard_passes_forward_and_back(case: Case) -> None:
    layer = case.layer("float32")
    x = ops.zeros((0, *case.shape[1:]))
    with GradientTape() as tape:
        tape.watch(x)
        output = layer(x)
        scalar = ops.reduce_sum(output)
    assert output.shape[0] == 0
    for gradient, source in zip(
        tape.gradient(scalar, [x, *layer.trainable_weights]),
        [x, *layer.trainable_weights],
        strict=True,
    ):
        assert gradient is not None
        np.testing.assert_array_equal(gradient.numpy(), np.zeros(source.shape))


@each_case
def test_the_default_dtype_is_the_default_float(case: Case) -> None:
    x = np.random.default_rng(3).normal(size=case.shape)
    assert case.make(**case.kwargs)(x).dtype == ops.float32
    ops.set_floatx("float64")
    layer = case.make(**case.kwargs)
    assert layer(x).dtype == ops.float64
    assert all(weight.dtype == ops.float64 for weight in layer.weights)


@each_case
def test_options_reach_every_layer(case: Case) -> None:
    kwargs = {"name": "mine", "dtype": "float64"}
    if case.make is not InputLayer:  # It has no weights to freeze, as in Keras.
        kwargs["trainable"] = False  # type: ignore[assignment]
    layer = case.make(**case.kwargs, **kwargs)
    layer(np.ones(case.shape))
    assert (layer.name, layer.dtype, layer.trainable_weights) == ("mine", ops.float64, [])


def _weights(case: Case) -> list[Array]:
    layer = case.layer()
    layer(np.zeros(case.shape))
    return layer.get_weights()
