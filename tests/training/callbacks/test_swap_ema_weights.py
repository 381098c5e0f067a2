"""Weights and their averages change places, and are back however an evaluation ends."""

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.arange(6.0, dtype=np.float32)[:, np.newaxis] / 6


@pytest.fixture
def model(strategy: mr.MirroredStrategy) -> mr.Model:
    """Return a model that was trained for some steps by a loop, so that it has averages beside."""
    with strategy.scope():
        dense = mr.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        made = mr.Sequential([mr.layers.Input(shape=(1,)), dense])
        made.compile(mr.optim.SGD(0.5, use_ema=True, ema_momentum=0.5), "mse")
    for _ in range(3):
        strategy.run(lambda: made.optimizer.apply_gradients([(mr.ones((1, 1)), made.weights[0])]))
    return made


def values(model: mr.Model) -> tuple[float, float]:
    """Return the weight and its average."""
    ((weight, average),) = model.optimizer.slots.averages()
    return weight.numpy().item(), average.numpy().item()


# Each gradient is 1 on three replicas: from 1 by steps of 1.5; the first average is the weight.
WEIGHT, AVERAGE = -3.5, 0.5 * (0.5 * -0.5 + 0.5 * -2.0) + 0.5 * -3.5


def seen(model: mr.Model, **hooks: Any) -> list[tuple[float, float]]:
    """Return weight and average at each batch of an evaluation and a prediction."""
    found: list[tuple[float, float]] = []
    look = mr.callbacks.LambdaCallback(
        on_test_batch_end=lambda *_: found.append(values(model)),
        on_predict_batch_end=lambda *_: found.append(values(model)),
    )
    callbacks = [mr.callbacks.SwapEMAWeights(), look, mr.callbacks.LambdaCallback(**hooks)]
    model.evaluate(X, X, verbose=0, callbacks=callbacks)
    model.predict(X, verbose=0, callbacks=callbacks)
    return found


@pytest.mark.behaviour("averages")
def test_evaluation_and_prediction(model: mr.Model) -> None:
    assert values(model) == (WEIGHT, AVERAGE)
    assert seen(model) == [(AVERAGE, WEIGHT)] * 2
    assert values(model) == (WEIGHT, AVERAGE)


@pytest.mark.behaviour("averages")
@pytest.mark.parametrize("hook", ["on_test_batch_end", "on_predict_batch_end", "on_test_end"])
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_an_evaluation_that_ends_early(
    hook: str, error: type[BaseException], model: mr.Model
) -> None:
    def fails(*args: Any) -> None:
        raise error

    with pytest.raises(error):
        seen(model, **{hook: fails})
    assert values(model) == (WEIGHT, AVERAGE)


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_waits_until_all_have_changed_places(
    model: mr.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap, kind = mr.callbacks.SwapEMAWeights(), type(model.weights[0])
    assign = kind.assign

    def interrupted(self: Any, *args: Any) -> None:
        assign(self, *args)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "assign", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.evaluate(X, X, verbose=0, callbacks=[swap])
    assert values(model) == (WEIGHT, AVERAGE)


@pytest.mark.behaviour("averages")
def test_a_fit_that_stops_early_ends_with_the_averages(model: mr.Model) -> None:
    ends: list[tuple[float, float]] = []
    callbacks = [
        mr.callbacks.SwapEMAWeights(swap_on_epoch=True),
        mr.callbacks.EarlyStopping("loss", mode="max"),
        mr.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(values(model))),
    ]
    model.fit(X, X, epochs=9, verbose=0, callbacks=callbacks)
    assert len(ends) == 2
    average, weight = ends[-1]
    assert values(model) == (average, average) != (weight, weight)


@pytest.mark.parametrize("model_of", [lambda: mr.optim.SGD(), lambda: mr.optim.SGD(use_ema=True)])
def test_no_averages(model_of: Callable[[], Any]) -> None:
    model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
    model.compile(model_of(), "mse")
    with pytest.raises(ValueError, match="SwapEMAWeights must be used when `use_ema=True` is set"):
        model.evaluate(X, X, verbose=0, callbacks=[mr.callbacks.SwapEMAWeights()])
    before = model.get_weights()
    if not model.optimizer.use_ema:
        with pytest.raises(ValueError, match="Received: use_ema=False"):
            model.fit(X, X, verbose=0, callbacks=[mr.callbacks.SwapEMAWeights()])
        for one, other in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(one, other)
