"""A layer on each step of a sequence: what it is given, and what becomes of that."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import layers

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
X[0, 1] = 0.0
KEPT = [[True, False, True], [True, True, True]]


class Noting(layers.Layer):
    """Keeps the masks and modes that it was called with, and scales by the mode."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def call(self, inputs: Any, training: bool = False, mask: Any = None) -> Any:
        self.seen.append((None if mask is None else mask.numpy().tolist(), training))
        return inputs * (3.0 if training else 1.0)


def test_each_step_is_a_call() -> None:
    dense = layers.Dense(2, activation="softmax")
    outputs = layers.TimeDistributed(dense)(X)
    expected = np.stack([dense(X[:, step]).numpy() for step in range(3)], axis=1)
    np.testing.assert_allclose(outputs.numpy(), expected, rtol=1e-6)
    moving = layers.BatchNormalization(momentum=0.5)
    layers.TimeDistributed(moving)(X, training=True)
    mean = np.zeros(4)
    for step in range(3):
        mean = mean / 2 + X[:, step].mean(0) / 2
    np.testing.assert_allclose(moving.moving_mean.numpy(), mean, rtol=1e-5, atol=1e-7)


def test_masks_and_modes_are_those_of_the_steps() -> None:
    inner = Noting()
    outputs = layers.TimeDistributed(inner)(layers.Masking()(X), training=True)
    assert inner.seen == [(list(column), True) for column in zip(*KEPT, strict=True)]
    assert outputs._keras_mask.numpy().tolist() == KEPT
    np.testing.assert_allclose(outputs.numpy(), 3 * X, rtol=1e-6)


def test_models_inside_are_built_and_trained() -> None:
    inner = mr.Sequential([layers.Dense(3, activation="tanh"), layers.Dense(1)])
    model = mr.Sequential([layers.Input((None, 4)), layers.TimeDistributed(inner)])
    assert model.output_shape == (None, None, 1)
    assert [each.shape for each in model.get_weights()] == [(4, 3), (3,), (3, 1), (1,)]
    model.compile("sgd", "mse")
    losses = model.fit(X, X[..., :1], epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[1] < losses[0]
    assert layers.TimeDistributed(inner).compute_output_shape((5, 6, 4)) == (5, 6, 1)


@cases(
    ("call", "match"),
    [
        (lambda: layers.TimeDistributed(mr.tanh), "instance. Received: <function tanh"),
        (lambda: layers.TimeDistributed(layers.Dense(1))(X[:, 0]), "at least 3 dimensions"),
        (lambda: layers.TimeDistributed(Noting())(X, mask=np.ones(2, bool)), "at least 2D"),
        (lambda: layers.TimeDistributed(Noting())(X, mask=np.ones((2, 4), bool)), "incompatible"),
    ],
)
def test_what_is_no_sequence_is_refused(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


def test_placeholders_are_inferred_from_one_step() -> None:
    outputs = mr.layers.TimeDistributed(mr.layers.Embedding(3, 2))(mr.layers.Input((10**9, 4)))
    assert (outputs.shape, outputs.dtype) == ((None, 10**9, 4, 2), mr.float32)
