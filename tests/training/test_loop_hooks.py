"""The hooks that `fit`, `evaluate` and `predict` call, in which order, and what they may change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.arange(4.0, dtype=np.float32)[:, np.newaxis]
Y = 2 * (X + 1)
MakeLine = Callable[..., mr.Model]
HOOKS = [
    f"on_{what}_{when}"
    for what in ("train", "epoch", "train_batch", "test", "test_batch", "predict", "predict_batch")
    for when in ("begin", "end")
]


class Recorder(mr.callbacks.Callback):
    """Notes every hook: its name, the epoch or batch, and the names in its logs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, int | None, str]] = []


def _recording(hook: str) -> Callable[..., None]:
    def record(self: Recorder, *args: Any) -> None:
        *index, logs = args
        self.calls.append((hook, index[0] if index else None, " ".join(sorted(logs))))

    return record


for _hook in HOOKS:
    setattr(Recorder, _hook, _recording(_hook))

# Keras 3.15.1 calls a recorder like ours in this order: two epochs of two batches, validated.
EPOCH = [
    ("on_train_batch_begin", 0, ""),
    ("on_train_batch_end", 0, "loss mse"),
    ("on_train_batch_begin", 1, ""),
    ("on_train_batch_end", 1, "loss mse"),
    ("on_test_begin", None, ""),
    ("on_test_batch_begin", 0, ""),
    ("on_test_batch_end", 0, "loss mse"),
    ("on_test_batch_begin", 1, ""),
    ("on_test_batch_end", 1, "loss mse"),
    ("on_test_end", None, "loss mse"),
]
FIT = [
    ("on_train_begin", None, ""),
    ("on_epoch_begin", 0, ""),
    *EPOCH,
    ("on_epoch_end", 0, "loss mse val_loss val_mse"),
    ("on_epoch_begin", 1, ""),
    *EPOCH,
    ("on_epoch_end", 1, "loss mse val_loss val_mse"),
    ("on_train_end", None, "loss mse val_loss val_mse"),
]
EVALUATE = EPOCH[4:]
PREDICT = [
    ("on_predict_begin", None, ""),
    ("on_predict_batch_begin", 0, ""),
    ("on_predict_batch_end", 0, "outputs"),
    ("on_predict_batch_begin", 1, ""),
    ("on_predict_batch_end", 1, "outputs"),
    ("on_predict_end", None, ""),
]


def test_hooks_come_in_the_order_of_keras(make_line: MakeLine) -> None:
    recorder, model = Recorder(), make_line(metrics=["mse"])
    model.fit(
        X,
        Y,
        batch_size=2,
        epochs=2,
        verbose=0,
        callbacks=[recorder],
        validation_data=(X[:3], Y[:3]),
    )
    assert recorder.calls == FIT
    assert recorder.model is model
    assert recorder.params == {"verbose": 0, "epochs": 2, "steps": 2}


@pytest.mark.parametrize(("method", "expected"), [("evaluate", EVALUATE), ("predict", PREDICT)])
def test_hooks_of(method: str, expected: list[Any], make_line: MakeLine) -> None:
    recorder, model = Recorder(), make_line(metrics=["mse"])
    data = (X, Y) if method == "evaluate" else (X,)
    getattr(model, method)(*data, batch_size=2, verbose=0, callbacks=recorder)
    assert recorder.calls == expected
    assert recorder.params == {"verbose": 0, "epochs": 1, "steps": 2}


def test_several_callbacks_see_one_event_in_order(make_line: MakeLine) -> None:
    class Adds(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["added"] = logs.get("added", 0) + 1

    history = make_line().fit(X, Y, verbose=0, callbacks=[Adds(), [Adds()]])
    assert history.history["added"] == [2]


# Keras 3.15.1: setting it ends the epoch after the batch, its validation and its end included.
STOPS = {
    "in a batch": ("on_train_batch_end", ["on_train_batch_end"], 1),
    "before an epoch": ("on_epoch_begin", ["on_train_batch_end"], 1),
    "after an epoch": ("on_epoch_end", ["on_train_batch_end", "on_train_batch_end"], 2),
}


@pytest.mark.parametrize(("hook", "ends", "steps"), STOPS.values(), ids=STOPS)
def test_stop_training(hook: str, ends: list[str], steps: int, make_line: MakeLine) -> None:
    class Stop(mr.callbacks.Callback):
        pass

    def stop(self: Stop, index: int, logs: Any = None) -> None:
        self.model.stop_training = True

    setattr(Stop, hook, stop)
    model, recorder = make_line(), Recorder()
    options: dict[str, Any] = {"batch_size": 2, "verbose": 0, "validation_data": (X, Y)}
    history = model.fit(X, Y, epochs=3, callbacks=[Stop(), recorder], **options)
    assert [call for call, *_ in recorder.calls if call == "on_train_batch_end"] == ends
    assert [call for call, *_ in recorder.calls][-2:] == ["on_epoch_end", "on_train_end"]
    assert history.epoch == [0]
    assert len(history.history["val_loss"]) == 1
    assert int(model.optimizer.iterations) == steps
    # The next call starts afresh.
    assert model.fit(X, Y, epochs=2, **options).epoch == [0, 1]
