"""What objects are written as is what Keras writes, and Keras' dicts make the same objects."""

import json
from typing import Any

import pytest

import mirrored as mr
from tests.support import config_values

KERAS: dict[str, Any] = json.loads(config_values.FILE.read_text("utf-8"))
# What Keras' own configuration leaves out; it takes it all the same.
MORE = {
    "initializers.Identity(0.5)": {"gain": 0.5},
    "losses.CosineSimilarity(1)": {"axis": 1},
    "losses.Huber(2.0)": {"delta": 2.0},
    'losses.MeanSquaredError(dtype="float64")': {"dtype": "float64"},
    "metrics.CosineSimilarity(axis=1)": {"axis": 1},
}


@pytest.mark.parametrize("case", config_values.CASES)
def test_keras_dicts(case: str) -> None:
    mr.keras.utils.clear_session()
    made = config_values.made(mr.keras, case)
    written = mr.keras.utils.serialize_keras_object(made)
    expected = KERAS[case]
    expected["config"].update(MORE.get(case, {}))
    assert config_values.plain(written) == expected
    again = mr.keras.utils.deserialize_keras_object(config_values.plain(expected))
    assert type(again) is type(made)
    assert config_values.plain(mr.keras.utils.serialize_keras_object(again)) == expected
    copy = type(made).from_config(made.get_config())
    assert config_values.plain(copy.get_config()) == config_values.plain(made.get_config())
