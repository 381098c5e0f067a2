"""Rows of docs/reference/behaviour-rows.md on strategies: whole texts, and saved copies.

They go through the public names alone, as a script does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import mirrored as mr

Simulate = Callable[..., Any]
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.behaviour("duplicate-devices")
def test_the_error_of_duplicates_lists_the_devices(simulate: Simulate) -> None:
    simulate(1)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        mr.MirroredStrategy(["GPU:0", "/gpu:0"])
    assert str(caught.value).startswith(
        f"No duplicates allowed in `devices` argument: ('{FULL}GPU:0', '{FULL}GPU:0')"
    )


@pytest.mark.behaviour("scope")
def test_the_error_of_another_strategys_scope_names_both(simulate: Simulate) -> None:
    simulate(2)
    one, other = mr.MirroredStrategy(), mr.MirroredStrategy(["GPU:1"])
    with one.scope(), pytest.raises(RuntimeError) as caught, other.scope():
        pytest.fail("the scope was entered")
    assert str(caught.value).startswith(
        f"Mixing different mr.distribute.Strategy objects: {one} is not {other}."
    )


@pytest.mark.behaviour("synchronization")
def test_auto_becomes_on_write(simulate: Simulate) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        v = mr.Variable(1.0, synchronization=mr.VariableSynchronization.AUTO)
    assert v.synchronization is mr.VariableSynchronization.ON_WRITE


@pytest.mark.behaviour("loss-reduction")
@pytest.mark.parametrize("replicas", [1, 2])
def test_the_default_reduction_of_a_loss_in_a_loop_of_ones_own(
    simulate: Simulate, replicas: int
) -> None:
    simulate(replicas)
    strategy = mr.MirroredStrategy()
    targets, outputs = mr.zeros((2, 1)), mr.ones((2, 1))

    def step(reduction: str) -> Any:
        return mr.keras.losses.MeanSquaredError(reduction=reduction)(targets, outputs)

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        strategy.run(step, ("sum_over_batch_size",))
    assert str(caught.value).startswith(
        "Please use `mr.losses.Reduction.SUM` or `mr.losses.Reduction.NONE` for loss reduction"
    )
    for reduction, expected in (("sum", 2.0), ("none", [1.0, 1.0])):
        results = strategy.experimental_local_results(strategy.run(step, (reduction,)))
        assert [each.numpy().tolist() for each in results] == [expected] * replicas


@pytest.mark.behaviour("one-copy-saved")
def test_one_copy_is_saved_and_all_are_restored(simulate: Simulate, tmp_path: Path) -> None:
    simulate(3)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable([1.0, 2.0])
    path = mr.train.Checkpoint(v=v).save(tmp_path / "checkpoint")
    saved = [array for name, array in load_file(path).items() if name.startswith("v")]
    assert [array.tolist() for array in saved] == [[1.0, 2.0]]
    v.assign([5.0, 6.0])
    mr.train.Checkpoint(v=v).restore(path)
    copies = strategy.experimental_local_results(v)
    assert [copy.numpy().tolist() for copy in copies] == [[1.0, 2.0]] * 3


@pytest.mark.behaviour("batch-size")
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_batch_of_all_replicas_together_has_32_examples(
    simulate: Simulate, replicas: int
) -> None:
    simulate(replicas)
    with mr.MirroredStrategy().scope():
        model = mr.keras.Sequential([mr.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    for examples, steps in ((32, 1), (33, 2), (65, 3)):
        before = int(model.optimizer.iterations) if model.built else 0
        model.fit(np.ones((examples, 2)), np.ones((examples, 1)), verbose=0)
        assert int(model.optimizer.iterations) - before == steps


@pytest.mark.behaviour("per-replica-repr", "mirrored-variable-repr")
def test_distributed_values_print_what_they_hold(simulate: Simulate) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    value = strategy.run(lambda: mr.constant(1.0))
    printed = "mr.Tensor(1.0, shape=(), dtype=float32)"
    assert str(value) == f"PerReplica:{{\n  0: {printed},\n  1: {printed}\n}}"
    shown = "<mr.Tensor: shape=(), dtype=float32, numpy=1.0>"
    assert repr(value) == f"PerReplica:{{\n  0: {shown},\n  1: {shown}\n}}"
    with strategy.scope():
        v = mr.Variable(1.0, name="v")
    first, second = (
        f"<mr.Variable '{name}' shape=() dtype=float32, numpy=1.0>"
        for name in ("v:0", "v/replica_1:0")
    )
    assert str(v) == repr(v) == f"MirroredVariable:{{\n  0: {first},\n  1: {second}\n}}"
