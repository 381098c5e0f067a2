"""What objects are written as is what Keras writes, and Keras' dicts make the same objects."""

import importlib
import json
from typing import Any

import keras_names
import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from tests.support import config_values
from tests.support.config_values import plain

KERAS: dict[str, Any] = json.loads(config_values.FILE.read_text("utf-8"))
NAMES = {module: set(names) for module, names in json.loads(keras_names.FILE.read_text()).items()}
KINDS = [*config_values.KINDS, "models"]
BASES = {"Layer", "Wrapper", "Initializer", "Regularizer", "Constraint"}
BASES |= {"Optimizer", "Loss", "Metric"}
# What Keras' own configuration leaves out; it takes it all the same.
MORE = {
    "initializers.Identity(0.5)": {"gain": 0.5},
    "losses.CosineSimilarity(1)": {"axis": 1},
    "losses.Huber(2.0)": {"delta": 2.0},
    "losses.SparseCategoricalCrossentropy(axis=1)": {"axis": 1},
    'losses.MeanSquaredError(dtype="float64")': {"dtype": "float64"},
    "metrics.CosineSimilarity(axis=1)": {"axis": 1},
}


def with_our_default(config: Any) -> Any:
    """Return a configuration of Keras with our default of `synchronized` instead of Keras' own."""
    if isinstance(config, dict):
        return {
            key: None if (key, value) == ("synchronized", False) else with_our_default(value)
            for key, value in config.items()
        }
    return [with_our_default(each) for each in config] if isinstance(config, list) else config


def kind_of(case: str) -> str:
    return "models" if case in config_values.MODELS else case.partition(".")[0]


def test_the_table_has_every_case() -> None:
    assert KERAS.keys() == set(config_values.CASES)
    assert {kind_of(case) for case in KERAS} == set(KINDS)
    called = {case.partition("(")[0] for case in KERAS}
    for kind in config_values.KINDS:
        module = importlib.import_module(f"mirrored.keras.{kind}")
        classes = {name for name in dir(module) if hasattr(getattr(module, name), "get_config")}
        own = {name for name in classes if getattr(module, name).__name__ == name} - BASES
        own &= NAMES[f"keras.{kind}"]  # Keras has no configuration of others.
        assert {f"{kind}.{name}" for name in own} <= called


@pytest.mark.behaviour("configurations")
@cases("kind", KINDS)
def test_keras_dicts(kind: str) -> None:
    """Ours are Keras'; theirs make an object of the same dict, and so does `from_config`."""
    differing = {}
    for case in (each for each in config_values.CASES if kind_of(each) == kind):
        mr.keras.utils.clear_session()
        made = config_values.made(mr.keras, case)
        expected = {**KERAS[case], "config": {**KERAS[case]["config"], **MORE.get(case, {})}}
        again = mr.keras.utils.deserialize_keras_object(expected)
        written = [plain(mr.keras.utils.serialize_keras_object(each)) for each in (made, again)]
        copy = type(made).from_config(made.get_config())
        wanted = [with_our_default(expected)] * 2
        if case == "masked":  # Ours leaves masks to the layers, which Keras draws as operations.
            written, wanted = written[1:], wanted[1:]
        if written != wanted or plain(copy.get_config()) != plain(made.get_config()):
            differing[case] = written
        assert type(again) is type(made)
    assert differing == {}


@pytest.mark.behaviour("configurations")
def test_masks_that_keras_draws() -> None:
    ours = config_values.masked(mr.keras)
    theirs = mr.keras.utils.deserialize_keras_object(KERAS["masked"])
    theirs.set_weights(ours.get_weights())
    inputs = np.array([[1, 2, 0, 0], [0, 0, 0, 3]])
    np.testing.assert_array_equal(theirs(inputs).numpy(), ours(inputs).numpy())
    other = mr.keras.models.model_from_json(ours.to_json())
    other.set_weights(ours.get_weights())
    np.testing.assert_array_equal(other(inputs).numpy(), ours(inputs).numpy())


def test_batch_normalization_that_is_not_synchronized() -> None:
    """A False that Keras wrote is its default; one that was asked for here is kept."""
    cls = mr.layers.BatchNormalization
    asked = mr.Sequential([mr.layers.Input((3,)), cls(synchronized=False, name="n"), cls()])
    keras = json.loads(asked.to_json())
    for layer in keras["config"]["layers"]:
        layer.pop("mirrored_config", None)
    copies = {
        "json": mr.keras.models.model_from_json(asked.to_json()),
        "configuration": mr.Sequential.from_config(asked.get_config()),
        "clone": mr.keras.models.clone_model(asked),
        "Keras' json": mr.keras.models.model_from_json(json.dumps(keras)),
    }
    read = {name: [each.synchronized for each in copy.layers] for name, copy in copies.items()}
    assert read.pop("Keras' json") == [None, None]
    assert set(map(tuple, read.values())) == {(False, None)}
    layer = asked.layers[0]
    assert cls.from_config(layer.get_config()).synchronized is False
    written = mr.keras.layers.serialize(layer)
    assert mr.keras.layers.deserialize(written).synchronized is False
    del written["mirrored_config"]
    assert mr.keras.layers.deserialize(written).synchronized is None
