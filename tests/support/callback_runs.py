"""Runs of `fit` with callbacks, for any `keras`: what is logged, printed, warned of and saved.

What callback_runs.json says is Keras 3.15.1's. Where it is installed,
`python tests/support/callback_runs.py` writes it anew.
"""

import contextlib
import io
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
_draws = np.random.default_rng(0)
X = _draws.normal(size=(20, 3)).astype(np.float32)
Y = (X @ [[1.0], [-2.0], [0.5]] + 0.1 * _draws.normal(size=(20, 1))).astype(np.float32)
SHAPES = ((3, 4), (4,), (4, 1), (1,))
WEIGHTS = [_draws.normal(size=shape).astype(np.float32) for shape in SHAPES]
VALIDATED = {"validation_data": (X[:7], Y[:7])}


@dataclass(frozen=True)
class Run:
    """A call of `fit`, or several.

    Attributes:
        callback: The class of the callback.
        options: Its arguments.
        path: Its first one where that is a file, without the folder.
        fit: Arguments of `fit`.
        model: Arguments of `compile`.
        rate: The learning rate.
        optimizer: Other arguments of the optimizer.
        labels: Whether the targets are 0 and 1.
        fits: How often `fit` is called.
        text: What is in the file before.
        state: The callback's attributes to look at.
    """

    callback: str
    options: dict[str, Any] = field(default_factory=dict)
    path: str | None = None
    fit: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    rate: float = 0.1
    optimizer: dict[str, Any] = field(default_factory=dict)
    labels: bool = False
    fits: int = 1
    text: str | None = None
    state: tuple[str, ...] = ()


def _stop(fit: dict[str, Any] | None = None, **options: Any) -> Run:
    given = {key: options.pop(key) for key in ("rate", "labels", "model", "fits") if key in options}
    options = {"monitor": "loss", "verbose": 1, **options}
    state = ("wait", "stopped_epoch", "best", "best_epoch")
    return Run("EarlyStopping", options, fit=fit or {}, state=state, **given)


def _reduce(fit: dict[str, Any] | None = None, **options: Any) -> Run:
    given = {key: options.pop(key) for key in ("rate", "fits") if key in options}
    options = {"monitor": "loss", "verbose": 1, "min_delta": 5.0, **options}
    state = ("wait", "cooldown_counter", "best")
    return Run("ReduceLROnPlateau", options, fit=fit or {}, state=state, **given)


def _schedule(schedule: Callable[..., Any], **options: Any) -> Run:
    return Run("LearningRateScheduler", {"schedule": schedule, "verbose": 1, **options})


def _save(path: str, fit: dict[str, Any] | None = None, **options: Any) -> Run:
    given = {key: options.pop(key) for key in ("rate", "labels", "model", "fits") if key in options}
    options = {"monitor": "loss", "verbose": 1, "save_weights_only": True, **options}
    return Run("ModelCheckpoint", options, path, fit or {}, state=("best",), **given)


def _average(callback: str = "Callback", path: str | None = None, **options: Any) -> Run:
    given = {key: options.pop(key) for key in ("swap_on_epoch",) if key in options}
    options = {"use_ema": True, "ema_momentum": 0.8, **options}
    return Run(callback, given, path, VALIDATED, optimizer=options, fits=2)


def _log(fit: dict[str, Any] | None = None, **options: Any) -> Run:
    given = {key: options.pop(key) for key in ("text", "model", "fits") if key in options}
    path = options.pop("path", "log.csv")
    return Run("CSVLogger", options, path, {"epochs": 3, **(fit or {})}, **given)


