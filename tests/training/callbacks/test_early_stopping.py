"""What `EarlyStopping` leaves where `fit` does not end as it should."""

import signal
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.arange(6.0, dtype=np.float32)[:, np.newaxis] / 6


def interrupts() -> None:
    signal.raise_signal(signal.SIGINT)


def fails() -> None:
    raise OSError("mine")


@pytest.mark.behaviour("best-weights")
@pytest.mark.usefixtures("python_interrupts")
@pytest.mark.parametrize(
    ("ends", "error"), [(interrupts, KeyboardInterrupt), (fails, OSError)], ids=["Ctrl-C", "error"]
)
def test_the_weights_are_the_last_steps_and_the_best_are_kept(
    ends: Any, error: type[BaseException], make_line: Any
) -> None:
    class Looks(mr.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 3:
                ends()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(self.model.get_weights())

    seen: list[Any] = []
    stop = mr.callbacks.EarlyStopping("loss", mode="max", patience=9, restore_best_weights=True)
    model = make_line(0.1)
    with pytest.raises(error):
        model.fit(X, -X, epochs=9, verbose=0, callbacks=[stop, Looks()])
    assert len(seen) == 3
    assert stop.best_epoch == 0
    np.testing.assert_array_equal(stop.best_weights, seen[0])
    np.testing.assert_array_equal(model.get_weights(), seen[2])
    assert not np.array_equal(seen[0], seen[2])
    model.set_weights(stop.best_weights)
    model.fit(X, -X, verbose=0, callbacks=[stop])  # It begins anew.
    np.testing.assert_array_equal(stop.best_weights, model.get_weights())
