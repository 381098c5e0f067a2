"""`clone_model`: models drawn again with layers and weights of their own."""

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.layers import Add, Dense, Dropout, Input, Layer
from mirrored.training.cloning import clone_model

A = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def functional() -> mr.Model:
    """Return a model of two inputs by name, with a shared layer, operations and models inside."""
    a, b = Input((4,), name="a"), Input((4,), name="b")
    shared = Dense(4, "tanh", name="shared")
    inner = mr.Model(a, Dense(4, name="in")(a), name="inner")
    listed = mr.Sequential([Dense(2, name="first"), Dense(2, name="last")], name="listed")
    joined = shared(a) + shared(b) * 2.0
    return mr.Model({"a": a, "b": b}, [joined, inner(Add(name="sum")([a, b])), listed(b)])


def test_a_functional_model() -> None:
    model = functional()
    made = clone_model(model)
    assert made.name == model.name
    assert [each.name for each in made.layers] == [each.name for each in model.layers]
    assert not {id(each) for each in made.layers} & {id(each) for each in model.layers}
    assert [each.shape for each in made.weights] == [each.shape for each in model.weights]
    assert not np.array_equal(made.get_weights()[0], model.get_weights()[0])
    made.set_weights(model.get_weights())
    for one, other in zip(made([A, -A]), model({"a": A, "b": -A}), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("first", [lambda: Input((4,), 3, "float64", name="in"), lambda: None])
def test_a_sequential_model(first: Callable[[], Any], strategy: mr.MirroredStrategy) -> None:
    layers = [Dense(3, name="a"), Dropout(0.5, seed=1, name="b"), mr.Sequential([Dense(2)])]
    begin = first()
    model = mr.Sequential(layers if begin is None else [begin, *layers], name="net")
    with strategy.scope():
        made = clone_model(model)
    assert [each.name for each in made.layers] == [each.name for each in model.layers]
    assert (made.built, made.name, made.dtype) == (model.built, "net", model.dtype)
    if model.built:
        assert [each.shape for each in made.inputs] == [each.shape for each in model.inputs]
    made(A)
    assert all(strategy.owns(each) for each in made.weights)


def test_functions_make_layers_and_calls() -> None:
    """As in Keras' examples."""
    model = functional()

    def drop(layer: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = layer(*args, **kwargs)
        return Dropout(0.5)(outputs) if isinstance(layer, Dense) else outputs

    made = clone_model(model, clone_function=lambda layer: layer, call_function=drop)
    assert made.get_layer("shared") is model.get_layer("shared")
    assert sum(isinstance(each, Dropout) for each in made.layers) == 2

    def wider(layer: Any) -> Any:
        return Dense(5, name=layer.name) if layer.name == "last" else layer

    made = clone_model(model, clone_function=wider, recursive=True)
    listed: Any = made.get_layer("listed")
    assert [each.units for each in listed.layers] == [2, 5]
    assert made.get_layer("shared") is model.get_layer("shared")
    outer = mr.Sequential([model, mr.layers.Lambda(lambda outputs: outputs[0])])
    inner: Any = clone_model(outer, clone_function=wider, recursive=True).layers[0]
    assert [layer.units for layer in inner.get_layer("listed").layers] == [2, 5]
    a, b = Input((4,)), Dense(4)(Input((4,)))
    made = clone_model(model, input_tensors={"a": a, "b": b})
    assert made.input["a"] is a


class Scale(Layer):
    def __init__(self, factor: Any, **options: Any) -> None:
        super().__init__(**options)
        self.factor = factor

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return inputs * self.factor


class Chain(mr.Sequential):
    """A class that a clone of it within a model has, too."""


class Net(mr.Model):
    def __init__(self, units: int, name: str = "net") -> None:
        super().__init__(name=name)
        self.dense = Dense(units)

    def call(self, inputs: mr.Tensor) -> Any:
        return self.dense(inputs)


def test_subclasses_are_made_with_the_same_arguments() -> None:
    net = Net(3)
    net(A)
    made = clone_model(net)
    assert isinstance(made, Net)
    assert (made.name, [each.shape for each in made.weights]) == ("net", [(4, 3), (3,)])
    assert made(A).shape == (3, 3)
    x = Input((4,))
    chain = Chain([Net(2, "mine")], name="chain")
    clone = clone_model(mr.Model(x, Scale(3.0, name="scale")(chain(x))))
    assert [layer.name for layer in clone.layers[1:]] == ["chain", "scale"]
    assert isinstance(clone.layers[1], Chain)
    np.testing.assert_allclose(clone(A).numpy(), clone.layers[1](A).numpy() * 3)


def off(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
    return mr.reduce_mean(mr.square(y_true - y_pred), -1)


class Further(mr.keras.metrics.MeanAbsoluteError):
    """A class that no name stands for."""


def kinds() -> dict[str, mr.Model]:
    x = Input((4,))
    net = Net(1)
    net(A)
    return {
        "functional": mr.Model(x, Dense(1)(x)),
        "sequential": mr.Sequential([x, Dense(1)]),
        "not built": mr.Sequential([Dense(1)]),
        "a subclass": net,
    }


@pytest.mark.parametrize("kind", kinds())
def test_the_copy_of_a_compiled_model_is_compiled(kind: str, strategy: mr.MirroredStrategy) -> None:
    """With the same loss, metrics and optimizer, but none of the same objects, nor their state."""
    with strategy.scope():
        model, y = kinds()[kind], A[:, :1]
        rate = mr.optim.schedules.ExponentialDecay(0.1, 2, 0.5)
        metrics, options = [Further(name="mae"), "mse"], {"steps_per_execution": 2}
        model.compile(mr.optim.SGD(rate, momentum=0.9), off, metrics=metrics, **options)
        weights = model.get_weights() if model.built else []
        first = model.fit(A, y, shuffle=False, verbose=0).history
        made = clone_model(model)
        assert (made.optimizer is model.optimizer, int(made.optimizer.iterations)) == (False, 0)
        assert (made.loss, made.steps_per_execution) == (off, 2)
        if weights:
            made.set_weights(weights)
            assert made.fit(A, y, shuffle=False, verbose=0).history == first
        assert int(model.optimizer.iterations) == 1
    assert clone_model(kinds()[kind]).compiled is False


def test_a_model_with_a_compile_of_its_own_says_that_its_copy_is_not_compiled() -> None:
    class Own(Net):
        def compile(self, factor: float) -> None:  # type: ignore[override]
            super().compile("sgd", "mse", loss_weights=factor)

    model = Own(1)
    model.compile(2.0)
    with pytest.warns(UserWarning, match="`compile\\(\\)` was not called"):
        assert clone_model(model).compiled is False


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no model": (
        lambda: clone_model(Dense(1)),
        ValueError,
        "`model` must be a model. Received: model=",
    ),  # type: ignore[arg-type]
    "unknown": (
        lambda: clone_model(functional(), other=1),
        ValueError,
        "Unexpected keyword argument(s): ('o",
    ),
    "a call of a list": (
        lambda: clone_model(mr.Sequential([Dense(1)]), call_function=print),
        ValueError,
        "`call_function` argument is not supported with Sequential models. In a Sequential model",
    ),
    "inputs of a subclass": (
        lambda: clone_model(Net(1), input_tensors=Input((4,))),
        ValueError,
        "are only supported for Sequential models or Functional models. Received model of type 'N",
    ),
    "other inputs": (
        lambda: clone_model(functional(), input_tensors=[Input((4,))]),
        ValueError,
        "`input_tensors` must have the same structure as model.input",
    ),
    "no placeholder": (
        lambda: clone_model(mr.Sequential([Dense(1)]), input_tensors=[A]),
        ValueError,
        "Argument `input_tensors` must be one symbolic tensor.",
    ),
    "a layer of variables": (
        lambda: clone_model(mr.Sequential([Scale(mr.Variable(2.0))])),
        NotImplementedError,
        "was created with layers or variables, which both copies would share",
    ),
    "a copy": (
        lambda: clone_model(mr.Sequential([copy.deepcopy(Scale(A))])),
        NotImplementedError,
        "lost its constructor arguments when it was copied",
    ),
}


@cases(("call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call()
