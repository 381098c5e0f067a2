"""What workers on emulated cards do where one of them fails: a program for `ranks.run_ranks`.

A file says what happens to the last worker after two steps of training, or as it connects.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import stand_ins

import mirrored as mr
from mirrored.distribute.experimental import CommunicationOptions

STEPS, DEADLINE = 6, 1.0


def _raise() -> None:
    raise OSError("the disk is gone")


FAULTS: dict[str, Callable[[], object]] = {
    "raises": _raise,
    "ends": lambda: sys.exit(0),
    "hangs": lambda: time.sleep(4 * DEADLINE),
}


class Keeps(mr.callbacks.Callback):
    """Keeps the weights after each step, and lets a worker fail after the second."""

    def __init__(self, fault: Callable[[], object] | None) -> None:
        super().__init__()
        self.states: list[np.ndarray] = []
        self._fault = fault

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keep them, or fail."""
        self.states.append(self.model.get_weights()[0])
        if batch == 1 and self._fault is not None:
            self._fault()


def main() -> None:
    """Train, and print what is raised, and whether the weights are those of a whole step."""
    stand_ins.install(compile_all=False)
    fault = Path("fault").read_text()
    seconds = DEADLINE if fault == "hangs" else 60.0
    strategy = mr.distribute.MultiWorkerMirroredStrategy(
        communication_options=CommunicationOptions(timeout_seconds=seconds)
    )
    is_last = strategy.cluster_resolver.task_id == strategy.workers.count - 1
    if fault == "refuses" and is_last:
        stand_ins.machine().fail("ncclCommInitRank", 2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(2, use_bias=False)])
        model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(4 * STEPS, 3)).astype(np.float32)
    keeps = Keeps(FAULTS.get(fault) if is_last else None)
    keeps.states.append(model.get_weights()[0])
    try:
        model.fit(x, x[:, :2], batch_size=4, verbose=0, callbacks=[keeps])
    except Exception as error:
        now = model.get_weights()[0]
        print(type(error).__name__, "|", *str(error).splitlines())
        print("of", getattr(error, "worker", None), [np.array_equal(now, w) for w in keeps.states])
        raise


if __name__ == "__main__":
    main()
