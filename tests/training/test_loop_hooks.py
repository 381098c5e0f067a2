"""The hooks that `fit`, `evaluate` and `predict` call, in which order, and what they may change."""

from collections.abc import Callable, Iterator
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


@pytest.mark.behaviour("stop-flags")
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


class StopsItself(mr.callbacks.Callback):
    """Ends evaluations and predictions after some batches, or before their first one."""

    def __init__(self, after: int | None) -> None:
        super().__init__()
        self.after = after

    def stop(self, *index: int) -> None:
        if (index[0] if index else None) == self.after:
            self.model.stop_evaluating = self.model.stop_predicting = True

    def on_test_begin(self, logs: Any = None) -> None:
        assert self.model.stop_evaluating is False  # As each of them begins.
        self.stop()

    def on_predict_begin(self, logs: Any = None) -> None:
        assert self.model.stop_predicting is False
        self.stop()


class StopsInBatch(StopsItself):
    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.stop(batch)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self.stop(batch)


def endless() -> Iterator[tuple[Any, Any]]:
    for _ in iter(int, 1):
        yield X[:2], Y[:2]


def arrays() -> Any:
    return np.concatenate([X] * 9), np.concatenate([Y] * 9)


# Keras 3.15: the batch that is running is the last, and the flag stays until the next begins.
STOPPED = {
    "in a batch": (lambda: StopsInBatch(2), 3),
    "before the first": (lambda: StopsItself(None), 1),
}


@pytest.mark.behaviour("stop-flags")
@pytest.mark.parametrize("data", [lambda: (endless(),), arrays], ids=["endless", "arrays"])
@pytest.mark.parametrize(("make", "batches"), STOPPED.values(), ids=STOPPED)
def test_stop_evaluating_and_stop_predicting(
    make: Callable[[], Any], batches: int, data: Callable[[], Any], make_line: MakeLine
) -> None:
    model, recorder = make_line(metrics=["mse"]), Recorder()
    assert (model.stop_evaluating, model.stop_predicting) == (False, False)
    x, *y = data()
    size: dict[str, Any] = {"batch_size": 2} if y else {}
    callbacks = [make(), recorder] if batches > 1 else [make()]
    result = model.evaluate(x, *y, verbose=0, callbacks=callbacks, **size)
    seen = np.concatenate([X[:2], X[2:]] * 2)[: 2 * batches] if y else X[:2]
    expected = np.mean((seen - 2 * (seen + 1)) ** 2)
    assert result == pytest.approx([expected, expected], rel=1e-6)
    assert model.stop_evaluating
    x, *y = data()
    outputs = model.predict(x, verbose=0, callbacks=callbacks, **size)
    assert outputs.shape == (2 * batches, 1)
    assert model.stop_predicting
    if batches > 1:
        assert [call for call, *_ in recorder.calls][-2:] == [
            "on_predict_batch_end",
            "on_predict_end",
        ]
        assert ("on_test_end", None, "loss mse") in recorder.calls
    # The next ones begin afresh.
    assert model.predict(X, verbose=0).shape == (4, 1)
    model.evaluate(X, Y, verbose=0)
    assert (model.stop_evaluating, model.stop_predicting) == (False, False)


def test_stop_evaluating_ends_the_validation_of_an_epoch(make_line: MakeLine) -> None:
    recorder = Recorder()
    history = make_line().fit(
        X, Y, epochs=2, verbose=0, validation_data=endless(), callbacks=[StopsInBatch(1), recorder]
    )
    assert len(history.history["val_loss"]) == 2
    assert [call for call, *_ in recorder.calls].count("on_test_batch_end") == 4


def test_stop_training_before_an_epoch_without_hooks_of_batches(make_line: MakeLine) -> None:
    class Stop(mr.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = True

    model = make_line()
    model.fit(X, Y, batch_size=2, epochs=3, verbose=0, callbacks=Stop())
    assert int(model.optimizer.iterations) == 1
