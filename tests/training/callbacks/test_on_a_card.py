"""Callbacks on an emulated card do what they do on the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from card_training import BATCH, X, Y, make_devices, make_model

import mirrored as mr

C = mr.callbacks


def trained(strategy: mr.MirroredStrategy) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return weights and history of a training that a loss ends which is not finite."""

    def averaging() -> mr.optim.Optimizer:
        return mr.optim.SGD(
            0.05, momentum=0.5, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
        )

    def spoil(epoch: int, logs: Any) -> None:
        if epoch == 2:
            x[BATCH] = np.inf  # In the second step.

    x = X.copy()
    model = make_model(strategy, widths=(8,), optimizer=averaging)
    callbacks = [
        C.LambdaCallback(on_epoch_begin=spoil),
        C.LearningRateScheduler(lambda epoch, rate: rate / 2),
        C.SwapEMAWeights(),
        C.EarlyStopping("val_loss", patience=5, restore_best_weights=True),
        C.TerminateOnNaN(),
    ]
    options = {"batch_size": BATCH, "epochs": 5, "verbose": 0, "shuffle": False}
    held_out = (X[:9], Y[:9])
    history = model.fit(x, Y, callbacks=callbacks, validation_data=held_out, **options)
    assert int(model.optimizer.iterations) == 9
    return model.get_weights(), history.history


@pytest.mark.slow
def test_averages_swaps_rates_and_ends(
    emulated_cuda: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    emulated_cuda()
    names = make_devices((2,))
    with mr.device("CPU:0"):
        expected, history = trained(mr.MirroredStrategy(["CPU:0"]))
    found, seen = trained(mr.MirroredStrategy(names))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    assert seen.keys() == history.keys()
    for name, values in history.items():
        np.testing.assert_allclose(seen[name], values, atol=2e-5, err_msg=name)
    assert capsys.readouterr().out == 2 * "Batch 1: Invalid loss, terminating training\n"
