"""Noise while training: how it is spread, and that replicas add what one device adds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

LAYERS: dict[str, Callable[..., Any]] = {
    "GaussianNoise": lambda **options: mr.layers.GaussianNoise(0.5, **options),
    "GaussianDropout": lambda **options: mr.layers.GaussianDropout(0.2, **options),
    "AlphaDropout": lambda **options: mr.layers.AlphaDropout(0.25, **options),
    "SpatialDropout1D": lambda **options: mr.layers.SpatialDropout1D(0.25, **options),
}
SPATIAL: dict[str, Callable[..., Any]] = {
    "SpatialDropout2D": lambda **options: mr.layers.SpatialDropout2D(0.25, **options),
    "SpatialDropout3D": lambda **options: mr.layers.SpatialDropout3D(0.25, **options),
}
X = np.random.default_rng(0).normal(size=(400, 5, 8)).astype(np.float32)


@cases("name", LAYERS)
def test_outside_of_training_inputs_pass(name: str) -> None:
    np.testing.assert_array_equal(LAYERS[name]()(X), X)
    np.testing.assert_array_equal(LAYERS[name]()(X, training=False), X)


@pytest.mark.parametrize(("name", "deviation"), [("GaussianNoise", 0.5), ("GaussianDropout", 0.5)])
def test_normal_noise(name: str, deviation: float) -> None:
    outputs = LAYERS[name](seed=0)(X, training=True).numpy()
    noise = outputs - X if name == "GaussianNoise" else outputs / X - 1
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - deviation) < 0.02


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    outputs = LAYERS["AlphaDropout"](seed=0)(X, training=True).numpy()
    assert abs(outputs.mean()) < 0.05
    assert abs(outputs.std() - 1) < 0.05
    values, counts = np.unique(outputs, return_counts=True)
    assert abs(counts.max() / X.size - 0.25) < 0.02  # All that are dropped have one value.
    # The paper's affine map, of what selu tends to for large negative inputs.
    lowest, kept = -1.6732632423543772 * 1.0507009873554805, 0.75
    factor = (kept + lowest**2 * kept * (1 - kept)) ** -0.5
    shift = -factor * (1 - kept) * lowest
    np.testing.assert_allclose(values[counts.argmax()], factor * lowest + shift, rtol=1e-5)


def test_whole_features_are_dropped() -> None:
    outputs = LAYERS["SpatialDropout1D"](seed=0)(X, training=True).numpy()
    dropped = (outputs == 0).all(axis=1)
    assert abs(dropped.mean() - 0.25) < 0.02
    expected = np.where(dropped[:, np.newaxis], 0, X / 0.75)
    np.testing.assert_allclose(outputs, expected, rtol=1e-6)


@cases("data_format", ["channels_last", "channels_first"])
@cases("rank", [2, 3])
def test_whole_channels_are_dropped(rank: int, data_format: str) -> None:
    layer = SPATIAL[f"SpatialDropout{rank}D"](data_format=data_format, seed=0)
    x = X.reshape(
        (400, 8, *(1, 5, 1)[:rank])
        if data_format == "channels_first"
        else (400, *(1, 5, 1)[:rank], 8)
    )
    np.testing.assert_array_equal(layer(x), x)
    outputs = layer(x, training=True).numpy()
    axes = tuple(range(2, rank + 2) if data_format == "channels_first" else range(1, rank + 1))
    dropped = (outputs == 0).all(axis=axes, keepdims=True)
    assert dropped.size == 3200
    assert abs(dropped.mean() - 0.25) < 0.02
    np.testing.assert_allclose(outputs, np.where(dropped, 0, x / 0.75), rtol=1e-6)


@cases("name", LAYERS)
def test_replicas_add_what_one_device_adds(name: str, simulate: Callable[..., Any]) -> None:
    simulate(3)
    found = []
    for replicas in (1, 3):
        mr.random.set_seed(7)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = mr.Sequential([LAYERS[name](seed=3), mr.layers.Flatten(), mr.layers.Dense(1)])
            model.compile("sgd", "mse")
        history = model.fit(X[:11], X[:11, 0, :1], batch_size=5, epochs=2, verbose=0).history
        found.append(history["loss"])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


@cases(
    ("make", "match"),
    [
        (lambda: mr.layers.GaussianNoise(2.0), "`stddev`. Expected a float value between 0 and 1"),
        (lambda: mr.layers.GaussianDropout(-0.1), "`rate`. Expected a float value between 0 and"),
        (lambda: mr.layers.GaussianDropout(1), "The noise of rate=1 would be infinite"),
        (lambda: mr.layers.AlphaDropout("x"), "`rate`. Expected a float value between 0 and 1"),
        (lambda: mr.layers.AlphaDropout(1.0), "Nothing would be left of rate=1"),
        (lambda: mr.layers.SpatialDropout1D(0.5)(np.ones((2, 3))), "min_ndim=3, found ndim=2"),
        (lambda: mr.layers.SpatialDropout1D(0.5)(np.ones((2, 3, 4, 5))), "ndim=3, found ndim=4"),
        (lambda: mr.layers.SpatialDropout2D(0.5)(np.ones((2, 3, 4))), "ndim=4, found ndim=3"),
        (lambda: mr.layers.SpatialDropout3D(0.5, "last"), "`data_format` argument must be one of"),
    ],
)
def test_arguments_that_are_wrong(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()
