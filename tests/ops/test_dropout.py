"""Dropout as a function: rates, shapes of masks, seeds, and replicas."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.distribute import MirroredStrategy, PerReplica, shard_bounds
from mirrored.errors import InvalidArgumentError

ONES = np.ones((40, 30))


def test_what_is_kept_is_scaled_and_passes_the_gradient() -> None:
    x = ops.constant(np.random.default_rng(0).normal(size=(40, 30)))
    with GradientTape() as tape:
        tape.watch(x)
        output = ops.dropout(x, 0.2, seed=1)
    gradient = np.asarray(tape.gradient(output, x))
    assert sorted(set(gradient.ravel())) == [0.0, 1 / (1 - 0.2)]
    np.testing.assert_allclose(output.numpy(), x.numpy() * gradient, rtol=1e-15)
    assert 0.15 < (gradient == 0).mean() < 0.25


def test_what_is_dropped_is_0_whatever_it_was() -> None:
    kept = ops.dropout(np.full((50,), np.nan), 0.5, seed=2).numpy()
    assert set(np.isnan(kept)) == {True, False}
    assert not kept[~np.isnan(kept)].any()


def test_seeds() -> None:
    mr.random.set_seed(4)
    first = [ops.dropout(ONES, 0.5, seed=seed).numpy() for seed in (None, None, 1, 1, 2)]
    assert len({each.tobytes() for each in first}) == 5
    mr.random.set_seed(4)
    for seed, each in zip((None, None, 1, 1, 2), first, strict=True):
        np.testing.assert_array_equal(ops.dropout(ONES, 0.5, seed=seed).numpy(), each)


@cases(("noise_shape", "along"), [([40, 1], 1), ([None, 1], 1), ([1, 30], 0), ([30], 0)])
def test_masks_that_broadcast(noise_shape: Any, along: int) -> None:
    values = ops.dropout(ONES, 0.5, noise_shape, seed=3).numpy()
    assert (values == values.take([0], along)).all()
    assert len(np.unique(values)) == 2


def test_a_rate_that_is_a_tensor() -> None:
    rate = ops.constant(0.5, ops.float64)
    mr.random.set_seed(2)
    by_number = ops.dropout(ONES, 0.5).numpy()
    mr.random.set_seed(2)
    with GradientTape() as tape:
        tape.watch(rate)
        values = ops.dropout(ONES, rate)
    np.testing.assert_array_equal(values.numpy(), by_number)
    slope = np.asarray(tape.gradient(values, rate))
    np.testing.assert_allclose(slope, (values.numpy() != 0).sum() / 0.25, rtol=1e-12)
    for wrong in (ops.constant(0.5), ops.constant([0.5], ops.float64)):
        with pytest.raises(ValueError, match="`rate` must be a scalar of the dtype of `x`"):
            ops.dropout(ONES, wrong)


@cases("rate", [-0.1, 1.0, float("nan"), "0.5", None, [0.5]])
def test_rates_that_are_refused(rate: Any) -> None:
    with pytest.raises(ValueError, match=r"`rate` must be .* in the range \[0, 1\)"):
        ops.dropout(ONES, rate)


def test_masks_of_tensorflow_s() -> None:
    """The numbers are those of TensorFlow 2.21."""
    found = ops.stateless_dropout(mr.ones((3, 4)), 0.5, seed=[3, -4], noise_shape=[None, 1])
    assert found.numpy()[:, 0].tolist() == [0.0, 2.0, 2.0]
    by_hand = ops.general_dropout(
        mr.ones((3, 4)),
        0.5,
        lambda shape, dtype: mr.random.stateless_uniform(shape, [3, -4]),
        [3, 1],
    )
    np.testing.assert_array_equal(by_hand.numpy(), found.numpy())


def test_other_arguments_that_are_refused() -> None:
    with pytest.raises(ValueError, match="must be a floating point tensor"):
        ops.dropout([1, 2], 0)
    for shape in ([41, 30], 40):
        with pytest.raises(InvalidArgumentError):
            ops.dropout(ONES, 0.5, shape)


@cases("recorded", [False, True])
@cases("replicas", [2, 5])
def test_replicas_drop_what_one_device_drops(simulate: Any, replicas: int, recorded: bool) -> None:
    simulate(replicas)
    strategy = MirroredStrategy()
    bounds = shard_bounds(7, replicas)
    x = np.ones((7, 30), np.float32)
    shards = PerReplica(
        [ops.constant(x[begin:end]) for begin, end in bounds], [begin for begin, _ in bounds]
    )

    def step(part: Any) -> list[ops.Tensor]:
        stateless = ops.stateless_dropout(part, 0.5, seed=[1, 2])
        return [stateless, *(ops.dropout(part, 0.5, seed=seed) for seed in (None, 3, None))]

    def run(parts: Any) -> Any:
        return strategy.run(step, args=(parts,))

    steps = 3
    mr.random.set_seed(9)
    alone = [[each.numpy() for each in step(x)] for _ in range(steps)]
    mr.random.set_seed(9)
    run = mr.function(run) if recorded else run
    for expected in alone:
        for found, right in zip(run(shards), expected, strict=True):
            parts = strategy.experimental_local_results(found)
            np.testing.assert_array_equal(np.concatenate([np.asarray(p) for p in parts]), right)
