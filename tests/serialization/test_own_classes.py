"""Configurations of users' own classes and functions, and what configurations cannot name."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored.keras import layers, models, utils
from tests.support import config_values


@pytest.fixture(autouse=True)
def _nothing_registered() -> Iterator[None]:
    before = dict(utils.get_custom_objects())
    yield
    utils.get_custom_objects().clear()
    utils.get_custom_objects().update(before)


class Scaled(layers.Dense):
    """A subclass of a layer that there is, which adds an argument."""

    def __init__(self, units: int, factor: float = 1.0, **options: Any) -> None:
        super().__init__(units, **options)
        self.factor = factor

    def call(self, inputs: Any) -> Any:
        return super().call(inputs) * self.factor

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "factor": self.factor}


class Plain(layers.Layer):
    """One that says nothing, and is made with plain values."""

    def __init__(self, units: int, sizes: Any = (1, 2), *, mode: str = "a", **options: Any) -> None:
        super().__init__(**options)
        self.dense = layers.Dense(units)

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs)


class Bare(layers.Layer):
    """One that takes nothing that all layers take."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units = units


class Net(mr.Model):
    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.dense = layers.Dense(units)

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs)


def halved(x: Any) -> Any:
    return x / 2.0


def through_json(config: Any) -> Any:
    return json.loads(json.dumps(config))


def test_a_subclass_that_adds_an_argument() -> None:
    config = through_json(layers.serialize(Scaled(3, 2.0, name="mine")))
    assert config["registered_name"] == config["class_name"] == "Scaled"
    with pytest.raises(TypeError, match="Could not locate class 'Scaled'"):
        layers.deserialize(config)
    made = layers.deserialize(config, {"Scaled": Scaled})
    assert (made.units, made.factor, made.name) == (3, 2.0, "mine")
    with utils.custom_object_scope({"Scaled": Scaled}):
        assert type(layers.deserialize(config)) is Scaled


def test_a_registered_class() -> None:
    @utils.register_keras_serializable("own", "Other")
    class Registered(Scaled):
        pass

    assert utils.get_registered_name(Registered) == "own>Other"
    assert utils.get_registered_object("own>Other") is Registered
    config = through_json(layers.serialize(Registered(3)))
    assert config["registered_name"] == "own>Other"
    assert type(layers.deserialize(config)) is Registered


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (lambda: Plain(3, name="p"), {"name": "p", "units": 3, "sizes": (1, 2), "mode": "a"}),
        (lambda: Plain(3, [4], mode="b", trainable=False), {"sizes": [4], "mode": "b"}),
        (lambda: Bare(4), {"units": 4}),
        (lambda: Net(5, name="n"), {"name": "n", "units": 5}),
    ],
)
def test_arguments_that_are_plain(make: Callable[[], Any], own: dict[str, Any]) -> None:
    layer = make()
    config = layer.get_config()
    assert {**config, **own} == config
    assert config["trainable"] is layer.trainable
    made = type(layer).from_config(config)
    assert made.get_config() == config


def test_what_every_layer_has_and_a_class_does_not_take() -> None:
    layer = Bare(4)
    layer.trainable = False
    assert not Bare.from_config(layer.get_config()).trainable
    other = {**layer.get_config(), "dtype": "float64"}
    with pytest.raises(TypeError, match="It takes no `dtype`, and has"):
        Bare.from_config(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Plain(3, np.ones(2)),
        lambda: Plain(3, layers.Dense(2)),
        lambda: Plain(3, mr.Variable(1.0)),
        lambda: Net(np.int64(3)),  # type: ignore[arg-type]
    ],
)
def test_arguments_that_are_not(make: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"Define `get_config\(self\)` in (Plain|Net)"):
        make().get_config()


def test_functions() -> None:
    layer = layers.Dense(2, activation=halved)
    config = through_json(layers.serialize(layer))
    assert config["config"]["activation"]["config"] == "halved"
    with pytest.raises(TypeError, match="Could not locate function 'halved'"):
        layers.deserialize(config)
    assert layers.deserialize(config, {"halved": halved}).activation is halved


def test_a_registered_function() -> None:
    @utils.register_keras_serializable()
    def doubled(x: Any) -> Any:
        return x * 2.0

    config = through_json(layers.serialize(layers.Dense(2, activation=doubled)))
    assert config["config"]["activation"]["config"] == "Custom>doubled"
    assert layers.deserialize(config).activation is doubled
    assert mr.keras.activations.deserialize("Custom>doubled") is doubled


@pytest.mark.behaviour("configurations", "crafted-configurations")
def test_lambdas_are_refused() -> None:
    with pytest.raises(ValueError, match="A lambda has no name"):
        layers.serialize(layers.Lambda(lambda x: x))
    code = {"class_name": "__lambda__", "config": {"code": "4wE=", "defaults": None}}
    config = {"module": "keras.layers", "class_name": "Lambda", "config": {"function": code}}
    for each in (code, config):
        with pytest.raises(ValueError, match="Requested the deserialization of a Python lambda"):
            utils.deserialize_keras_object(each)
        with pytest.raises(ValueError, match="bytecode, which is never run here"):
            utils.deserialize_keras_object(each, safe_mode=False)


