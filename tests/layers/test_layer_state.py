"""The facts about a layer are in one attribute, copied with it."""

import copy

import mirrored as mr


def test_a_copy_has_facts_of_its_own() -> None:
    layer = mr.layers.Dense(2, name="first")
    other = copy.copy(layer)
    layer.build((None, 3))
    layer.trainable = False
    assert (other.trainable, other.path, layer.path) == (True, None, "first")
