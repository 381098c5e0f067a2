"""The facts about a layer are in one attribute, copied with it, and read from old pickles."""

import copy
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

# What layers had for themselves when they were pickled, by the present names of these facts.
EARLIER = {"policy": "_dtype_policy", "arguments": "_made_with"}


def _with_single_underscores(layer: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = layer.__getstate__()
    attributes["_mirrored"] = attributes.pop("__state__")
    attributes["_tracker"] = attributes.pop("__tracker__")
    attributes["_added_weights"] = attributes.pop("__added_weights__")
    return attributes


def _without_state(layer: Any) -> dict[str, Any]:
    attributes = layer.__getstate__()
    facts = vars(attributes.pop("__state__"))
    attributes["_tracker"] = attributes.pop("__tracker__")
    attributes["_added"] = attributes.pop("__added_weights__")
    if "_layer_chain" in attributes:
        attributes["_chain"] = attributes.pop("_layer_chain")
    return {**attributes, **{EARLIER.get(name, f"_{name}"): fact for name, fact in facts.items()}}


def _functional() -> mr.Model:
    begin = mr.layers.Input((3,))
    return mr.Model(begin, mr.layers.Dense(2)(mr.layers.Dense(4)(begin)))


@cases(
    "make",
    [
        lambda: mr.layers.Dense(2, name="d", trainable=False),
        lambda: mr.Sequential([mr.layers.Dense(2), mr.layers.Dropout(0.5)]),
        _functional,
    ],
    ids=["layer", "sequential", "functional"],
)
@cases("pickled", [_with_single_underscores, _without_state])
def test_layers_of_earlier_pickles(make: Any, pickled: Any) -> None:
    layer = make()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    outputs = layer(x).numpy()
    again = type(layer).__new__(type(layer))
    again.__setstate__(pickled(layer))
    assert again(x).numpy().tolist() == outputs.tolist()
    assert not {"_mirrored", "_tracker"} & vars(again).keys()
    assert (again.name, again.trainable, again.built) == (layer.name, layer.trainable, True)
    assert again.get_config() == layer.get_config()
    if isinstance(again, mr.Sequential):
        with pytest.raises(ValueError, match="unique names"):
            again.add(mr.layers.Dense(2, name=again.layers[0].name))


def test_a_copy_has_facts_of_its_own() -> None:
    layer = mr.layers.Dense(2, name="first")
    other = copy.copy(layer)
    layer.build((None, 3))
    layer.trainable = False
    assert (other.trainable, other.path, layer.path) == (True, None, "first")
