"""What objects are written as is what Keras writes, and Keras' dicts make the same objects."""

import importlib
import json
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.support import config_values
from tests.support.config_values import plain

KERAS: dict[str, Any] = json.loads(config_values.FILE.read_text("utf-8"))
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
        assert {f"{kind}.{name}" for name in own} <= called


@pytest.mark.parametrize("kind", KINDS)
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
        wanted = [expected] * 2
        if case == "masked":  # Ours leaves masks to the layers, which Keras draws as operations.
            written, wanted = written[1:], wanted[1:]
        if written != wanted or plain(copy.get_config()) != plain(made.get_config()):
            differing[case] = written
        assert type(again) is type(made)
    assert differing == {}


def test_masks_that_keras_draws() -> None:
    ours = config_values.masked(mr.keras)
    theirs = mr.keras.utils.deserialize_keras_object(KERAS["masked"])
    theirs.set_weights(ours.get_weights())
    inputs = np.array([[1, 2, 0, 0], [0, 0, 0, 3]])
    np.testing.assert_array_equal(theirs(inputs).numpy(), ours(inputs).numpy())
    other = mr.keras.models.model_from_json(ours.to_json())
    other.set_weights(ours.get_weights())
    np.testing.assert_array_equal(other(inputs).numpy(), ours(inputs).numpy())
