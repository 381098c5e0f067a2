"""How models are put together: functional chains and subclasses, what is in them, and building."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import MirroredVariable

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


class Block(mr.layers.Layer):
    """A layer with layers in a list and in a dict."""

    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.stack = [mr.layers.Dense(units, "relu"), mr.layers.Dense(units)]
        self.named = {"norm": mr.layers.Activation("tanh")}

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        for layer in self.stack:
            inputs = layer(inputs)
        return self.named["norm"](inputs)


class Lazy(mr.Model):
    """A subclass whose layers make their weights when they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = [mr.layers.Dense(3, "relu"), mr.layers.Dense(3, "relu")]
        self.drop = mr.layers.Dropout(0.5)
        self.last = mr.layers.Dense(2)

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        for layer in self.hidden:
            inputs = layer(inputs)
        return self.last(self.drop(inputs, training=training))


def functional() -> mr.Model:
    x = mr.layers.Input(shape=(4,), name="pixels")
    hidden = mr.layers.Dense(3, "relu", name="hidden")(x)
    return mr.Model(x, mr.layers.Dense(2, name="last")(hidden), name="net")


# ------------------------------------------------------------------------------ functional


def test_a_functional_model() -> None:
    model = functional()
    assert [layer.name for layer in model.layers] == ["pixels", "hidden", "last"]
    assert (model.inputs[0].name, model.output_names, model.name) == ("pixels", ["last"], "net")
    assert (model.input_shape, model.output_shape) == ((None, 4), (None, 2))
    assert model.built
    kernel, bias, last, shift = model.get_weights()
    expected = np.maximum(X @ kernel + bias, 0) @ last + shift
    np.testing.assert_allclose(model(X).numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict(X, verbose=0), expected, rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,)])
def test_a_collection_of_one(wrap: Callable[[Any], Any]) -> None:
    """Keras 3.15's `predict` returns an array then too."""
    x = mr.layers.Input(shape=(4,))
    for inputs in (wrap(x), {"only": x}):
        model = mr.Model(inputs, wrap(mr.layers.Dense(2)(x)))
        assert model(X).shape == model.predict(X, verbose=0).shape == (6, 2)


def test_a_shared_layer_counts_once() -> None:
    x = mr.layers.Input(shape=(4,))
    shared = mr.layers.Dense(4, kernel_regularizer="l2")
    model = mr.Model(x, shared(shared(x)))
    assert model.layers[1:] == [shared]
    assert len(model.weights) == 2
    assert len(model.losses) == 1
    np.testing.assert_array_equal(model(X).numpy(), shared(shared(X)).numpy())


def test_nested_models(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        inner = mr.Sequential([mr.layers.Dense(3, "relu"), Lazy()], name="inner")
        x = mr.layers.Input(shape=(4,))
        outer = mr.Model(x, mr.layers.Dense(2)(inner(x)))
        outer.compile("sgd", "mse")
    assert outer.get_layer("inner") is inner
    assert outer.output_shape == (None, 2)
    assert len(outer.weights) == len(inner.weights) + 2 == 10
    before = outer.get_weights()
    outer.fit(X, X[:, :2], verbose=0)
    moved = [not np.array_equal(a, b) for a, b in zip(before, outer.get_weights(), strict=True)]
    assert sum(moved) >= 8


def test_a_model_in_the_middle_of_a_chain_of_layers() -> None:
    """A model may begin at any placeholder, which gets an input of its own, as in Keras 3.15."""
    x = mr.layers.Input(shape=(4,))
    before = mr.layers.Dense(3)(x)
    model = mr.Model(before, mr.layers.Dense(2)(before))
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Dense"]
    assert model.layers[0].name == f"{before.name}CLONE"
    assert model(np.ones((1, 3))).shape == (1, 2)


def test_dtypes_follow_the_layers() -> None:
    x = mr.layers.Input(shape=(4,), dtype="float64")
    inner = mr.Model(x, mr.layers.Dense(2, dtype="float32")(x))
    assert (inner.dtype, inner.output_dtype) == (np.float64, np.float32)
    y = inner(mr.layers.Input(shape=(4,)))
    assert y.dtype == np.float32
    assert mr.Model(x, x, dtype="float32").dtype == np.float32


BAD_GRAPHS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "no outputs": (lambda x, y: mr.Model(x), "needs both `inputs` and `outputs`"),
    "no inputs": (lambda x, y: mr.Model(outputs=y), "needs both `inputs` and `outputs`"),
    "no tensor": (lambda x, y: mr.Model(3, 4), "All `inputs` values must be symbolic tensors"),
    "nothing": (lambda x, y: mr.Model([], y), "`inputs` argument cannot be empty. Received:"),
    "one name twice": (
        lambda x, y: mr.Model(x, mr.layers.Dense(2, name="a")(mr.layers.Dense(2, name="a")(y))),
        'The name "a" is used 2 times in the model. All operation names should be unique.',
    ),
    "not connected": (
        lambda x, y: mr.Model(mr.layers.Input(shape=(4,), name="other"), y),
        "Output with path `` is not connected to `inputs`. Received: the output <SymbolicTensor",
    ),
}


