"""The cost per step of saving a checkpoint of `wide` every 50 steps, with a thread and without.

`python -m benchmarks.saving` prints a table. The ways are timed alternately, so that all of them
have the same share of what else the machine does.
"""

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mirrored as mr
from benchmarks import machine
from benchmarks.workloads import TIMED, Workload, make_data

WAYS: dict[str, bool | None] = {"no save": None, "asynchronous": True, "synchronous": False}


class Save(mr.callbacks.Callback):
    """Writes a checkpoint of the model and its optimizer every N steps."""

    def __init__(self, path: Path, every: int, asynchronous: bool) -> None:
        super().__init__()
        self.path, self.every, self.asynchronous = path, every, asynchronous
        self.checkpoint: mr.train.Checkpoint | None = None
        self.seconds: list[float] = []

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks at whether to save."""
        return self.every

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Save where it is time."""
        if self.checkpoint is None:
            self.checkpoint = mr.train.Checkpoint(model=self.model)
        if (batch + 1) % self.every == 0:
            start = time.perf_counter()
            self.checkpoint.write(self.path, asynchronous=self.asynchronous)
            self.seconds.append(time.perf_counter() - start)


def network(workload: Workload) -> mr.Model:
    """Return a compiled model of dense layers."""
    layers: list[Any] = [mr.layers.Input(workload.sizes[:1])]
    layers += [mr.layers.Dense(size, "relu") for size in workload.sizes[1:-1]]
    model = mr.Sequential([*layers, mr.layers.Dense(workload.sizes[-1])])
    loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(mr.optim.SGD(workload.learning_rate, workload.momentum), loss)
    return model


def batches(workload: Workload) -> mr.data.Dataset:
    """Return the batches that it trains on, over and over."""
    return mr.data.Dataset.from_tensor_slices(make_data(workload)).batch(workload.batch).repeat()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where checkpoints go; the default is a temporary one")
    options = parser.parse_args(arguments)
    logging.getLogger("mirrored").setLevel(logging.WARNING)
    workload = TIMED["wide"]
    model, data = network(workload), batches(workload)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "checkpoint")
        saves = {
            way: [] if kind is None else [Save(path, options.every, kind)]
            for way, kind in WAYS.items()
        }
        for callbacks in saves.values():  # The first one records, and reserves memory.
            model.fit(data, steps_per_epoch=options.every, verbose=0, callbacks=callbacks)
        for _ in range(options.rounds):
            for way, callbacks in saves.items():
                start = time.perf_counter()
                model.fit(data, steps_per_epoch=options.steps, verbose=0, callbacks=callbacks)
                seconds[way].append((time.perf_counter() - start) / options.steps)
        size = path.stat().st_size / 1e6
    least = min(seconds["no save"])
    print(f"{machine.describe()}\n\nA checkpoint has {size:.0f} MB.\n")
    print("| way | ms per step, median | least | times no save | ms of a call, median |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way, times in seconds.items():
        figures = [statistics.median(times) * 1e3, min(times) * 1e3]
        calls = [second for save in saves[way] for second in save.seconds[1:]]
        call = f"{statistics.median(calls) * 1e3:.0f}" if calls else ""
        middle, fastest = (f"{figure:.1f}" for figure in figures)
        print(f"| {way} | {middle} | {fastest} | {min(times) / least:.2f} | {call} |")


if __name__ == "__main__":
    main()
