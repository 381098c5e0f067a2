"""The line of an epoch beside what callbacks print and add; `test_progress.py` has the bars."""

import re
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.ones((4, 1), np.float32)
C = mr.callbacks


@pytest.mark.parametrize("given", [[], [C.ProgbarLogger]])
@pytest.mark.parametrize(("verbose", "lines"), [(0, 0), (2, 2)])
def test_one_line_an_epoch_whoever_made_the_logger(
    given: Any, verbose: int, lines: int, make_line: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    make_line().fit(X, X, epochs=2, verbose=verbose, callbacks=[each() for each in given])
    assert capsys.readouterr().out.count("\n") == lines


def test_what_callbacks_say_and_add(make_line: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """As in Keras, what they print of an epoch stands before its line, which has what they add."""
    rates = C.LearningRateScheduler(lambda epoch, rate: 0.5, verbose=1)
    ends = C.LambdaCallback(
        on_epoch_end=lambda *_: print("ends"), on_train_end=lambda _: print("-")
    )
    make_line().fit(X, X, verbose=2, callbacks=[ends, rates])
    blank, said, ended, line, last = capsys.readouterr().out.splitlines()
    assert (blank, ended, last) == ("", "ends", "-")
    assert said == "Epoch 1: LearningRateScheduler setting learning rate to 0.5."
    assert re.fullmatch(r"Epoch 1/1 - .* - loss: 0\.0000 - learning_rate: 0\.5000", line)


def test_in_an_evaluation_and_a_prediction(
    make_line: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_line()
    model.evaluate(X, X, verbose=2, callbacks=[C.ProgbarLogger()])
    model.predict(X, verbose=2, callbacks=[C.ProgbarLogger()])
    assert re.fullmatch(r"Evaluate - \d\.\ds - loss: 0\.0000\n", capsys.readouterr().out)