@cases(("make", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_graphs_that_are_none(make: Callable[[Any, Any], Any], message: str) -> None:
    x = mr.layers.Input(shape=(4,))
    y = mr.layers.Dense(2)(x)
    with pytest.raises(ValueError, match=re.escape(message)):
        make(x, y)


# ------------------------------------------------------------------------------ looking inside


def test_get_layer() -> None:
    model = functional()
    assert model.get_layer("hidden") is model.layers[1] is model.get_layer(index=1)
    assert model.get_layer(index=-1).name == "last"


@cases(
    ("options", "message"),
    [
        # The first two in Keras' words (3.15.1).
        (
            {"name": "zz"},
            "No such layer: zz. Existing layers are: ['pixels', 'hidden', 'last'].",
        ),
        ({"index": 4}, "Was asked to retrieve layer at index 4 but model only has 3 layers."),
        ({}, "Provide either a layer name or a layer index. Received: name=None, index=None"),
        ({"name": "last", "index": 1}, "Provide either a layer name or a layer index."),
    ],
)
def test_no_such_layer(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        functional().get_layer(**options)


def test_layers_in_lists_are_found(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = mr.Sequential([Block(3), Block(3), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.build((None, 4))
    assert len(model.weights) == 10
    before = model.get_weights()
    model.fit(X, X[:, :1], verbose=0)
    assert [a.shape for a in model.get_weights()] == [b.shape for b in before]
    assert not np.array_equal(model.get_weights()[0], before[0])


# ------------------------------------------------------------------------------ subclasses


def test_a_subclass_is_built_by_its_first_data(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = Lazy()
        model.compile("sgd", "mse", metrics=["accuracy"])
    assert not model.built
    assert model.weights == []
    model.fit(X, X[:, :2], verbose=0)
    assert model.output_shape == (None, 2)
    assert [weight.shape for weight in model.weights] == [(4, 3), (3,), (3, 3), (3,), (3, 2), (2,)]
    assert [metric.name for metric in model.metrics[1].metrics] == ["accuracy"]
    assert all(isinstance(weight, MirroredVariable) for weight in model.weights)


@pytest.mark.parametrize("how", ["build", "call", "predict"])
def test_building_outside_the_scope(how: str, strategy: mr.MirroredStrategy) -> None:
    """The weights are made in the scope in which the model was made."""
    with strategy.scope():
        model = Lazy()
        model.compile("sgd", "mse")
    if how == "build":
        model.build((None, 4))
    elif how == "call":
        assert model(X).shape == (6, 2)
    else:
        model.predict(X, verbose=0)
    assert all(strategy.owns(weight) for weight in model.weights)
    assert len(model.weights) == 6
    model.fit(X, X[:, :2], verbose=0)


def test_models_work_outside_strategies() -> None:
    model = Lazy()
    model.compile(mr.optim.SGD(0.01), "mse")
    assert model(X.tolist()).shape == (6, 2)
    history = model.fit(X, X[:, :2], epochs=2, verbose=0)
    assert len(history.epoch) == 2
    assert not any(isinstance(weight, MirroredVariable) for weight in model.weights)


def test_a_model_of_a_strategy_is_called_outside_of_it(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        model = functional()
    np.testing.assert_allclose(model(X).numpy(), model.predict(X, verbose=0), rtol=1e-6)
    with mr.GradientTape() as tape:
        loss = mr.reduce_sum(model(X))
    gradients = tape.gradient(loss, model.trainable_variables)
    assert [gradient.shape for gradient in gradients] == [(4, 3), (3,), (3, 2), (2,)]


def test_a_build_of_the_subclass_own(strategy: mr.MirroredStrategy) -> None:
    class Own(mr.Model):
        def build(self, input_shape: Any) -> None:
            super().build(input_shape)
            self.dense = mr.layers.Dense(2)
            self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.dense(inputs) * self.scale

    with strategy.scope():
        model = Own()
        model.compile("sgd", "mse")
    model.fit(X, X[:, :2], verbose=0)
    assert len(model.weights) == 3
    assert all(strategy.owns(weight) for weight in model.weights)


def test_training_mode_reaches_every_layer() -> None:
    modes = []

    class Looks(mr.layers.Layer):
        def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
            modes.append(training)
            return inputs

    x = mr.layers.Input(shape=(4,))
    model = mr.Model(x, mr.Sequential([Looks()])(x))
    modes.clear()
    for training in (None, False, True):
        model(X, training=training)
    assert modes == [False, False, True]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((None, None), "only the first size, the batch, may be None"),
        ("abc", "Cannot convert 'abc'"),
    ],
)
def test_shapes_that_models_cannot_be_built_for(shape: Any, message: str) -> None:
    model = Lazy()
    with pytest.raises(ValueError, match=re.escape(message)):
        model.build(shape)
    assert not model.built
    model.build((None, 4))
    assert len(model.weights) == 6


def test_a_model_without_call() -> None:
    class Nothing(mr.Model):
        pass

    model = Nothing()
    with pytest.raises(NotImplementedError, match="does not have a `call` method"):
        model(X)
    assert not model.built


@cases("output", [lambda x: (x, x), lambda x: [x], lambda x: {"a": x}])
def test_several_outputs(output: Callable[[Any], Any]) -> None:
    class Several(mr.Model):
        def call(self, inputs: mr.Tensor) -> Any:
            return output(inputs)

    model = Several()
    model.compile("sgd", "mse")
    found = model.evaluate(X, output(X), verbose=0, return_dict=True)
    assert found["loss"] == 0.0
    assert len(found) == (3 if len(output(X)) == 2 else 1)
    np.testing.assert_array_equal(
        mr.nest.flatten(model.predict(X, verbose=0))[0], np.asarray(X, np.float32)
    )


def test_a_build_that_fails_leaves_nothing(simulate: Callable[..., Any]) -> None:
    """The first layers' weights go too, so that other data can come."""
    simulate(2)

    class Breaks(Lazy):
        broken = True

        def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
            outputs = super().call(inputs, training=training)
            if self.broken:
                raise MemoryError
            return outputs

    with mr.MirroredStrategy().scope():
        model = Breaks()
    with pytest.raises(MemoryError):
        model.predict(X, verbose=0)
    assert (model.built, model.weights) == (False, [])
    for gpu in ("GPU:0", "GPU:1"):
        assert mr.config.experimental.get_memory_info(gpu)["current"] == 0
    model.broken = False
    assert model.predict(np.ones((2, 7)), verbose=0).shape == (2, 2)


@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_a_model_that_begins_nowhere_yet(which: str) -> None:
    model = mr.Sequential([mr.layers.Dense(2)], name="s")
    with pytest.raises(AttributeError, match=f"Sequential model 's' has no defined {which} yet"):
        getattr(model, which)
    model.build((None, 3))
    assert len(getattr(model, which)) == 1
