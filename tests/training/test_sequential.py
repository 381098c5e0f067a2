"""Sequential models: adding and removing layers, and when weights are made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def test_with_an_input_it_is_built_at_once() -> None:
    model = mr.Sequential([mr.layers.Input(shape=(2, 2), name="image")], name="net")
    assert not model.built
    model.add(mr.layers.Flatten(name="flat"))
    model.add(mr.layers.Dense(3, name="last"))
    assert model.built
    assert (model.input_shape, model.output_shape) == ((None, 2, 2), (None, 3))
    assert [layer.name for layer in model.layers] == ["flat", "last"]
    assert model.get_layer(index=0).name == "flat"
    with pytest.raises(ValueError, match=r"No such layer: image\. Existing layers are"):
        model.get_layer("image")
    assert model.get_layer("flat").output_shape == (None, 4)
    assert (model.inputs[0].name, model.output_names) == ("image", ["last"])


@cases("shape", [(2, 2), [2, 2], np.array([2, 2])])
def test_a_first_layer_with_a_shape_begins_with_an_input(shape: Any) -> None:
    model = mr.Sequential([mr.layers.Flatten(input_shape=shape), mr.layers.Dense(3)])
    assert model.built
    assert (model.input_shape, model.output_shape) == ((None, 2, 2), (None, 3))
    assert [type(layer).__name__ for layer in model.layers] == ["Flatten", "Dense"]


def test_the_first_layer_is_no_input() -> None:
    """`layers` leaves the input out, as in Keras 3.15, where index 0 is the layer to freeze."""
    model = mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(3), mr.layers.Dense(2)])
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.fit(X, X[:, :2], verbose=0)
    same = [np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True)]
    assert same == [True, True, False, False]
    lines: list[str] = []
    model.summary(print_fn=lines.append)
    assert not [line for line in lines if "Input" in line]
    assert mr.Sequential([mr.layers.Input((4,))]).layers == []


@cases(
    "first",
    [
        lambda: mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(3)]),
        lambda: mr.Sequential([mr.Sequential([mr.layers.Dense(3, input_shape=(4,))])]),
        lambda: mr.Model(x := mr.layers.Input((4,)), mr.layers.Dense(3)(x)),
    ],
)
def test_a_model_comes_first(first: Callable[[], mr.Model]) -> None:
    """Its input is the whole model's, so all is built: as in Keras 3.15, from two layers on."""
    model = mr.Sequential([first(), mr.layers.Dense(2)])
    assert (model.built, len(model.weights)) == (True, 4)
    assert (model.input_shape, model.output_shape) == ((None, 4), (None, 2))


def test_names_that_are_there_twice() -> None:
    text = r"should have unique names\. Name 'd' is already the name of a layer in this model"
    model = mr.Sequential([mr.layers.Dense(2, name="d")])
    for add in (
        lambda: model.add(mr.layers.Dense(2, name="d")),
        lambda: mr.Sequential([mr.layers.Input((4,), name="d"), mr.layers.Dense(2, name="d")]),
    ):
        with pytest.raises(ValueError, match=text):
            add()
    assert len(model.layers) == 1
    assert mr.Sequential([model, mr.layers.Dense(2, name="d")]).layers[0] is model


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
    assert (model.layers, model.built) == ([], False)
    model.add(mr.layers.Dense(2, input_shape=(4,)))
    assert model.input_shape == (None, 4)


@pytest.mark.parametrize("how", ["build", "call", "fit", "predict"])
def test_without_one_by_the_first_data(how: str, strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(3, "relu"), mr.layers.Dense(2)])
        model.compile("sgd", "mse")
    assert (model.built, model.weights) == (False, [])
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
    assert [each.shape for each in model.inputs + model.outputs] == [(None, 4), (None, 2)]
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
        base = mr.Sequential([mr.layers.Dense(3)])
        base.trainable = False
        model = mr.Sequential([base, mr.layers.Dense(2)])
        model.compile("sgd", "mse")
    model.build((None, 4))
    before = base.get_weights()
    model.fit(X, X[:, :2], verbose=0)
    assert [a.tobytes() for a in base.get_weights()] == [b.tobytes() for b in before]


def _base(*, given: bool = True, **options: Any) -> mr.Sequential:
    layers = [mr.layers.Dense(3, kernel_regularizer="l2"), mr.layers.Dense(3)]
    return mr.Sequential([*([mr.layers.Input(shape=(4,))] if given else []), *layers], **options)