ACCURACY = {"metrics": ["accuracy"]}
RUNS: dict[str, Run] = {
    "stop without validation": Run("EarlyStopping"),
    "stop by validation": Run("EarlyStopping", fit=VALIDATED),
    "stop": _stop(min_delta=10.0, patience=2),
    "stop and restore": _stop({"epochs": 12}, rate=0.4, patience=2, restore_best_weights=True),
    "restore without a stop": _stop(
        {"epochs": 5}, rate=0.4, patience=50, restore_best_weights=True
    ),
    "stop by a baseline": _stop(baseline=1e-9, patience=2, restore_best_weights=True),
    "better than a baseline": _stop(baseline=1.0, patience=2),
    "stop after a start": _stop(min_delta=5.0, patience=1, start_from_epoch=3),
    "stop without patience": _stop(min_delta=5.0),
    "stop at more": _stop(mode="max", patience=1),
    "stop by accuracy": _stop(labels=True, model=ACCURACY, monitor="accuracy", patience=1),
    "stop at less accuracy": _stop(
        labels=True, model=ACCURACY, monitor="accuracy", mode="min", patience=1
    ),
    "stop by a metric": _stop(model={"metrics": ["mse"]}, monitor="mse", min_delta=-3, patience=1),
    "stop by an unknown mode": _stop(mode="foo"),
    "stop by nothing that is known": _stop(monitor="foo"),
    "stop by nothing there is": _stop(monitor="foo", mode="min"),
    "stop twice": _stop(min_delta=5.0, patience=1, fits=2),
    "stop where few epochs are validated": _stop(
        {**VALIDATED, "validation_freq": 2}, monitor="val_loss", min_delta=5.0, patience=1
    ),
    "stop from a later epoch": _stop({"initial_epoch": 3}, min_delta=5.0, patience=1),
    "restore after no epoch": _stop({"epochs": 0}, restore_best_weights=True),
    "reduce without validation": Run("ReduceLROnPlateau"),
    "reduce by validation": Run("ReduceLROnPlateau", fit=VALIDATED),
    "reduce": _reduce(patience=2),
    "reduce to half": _reduce(patience=1, factor=0.5),
    "reduce and wait": _reduce({"epochs": 10}, patience=1, factor=0.5, cooldown=2),
    "reduce to the least": _reduce(patience=1, min_lr=0.02),
    "reduce by 1": _reduce(factor=1.0),
    "reduce at more": _reduce(mode="max", min_delta=0.0, patience=1),
    "reduce by an unknown mode": _reduce(mode="foo"),
    "reduce by nothing that is known": _reduce(monitor="foo"),
    "reduce without patience": _reduce(patience=0),
    "reduce twice": _reduce(patience=2, fits=2),
    "schedule": _schedule(lambda epoch, rate: rate / 2),
    "schedule by the epoch": _schedule(lambda epoch: 0.1 / (epoch + 1)),
    "schedule of float32": _schedule(lambda epoch, rate: np.float32(rate) * np.float32(0.5)),
    "schedule of float64": _schedule(lambda epoch, rate: np.float64(rate) * 0.5),
    "schedule of zeros": _schedule(lambda epoch, rate: 0.0),
    "schedule of integers": _schedule(lambda epoch, rate: 1),
    "schedule of nothing": _schedule(lambda epoch, rate: None),
    "schedule of arrays": _schedule(lambda epoch, rate: np.array(0.5)),
    "schedule that raises": _schedule(lambda epoch, rate: 1 / 0),
    "schedule without a word": _schedule(lambda epoch, rate: rate, verbose=0),
    "save": _save("a"),
    "save each": _save("{epoch:02d}"),
    "save by value": _save("{epoch:02d}-{val_loss:.2f}", VALIDATED),
    "save the best": _save("{epoch:02d}", rate=0.4, save_best_only=True),
    "save the most": _save("{epoch:02d}", save_best_only=True, mode="max"),
    "save by accuracy": _save(
        "{epoch}-{accuracy:.2f}",
        labels=True,
        model=ACCURACY,
        save_best_only=True,
        monitor="accuracy",
    ),
    "save above a threshold": _save("{epoch}", save_best_only=True, initial_value_threshold=1.0),
    "save the best without validation": _save("{epoch}", save_best_only=True, monitor="val_loss"),
    "save each step": _save("e{epoch}b{batch}", {"epochs": 2}, save_freq=1),
    "save by steps": _save("e{epoch}b{batch}", save_freq=2),
    "save by steps of two epochs": _save("e{epoch}b{batch}{loss:.3f}", save_freq=4),
    "save by steps of two steps more": _save("e{epoch}b{batch}", save_freq=5),
    "save the best of steps": _save(
        "e{epoch}b{batch}", {"epochs": 3}, rate=0.4, save_freq=2, save_best_only=True
    ),
    "save by no number": _save("a", save_freq="foo"),
    "save by a fraction": _save("a", save_freq=2.5),
    "save under a missing name": _save("{foo}"),
    "save by batch at the end of an epoch": _save("{batch}"),
    "save under a wrong form": _save("{epoch:zz}"),
    "save in folders": _save("x/y/{epoch}", {"epochs": 2}),
    "save by nothing that is known": _save("a", monitor="foo"),
    "save the best of nothing there is": _save("a", monitor="foo", mode="min", save_best_only=True),
    "save twice": _save("{epoch}", {"epochs": 3}, save_best_only=True, fits=2),
    "terminate": Run("TerminateOnNaN", rate=1e30),
    "terminate with an error": Run("TerminateOnNaN", {"raise_error": True}, rate=1e30),
    "terminate a validated epoch": Run("TerminateOnNaN", fit=VALIDATED, rate=1e8),
    "terminate nothing": Run("TerminateOnNaN"),
    "average": _average(),
    "average by default": _average(ema_momentum=0.99),
    "average and momentum": _average(momentum=0.5),
    "average and overwrite": _average(ema_overwrite_frequency=4),
    "average of the last alone": _average(ema_momentum=0.0, ema_overwrite_frequency=1),
    "average that stays": _average(ema_momentum=1.0, ema_overwrite_frequency=0),
    "average too much": _average(ema_momentum=1.5),
    "average and overwrite by a fraction": _average(ema_overwrite_frequency=1.5),
    "swap": _average("SwapEMAWeights"),
    "swap with momentum": _average("SwapEMAWeights", momentum=0.5, ema_overwrite_frequency=2),
    "swap by epochs": _average("SwapEMAWeights", swap_on_epoch=True),
    "swap by epochs and save": _average("SwapEMAWeights", "{epoch}", swap_on_epoch=True),
    "swap without averages": _average("SwapEMAWeights", use_ema=False),
    "log": _log(),
    "log with another separator": _log(separator=";"),
    "log with two separators": _log(separator=";;"),
    "log validation": _log(VALIDATED),
    "log where few epochs are validated": _log({**VALIDATED, "validation_freq": 2}),
    "log twice": _log(fits=2),
    "log on": _log(append=True, fits=2),
    "log on behind rows": _log(append=True, text="epoch,loss\r\n0,1\r\n"),
    "log on in an empty file": _log(append=True, text=""),
    "log over rows": _log(text="old\n"),
    "log metrics": _log(model={"metrics": ["mse"]}),
    "log what there is": _log(path="extra.csv"),
    "log what there is, validated": _log(VALIDATED, path="extra.csv"),
    "log from a later epoch": _log({"initial_epoch": 2}),
    "log in no folder": _log(path="no/log.csv"),
}


