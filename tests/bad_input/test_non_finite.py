"""Losses that are not finite: the error names step and replicas.

The weights are those of the step before, and nothing is logged besides.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import NonFiniteLossError

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
