"""Callbacks change the learning rate of the next step, which is not recorded anew for that."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.training import recorded_steps

X = np.ones((6, 1), np.float32)
C = mr.callbacks


def by_batches(model: mr.Model) -> C.Callback:
    class Sets(C.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            model.optimizer.learning_rate = 0.25 / 2 ** (batch + 3 * self.epoch)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch

    return Sets()


# A callback, and the learning rates of three epochs of three steps.
RATES: dict[str, tuple[Any, list[float]]] = {
    "a schedule": (
        lambda model: C.LearningRateScheduler(lambda epoch, rate: 0.25 / 2**epoch),
        [0.25] * 3 + [0.125] * 3 + [0.0625] * 3,
    ),
    "a plateau": (
        lambda model: C.ReduceLROnPlateau("loss", 0.5, 1, mode="max", min_delta=9.0),
        [0.25] * 6 + [0.125] * 3,
    ),
    "a callback of the user's": (by_batches, [0.25 / 2**step for step in range(9)]),
}


@pytest.mark.parametrize(("make", "rates"), RATES.values(), ids=RATES)
def test_rates_of_each_step(
    make: Any, rates: list[float], make_line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[Any] = []
    trace = recorded_steps.trace
    monkeypatch.setattr(
        recorded_steps, "trace", lambda *args, **more: recorded.append(args) or trace(*args, **more)
    )
    model = make_line(0.25, loss=lambda y_true, y_pred: y_pred)  # Its gradient is 1.
    model.fit(X, X, batch_size=2, epochs=3, verbose=0, callbacks=[make(model)])
    assert model.get_weights()[0].item() == 1.0 - sum(rates)
    assert len(recorded) == 1
