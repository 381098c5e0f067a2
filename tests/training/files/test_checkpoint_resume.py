"""A run that is saved, and goes on in another program, ends with the bits of one that went on.

The other program's model starts from other weights, other slots and another seed.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops

X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)  # Three whole batches.
Y = X[:, :2] * 0.5
OPTIMIZERS: dict[str, Callable[[], mr.optim.Optimizer]] = {
    "momentum": lambda: mr.optim.SGD(0.05, momentum=0.9, use_ema=True, ema_momentum=0.5),
    "adam": lambda: mr.optim.Adam(0.01),
}

Bits = Callable[[Any], list[Any]]
SLOW = [pytest.param(*each, marks=pytest.mark.slow) for each in [(3, 0), (2, 3)]]


def make(replicas: int, optimizer: str, *, seed: int, eager: bool = False) -> mr.Model:
    """Return a compiled model with dropout on so many replicas; 0: outside strategies."""
    ops.set_seed(seed)
    strategy: Any = (
        mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
        if replicas
        else mr.distribute.get_strategy()
    )
    with strategy.scope():
        model = mr.Sequential(
            [
                mr.layers.Input(shape=(4,)),
                mr.layers.Dense(5, "tanh"),
                mr.layers.Dropout(0.3),
                mr.layers.Dense(2),
            ]
        )
        model.compile(OPTIMIZERS[optimizer](), "mse", metrics=["mse"], run_eagerly=eager)
    return model


def fit(model: mr.Model, epochs: int = 1) -> dict[str, list[float]]:
    return model.fit(X, Y, batch_size=4, epochs=epochs, verbose=0).history


def state(model: mr.Model) -> list[Any]:
    """Return every copy of weights, slots, step count and learning rate."""
    local = model.distribute_strategy.experimental_local_results
    variables = [*model.weights, *model.optimizer.variables]
    return [copy.numpy() for variable in variables for copy in local(variable)]


@pytest.mark.behaviour("optimizer-restore", "deterministic")
@pytest.mark.parametrize(
    ("replicas", "optimizer", "eager"),
    [
        (0, "adam", False),
        (0, "momentum", True),
        (2, "adam", False),
        pytest.param(3, "adam", True, marks=pytest.mark.slow),
        pytest.param(1, "momentum", False, marks=pytest.mark.slow),
        pytest.param(3, "momentum", False, marks=pytest.mark.slow),
    ],
)
def test_goes_on_with_the_same_bits(
    replicas: int,
    optimizer: str,
    eager: bool,
    simulate: Callable[..., Any],
    tmp_path: Path,
    bits: Bits,
) -> None:
    simulate(3)
    model = make(replicas, optimizer, seed=1, eager=eager)
    fit(model)
    model.optimizer.learning_rate = 0.02
    path = mr.train.Checkpoint(model=model).save(tmp_path / "ckpt")
    history = fit(model, 2)
    drawn = mr.random.uniform((3,)).numpy()

    other = make(replicas, optimizer, seed=2, eager=eager)
    mr.train.Checkpoint(model=other).restore(path).assert_consumed()
    assert fit(other, 2) == history
    assert bits(state(other)) == bits(state(model))
    np.testing.assert_array_equal(mr.random.uniform((3,)).numpy(), drawn)


@pytest.mark.behaviour("optimizer-restore")
@pytest.mark.parametrize(("before", "after"), [(0, 3), (3, 2), (1, 2), *SLOW])
def test_on_another_number_of_replicas(
    before: int, after: int, simulate: Callable[..., Any], tmp_path: Path, bits: Bits
) -> None:
    """What is restored has the same bits on every replica; what follows differs by rounding."""
    simulate(3)
    model = make(before, "momentum", seed=1)
    fit(model)
    saved = [each.numpy() for each in (*model.weights, *model.optimizer.variables)]
    path = mr.train.Checkpoint(model=model).save(tmp_path / "ckpt")
    history = fit(model)

    other = make(after, "momentum", seed=2)
    mr.train.Checkpoint(model=other).restore(path).assert_consumed()
    assert bits(state(other)) == bits([each for each in saved for _ in range(max(after, 1))])
    again = fit(other)
    for name, values in history.items():
        np.testing.assert_allclose(again[name], values, rtol=1e-5)
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("in_scope", [True, False])
def test_back_in_the_same_model(
    in_scope: bool, simulate: Callable[..., Any], tmp_path: Path, bits: Bits
) -> None:
    """Its recorded steps stay valid: what they are bound to is written in place."""
    simulate(2)
    model = make(2, "adam", seed=1)
    checkpoint = mr.train.Checkpoint(model=model)
    fit(model)
    recordings = len(model.__state__.traces)
    with model.distribute_strategy.scope() if in_scope else contextlib.nullcontext():
        path = checkpoint.save(tmp_path / "ckpt")
    history, ended = fit(model, 2), state(model)
    with model.distribute_strategy.scope() if in_scope else contextlib.nullcontext():
        checkpoint.restore(path).assert_consumed()
    assert fit(model, 2) == history
    assert bits(state(model)) == bits(ended)
    assert len(model.__state__.traces) == recordings


def test_from_before_the_first_step(
    simulate: Callable[..., Any], tmp_path: Path, bits: Bits
) -> None:
    """The file has no slots: those that there are by now start anew."""
    simulate(2)
    model = make(2, "momentum", seed=1)
    checkpoint = mr.train.Checkpoint(model=model)
    path = checkpoint.save(tmp_path / "ckpt")
    history, ended = fit(model), state(model)
    checkpoint.restore(path).assert_consumed()
    assert int(model.optimizer.iterations) == 0
    assert not any(slot.numpy().any() for slot in model.optimizer.variables[2:])
    assert fit(model) == history
    assert bits(state(model)) == bits(ended)


def test_a_loop_of_ones_own(simulate: Callable[..., Any], tmp_path: Path, bits: Bits) -> None:
    """With gradients taken by hand, and the optimizer given by itself."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    saved: list[str | None] = [None]

    def run(seed: int) -> list[Any]:
        """Take the steps up to the fourth; save after the second one."""
        ops.set_seed(seed)
        with strategy.scope():
            net = mr.Sequential([mr.layers.Dense(2), mr.layers.Dropout(0.4)])
            net.build((None, 4))
            optimizer = mr.optim.Adam(0.1)
        checkpoint = mr.train.Checkpoint(net=net, optimizer=optimizer, step=mr.Variable(0))
        checkpoint.restore(saved[0])

        def step() -> None:
            with mr.GradientTape() as tape:
                loss = mr.reduce_sum(mr.square(net(X, training=True) - Y))
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))

        for number in range(int(checkpoint.step), 4):
            if number == 2:
                saved[0] = checkpoint.save(tmp_path / "ckpt")
            strategy.run(step)
            checkpoint.step.assign_add(1)
        return [each.numpy() for each in (*net.weights, *optimizer.variables, checkpoint.step)]

    never_stopped = run(1)
    assert bits(run(2)) == bits(never_stopped)
