"""What a model is drawn from: layers inside its layers, what these return, and their names."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from safetensors.numpy import load_file

import mirrored as mr

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


class Block(mr.layers.Layer):
    """A layer that holds others, and says its output's shape, as Keras has users write it."""

    def __init__(self, *layers: Any, **options: Any) -> None:
        super().__init__(**options)
        self.inner = list(layers)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        for layer in self.inner:
            inputs = layer(inputs)
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (*input_shape[:-1], 2)


def in_block() -> Block:
    return Block(mr.layers.Dense(3), mr.Sequential([mr.layers.Dense(2)]))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: mr.Model(x, in_block()(x)),
        lambda x: mr.Model(x, Block(in_block(), dtype="float64")(x)),
        lambda x: mr.Sequential([x, in_block()]),
        lambda x: mr.Sequential([x, mr.Sequential([in_block()])]),
        lambda x: mr.Sequential([x, Block(mr.Sequential([in_block()]))]),
    ],
)
def test_layers_inside_layers_are_built_with_the_model(
    make: Callable[[Any], mr.Model], simulate: Callable[..., Any], tmp_path: Path
) -> None:
    """Keras 3.15 counts 23 parameters as soon as the model is there."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model, other = (make(mr.layers.Input(shape=(4,))) for _ in range(2))
    lines: list[str] = []
    model.summary(print_fn=lines.append)
    assert "Total params: 23 (92.00 B)" in lines[0].splitlines()
    assert all(strategy.owns(weight) for weight in model.weights)
    assert len(model.weights) == 4
    model.save_weights(tmp_path / "w")
    other.load_weights(tmp_path / "w")
    np.testing.assert_array_equal(model.predict(X, verbose=0), other.predict(X, verbose=0))
    for each, files in ((model, tmp_path / "w"), (other, tmp_path / "w")):
        each.load_weights(files)
        mr.train.Checkpoint(model=each).restore(
            mr.train.Checkpoint(model=model).save(tmp_path / "ckpt")
        ).assert_consumed()


@pytest.mark.behaviour("not-built")
def test_a_layer_inside_that_is_not_built_yet_is_not_left_out_of_files(tmp_path: Path) -> None:
    class Announces(mr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.block = in_block()

        def build(self, input_shape: Any) -> None:
            """Leave it to the first call."""

        def call(self, inputs: mr.Tensor) -> Any:
            return self.block(inputs)

    model = Announces()
    model.build((None, 4))
    for use in (
        lambda: model.save_weights(tmp_path / "w"),
        lambda: model.load_weights(tmp_path / "w"),
        lambda: mr.train.Checkpoint(model=model).save(tmp_path / "ckpt"),
    ):
        with pytest.raises(ValueError, match="has not yet been built"):
            use()
    with pytest.raises(ValueError, match=r"without the weights of \[<Block name=\w+, built=False>"):
        model.save_weights(tmp_path / "w")
    assert list(tmp_path.iterdir()) == []
    model.predict(X, verbose=0)
    model.save_weights(tmp_path / "w")
    assert len(load_file(tmp_path / "w")) == len(model.weights) == 4


def test_a_layer_inside_is_built_where_a_size_is_not_known(tmp_path: Path) -> None:
    x = mr.layers.Input(shape=(None, 4))
    model = mr.Model(x, in_block()(x))
    assert model.output_shape == (None, None, 2)
    model.save_weights(tmp_path / "w")
    assert len(load_file(tmp_path / "w")) == len(model.weights) == 4
    assert model.predict(X.reshape(2, 3, 4), verbose=0).shape == (2, 3, 2)


def test_a_placeholder_that_fails_in_a_layer_builds_nothing_inside() -> None:
    block = Block(mr.layers.Dense(3), mr.layers.Flatten(), lambda x: x.no_such_attribute)
    with pytest.raises(AttributeError):
        block(mr.layers.Input(shape=(4,)))
    assert block.weights == []


@pytest.mark.behaviour("layer-outputs")
@cases("value", [5, "a", np.ones((6, 2), np.float32), [1.0], {}], ids=str)
def test_what_is_no_tensor_is_no_output(value: Any) -> None:
    """The words are those of Keras 3.15, which raises for numbers and arrays alike."""

    class Returns(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> Any:
            return value

    class Says(Returns):
        def compute_output_shape(self, input_shape: Any) -> Any:
            return input_shape

    text = r"All operation outputs must be tensors.*returned a non-tensor\. Non-tensor received: "
    with pytest.raises(ValueError, match=text):
        Returns()(mr.layers.Input(shape=(4,)))
    for layers in (
        [mr.layers.Dense(2), Returns()],
        [mr.layers.Input((4,)), mr.layers.Dense(2), Says()],
    ):
        model = mr.Sequential(layers)
        model.compile("sgd", "mse")
        before = model.get_weights()
        for use in (
            lambda model: model.predict(X, verbose=0),
            lambda model: model.fit(X, X[:, :2], verbose=0),
            lambda model: model(X),
        ):
            with pytest.raises(ValueError, match=text):
                use(model)
        for weight, old in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(weight, old)


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_variable_is_an_output(replicas: int, simulate: Callable[..., Any]) -> None:
    """As in Keras 3.15: its value is."""

    class Mine(mr.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight(shape=(1, 3), initializer="ones")

        def call(self, inputs: mr.Tensor) -> Any:
            return self.w

    class Whole(mr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.w = mr.Variable([[1.0, 1.0, 1.0]])

        def call(self, inputs: mr.Tensor) -> Any:
            return self.w

    simulate(2)
    with mr.MirroredStrategy().scope() if replicas else contextlib.nullcontext():
        models = [mr.Sequential([mr.layers.Input((4,)), Mine()]), mr.Sequential([Mine()]), Whole()]
    for model in models:
        assert (
            model.predict(X[:2], batch_size=max(replicas, 1), verbose=0).tolist() == [[1.0] * 3] * 2
        )


@pytest.mark.behaviour("layer-names")
def test_names_that_are_there_twice() -> None:
    """As in Keras 3.15; a layer that is shared has its name once."""
    x = mr.layers.Input(shape=(4,), name="x")
    text = r'The name "same" is used 2 times in the model\. All operation names should be unique'
    dense = mr.layers.Dense
    with pytest.raises(ValueError, match=text):
        mr.Model(x, dense(2, name="same")(dense(2, name="same")(x)))
    with pytest.raises(ValueError, match=text.replace("same", "x")):
        mr.Model(x, dense(2, name="x")(x))
    inner = mr.Sequential([dense(4, name="same")])
    assert mr.Model(x, dense(2, name="same")(inner(x))).built


def test_layers_that_no_call_used_are_named_where_a_file_has_them(tmp_path: Path) -> None:
    class Late(mr.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.extra = mr.layers.Dense(4, name="extra")

        def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
            return self.extra(inputs) if training else inputs

    models = [mr.Sequential([mr.layers.Input((4,)), Late()]) for _ in range(2)]
    models[0](X, training=True)
    models[0].save_weights(tmp_path / "w")
    with pytest.raises(mr.errors.WeightsFileError) as caught:
        models[1].load_weights(tmp_path / "w")
    note = "have no weights yet, since no call used them: [<Dense name=extra, built=False>]"
    assert note in caught.value.__notes__[-1]
    models[1](X, training=True)
    models[1].load_weights(tmp_path / "w")
