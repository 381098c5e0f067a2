"""Signals to end a program: it saves first, and another process continues after that step."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import mirrored as mr

X = np.arange(24.0, dtype=np.float32)[:, np.newaxis] / 24


def test_a_loop_asks_after_each_step() -> None:
    with mr.train.PreemptionHandler() as preemption:
        assert not preemption.requested
        signal.raise_signal(signal.SIGUSR1)
        assert preemption.requested
    with preemption:
        assert not preemption.requested
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL


def test_a_handler_from_before_is_called_at_the_end() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: calls.append(number))
    try:
        with mr.train.PreemptionHandler([signal.SIGTERM]) as preemption:
            signal.raise_signal(signal.SIGTERM)
            assert (calls, preemption.received) == ([], True)
            preemption.end()
            assert (calls, preemption.received) == ([signal.SIGTERM], False)
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)  # The second one does not wait.
            assert len(calls) == 2
        signal.raise_signal(signal.SIGTERM)
        assert len(calls) == 3
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("signals", [(), (signal.SIGKILL,), (0,), (4000,)])
def test_what_is_no_signal(signals: Any) -> None:
    with pytest.raises(ValueError, match="signals that a program can handle"):
        mr.train.PreemptionHandler(signals)


def model_of(seed: int) -> mr.Model:
    mr.layers.reset_names()
    mr.keras.utils.set_random_seed(seed)
    model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(3), mr.layers.Dense(1)])
    model.compile(mr.optim.Adam(0.1), "mse")
    return model


def fitted(folder: Path, last_step: int, hooks: bool) -> Any:
    """Train; a signal arrives at a step. Return what the run leaves."""
    with pytest.MonkeyPatch.context() as patch:
        return _fitted(folder, last_step, hooks, patch)


def _fitted(folder: Path, last_step: int, hooks: bool, patch: pytest.MonkeyPatch) -> Any:
    model, steps = model_of(3), itertools.count(1)

    def count(*_: Any) -> bool:
        if next(steps) == last_step:
            signal.raise_signal(signal.SIGUSR1)
        return False

    callbacks = [mr.callbacks.BackupAndRestore(folder)]
    if hooks:
        callbacks.append(mr.callbacks.LambdaCallback(on_train_batch_begin=count))
    else:  # All steps of an epoch are taken by one call: this is asked after each of them.
        is_ending = mr.callbacks.BackupAndRestore._is_ending
        patch.setattr(
            mr.callbacks.BackupAndRestore, "_is_ending", lambda self: count() or is_ending(self)
        )
    history = model.fit(X, X, 4, epochs=4, callbacks=callbacks, verbose=0)
    return [*model.get_weights(), np.array(history.history["loss"])]


def steps_in(folder: Path) -> int:
    """Return the number of steps of a backup."""
    with safe_open(folder / "latest", framework="np") as file:
        (name,) = [name for name in file.keys() if name.endswith("iterations")]  # noqa: SIM118
        return int(file.get_tensor(name))


@pytest.mark.behaviour("preemption")
@pytest.mark.parametrize("hooks", [True, False])
def test_a_fit_saves_after_the_running_step(hooks: bool, tmp_path: Path) -> None:
    class Ended(BaseException):
        pass

    def end(*_: Any) -> None:
        raise Ended

    whole = fitted(tmp_path / "whole", 0, hooks)
    before = signal.signal(signal.SIGUSR1, end)
    try:
        with pytest.raises(Ended):
            fitted(tmp_path / "backup", 9, hooks)
        assert signal.getsignal(signal.SIGUSR1) is end
        assert 6 < steps_in(tmp_path / "backup") < 12
        resumed = fitted(tmp_path / "backup", 0, hooks)
        signal.signal(signal.SIGUSR1, lambda *_: None)  # The program goes on.
        continued = fitted(tmp_path / "other", 9, hooks)
    finally:
        signal.signal(signal.SIGUSR1, before)
    for results in (resumed, continued):
        for value, expected in zip(results, whole, strict=True):
            np.testing.assert_array_equal(value, expected)


PROGRAM = """
import signal, sys
import mirrored as mr
model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
model.compile("sgd", "mse")
send = mr.callbacks.LambdaCallback(
    on_train_batch_begin=lambda batch, _: batch == 3 and signal.raise_signal(signal.SIGTERM)
)
model.fit([[1.0]] * 8, [[1.0]] * 8, 1, callbacks=[mr.callbacks.BackupAndRestore(sys.argv[1]), send])
"""


@pytest.mark.slow
@pytest.mark.behaviour("preemption")
def test_the_program_ends_by_the_signal(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    program = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(program, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGTERM
    assert os.listdir(folder) == ["latest"]
    assert b"Saved" in done.stderr