def outcome(keras: Any, name: str, ending: str) -> dict[str, Any]:
    """Return what comes of a run.

    Args:
        keras: The library.
        name: The run's.
        ending: What names of weights files end with.
    """
    printed, found = io.StringIO(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
    ):
        warnings.simplefilter("always")
        error = None
        try:
            for each in _fits(keras, RUNS[name], folder, ending):
                found.append(each)
        except Exception as raised:
            error = type(raised).__name__

        def plain(text: str) -> str:
            return text.replace(folder, "").replace(ending, "")

        return {
            "error": error,
            "fits": found,
            "printed": plain(printed.getvalue()).split("\n"),
            "warned": [str(each.message) for each in caught if each.category is UserWarning],
            "files": {plain(str(path)): _told(keras, path) for path in _files(folder)},
        }


def _fits(keras: Any, run: Run, folder: str, ending: str) -> Any:
    given = []
    if run.path is not None:
        path = os.path.join(folder, run.path)
        given = [path if run.callback == "CSVLogger" else path + ending]
    if run.text is not None:
        Path(given[0]).write_bytes(run.text.encode())
    model = made(keras, run)
    behind = []
    if run.callback == "SwapEMAWeights" and given:
        behind = [keras.callbacks.ModelCheckpoint(given.pop(), save_weights_only=True)]
    callback = getattr(keras.callbacks, run.callback)(*given, **run.options)

    class Adds(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs.update(text="a,b", many=np.arange(2), zero=np.array(3))

    first = [Adds()] if run.path == "extra.csv" else []
    for _ in range(run.fits):
        history = model.fit(
            X,
            (Y > 0).astype(np.float32) if run.labels else Y,
            **{"batch_size": 8, "epochs": 6, "verbose": 0, "shuffle": False, **run.fit},
            callbacks=[*first, callback, *behind],
        )
        values = history.history.items()
        state = {each: getattr(callback, each) for each in run.state}
        spoilt = run.callback == "TerminateOnNaN"  # Keras' last step writes what is not finite.
        yield {
            "epochs": list(history.epoch),
            "history": {
                key: [_number(each) for each in of]
                for key, of in values
                if not first and not (spoilt and key != "loss")
            },
            "weights": None if spoilt else checksums(model),
            "rate": float(model.optimizer.learning_rate),
            "state": {key: None if each is None else float(each) for key, each in state.items()},
        }


def made(keras: Any, run: Run) -> Any:
    """Return the model of a run."""
    model = keras.Sequential(
        [
            keras.layers.Input(shape=(3,)),
            keras.layers.Dense(4, activation="tanh"),
            keras.layers.Dense(1, activation="sigmoid" if run.labels else None),
        ]
    )
    loss = "binary_crossentropy" if run.labels else "mse"
    model.compile(keras.optimizers.SGD(run.rate, **run.optimizer), loss, **run.model)
    model.set_weights(WEIGHTS)
    return model


def _number(value: Any) -> float | str:
    """Return a number as JSON has it."""
    number = float(value)
    return number if np.isfinite(number) else str(number)


def checksums(model: Any) -> list[float]:
    """Return a number for each weight, which others of its values would change."""
    arrays = [np.asarray(each, np.float64).ravel() for each in model.get_weights()]
    return [float(np.sum(each * np.arange(1, each.size + 1))) for each in arrays]


def _files(folder: str) -> list[Path]:
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def _told(keras: Any, path: Path) -> Any:
    if path.suffix == ".csv":
        text = path.read_bytes().decode()
        parts = re.split(r"(\d+\.\d+(?:e-\d+)?)", text)  # Numbers, whose last digits differ.
        return [float(each) if i % 2 else each for i, each in enumerate(parts)]
    model = made(keras, Run(""))
    model.load_weights(str(path))
    return checksums(model)


def main() -> None:
    """Write what Keras does."""
    import keras

    told = {name: outcome(keras, name, ".weights.h5") for name in RUNS}
    lines = (
        f"{json.dumps(name)}: {json.dumps(run, allow_nan=False)}" for name, run in told.items()
    )
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
