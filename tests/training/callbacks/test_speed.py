"""What the end of an epoch says of its speed, and when replicas are too many."""

import logging
import re
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.program import THREADS_FROM

X = np.ones((40, 1), np.float32)


@pytest.mark.behaviour("speed-shown")
@pytest.mark.parametrize("strategy", [1, 2], indirect=True)
def test_examples_a_second(
    make_line: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two seconds for the steps: nothing else looks at this clock meanwhile.
    monkeypatch.setattr("mirrored.training.loop.time.perf_counter", iter([1.0, 3.0]).__next__)
    monkeypatch.setattr("mirrored.training.callbacks.progbar_logger.time", _Still)
    model = make_line()
    model.fit(X, X, verbose=2, validation_data=(X, X))
    replicas = model.distribute_strategy.num_replicas_in_sync
    speed = {1: "20 examples/s", 2: r"20 examples/s \(10 a replica\)"}[replicas]
    line = rf"Epoch 1/1 - 0\.0s - {speed} - loss: 0\.\d{{4}} - val_loss: 0\.\d{{4}}\n"
    assert re.fullmatch(line, capsys.readouterr().out)


class _Still:
    """A clock that stands still."""

    @staticmethod
    def perf_counter() -> float:
        return 0.0


@pytest.mark.behaviour("small-steps")
def test_one_device_would_be_faster_is_said_once(
    strategy: Any, make_line: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mirrored")
    for _ in range(2):
        make_line().fit(X, X, batch_size=12, epochs=2, verbose=0)
    (said,) = [each for each in caplog.records if "would be faster" in each.message]
    assert said.levelno == logging.DEBUG
    # Forward, and back to the kernel: two operations each for an example and a weight.
    assert said.message.startswith("The matrix products of a step take 16 operations on each of 3")


@pytest.mark.behaviour("small-steps")
@pytest.mark.parametrize(
    ("replicas", "executor", "units"), [(1, "auto", 2), (2, "auto", 2600), (2, "threads", 2)]
)
def test_what_is_large_or_alone_or_on_threads_is_left_in_peace(
    replicas: int, executor: str, units: int, simulate: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mirrored")
    simulate(replicas)
    strategy = mr.MirroredStrategy(executor=executor)
    with strategy.scope():
        layers = [mr.layers.Input(shape=(500,)), mr.layers.Dense(units)]
        model = mr.Sequential(layers)
        model.compile("sgd", "mse")
    x, y = np.zeros((9, 500), np.float32), np.zeros((9, units), np.float32)
    model.fit(x, y, batch_size=8, verbose=0)  # The last batch is small.
    assert THREADS_FROM < 4 * 4 * 500 * 2600
    assert "would be faster" not in caplog.text
