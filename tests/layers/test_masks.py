"""Masks between layers: what `call` is given, what outputs carry, and what models do with them.

What layers themselves make of masks is compared with Keras in test_layers_against_keras.py.
"""

import inspect
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import layers
from mirrored.ops import Tensor

STEPS = np.array([[[1.0], [0.0], [2.0]], [[0.0], [0.0], [3.0]]], np.float32)
KEPT = [[True, False, True], [False, False, True]]


def mask_of(x: Any) -> Any:
    return None if x._keras_mask is None else x._keras_mask.numpy().tolist()


class Notes(layers.Layer):
    """Keeps what its `call` was given."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: list[Any] = []

    def call(self, inputs: Any, mask: Any = None) -> Any:
        self.seen = [mask]
        return inputs[0] + 1.0 if isinstance(inputs, list) else inputs + 1.0


class Several(layers.Layer):
    def call(
        self, query: Any, value: Any, query_mask: Any = None, value_mask: Any = None, mask: Any = 5
    ) -> Any:
        self.masks = [query_mask, value_mask, mask]
        return query + value


def values(masks: Any) -> Any:
    return [each.numpy().tolist() if isinstance(each, Tensor) else each for each in masks]


def test_a_call_is_given_the_mask_of_its_input() -> None:
    masked, layer = layers.Masking()(STEPS), Notes()
    assert mask_of(masked) == KEPT
    with pytest.warns(UserWarning, match="does not support masking and will therefore destroy"):
        outputs = layer(masked)
    assert values(layer.seen) == [KEPT]
    assert mask_of(outputs) is None
    layer(masked + 0.0)
    assert layer.seen == [None]  # Ops drop masks.


def test_a_mask_that_is_given_comes_before_that_of_the_input() -> None:
    layer = Notes()
    layer.supports_masking = True
    outputs = layer(layers.Masking()(STEPS), mask=np.array([[True, True, False]] * 2))
    assert values(layer.seen) == [[[True, True, False]] * 2]
    assert mask_of(outputs) == [[True, True, False]] * 2


def test_several_inputs_in_a_list_have_a_mask_each() -> None:
    masked, layer = layers.Masking()(STEPS), Notes()
    layer.supports_masking = True
    outputs = layer([masked, mr.constant(STEPS)])
    assert values(layer.seen[0]) == [KEPT, None]
    assert mask_of(outputs) == KEPT
    layer([mr.constant(STEPS)] * 2)
    assert layer.seen == [[None, None]]  # As in Keras, also where there are no masks.


def test_arguments_have_masks_by_their_names() -> None:
    masked, layer = layers.Masking()(STEPS), Several()
    layer.supports_masking = True
    assert mask_of(layer(STEPS, masked)) is None  # It is the first argument's that is handed on.
    assert values(layer.masks) == [None, KEPT, 5]
    assert mask_of(layer(masked, STEPS, value_mask=masked._keras_mask)) == KEPT
    assert values(layer.masks) == [KEPT, KEPT, 5]


def test_a_call_may_be_of_no_module() -> None:
    def call(self: Any, inputs: Any) -> Any:
        return inputs

    call.__module__ = None  # type: ignore[assignment]
    bare: Any = type("Bare", (layers.Layer,), {"call": call})
    assert bare()(STEPS).shape == STEPS.shape


class Shifted(layers.Layer):
    """Says itself what the mask of its outputs is, and is asked for it without one, too."""

    def call(self, inputs: Any) -> Any:
        return inputs

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        self.given = previous_mask
        return mr.not_equal(inputs[..., 0], 1.0)


def test_a_layer_with_a_compute_mask_supports_masking() -> None:
    layer = Shifted()
    assert layer.supports_masking
    x = mr.constant(STEPS)
    assert mask_of(layer(x)) == [[False, True, True], [True] * 3]
    assert layer.given is None
    assert x._keras_mask is None  # The tensor itself stays as it is.
    assert mask_of(layer(layers.Masking()(STEPS))) == KEPT  # What has one keeps it, as in Keras.


def test_gradients_flow_through_tensors_with_masks() -> None:
    x = mr.constant(STEPS)
    with mr.GradientTape() as tape:
        tape.watch(x)
        outputs = layers.Activation("linear")(Shifted()(x))
        total = mr.reduce_sum(outputs * outputs)
    np.testing.assert_array_equal(tape.gradient(total, x).numpy(), 2 * STEPS)


def test_models_hand_on_masks_that_they_compute_anew() -> None:
    inputs = layers.Input((3,), dtype="int32")
    embedded = layers.Embedding(5, 2, mask_zero=True)(inputs)
    assert embedded._keras_mask.shape == (None, 3)
    notes = Notes()
    notes.supports_masking = True
    model = mr.Model(inputs, notes(layers.Dense(2)(embedded)))
    ids = np.array([[1, 0, 2], [0, 3, 0]], np.int32)
    assert mask_of(model(ids)) == (ids != 0).tolist() == values(notes.seen)[0]
    assert mask_of(model(ids + 1)) == [[True] * 3] * 2


@cases("kind", ["functional", "sequential", "unbuilt"])
def test_the_mask_of_a_model_is_that_of_its_input(kind: str) -> None:
    notes = Notes()
    notes.supports_masking = True
    begin = layers.Input((3, 1))
    model = {
        "functional": lambda: mr.Model(begin, notes(begin)),
        "sequential": lambda: mr.Sequential([begin, notes]),
        "unbuilt": lambda: mr.Sequential([notes]),
    }[kind]()
    with pytest.warns(UserWarning, match="does not support masking"):  # As a model of Keras'.
        model(STEPS, mask=np.array(KEPT))
    assert values(notes.seen) == [KEPT]
    masked = layers.Masking(dtype="float64")(STEPS)
    with pytest.warns(UserWarning, match="does not support masking"):
        assert mask_of(model(masked)) == KEPT


def test_a_lambda_says_what_its_mask_is() -> None:
    masked = layers.Masking()(STEPS)
    flipped = layers.Lambda(lambda x: x + 1.0, mask=lambda x, mask: mr.logical_not(mask))
    assert mask_of(flipped(masked)) == np.logical_not(KEPT).tolist()
    fixed = layers.Lambda(lambda x, mask: mr.cast(mask, "float32"), mask=np.ones((2, 3), bool))
    outputs = fixed(masked)
    np.testing.assert_array_equal(outputs.numpy(), KEPT)
    assert mask_of(outputs) == np.ones((2, 3), bool).tolist()


def test_masks_that_do_not_fit_are_refused() -> None:
    masked = layers.Masking()(STEPS)
    with pytest.raises(ValueError, match="The `mask` must be broadcastable to `inputs`"):
        layers.Softmax()(masked)
    with pytest.raises(ValueError, match="The mask provided should be one dimension less"):
        layers.BatchNormalization()(STEPS, mask=np.ones(2, bool))
    add = layers.Add()
    for masks, said in (
        (masked, "`mask` should be a list"),
        ([None], "should have the same length"),
    ):
        with pytest.raises(ValueError, match=said):
            add.compute_mask([STEPS, STEPS], masks)
    with pytest.raises(ValueError, match="`inputs` should be a list"):
        add.compute_mask(STEPS, [None])


@cases(
    ("kinds", "name"),
    [
        ("Layer Dense Dropout Softmax MultiHeadAttention TimeDistributed", "previous_mask"),
        ("Embedding Masking Lambda Attention AdditiveAttention Add Concatenate Dot", "mask"),
        ("Average Maximum Minimum Multiply Subtract GlobalAveragePooling1D", "mask"),
    ],
)
def test_compute_mask_has_the_argument_of_keras(kinds: str, name: str) -> None:
    for kind in kinds.split():
        parameters = inspect.signature(getattr(layers, kind).compute_mask).parameters
        assert list(parameters) == ["self", "inputs", name], kind
