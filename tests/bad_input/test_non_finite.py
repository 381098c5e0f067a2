"""Losses that are not finite: the error names step and replicas.

The weights are those of the step before, and nothing is logged besides.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import NonFiniteGradientError, NonFiniteLossError

CLASSES = 3
# The training data of the shared fixtures, here for the tables.
X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, CLASSES, size=12)
BATCH = 6  # Two steps an epoch; three replicas get two examples each.


# ------------------------------------------------------------------------------ not finite


def make_line(strategy: mr.MirroredStrategy, **options: Any) -> mr.Model:
    """Return a linear model, which passes on whatever is not finite, trained for one step."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1, **options)])
        model.compile(mr.optim.SGD(0.01, momentum=0.9), "mse", metrics=["mse"])
    model.fit(X, Y, batch_size=BATCH, steps_per_epoch=1, shuffle=False, verbose=0)
    return model


def spoiled(array: np.ndarray, example: int, value: float) -> np.ndarray:
    copy = array.astype(np.float64)
    copy[example] = value
    return copy


# What is spoiled, and by replica count where: the step, the replicas, and the steps before it.
FIRST, SECOND = "step 1 of epoch 1", "step 2 of epoch 1"
NOT_FINITE: dict[str, tuple[dict[str, Any], str, list[int], int]] = {
    "NaN on the first replica": ({"x": spoiled(X, 0, np.nan)}, FIRST, [0], 0),
    "NaN on the last replica": ({"x": spoiled(X, 5, np.nan)}, FIRST, [2], 0),
    "NaN in a later step": ({"x": spoiled(X, 8, np.nan)}, SECOND, [1], 1),
    "NaN in the targets": ({"y": spoiled(Y, 3, np.nan)}, FIRST, [1], 0),
    "infinite inputs": ({"x": spoiled(X, 11, np.inf)}, SECOND, [2], 1),
    "infinite targets": ({"y": spoiled(Y, 4, -np.inf)}, FIRST, [2], 0),
    "too large for float32": ({"x": spoiled(X, 2, 1e300)}, FIRST, [1], 0),
    "too large when squared": ({"x": spoiled(X, 2, 1e30)}, FIRST, [1], 0),
    "everywhere": ({"x": np.full_like(X, np.nan)}, FIRST, [0, 1, 2], 0),
}


@pytest.mark.behaviour("non-finite-loss")
@pytest.mark.parametrize(
    ("change", "step", "where", "steps"),
    [
        pytest.param(*case, id=name, marks=[] if number % 3 == 0 else [pytest.mark.slow])
        for number, (name, case) in enumerate(NOT_FINITE.items())
    ],
)
def test_a_loss_that_is_not_finite(
    change: dict[str, Any],
    step: str,
    where: list[int],
    steps: int,
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    if strategy.num_replicas_in_sync == 1:
        where = [0]
    places = [f"replica {i} (/job:localhost/replica:0/task:0/device:GPU:{i})" for i in where]
    error = check_refused(
        make_line(strategy),
        lambda model: train(model, **change),
        NonFiniteLossError,
        f"The loss is not finite in {step}: ",
        " and ".join(places),
        "The weights still have the values of the previous step.",
        "as `fit(validate_data=True)` does",
        steps=steps,
        make=make_line,
    )
    assert str(error).count("replica") - str(error).count("/replica:") == len(where)
    assert isinstance(error, ArithmeticError)


def test_weights_that_are_not_finite(
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
) -> None:
    model = make_line(strategy)
    good = model.get_weights()
    model.set_weights([np.full_like(each, np.nan) for each in good])
    before = state(model)
    with pytest.raises(NonFiniteLossError, match="not finite in step 1 of epoch 1: nan"):
        train(model)
    assert state(model) == before
    model.set_weights(good)
    assert np.isfinite(train(model).history["loss"][0])


def test_a_penalty_that_is_not_finite(
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
) -> None:
    """The data's part is finite on every replica, so none of them is named."""

    def penalty(weight: Any) -> Any:
        return mr.reduce_sum(mr.log(weight * 0.0 - 1.0))

    model = make_line(strategy, bias_initializer="zeros")
    with strategy.scope():
        other = mr.Sequential([mr.layers.Dense(1, bias_regularizer=penalty)])
        other.compile(model.optimizer, "mse")
    other.build((None, 5))
    before = state(other)
    with pytest.raises(NonFiniteLossError, match="from the penalties or the sum"):
        train(other)
    assert state(other) == before


@pytest.mark.behaviour("non-finite-loss")
def test_training_that_diverges(
    strategy: mr.MirroredStrategy, train: Callable[..., mr.callbacks.History]
) -> None:
    """The weights blow up until the loss overflows: then the last ones are kept, all finite."""
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(1e4), "mse")
    with pytest.raises(NonFiniteLossError):
        train(model, epochs=50)
    assert all(np.isfinite(each).all() for each in model.get_weights())
    assert model.history is not None
    assert np.isfinite(model.history.history["loss"]).all()


