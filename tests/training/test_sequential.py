"""Sequential models: adding and removing layers, and when weights are made."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def test_with_an_input_it_is_built_at_once() -> None:
    model = mr.Sequential([mr.layers.Input(shape=(2, 2), name="image")], name="net")
    assert not model.built
    model.add(mr.layers.Flatten(name="flat"))
    model.add(mr.layers.Dense(3, name="last"))
    assert model.built
    assert (model.input_shape, model.output_shape) == ((None, 2, 2), (None, 3))
    assert [layer.name for layer in model.layers] == ["image", "flat", "last"]
    assert model.get_layer("flat").output_shape == (None, 4)
    assert [each.name for each in model.inputs + model.outputs] == ["image", "last"]


@pytest.mark.parametrize("shape", [(2, 2), [2, 2], np.array([2, 2])])
def test_a_first_layer_with_a_shape_begins_with_an_input(shape: Any) -> None:
    model = mr.Sequential([mr.layers.Flatten(input_shape=shape), mr.layers.Dense(3)])
    assert model.built
    assert (model.input_shape, model.output_shape) == ((None, 2, 2), (None, 3))
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Flatten", "Dense"]


def test_only_the_first_layer_s_shape_counts() -> None:
    """As in Keras, where a later one is ignored."""
    model = mr.Sequential(
        [mr.layers.Dense(2, input_shape=(4,)), mr.layers.Dense(3, input_shape=(9,))]
    )
    assert (model.input_shape, model.output_shape) == ((None, 4), (None, 3))
    begun = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(2, input_shape=(9,))])
    assert begun.input_shape == (None, 4)


def test_a_first_layer_s_dtype_is_that_of_its_input() -> None:
    model = mr.Sequential([mr.layers.Dense(2, input_shape=(4,), dtype="float64")])
    assert model(X.astype(np.float64)).dtype == np.float64
    assert model.inputs[0].dtype == np.float64


def test_a_first_layer_that_cannot_take_its_shape_leaves_the_model_empty() -> None:
    model = mr.Sequential()
    with pytest.raises(ValueError, match="expected min_ndim=2, found ndim=1"):
        model.add(mr.layers.Dense(2, input_shape=()))
    assert (model.layers, model.inputs) == ([], [])
    model.add(mr.layers.Dense(2, input_shape=(4,)))
    assert model.input_shape == (None, 4)


@pytest.mark.parametrize("how", ["build", "call", "fit", "predict"])
def test_without_one_by_the_first_data(how: str, strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(3, "relu"), mr.layers.Dense(2)])
        model.compile("sgd", "mse")
    assert (model.built, model.weights, model.inputs, model.outputs) == (False, [], [], [])
    steps: dict[str, Callable[[], Any]] = {
        "build": lambda: model.build((None, 4)),
        "call": lambda: model(X),
        "fit": lambda: model.fit(X, X[:, :2], verbose=0),
        "predict": lambda: model.predict(X, verbose=0),
    }
    steps[how]()
    assert (model.input_shape, model.output_shape) == ((None, 4), (None, 2))
    assert all(strategy.owns(weight) for weight in model.weights)
    assert len(model.weights) == 4
    assert [layer.output_shape for layer in model.layers] == [(None, 3), (None, 2)]
    model.fit(X, X[:, :2], verbose=0)


@pytest.mark.parametrize("build", [lambda model: model.build((None, 4)), lambda model: model(X)])
def test_add_and_pop_after_building(build: Callable[[mr.Sequential], Any]) -> None:
    model = mr.Sequential([mr.layers.Dense(3)])
    build(model)
    model.add(mr.layers.Dense(5))
    assert (model.output_shape, len(model.weights)) == ((None, 5), 4)
    assert model(X).shape == (6, 5)
    removed = model.pop()
    assert (removed.units, model.output_shape, len(model.weights)) == (5, (None, 3), 2)
    assert model(X).shape == (6, 3)
    model.pop()
    assert (model.built, model.layers) == (False, [])
    model.add(mr.layers.Dense(2))
    assert model(np.ones((1, 9))).shape == (1, 2)


def test_pop_back_to_the_input() -> None:
    model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(3)])
    model.pop()
    assert not model.built
    with pytest.raises(ValueError, match="has no layer to remove"):
        model.pop()
    model.add(mr.layers.Dense(2))
    assert model.output_shape == (None, 2)
    with pytest.raises(ValueError, match="incompatible"):
        model(np.ones((1, 9)))


def test_a_generator_of_layers() -> None:
    model = mr.Sequential(mr.layers.Dense(units) for units in (3, 2))
    assert model(X).shape == (6, 2)


def test_arguments_stand_as_in_keras() -> None:
    """Sequential(layers, trainable, name), as in Keras 3.15."""
    model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(3)], False, "frozen")
    assert model.name == "frozen"
    assert model.trainable_weights == []
    assert len(model.weights) == 2


def test_frozen_models_do_not_move(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        base = mr.Sequential([mr.layers.Dense(3)], trainable=False)
        model = mr.Sequential([base, mr.layers.Dense(2)])
        model.compile("sgd", "mse")
    model.build((None, 4))
    before = base.get_weights()
    model.fit(X, X[:, :2], verbose=0)
    assert [a.tobytes() for a in base.get_weights()] == [b.tobytes() for b in before]


def test_dtype_of_the_input() -> None:
    model = mr.Sequential([mr.layers.Input(shape=(4,), dtype="float64"), mr.layers.Dense(3)])
    assert (model.dtype, model.output_dtype) == (np.float64, np.float32)


SHARED = mr.layers.Flatten()
BAD_LAYERS: dict[str, tuple[list[Any], type[Exception], str]] = {
    "no layer": ([3], TypeError, "Only instances of `mirrored.layers.Layer` can be added"),
    "a class": ([mr.layers.Flatten], TypeError, "Only instances of `mirrored.layers.Layer`"),
    "twice": ([SHARED, SHARED], ValueError, "is in Sequential model"),
    "input second": (
        [mr.layers.Flatten(), mr.layers.Input(shape=(4,))],
        ValueError,
        "an input comes first",
    ),
    "two inputs": (
        [mr.layers.Input(shape=(4,)), mr.layers.Input(shape=(4,))],
        ValueError,
        "an input comes first",
    ),
    "shapes": ([mr.layers.Input(shape=()), mr.layers.Dense(3)], ValueError, "min_ndim=2"),
}


@pytest.mark.parametrize(("given", "error", "message"), BAD_LAYERS.values(), ids=BAD_LAYERS)
def test_layers_that_cannot_be_added(
    given: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        mr.Sequential(given)
    assert message in str(caught.value)


def test_a_layer_that_does_not_fit_is_not_added() -> None:
    model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(3)])
    built = mr.layers.Dense(2)
    built.build((None, 9))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 9"):
        model.add(built)
    assert len(model.layers) == 2
    assert model(X).shape == (6, 3)


@pytest.mark.parametrize(
    "use", [lambda model: model.build((None, 4)), lambda model: model(X)], ids=["build", "call"]
)
def test_no_layers(use: Callable[[mr.Sequential], Any]) -> None:
    for model in (mr.Sequential(), mr.Sequential([mr.layers.Input(shape=(4,))])):
        with pytest.raises(ValueError, match=r"cannot be built because it has no layers\. Call"):
            use(model)


def test_a_build_that_fails_leaves_nothing() -> None:
    model = mr.Sequential([mr.layers.Dense(3), mr.layers.Flatten(), mr.layers.Dense(2)])
    last = mr.layers.Dense(2)
    last.build((None, 9))
    model.add(last)
    with pytest.raises(ValueError, match="expected axis -1"):
        model.build((None, 4))
    assert not model.built
    assert [layer.built for layer in model.layers] == [False, False, False, True]
    model.pop()
    assert model(np.ones((1, 7))).shape == (1, 2)
