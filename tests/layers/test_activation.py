"""Activations as layers."""

import numpy as np
from case_table import cases

from mirrored import ops
from mirrored.layers import Activation, Input


@cases(
    ("activation", "expected"),
    [("relu", [[0.0, 2.0]]), (None, [[-1.0, 2.0]]), (ops.square, [[1.0, 4.0]])],
)
def test_it_applies_the_function(activation: object, expected: list[list[float]]) -> None:
    assert Activation(activation)([[-1.0, 2.0]]).numpy().tolist() == expected


def test_it_keeps_the_shape_and_has_no_weights() -> None:
    layer = Activation("softmax")
    assert layer(Input((7, 3))).shape == (None, 7, 3)
    assert (layer.weights, layer.count_params()) == ([], 0)


def test_softmax_keeps_its_logits() -> None:
    outputs = Activation("softmax")(np.ones((2, 3)))
    logits = ops.logits_of(outputs, "softmax")
    assert logits is not None
    np.testing.assert_array_equal(logits.numpy(), np.ones((2, 3)))
