"""Layers around others, and in a row: what they add to these, and what they refuse."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

DRAWS = np.random.default_rng(0)
X = DRAWS.normal(size=(11, 5)).astype(np.float32)


class Twice(mr.layers.Wrapper):
    def call(self, inputs: mr.Tensor) -> Any:
        return self.layer(self.layer(inputs))


@pytest.mark.parametrize("inner", [mr.layers.Dense, mr.layers.EinsumDense], ids=str)
def test_the_largest_singular_value_becomes_1(inner: type) -> None:
    options = ("ab,bcd->acd", (3, 2)) if inner is mr.layers.EinsumDense else (4,)
    layer = mr.layers.SpectralNormalization(inner(*options), power_iterations=30)
    layer(X)
    kernel = layer.kernel.numpy()
    rows = kernel.reshape(-1, kernel.shape[-1])
    np.testing.assert_array_equal(layer(X), layer.layer(X))  # Only training changes it.
    layer(X, training=True)
    expected = kernel / np.linalg.norm(rows, 2)
    np.testing.assert_allclose(layer.layer.kernel, expected, rtol=1e-3, atol=1e-5)
    assert [each.trainable for each in layer.weights][:2] == [True, False]


def test_a_kernel_of_zeros_stays() -> None:
    layer = mr.layers.SpectralNormalization(mr.layers.Dense(4, kernel_initializer="zeros"))
    layer(X)
    vector = layer.vector_u.numpy()
    layer(X, training=True)
    np.testing.assert_array_equal(layer.kernel, np.zeros((5, 4)))
    np.testing.assert_array_equal(layer.vector_u, vector)


def _read(model: mr.Model, folder: Path) -> mr.Model:
    model.save(folder / "m.keras")
    return mr.keras.models.load_model(folder / "m.keras")


def _cloned(model: mr.Model, folder: Path) -> mr.Model:
    again = mr.keras.models.clone_model(model)
    again.build((None, 5))
    again.set_weights(model.get_weights())
    return again


def _built_before(model: mr.Model, folder: Path) -> mr.Model:
    inner = mr.layers.Dense(4, "tanh")
    inner.build((None, 5))
    again = mr.Sequential([mr.layers.SpectralNormalization(inner), mr.layers.Dense(1)])
    again.build((None, 5))
    again.compile("sgd", "mse")
    again.set_weights(model.get_weights())
    return again


@pytest.mark.parametrize("again", [None, _read, _cloned, _built_before])
def test_replicas_normalize_as_one(
    again: Callable[..., mr.Model] | None, simulate: Callable[..., Any], tmp_path: Path
) -> None:
    simulate(3)
    found = []
    for replicas in (1, 3):
        mr.random.set_seed(7)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            inner = mr.layers.Dense(4, "tanh")
            model = mr.Sequential([mr.layers.SpectralNormalization(inner), mr.layers.Dense(1)])
            model.compile("sgd", "mse")
            model.build((None, 5))
            model = model if again is None else again(model, tmp_path)
        model.fit(X, X[:, :1], batch_size=4, epochs=2, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_wrapper_is_built_with_its_layer_and_made_again() -> None:
    layer = Twice(mr.layers.Dense(5, name="inner"), name="outer")
    layer.build((None, 5))
    assert [each.shape for each in layer.weights] == [(5, 5), (5,)]
    again = Twice.from_config(layer.get_config())
    assert (again.name, again.layer.name, again.layer.units) == ("outer", "inner", 5)
    again.build((None, 5))
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(X), layer(X))


def test_a_pipeline_trains_unless_it_is_told_not_to() -> None:
    pipeline = mr.layers.Pipeline([mr.layers.Dropout(0.9), mr.layers.Rescaling(2.0)])
    assert set(np.unique(pipeline(np.ones((40, 40)))).round(4)) == {0, 20}
    np.testing.assert_array_equal(pipeline(X, training=False), 2 * X)
    np.testing.assert_array_equal(mr.Sequential([pipeline]).predict(X, verbose=0), 2 * X)


def test_a_pipeline_hands_masks_on() -> None:
    pipeline = mr.layers.Pipeline([mr.layers.Masking(), mr.layers.GlobalAveragePooling1D()])
    x = np.array([[[1.0, 3.0], [0.0, 0.0]]])
    np.testing.assert_array_equal(pipeline(x), [[1, 3]])
    last = mr.layers.Pipeline([mr.layers.GlobalAveragePooling1D()])
    with pytest.warns(UserWarning, match="does not support masking"):  # As in Keras.
        np.testing.assert_array_equal(last(x, mask=np.array([[True, False]])), [[1, 3]])


def test_scores_are_products_with_the_table() -> None:
    layer = mr.layers.ReversibleEmbedding(7, 5)
    scores = layer(X, reverse=True)
    np.testing.assert_allclose(scores, X @ layer.embeddings.numpy().T, rtol=1e-5, atol=1e-6)


@cases(
    ("call", "text"),
    [
        (lambda: Twice("relu"), "isn't a supported layer type"),
        (lambda: mr.layers.SpectralNormalization(mr.layers.Dense(3), 0), "greater than zero"),
        (lambda: mr.layers.SpectralNormalization(mr.layers.Flatten())(X), "'kernel' nor 'emb"),
        (lambda: mr.layers.Pipeline.from_config({"name": "a"}), "`layers` key"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