# ------------------------------------------------------------------------------ gradients


class Root(mr.layers.Layer):
    """A square root, which is finite at 0, where its gradient is not."""

    def call(self, x: Any) -> Any:
        return mr.sqrt(x)


class OwnStep(mr.Model):
    """A model with a step of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.root = mr.layers.Dense(1, "relu", kernel_initializer="ones"), Root()

    def call(self, x: Any) -> Any:
        return self.root(self.dense(x))

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with mr.GradientTape() as tape:
            loss = mr.reduce_mean(mr.square(self(x, training=True) - y))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


def make_root(kind: str, optimizer: Any, **options: Any) -> mr.Model:
    """Return a model whose gradient is infinite for inputs of 0."""
    mr.config.experimental.set_simulated_gpus(3)
    strategy = mr.MirroredStrategy(replicas=3) if kind == "fixed" else mr.MirroredStrategy()
    with strategy.scope():
        if kind == "own":
            model: mr.Model = OwnStep()
            model.build((None, 1))
        else:
            dense = mr.layers.Dense(1, "relu", kernel_initializer="ones")
            model = mr.Sequential([mr.layers.Input(shape=(1,)), dense, Root()])
        model.compile(optimizer(), "mse", run_eagerly=kind == "eager", **options)
    return model


ONES = np.ones((6, 1), np.float32)


@pytest.mark.behaviour("non-finite-gradient")
@pytest.mark.parametrize("kind", ["recorded", "eager", "own", "fixed"])
def test_a_gradient_that_is_not_finite(kind: str, state: Callable[..., list[bytes]]) -> None:
    model = make_root(kind, lambda: mr.optim.SGD(0.01, momentum=0.9), check_gradients=True)
    model.fit(ONES, ONES * 2, batch_size=6, verbose=0)
    model.weights[1].assign([0.0])
    before, x = state(model), ONES.copy()
    x[3] = 0.0  # On the second replica.
    with pytest.raises(NonFiniteGradientError, match="not finite in step 1 of epoch 1") as caught:
        model.fit(x, ONES, batch_size=6, shuffle=False, verbose=0)
    assert state(model) == before
    assert caught.value.variable.endswith(("kernel", "kernel:0"))
    assert caught.value.replicas == (1,)
    assert "on replica 1 (/job:localhost" in str(caught.value)
    assert np.isfinite(model.fit(ONES, ONES, batch_size=6, verbose=0).history["loss"]).all()


@pytest.mark.behaviour("non-finite-gradient")
def test_what_else_a_gradient_that_is_not_finite_does() -> None:
    zeros = ONES * 0
    options: dict[str, Any] = {"batch_size": 6, "verbose": 0}
    model = make_root("recorded", lambda: mr.optim.SGD(0.1))
    model.fit(zeros, ONES, **options)  # Unchecked: the next step names it.
    with pytest.raises(NonFiniteLossError, match="the gradient of an earlier step was NaN"):
        model.fit(zeros, ONES, **options)
    scaled = lambda: mr.optim.LossScaleOptimizer(mr.optim.SGD(0.1), initial_scale=8.0)  # noqa: E731
    model = make_root("recorded", scaled, check_gradients=True)
    model.fit(zeros, ONES, **options)
    assert float(model.optimizer.dynamic_scale) == 4.0
    assert [weight.tolist() for weight in model.get_weights()] == [[[1.0]], [0.0]]
    model = make_root("recorded", lambda: mr.optim.SGD(0.1), check_gradients=True)
    history = model.fit(zeros, ONES, callbacks=[mr.callbacks.TerminateOnNaN()], epochs=9, **options)
    assert len(history.epoch) == 1
    assert model.get_compile_config()["check_gradients"] is True


# ------------------------------------------------------------------------------ weights files


def test_nothing_is_said_of_it_on_the_way(
    strategy: mr.MirroredStrategy,
    caplog: pytest.LogCaptureFixture,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
) -> None:
    """Errors are raised and not logged as well."""
    model = make_model(strategy)
    with caplog.at_level(logging.WARNING, logger="mirrored"), pytest.raises(NonFiniteLossError):
        train(make_line(strategy), x=np.full_like(X, np.nan))
    with (
        caplog.at_level(logging.WARNING, logger="mirrored"),
        pytest.raises(ValueError, match="label"),
    ):
        train(model, y=Y + 9)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("eager", [False, True])
def test_finite_gradients_whose_sum_would_overflow_are_no_error(eager: bool) -> None:
    layers = [mr.layers.Input((4,)), mr.layers.Dense(1, use_bias=False, kernel_initializer="zeros")]
    model = mr.Sequential(layers)
    model.compile(mr.optim.SGD(1e-37), "mae", check_gradients=True, run_eagerly=eager)
    model.fit(np.full((1, 4), 2e38, np.float32), np.ones((1, 1)), verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], 20.0, rtol=1e-6)