def test_a_model_of_own_classes() -> None:
    x = layers.Input((3,), name="x")
    model = mr.Model(x, Net(2, name="net")(Scaled(4, 0.5, activation=halved, name="s")(x)))
    own = {"Scaled": Scaled, "Net": Net, "halved": halved}
    made = models.model_from_json(model.to_json(), custom_objects=own)
    assert [each.shape for each in made.weights] == [each.shape for each in model.weights]
    made.set_weights(model.get_weights())
    inputs = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(made(inputs).numpy(), model(inputs).numpy())
    copy = models.clone_model(model)
    assert [type(each) for each in copy.layers] == [type(each) for each in model.layers]


def test_what_has_no_configuration_is_cloned() -> None:
    x = layers.Input((2, 3))
    wrapped = layers.TimeDistributed(Scaled(4, 0.5, activation=lambda each: each * 2.0))
    outputs = layers.Lambda(lambda each: each + 1.0)(wrapped(x))
    model = mr.Model(x, outputs)
    with pytest.raises(ValueError, match="A lambda has no name"):
        model.to_json()
    copy = models.clone_model(model)
    copy.set_weights(model.get_weights())
    inputs = np.ones((1, 2, 3), np.float32)
    np.testing.assert_array_equal(copy(inputs).numpy(), model(inputs).numpy())


def test_a_compile_of_ones_own() -> None:
    class Own(Net):
        def compile(self, *args: Any, **kwargs: Any) -> None:
            super().compile(*args, **kwargs)

    model = Own(2)
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match=r"the model's `compile\(\)` method is custom"):
        Own(2).compile_from_config(model.get_compile_config())


CONFIG = layers.serialize(layers.Dense(2))
WRONG: dict[str, tuple[Any, type[Exception]]] = {
    "another module": ({**CONFIG, "module": "os", "class_name": "system"}, TypeError),
    "a module of this library": ({**CONFIG, "module": "mirrored.layers"}, TypeError),
    "a function that is no object's": (
        {**CONFIG, "module": "keras.utils", "class_name": "set_random_seed"},
        TypeError,
    ),
    "a class that makes none": ({**CONFIG, "class_name": "Conv9D"}, TypeError),
    "another name than its own": ({**CONFIG, "registered_name": "mine>Dense"}, ValueError),
    "arguments that it lacks": ({**CONFIG, "config": {"units": 2, "more": 1}}, TypeError),
    "an argument that is wrong": ({**CONFIG, "config": {"units": -1}}, TypeError),
    "a name that is none": ({**CONFIG, "class_name": ["Dense"]}, TypeError),
    "arguments that are none": ({**CONFIG, "config": 7}, TypeError),
    "what is no configuration": (object(), TypeError),
    "deep": (json.loads("[" * 300 + "]" * 300), ValueError),
    "an array of no dtype": (
        {"class_name": "__numpy__", "config": {"value": [1], "dtype": "object"}},
        ValueError,
    ),
    "an array of no values": (
        {"class_name": "__numpy__", "config": {"value": [[1], [2, 3]], "dtype": "float32"}},
        ValueError,
    ),
    "a placeholder": ({"class_name": "__keras_tensor__", "config": {}}, ValueError),
    "a method of objects": ({**CONFIG, "class_name": "function", "config": "Dense"}, TypeError),
}


@pytest.mark.behaviour("crafted-configurations")
@pytest.mark.parametrize(("config", "kind"), WRONG.values(), ids=WRONG)
def test_what_is_refused(config: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        utils.deserialize_keras_object(config)


MODEL = json.dumps(json.loads(config_values.FILE.read_text("utf-8"))["graph"])
VALUES = (None, True, -1, 10**30, 1e308, "", "Dense", "keras.layers", [], [None], ["x", 0, 0], {})
NODES = st.lists(st.integers(0, 2**20), min_size=1, max_size=12)


@pytest.mark.behaviour("crafted-configurations")
@pytest.mark.filterwarnings("ignore:Model '.*' had a build config")
@settings(max_examples=20, deadline=None, derandomize=True)
@given(NODES, st.sampled_from(VALUES), st.booleans())
def test_a_value_that_is_wrong_somewhere(path: list[int], value: Any, is_left_out: bool) -> None:
    """What is made of it is an error, or a model; never anything else, and nothing runs on."""
    whole = parent = json.loads(MODEL)
    for step in path:
        keys: Any = list(parent) if isinstance(parent, dict) else range(len(parent))
        if not keys:
            return
        key = keys[step % len(keys)]
        if not isinstance(parent[key], dict | list):
            break
        last, parent = parent, parent[key]
    else:
        parent, key = last, key
    if is_left_out:
        del parent[key]
    else:
        parent[key] = value
    with contextlib.suppress(ValueError, TypeError, mr.errors.ResourceExhaustedError):
        utils.deserialize_keras_object(whole)
