"""Ctrl-C while a model trains: the step ends first, and training may go on.

What the user had set to happen on Ctrl-C is in force again.
"""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr


@pytest.mark.usefixtures("python_interrupts")
def test_ctrl_c(
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    """The step ends first; tests/training/test_interrupt.py has every place where it may come."""

    class Interrupts(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    check_refused(
        make_model(strategy),
        lambda model: train(model, callbacks=[Interrupts()]),
        KeyboardInterrupt,
        steps=1,
    )
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
