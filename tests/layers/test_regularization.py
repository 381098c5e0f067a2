"""Dropout's masks, scale and seeds."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.distribute import MirroredStrategy, PerReplica, shard_bounds
from mirrored.layers import Dropout


def mask(layer: Dropout, shape: tuple[int, ...] = (50, 40)) -> Any:
    return layer(np.ones(shape), training=True).numpy()


@cases("rate", [0.1, 0.5, 0.9])
def test_the_rate_is_dropped_and_the_rest_scaled(rate: float) -> None:
    values = mask(Dropout(rate, seed=1), (400, 300))
    kept = values != 0
    np.testing.assert_allclose(values[kept], 1 / (1 - rate), rtol=1e-6)
    # Five standard deviations of the mean of 120,000 draws.
    tolerance = 5 * np.sqrt(rate * (1 - rate) / values.size)
    assert abs(kept.mean() - (1 - rate)) < tolerance
    assert kept.any(axis=0).all()


def test_the_gradient_is_the_mask() -> None:
    x = ops.constant(np.random.default_rng(0).normal(size=(6, 5)))
    layer = Dropout(0.4, seed=1, dtype="float64")
    with GradientTape() as tape:
        tape.watch(x)
        output = layer(x, training=True)
    expected = mask(Dropout(0.4, seed=1, dtype="float64"), (6, 5))
    gradient = tape.gradient(output, x)
    assert gradient is not None
    np.testing.assert_array_equal(gradient.numpy(), expected)
    np.testing.assert_allclose(output.numpy(), x.numpy() * expected, rtol=1e-15)


@pytest.mark.parametrize("training", [None, False])
def test_outside_training_the_very_input_passes(training: bool | None) -> None:
    x = ops.ones((3, 4))
    assert Dropout(0.5)(x, training=training) is x


def test_the_limits_of_the_rate() -> None:
    x = ops.ones((3, 4))
    assert Dropout(0)(x, training=True) is x
    np.testing.assert_array_equal(mask(Dropout(1.0)), np.zeros((50, 40)))


def test_every_call_draws_a_new_mask_and_a_seed_the_same_ones_again() -> None:
    layer, again, other = Dropout(0.5, seed=7), Dropout(0.5, seed=7), Dropout(0.5, seed=8)
    first, second = mask(layer), mask(layer)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(mask(again), first)
    np.testing.assert_array_equal(mask(again), second)
    assert not np.array_equal(mask(other), first)


def test_without_a_seed_the_global_one_decides() -> None:
    ops.set_seed(3)
    first, other = mask(Dropout(0.5)), mask(Dropout(0.5))
    assert not np.array_equal(first, other)
    ops.set_seed(3)
    np.testing.assert_array_equal(mask(Dropout(0.5)), first)


def test_a_generator_may_be_shared() -> None:
    generator = ops.SeedGenerator(5)
    first, second = mask(Dropout(0.5, seed=generator)), mask(Dropout(0.5, seed=generator))
    assert not np.array_equal(first, second)


@cases("rate", [-0.1, 1.5, float("nan"), "0.5", None, True])
def test_other_rates_are_refused(rate: object) -> None:
    text = (
        "Invalid value received for argument `rate`. Expected a float value between 0 and 1. "
        f"Received: rate={rate!r}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Dropout(rate)  # type: ignore[arg-type]


@cases("replicas", [1, 2, 3, 5, 8])
@cases("examples", [1, 4, 7, 21])
def test_replicas_drop_what_one_device_drops(simulate: Any, replicas: int, examples: int) -> None:
    simulate(replicas)
    strategy = MirroredStrategy()
    x = np.ones((examples, 3, 5))
    alone, shared = Dropout(0.5, seed=1), Dropout(0.5, seed=1)
    bounds = shard_bounds(examples, replicas)
    shards = PerReplica([x[begin:end] for begin, end in bounds], [begin for begin, _ in bounds])
    for size in (3, 1, 3):  # Steps; in one of them several rows per example follow one another.

        def dropped(part: Any, layer: Any, size: int = size) -> Any:
            rows = mr.reshape(part, (-1, size, 5))
            return mr.reshape(layer(rows, training=True), part.shape)

        outputs = strategy.run(dropped, args=(shards, shared))
        parts = strategy.experimental_local_results(outputs)
        joined = np.concatenate([part.numpy() for part in parts])
        np.testing.assert_array_equal(joined, dropped(x, alone).numpy())


@cases("kind", [mr.layers.Dropout, mr.layers.AlphaDropout])
@cases(("noise_shape", "axes"), [((None, 1), (1,)), ([1, 3], (0,)), ((3,), (0,)), ((1, 1), (0, 1))])
def test_draws_that_are_shared(kind: Any, noise_shape: Any, axes: tuple[int, ...]) -> None:
    layer = kind(0.5, seed=1, noise_shape=noise_shape)
    outputs = layer(np.ones((8, 3)), training=True).numpy()
    np.testing.assert_array_equal(
        outputs, np.broadcast_to(outputs.max(axes, keepdims=True), (8, 3))
    )
    assert layer.get_config()["noise_shape"] == tuple(noise_shape)


@cases("noise_shape", [(None, 1, 4), (1, 3, 4), (4,)])
def test_shared_draws_on_several_replicas(noise_shape: Any, simulate: Callable[..., Any]) -> None:
    simulate(3)
    found = []
    for replicas in (1, 3):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            dropout = mr.layers.Dropout(0.5, seed=1, noise_shape=noise_shape)
            dense = mr.layers.Dense(1, kernel_initializer="ones")
            model = mr.Sequential([mr.layers.Input((3, 4)), dropout, mr.layers.Flatten(), dense])
            model.compile(mr.optim.SGD(0.01), "mse")
        model.fit(np.ones((7, 3, 4)), np.ones((7, 1)), batch_size=7, epochs=2, verbose=0)
        found.append(model.get_weights()[0])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


@cases("noise_shape", [5, "a", (-1, 1), (0,), (1.5, 1)])
def test_no_noise_shape(noise_shape: Any) -> None:
    with pytest.raises(ValueError, match="Invalid value received for argument `noise_shape`"):
        mr.layers.Dropout(0.5, noise_shape=noise_shape)


@pytest.mark.parametrize("noise_shape", [(2, 1), (None, 1, 1)])
def test_a_noise_shape_that_does_not_broadcast(noise_shape: Any) -> None:
    layer = mr.layers.Dropout(0.5, noise_shape=noise_shape)
    with pytest.raises(ValueError, match="must broadcast to the shape of its inputs"):
        layer(np.ones((4, 3)), training=True)