@cases("given", [True, False])
@cases(
    ("options", "changes", "counts"),
    [
        ({}, [], (6, 4, 1)),
        ({}, [(None, False)], (2, 0, 0)),
        ({}, [(None, False), (-1, True)], (4, 0, 0)),
        ({}, [(None, False), (0, True)], (4, 0, 1)),
        ({}, [(None, False), (-1, True), (None, True)], (6, 4, 1)),
        ({}, [(0, False)], (4, 2, 0)),
        ({"trainable": False}, [], (6, 0, 1)),
    ],
)
def test_layers_in_a_frozen_model_say_for_themselves_whether_they_are_trained(
    options: Any, changes: Any, counts: Any, given: bool
) -> None:
    """Keras 3.15: setting `trainable` sets it inside, and what is thawed then is trained."""
    base = _base(given=given, **options)
    model = mr.Sequential([base, mr.layers.Dense(1)])
    for index, value in changes:
        (base if index is None else base.layers[index]).trainable = value
    model.build((None, 4))
    parts = (model.trainable_weights, base.trainable_weights, model.losses)
    assert tuple(len(each) for each in parts) == counts
    assert len(model.trainable_weights) + len(model.non_trainable_weights) == 6


def test_dtype_of_the_input() -> None:
    model = mr.Sequential([mr.layers.Input(shape=(4,), dtype="float64"), mr.layers.Dense(3)])
    assert (model.dtype, model.output_dtype) == (np.float64, np.float32)


BAD_LAYERS: dict[str, tuple[list[Any], type[Exception], str]] = {
    "no layer": ([3], ValueError, "Only instances of `mirrored.layers.Layer` can be added"),
    "a class": ([mr.layers.Flatten], ValueError, "Only instances of `mirrored.layers.Layer`"),
    "input second": (
        [mr.layers.Flatten(), mr.layers.Input(shape=(4,))],
        ValueError,
        "An input must be the first",
    ),
    "two inputs": (
        [mr.layers.Input(shape=(4,)), mr.layers.Input(shape=(4,))],
        ValueError,
        "An input must be the first",
    ),
    "shapes": ([mr.layers.Input(shape=()), mr.layers.Dense(3)], ValueError, "min_ndim=2"),
}


@cases(("given", "error", "message"), BAD_LAYERS.values(), ids=BAD_LAYERS)
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
    assert len(model.layers) == 1
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


class Draws(mr.Model):
    """Draws a graph when it is built."""

    def build(self, input_shape: Any) -> None:
        x = mr.layers.Input(input_shape[1:])
        self.inner = mr.Model(x, mr.layers.Dense(3)(x) * 2.0)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return self.inner(inputs)


@pytest.mark.parametrize("make", [lambda: mr.Sequential([mr.layers.Dense(3)]), Draws])
def test_what_is_drawn_while_it_is_built_runs_on_every_replica(
    make: Callable[[], Any], strategy: mr.MirroredStrategy
) -> None:
    """And not on the device on which weights are made."""
    with strategy.scope():
        model = make()
        model.build((None, 4))
        part = model.inner if isinstance(model, Draws) else mr.Model(model.inputs, model.outputs)
    data = np.ones((2, 4), np.float32)
    results = strategy.run(lambda: part(data))
    devices = [each.device for each in strategy.experimental_local_results(results)]
    assert devices == [each.full_name for each in strategy.devices]
    np.testing.assert_array_equal(part(data)[0].numpy(), model(data).numpy()[0])


@pytest.mark.parametrize("begin", [[mr.layers.Input((2,))], []])
def test_one_layer_twice(begin: list[Any], tmp_path: Path) -> None:
    y = X[:, :2]
    layer = mr.layers.Dense(2, activation="tanh", name="d")
    model = mr.Sequential([*begin, layer, mr.layers.ReLU(), layer])
    model.compile("sgd", "mse")
    model.fit(y, y, verbose=0)
    assert (len(model.layers), len(model.weights)) == (3, 2)
    twice = layer(mr.nn.relu(layer(y)))
    np.testing.assert_allclose(model.predict(y, verbose=0), twice, rtol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = mr.keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[0] is loaded.layers[2]
    np.testing.assert_array_equal(loaded.predict(y, verbose=0), model.predict(y, verbose=0))
    with pytest.raises(ValueError, match=r"names\. Name 'd' is already"):
        model.add(mr.layers.Dense(2, name="d"))
