"""What is shown is what the logs say: lines, on a terminal a bar before each, nothing if silent."""

import contextlib
import io
import itertools
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.training.callbacks.progbar_logger import ProgbarLogger
from mirrored.training.progress import format_logs

EPOCHS, STEPS = 2, 3


class Terminal(io.StringIO):
    """Remembers what a terminal was given."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "200")
    return Terminal()


def shown(verbose: Any = "auto") -> ProgbarLogger:
    """Return what shows progress for this `verbose`."""
    logger = ProgbarLogger()
    logger.set_params({"verbose": verbose})
    return logger


@contextlib.contextmanager
def let_go(bar: ProgbarLogger) -> Iterator[None]:
    """Do at the end of this context what `fit` does, however it ends."""
    try:
        yield
    finally:
        bar._let_go()


def train(bar: ProgbarLogger, *, validate: bool = False, steps: int | None = STEPS) -> None:
    """Call the hooks as `fit` does, with values that tell where they come from."""
    bar.set_params({"epochs": EPOCHS, "steps": steps})
    bar.on_train_begin()
    for epoch in range(EPOCHS):
        bar.on_epoch_begin(epoch)
        for batch in range(STEPS):
            bar.on_train_batch_begin(batch)
            bar.on_train_batch_end(batch, {"loss": epoch + batch / 10})
        logs = {"loss": epoch + 0.71234, "accuracy": 0.25}
        if validate:
            evaluate(bar)
            logs["val_loss"] = epoch + 0.9
        bar.on_epoch_end(epoch, logs)
    bar.on_train_end()


def evaluate(bar: ProgbarLogger) -> None:
    bar.on_test_begin()
    for batch in range(STEPS):
        bar.on_test_batch_end(batch, {"loss": batch / 10})
    bar.on_test_end({"loss": 0.31256, "accuracy": 0.5})


def predict(bar: ProgbarLogger) -> None:
    bar.set_params({"steps": STEPS})
    bar.on_predict_begin()
    for batch in range(STEPS):
        bar.on_predict_batch_end(batch)
    bar.on_predict_end()


def last_drawn(text: str) -> list[str]:
    """Return each line as it finally stood: what follows its last carriage return."""
    lines = (line.rpartition("\r")[2].strip() for line in text.split("\n"))
    return [line for line in lines if line]


def bars(text: str) -> list[str]:
    """Return each state of a bar that was drawn, in order."""
    drawn = [each.strip() for line in text.split("\n") for each in line.split("\r")]
    return [each for each in drawn if "|" in each or re.match(r"\w+.*: \d+/\?", each)]


@pytest.mark.parametrize("verbose", ["auto", 1, True])
def test_bar_on_a_terminal(terminal: Terminal, verbose: Any) -> None:
    with contextlib.redirect_stdout(terminal):
        train(shown(verbose), validate=True)
    first, second = last_drawn(terminal.getvalue())
    assert re.fullmatch(
        r"Epoch 1/2 - \d+\.\ds - loss: 0\.7123 - accuracy: 0\.2500 - val_loss: 0\.9000", first
    )
    assert second.startswith("Epoch 2/2 - ")
    assert bars(terminal.getvalue())[0] == "Epoch 1/2: 0/3 |            | 00:00<?, ?step/s"


def test_nothing_is_cut_off_in_a_narrow_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    with contextlib.redirect_stdout(terminal):
        train(shown(1), validate=True)
    for line in last_drawn(terminal.getvalue()):
        assert "val_loss: " in line


@pytest.mark.behaviour("progress")
def test_bar_shows_the_values_of_each_batch(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With a second between any two looks at the clock, every update is drawn.
    ticks = itertools.count()
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(ticks)))
    with contextlib.redirect_stdout(terminal):
        train(shown(1))
    for value in ("0.0000", "0.1000", "0.2000", "1.0000", "1.1000", "1.2000"):
        assert any(bar.endswith(f", loss: {value}") for bar in bars(terminal.getvalue()))
    for count in range(STEPS + 1):
        assert any(f": {count}/3 |" in bar for bar in bars(terminal.getvalue()))


def test_bar_of_unknown_length(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        train(shown(1), steps=None)
    drawn = bars(terminal.getvalue())
    assert drawn[0].startswith("Epoch 1/2: 0/?")
    assert "Epoch 2/2: 0/3 |            | 00:00<?, ?step/s" in drawn  # The first epoch has told.
    assert last_drawn(terminal.getvalue())[0].startswith("Epoch 1/2 - ")


def test_bars_of_evaluate_and_predict(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        evaluate(shown(1))
        predict(shown(1))
    (line,) = last_drawn(terminal.getvalue())
    assert line.startswith("Evaluate - ")
    assert line.endswith(" - loss: 0.3126 - accuracy: 0.5000")
    drawn = bars(terminal.getvalue())
    assert drawn[0].startswith("Evaluate: 0/?")
    assert any(bar.startswith("Predict: 0/3 |") for bar in drawn)


@pytest.mark.parametrize("verbose", ["auto", 1, 2])
def test_lines_without_a_terminal(capsys: pytest.CaptureFixture[str], verbose: Any) -> None:
    train(shown(verbose), validate=True)
    evaluate(shown(verbose))
    predict(shown(verbose))
    out, err = capsys.readouterr()
    assert re.fullmatch(
        r"Epoch 1/2 - \d+\.\ds - loss: 0\.7123 - accuracy: 0\.2500 - val_loss: 0\.9000\n"
        r"Epoch 2/2 - \d+\.\ds - loss: 1\.7123 - accuracy: 0\.2500 - val_loss: 1\.9000\n"
        r"Evaluate - \d+\.\ds - loss: 0\.3126 - accuracy: 0\.5000\n",
        out,
    )
    assert err == ""


def test_lines_on_a_terminal_where_asked(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        train(shown(2))
    assert terminal.getvalue().count("\n") == EPOCHS
    assert "\r" not in terminal.getvalue()


@pytest.mark.parametrize("verbose", [0, False])
def test_silent(terminal: Terminal, verbose: Any) -> None:
    bar = shown(verbose)
    with contextlib.redirect_stdout(terminal):
        train(bar)
        evaluate(bar)
        predict(bar)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("verbose", ["auto", 2])
def test_programs_without_standard_output(monkeypatch: pytest.MonkeyPatch, verbose: Any) -> None:
    bar = shown(verbose)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        train(bar)
    assert bar.params["epochs"] == EPOCHS


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_closing_after_an_exception(terminal: Terminal, error: type[BaseException]) -> None:
    bar = shown(1)
    bar.set_params({"epochs": EPOCHS, "steps": STEPS})

    def interrupted() -> None:
        with contextlib.redirect_stdout(terminal), let_go(bar):
            bar.on_train_begin()
            bar.on_epoch_begin(0)
            bar.on_train_batch_end(0, {"loss": 0.5})
            raise error

    with pytest.raises(error):
        interrupted()
    assert terminal.getvalue().endswith("\n")
    assert last_drawn(terminal.getvalue())[0].startswith("Epoch 1/2: 1/3 |####")
    seen = terminal.getvalue()
    bar._let_go()
    assert terminal.getvalue() == seen


def test_closed_training_leaves_evaluation_working(capsys: pytest.CaptureFixture[str]) -> None:
    bar = shown(2)
    bar.on_train_begin()
    bar.on_epoch_begin(0)
    bar._let_go()
    evaluate(bar)
    assert capsys.readouterr().out.startswith("Evaluate - ")


def test_no_thread_is_left(terminal: Terminal) -> None:
    before = set(threading.enumerate())
    bar = shown(1)
    with contextlib.redirect_stdout(terminal), let_go(bar):
        bar.on_epoch_begin(0)
        assert "Epoch 1/?" in terminal.getvalue()
        assert set(threading.enumerate()) == before


@cases(
    ("value", "text"),
    [
        (0.30119, "0.3012"),
        (12345.678, "12345.6780"),
        (0.00099, "9.9000e-04"),
        (-1e-7, "-1.0000e-07"),
        (0.001, "0.0010"),
        (0, "0.0000"),
        (np.float32(0.5), "0.5000"),
        (np.array(2.0), "2.0000"),
        (np.array([2.0, 1.0]), "1.5000"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("fast", "fast"),
        (None, "None"),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert format_logs({"a": value, "b": 1.0}) == f"a: {text} - b: 1.0000"


@cases("verbose", [3, -1, "foo", None, 0.5])
def test_verbose_refused(verbose: Any) -> None:
    with pytest.raises(ValueError, match=r'must be "auto", 0, 1 or 2\. Received: verbose='):
        shown(verbose)
