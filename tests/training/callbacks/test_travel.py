"""Callbacks are pickled and copied with what they have counted, and go on where they were."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.training.callbacks.callback import Callback

X = np.arange(6.0, dtype=np.float32)[:, np.newaxis] / 6
C = mr.callbacks


def halved(epoch: int, rate: float) -> float:
    return rate / 2


# How each is made that can be used in `fit`, in a folder.
MADE: dict[str, Callable[[Path], Callback]] = {
    "EarlyStopping": lambda _: C.EarlyStopping("loss", restore_best_weights=True, patience=3),
    "ReduceLROnPlateau": lambda _: C.ReduceLROnPlateau("loss", min_delta=9.0, patience=2),
    "ModelCheckpoint": lambda folder: C.ModelCheckpoint(
        folder / "{epoch}.safetensors", "loss", save_best_only=True, save_weights_only=True
    ),
    "LearningRateScheduler": lambda _: C.LearningRateScheduler(halved),
    "BackupAndRestore": lambda folder: C.BackupAndRestore(folder / "backup"),
    "CSVLogger": lambda folder: C.CSVLogger(folder / "log.csv", append=True),
    "LambdaCallback": lambda _: C.LambdaCallback(on_train_begin=id),
    "TerminateOnNaN": lambda _: C.TerminateOnNaN(),
    "TensorBoard": lambda folder: C.TensorBoard(folder / "logs"),
    "CheckReplicas": lambda _: C.CheckReplicas(every=2),
    "VerifySteps": lambda _: C.VerifySteps(every=2),
    "SwapEMAWeights": lambda _: C.SwapEMAWeights(swap_on_epoch=True),
    "ProgbarLogger": lambda _: C.ProgbarLogger(),
    "History": lambda _: C.History(),
}


def test_the_table_has_all_callbacks() -> None:
    assert MADE.keys() == set(C.__all__) - {"Callback", "CallbackList"}


def plain(callback: Callback) -> dict[str, Any]:
    """Return what a callback holds, without its model; arrays as lists."""

    def told(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [told(each) for each in value]
        return value.tolist() if isinstance(value, np.ndarray) else value

    # Neither the model, nor what looks at it, nor memory travels.
    stays = {"model", "_checkpoint", "_epochs", "_copies"}
    return {name: told(value) for name, value in vars(callback).items() if name not in stays}


@pytest.mark.behaviour("callbacks-travel")
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("travels", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_they_travel(
    name: str, travels: Callable[[Any], Any], make_line: Any, tmp_path: Path
) -> None:
    callback, model = MADE[name](tmp_path), make_line(0.1)
    model.optimizer.use_ema = True
    model.fit(X, -X, epochs=4, verbose=0, callbacks=[callback])
    again = travels(callback)
    assert again.model is None
    assert plain(again) == plain(callback)
    assert callback.model is model
    model.fit(X, -X, verbose=0, callbacks=[again])


@pytest.mark.behaviour("callbacks-travel")
@pytest.mark.parametrize("name", ["EarlyStopping", "ReduceLROnPlateau", "ModelCheckpoint"])
def test_training_goes_on_with_what_they_had_counted(
    name: str, make_line: Any, tmp_path: Path
) -> None:
    """Each `fit` begins anew, as in Keras; without `on_train_begin` a callback goes on."""
    whole, model = MADE[name](tmp_path), make_line(0.1)
    model.fit(X, -X, epochs=6, verbose=0, shuffle=False, callbacks=[whole])
    first, other = MADE[name](tmp_path), make_line(0.1)
    other.fit(X, -X, epochs=3, verbose=0, shuffle=False, callbacks=[first])
    rest = pickle.loads(pickle.dumps(first))
    rest.on_train_begin = id
    other.fit(X, -X, initial_epoch=3, epochs=6, verbose=0, shuffle=False, callbacks=[rest])
    del rest.__dict__["params"], whole.__dict__["params"]
    assert plain(rest) == {**plain(whole), "on_train_begin": id}
